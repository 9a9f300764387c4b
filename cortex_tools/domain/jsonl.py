"""JSONL rows: strict JSON, one record a line (section 6)."""

from __future__ import annotations

from cortex_tools.contract.errors import Unsound, refuse
from cortex_tools.domain.jsontext import json_value
from cortex_tools.domain.privacy import may_hold_tag, strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import has_control, is_blank, text_fault, without_controls
from cortex_tools.domain.timestamps import parse_ms

TYPE_CHECKING = False  # as typing has it, whose import costs more than parsing a hundred rows
if TYPE_CHECKING:
    from typing import Any

    from cortex_tools.domain.records import Report

REQUIRED = ("id", "type", "title", "created", "updated", "content")
OPTIONAL = ("source_kind", "source", "source_session", "related", "valid_from", "valid_until")
_ALLOWED = frozenset(REQUIRED + OPTIONAL)


# Where a field is wrong and has been reported, this lets the rest of its row be judged as if it were right.
_STAND_INS: dict[str, Any] = {
    "created": "0100-01-01",  # before every `updated`
    "updated": "9999-12-31T23:59:59.999-23:59",  # after every `created`
    "source_session": None,
    "related": [],
    "valid_from": None,
    "valid_until": None,
}


def parse_row(line: str, path: str, number: int, report: Report = refuse) -> Record | None:
    """The record of line `number` (from 1) of the file `path`; `line` is decoded and not blank.

    Raises integrity_error, naming `path:number` and the field, for what section 6 refuses.  None where
    the line is no row at all and `report` has taken that.
    """
    where = f"{path}:{number}"
    row = _object(strip_private(line), where, report)
    if row is None:
        return None
    _check_fields(row, where, report)
    # Where every backslash stands for a line end of the content, as in most rows, no escape can have brought in
    # a control or a bracket, nor can one have stood inside a tag where there is no bracket.
    if "\\" in line and (line.count("\\") != row["content"].count("\n") or may_hold_tag(line)):
        row = _unescaped(row, where, report)
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
        report,
    )


def _unescaped(row: dict[str, Any], where: str, report: Report) -> dict[str, Any]:
    """The row with its strings checked and stripped once more, now that escapes have become characters."""
    texts = [text for value in row.values() for text in (value if isinstance(value, list) else (value,)) if text]
    together = "\n".join(texts)  # one look at all of them; a line end stands in no tag, and is no fault
    if text_fault(together):
        _report_faults(row, where, report)
    if may_hold_tag(together):
        return {name: _stripped(value) for name, value in row.items()}
    return row


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return strip_private(value)
    return [strip_private(text) for text in value] if isinstance(value, list) else value


def _report_faults(row: dict[str, Any], where: str, report: Report) -> None:
    for name, value in list(row.items()):
        texts = value if isinstance(value, list) else (value,)
        fault = next(filter(None, (text_fault(text) for text in texts if text is not None)), None)
        if fault is not None:
            _bad(row, name, f"{name} holds {fault}", "remove it", where, report)


def _bad(row: dict[str, Any], name: str, what: str, mend: str, where: str, report: Report) -> None:
    """Report what is wrong with a field and let something right stand in for it."""
    report(Unsound(where, what, mend, field=name))
    row[name] = _STAND_INS.get(name, where)


def _object(line: str, where: str, report: Report) -> dict[str, Any] | None:
    try:
        row = json_value(line)
    except RecursionError:
        report(Unsound(where, "the row nests too deeply", "a row is one flat JSON object"))
        return None
    except ValueError:
        data = line.encode("utf-8", "surrogatepass")
        if has_control(data):
            report(Unsound(where, CONTROL, REMOVE_CONTROL))
            return _object(without_controls(data).decode("utf-8", "surrogatepass"), where, report)
        # Its own words would quote the line.
        report(Unsound(where, "not one valid JSON value", "correct or remove the line"))
        return None
    if not isinstance(row, dict):
        report(Unsound(where, "the row is no JSON object", "correct or remove the line"))
        return None
    return row


def _check_fields(row: dict[str, Any], where: str, report: Report) -> None:
    for name in REQUIRED:
        value = row.get(name)
        if isinstance(value, str) and "!" <= value < "\x7f":
            continue  # it begins with ASCII that is no blank, as nearly always; what follows finds out what is wrong
        if name not in row:
            _bad(row, name, f"{name} is missing", "add it, or remove the line", where, report)
        elif _is_void(value):
            _bad(row, name, f"{name} {_VOID}", _FILL, where, report)
    if len(row) == len(REQUIRED):
        return
    if not _ALLOWED.issuperset(row):
        report(Unsound(where, "a field is not allowed", f"a row has only {', '.join(REQUIRED + OPTIONAL)}"))
        for name in row.keys() - _ALLOWED:
            del row[name]
    for name in ("source_kind", "source"):
        if name in row and _is_void(row[name]):
            _bad(row, name, f"{name} {_VOID}", _FILL, where, report)
    if not isinstance(row.get("source_session"), (str, type(None))):
        _bad(row, "source_session", "source_session is neither a string nor null", _FILL, where, report)
    related = row.get("related", [])
    if not isinstance(related, list):
        _bad(row, "related", "related is no list of strings", _FILL, where, report)
    elif any(map(_is_void, related)):
        _bad(row, "related", f"a link in related {_VOID}", _FILL, where, report)
    for name in ("valid_from", "valid_until"):
        bound = row.get(name)
        if bound is not None and (not isinstance(bound, str) or parse_ms(bound) is None):
            what = f"{name} is neither a timestamp nor null"
            _bad(row, name, what, "write YYYY-MM-DD, or leave the field out", where, report)


# What is said of a control character as it stands, not as an escape, wherever it is found.
CONTROL, REMOVE_CONTROL = "holds a control character", "remove it"

_VOID = "is not a string with something in it"
_FILL = "correct it, or remove the line"


def _is_void(value: Any) -> bool:
    return not isinstance(value, str) or is_blank(value)
