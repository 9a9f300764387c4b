"""JSON text in and out, by the interpreter's own C functions.

The json package wraps these in modules of regular expressions whose import costs 8 ms, a sixth of a whole
search of 300 notes; so the path of a read goes without it.  An interpreter without `_json` takes the package.
"""

from __future__ import annotations

try:
    from _json import encode_basestring as quote
    from _json import make_scanner as _make_scanner
except ImportError:
    from json.encoder import encode_basestring as quote
    from json.scanner import make_scanner as _make_scanner

from cortex_tools.domain.numbers import js_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["json_text", "json_value", "quote", "quote_long"]

_BLANKS = " \t\r\n"


class _Strict:
    """What the scanner wants to know of its caller: plain values, and no NaN or Infinity."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> object:
        raise ValueError(f"{name} is no JSON")

    memo: dict[str, str] = {}


_scan = _make_scanner(_Strict())  # type: ignore[arg-type]  # anything with these attributes will do


def json_value(text: str) -> Any:
    """The one JSON value that `text` is; raises ValueError where it is none or more, RecursionError where too deep.

    Of a repeated key the last value counts, as JSON.parse has it.
    """
    text = text.strip(_BLANKS)
    try:
        value, end = _scanned(text)
    except StopIteration:
        raise ValueError("no JSON value") from None
    if end != len(text):
        raise ValueError("text after the JSON value")
    return value


def _scanned(text: str) -> tuple[Any, int]:
    try:
        return _scan(text, 0)
    except SystemError:
        # The scanner finds the class of its error in json.decoder, and fails to fail before that is imported.
        import json.decoder  # noqa: F401

        return _scan(text, 0)


def quote_long(text: str) -> str:
    """As `quote`, a third of its cost for a note's text; `text` holds no control but tab, LF and CR.

    Looking for one character goes many bytes at a time, `quote` goes character by character, twice.
    """
    for char, escape in _ESCAPES:
        if char in text:
            text = text.replace(char, escape)
    return f'"{text}"'


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def json_text(value: Any) -> str:
    """Compact JSON as the contract prints it; raises TypeError for what is no JSON value, ValueError for NaN."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{quote(key)}:{json_text(part)}" for key, part in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([json_text(part) for part in value]) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return js_number(value)
    raise TypeError(f"no JSON value: {type(value).__name__}")
