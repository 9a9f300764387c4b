"""Values of options, judged (section 4): each function answers the value or raises invalid_input."""

from __future__ import annotations

import math

from cortex_tools.contract import limits
from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.options import Command, Option
from cortex_tools.domain.ranking import query_terms
from cortex_tools.domain.text import utf16_length
from cortex_tools.domain.timestamps import parse_ms

_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

Value = str | int | float | None


def count(option: Option, text: str | None) -> int | None:
    """A count within the option's bounds; its default where it was not given."""
    if text is None:
        return option.default
    if text.isascii() and text.isdigit():
        digits = text.lstrip("0") or "0"
        # A number longer than the bound is too large; int() would refuse some of those by itself.
        if len(digits) <= len(str(option.high)) and option.low <= int(digits) <= option.high:
            return int(digits)
    raise invalid_input(f"{option.name} must be a whole number from {option.low} to {option.high}, in ASCII digits")


def recency(text: str | None) -> float:
    """A finite weight of at least 0; 0 where it was not given."""
    if text is None:
        return 0.0
    weight = decimal(text)
    if weight is None:
        raise invalid_input("--recency must be a finite number of at least 0, such as 0.5 or 1e3")
    return weight


def decimal(text: str) -> float | None:
    """The finite number of at least 0 that ASCII digits, a fraction and an exponent make; None for anything else."""
    import re  # six milliseconds that only this option is worth

    if re.fullmatch(_DECIMAL, text):
        number = float(text)
        if math.isfinite(number):
            return number
    return None


def time(option: Option, text: str | None) -> int | None:
    """A timestamp in milliseconds since 1970, None where it was not given."""
    if text is None:
        return None
    ms = parse_ms(text)
    if ms is None:
        raise invalid_input(
            f"{option.name} must be a timestamp: YYYY-MM-DD, or that with THH:MM, optional :SS, and Z or +HH:MM"
        )
    return ms


def query(text: str) -> str:
    """A query within its bounds, unchanged."""
    _query_length(text)
    terms = query_terms(text)
    if not terms:
        way_out = "; cortex-rank --tokens unicode finds words of any script, see cortex-plan search"
        raise invalid_input(
            "the query has no term to search for; a term is a run of ASCII letters and digits"
            + (way_out if any(map(str.isalnum, text)) else "")
        )
    _number_of_terms(terms)
    return text


def query_in_words(text: str) -> list[str]:
    """The words of any script in a query within its bounds, repeats included."""
    from cortex_tools.domain.words import query_words  # not on the path of the contract's search

    _query_length(text)
    terms = query_words(text)
    if not terms:
        raise invalid_input("the query has no word to search for; a word is a run of letters and digits of any script")
    _number_of_terms(terms)
    return terms


def _query_length(text: str) -> None:
    if utf16_length(text) > limits.QUERY_UNITS:
        raise invalid_input(f"the query is longer than {limits.QUERY_UNITS} characters; shorten it")


def _number_of_terms(terms: list[str]) -> None:
    if len(terms) > limits.QUERY_TERMS:
        raise invalid_input(f"the query has {len(terms)} terms, more than {limits.QUERY_TERMS}; shorten it")


def required(option: Option, text: str | None) -> str:
    if text is None:
        raise invalid_input(f"{option.name} is required; give {option.metavar} after it")
    return text


def judge(command: Command, name: str, text: str | None) -> Value:
    """The value of the option `name`, or of "query", as `command` declares it; None where it was not given.

    Raises invalid_input for a value outside its grammar or bounds.
    """
    if name == "query":
        return query(text or "")
    option = command.options[name]
    if option.kind == "count":
        return count(option, text)
    if option.kind == "time":
        return time(option, text)
    if option.kind == "recency":
        return recency(text)
    return required(option, text) if name == "--anchor" else text
