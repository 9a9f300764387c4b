"""JSONL rows: strict JSON, one record a line (section 6)."""

from __future__ import annotations

import json

from cortex_tools.contract.errors import integrity_error
from cortex_tools.domain.privacy import may_hold_tag, strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import is_blank, text_fault
from cortex_tools.domain.timestamps import parse_ms

TYPE_CHECKING = False  # as typing has it, whose import costs more than parsing a hundred rows
if TYPE_CHECKING:
    from typing import Any

REQUIRED = ("id", "type", "title", "created", "updated", "content")
OPTIONAL = ("source_kind", "source", "source_session", "related", "valid_from", "valid_until")
_ALLOWED = frozenset(REQUIRED + OPTIONAL)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode
_JSON_BLANKS = " \t\r\n"


def parse_row(line: str, path: str, number: int) -> Record:
    """The record of line `number` (from 1) of the file `path`; `line` is decoded and not blank.

    Raises integrity_error, naming `path:number` and the field, for what section 6 refuses.
    """
    where = f"{path}:{number}"
    row = _object(strip_private(line), where)
    _check_fields(row, where)
    if "\\" in line:  # without an escape a row holds no character that its stripped line does not
        row = _unescaped(row, where)
    return Record(
        row["id"],
        row["type"],
        row["title"],
        row["created"],
        row["updated"],
        row.get("source_kind", row.get("source", "canonical")),
        row.get("source_session"),
        path,
        row["content"],
        row.get("related", []),
        row.get("valid_from"),
        row.get("valid_until"),
        where,
    )


def _unescaped(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The row with its strings checked and stripped once more, now that escapes have become characters."""
    texts = [text for value in row.values() for text in (value if isinstance(value, list) else (value,)) if text]
    together = "\n".join(texts)  # one look at all of them; a line end stands in no tag, and is no fault
    if text_fault(together):
        _refuse_faults(row, where)
    if may_hold_tag(together):
        return {name: _stripped(value) for name, value in row.items()}
    return row


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return strip_private(value)
    return [strip_private(text) for text in value] if isinstance(value, list) else value


def _refuse_faults(row: dict[str, Any], where: str) -> None:
    for name, value in row.items():
        for text in value if isinstance(value, list) else (value,):
            fault = None if text is None else text_fault(text)
            if fault is not None:
                raise integrity_error(f"{where}: {name} holds {fault}; remove it")


def _object(line: str, where: str) -> dict[str, Any]:
    line = line.strip(_JSON_BLANKS)
    try:
        row, end = _decode(line)
        if end != len(line):
            raise ValueError("text after the value")
    except RecursionError:
        raise integrity_error(f"{where}: the row nests too deeply; a row is one flat JSON object") from None
    except ValueError:
        # Its own words would quote the line.
        raise integrity_error(f"{where}: not one valid JSON value; correct or remove the line") from None
    if not isinstance(row, dict):
        raise integrity_error(f"{where}: the row is no JSON object; correct or remove the line")
    return row


def _check_fields(row: dict[str, Any], where: str) -> None:
    for name in REQUIRED:
        if name not in row:
            raise integrity_error(f"{where}: {name} is missing")
        _check_not_blank(row[name], name, where)
    if len(row) == len(REQUIRED):
        return
    if not _ALLOWED.issuperset(row):
        raise integrity_error(f"{where}: a field is not allowed; a row has only {', '.join(REQUIRED + OPTIONAL)}")
    for name in ("source_kind", "source"):
        if name in row:
            _check_not_blank(row[name], name, where)
    if not isinstance(row.get("source_session"), (str, type(None))):
        raise integrity_error(f"{where}: source_session is neither a string nor null")
    related = row.get("related", [])
    if not isinstance(related, list):
        raise integrity_error(f"{where}: related is no list of strings")
    for link in related:
        _check_not_blank(link, "related", where)
    for name in ("valid_from", "valid_until"):
        bound = row.get(name)
        if bound is not None and (not isinstance(bound, str) or parse_ms(bound) is None):
            raise integrity_error(f"{where}: {name} is neither a timestamp nor null")


def _check_not_blank(value: Any, name: str, where: str) -> None:
    if not isinstance(value, str) or is_blank(value):
        raise integrity_error(f"{where}: {name} is not a string with something in it")
