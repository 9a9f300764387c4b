"""Lines: one JSON object each, `kind` first, as values and back (docs/streams.md).

A line that is read is checked in full, whoever wrote it: shape, times, controls, and that stripping
would change nothing in it.
"""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.errors import EXIT_STATUS, CortexError, integrity_error
from cortex_tools.contract.options import ADAPTERS
from cortex_tools.domain.envelope import safe_message
from cortex_tools.domain.expansion import Expansion
from cortex_tools.domain.jsontext import json_text, json_value
from cortex_tools.domain.privacy import may_hold_tag, strip_private
from cortex_tools.domain.records import CARD_KEYS, PROVENANCE_KEYS, RECORD_KEYS, Card, Record
from cortex_tools.domain.text import is_blank, text_fault
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.files.walk import NoteFile, format_of
from cortex_tools.streams.items import Anchor, Corpus, Digest, Explanation, Failure, Result, Seal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cortex_tools.streams.items import Item


def encode(item: Item) -> bytes:
    """The line of `item`, line feed included; a line that was read is given back as it was."""
    line = getattr(item, "line", None)
    if line is not None:
        return bytes(line)
    if isinstance(item, (Record, Card, Expansion, Explanation)):
        body = item.json()[1:]
    else:
        body = json_text(_plain(item))[1:]
    return f'{{"kind":"{item.kind}",{body}\n'.encode()


def _plain(item: Item) -> dict[str, object]:
    if isinstance(item, Failure):
        return {
            "code": item.code,
            "exit": EXIT_STATUS[item.code],
            "message": item.message,
            "stage": item.stage,
        }
    fields: dict[str, object] = {name: getattr(item, name) for name in item.__slots__ if name != "line"}
    if fields.get("unsealed") is False:
        del fields["unsealed"]
    return fields


def failure(error: CortexError, stage: str) -> Failure:
    return Failure(error.code, safe_message(error), error.stage or stage)


def decode(line: bytes, where: str, advice: str = "feed the stage from another one") -> Item:
    """The value of one line; raises integrity_error, naming `where`, for anything that is none.

    `advice` says what to do about what is no line at all.
    """
    try:
        fields = json_value(line.decode("utf-8"))
        kind = fields.pop("kind")
        read = _READERS[kind]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise integrity_error(f"{where} is no line of a Cortex stream; {advice}") from None
    complaint = f"{where} is no valid {kind} line"
    item = _read(read, fields, may_hold_tag_bytes(line), complaint, "a filter in between has altered it")
    if isinstance(item, (Record, Card, Expansion)):
        item.line = line if line.endswith(b"\n") else line + b"\n"
    return item


def of_fields(kind: str, fields: dict[str, Any], where: str) -> Item:
    """The value of what a line of `kind` holds beside its kind, wherever it stood; checked like a line."""
    return _read(_READERS[kind], fields, True, f"{where} is no valid {kind}", "it was altered, or written by another")


def _read(
    read: Callable[[dict[str, Any]], Item], fields: dict[str, Any], tags: bool, complaint: str, advice: str
) -> Item:
    try:
        item = read(fields)
        if tags:
            _refuse_markup(fields)
    except (_Fault, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise integrity_error(f"{complaint}; {advice}") from None
    except CortexError as error:
        raise integrity_error(f"{complaint}: {safe_message(error)}") from None
    return item


def may_hold_tag_bytes(line: bytes) -> bool:
    """False where a line of UTF-8 JSON holds no bracket, escaped or plain."""
    return b"<" in line or b"\\u" in line or not line.isascii()


class _Fault(Exception):
    """A field that is not what its kind says."""


def _shape(fields: dict[str, Any], keys: tuple[str, ...]) -> None:
    if len(fields) != len(keys) or any(key not in fields for key in keys):
        raise _Fault


def _text(value: Any) -> str:
    if not isinstance(value, str) or text_fault(value):
        raise _Fault
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _name(value: Any) -> str:
    """A path: it may hold what a file's name may, but no lone surrogate."""
    if not isinstance(value, str):
        raise _Fault
    value.encode()
    return value


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise _Fault
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise _Fault
    number = float(value)
    if number - number != 0:
        raise _Fault
    return number


def _hex(value: Any, digits: int) -> str:
    if not isinstance(value, str) or len(value) != digits or value.strip("0123456789abcdef"):
        raise _Fault
    return value


def _provenance(fields: dict[str, Any]) -> tuple[str, str | None, str]:
    provenance = fields["provenance"]
    _shape(provenance, PROVENANCE_KEYS)
    return _text(provenance["source"]), _text_or_none(provenance["session"]), _name(provenance["path"])


def _corpus(fields: dict[str, Any]) -> Corpus:
    _shape(fields, Corpus.__slots__)
    part, parts = _whole(fields["part"], 1), _whole(fields["parts"], 1)
    if not part <= parts <= limits.CORPUS_FILES:
        raise _Fault
    root = None if fields["root"] is None else _name(fields["root"])
    return Corpus(root, _hex(fields["listing"], 16), part, parts, _whole(fields["files"]), _whole(fields["bytes"]))


def _file(fields: dict[str, Any]) -> NoteFile:
    _shape(fields, NoteFile.__slots__)
    path = _name(fields["path"])
    if _text(fields["format"]) != format_of(path) or _leaves_root(path):
        raise _Fault
    size, dev, ino, mtime_ns = (fields[name] for name in ("bytes", "dev", "ino", "mtime_ns"))
    if type(mtime_ns) is not int or _whole(size) > limits.FILE_BYTES:  # a time is negative before 1970
        raise _Fault
    return NoteFile(path, fields["format"], size, _whole(dev), _whole(ino), mtime_ns)


def _leaves_root(path: str) -> bool:
    return "\0" in path or any(part in ("", ".", "..") for part in path.split("/"))


def _record(fields: dict[str, Any]) -> Record:
    _shape(fields, RECORD_KEYS)
    source, session, path = _provenance(fields)
    related = fields["related"]
    if not isinstance(related, list):
        raise _Fault
    # A title may be the path, and then hold what a path may.
    title = fields["title"] if fields["title"] == path else _text(fields["title"])
    identifier = _text(fields["id"])
    return Record(
        identifier,
        _text(fields["type"]),
        title,
        _text(fields["created"]),
        _text(fields["updated"]),
        source,
        session,
        path,
        _text(fields["content"]),
        [_text(link) for link in related],
        _text_or_none(fields["valid_from"]),
        _text_or_none(fields["valid_until"]),
        path,
    )


def _card(fields: dict[str, Any]) -> Card:
    _shape(fields, CARD_KEYS)
    source, session, path = _provenance(fields)
    score = _number(fields["score"])
    created, updated = _text(fields["created"]), _text(fields["updated"])
    created_ms, updated_ms = parse_ms(created), parse_ms(updated)
    if created_ms is None or updated_ms is None or updated_ms < created_ms:
        raise _Fault
    identifier, type_ = _text(fields["id"]), _text(fields["type"])
    if is_blank(identifier):
        raise _Fault
    return Card(identifier, type_, created, updated, source, session, path, _whole(fields["est_tokens"]), score)


def _explanation(fields: dict[str, Any]) -> Explanation:
    _shape(fields, Explanation.__slots__)
    if not isinstance(fields["terms"], list):
        raise _Fault
    terms = []
    for term in fields["terms"]:
        _shape(term, ("term", "df", "idf", "tf", "share"))
        df, tf = _whole(term["df"]), _whole(term["tf"])
        terms.append((_text(term["term"]), df, _number(term["idf"]), tf, _number(term["share"])))
    records, length = _whole(fields["records"]), _whole(fields["length"])
    average, recency, score = (_number(fields[name]) for name in ("average", "recency", "score"))
    identifier = _text(fields["id"])
    if is_blank(identifier):
        raise _Fault
    return Explanation(identifier, records, length, average, terms, recency, score)


def _anchor(fields: dict[str, Any]) -> Anchor:
    _shape(fields, Anchor.__slots__)
    return Anchor(_text_or_none(fields["id"]), _text(fields["date"]))


def _expansion(fields: dict[str, Any]) -> Expansion:
    _shape(fields, ("items", "est_tokens", "truncated"))
    if type(fields["truncated"]) is not bool or not isinstance(fields["items"], list):
        raise _Fault
    return Expansion([_card(card) for card in fields["items"]], _whole(fields["est_tokens"]), fields["truncated"])


def _digest(fields: dict[str, Any]) -> Digest:
    _shape(fields, Digest.__slots__)
    return Digest(_hex(fields["sha256"], 64), _whole(fields["records"]))


def _result(fields: dict[str, Any]) -> Result:
    _shape(fields, Result.__slots__)
    adapter, result = fields["adapter"], fields["result"]
    if adapter not in ADAPTERS or result["ok"] is not True:
        raise _Fault
    for key in ("type", "path"):
        _text(result[key])
    if not isinstance(result["detail"], dict):
        raise _Fault
    return Result(adapter, result)


def _error(fields: dict[str, Any]) -> Failure:
    _shape(fields, ("code", "exit", "message", "stage"))
    code, message = fields["code"], _name(fields["message"])
    if fields["exit"] != EXIT_STATUS[code] or not message:
        raise _Fault
    return Failure(code, message, _text(fields["stage"]))


def _seal(fields: dict[str, Any]) -> Seal:
    unsealed = fields.pop("unsealed", False)
    _shape(fields, ("stage", "lines", "xxh3"))
    if type(unsealed) is not bool:
        raise _Fault
    return Seal(_text(fields["stage"]), _whole(fields["lines"]), _hex(fields["xxh3"], 16), unsealed)


_READERS: dict[str, Callable[[dict[str, Any]], Item]] = {
    "corpus": _corpus,
    "file": _file,
    "record": _record,
    "card": _card,
    "explanation": _explanation,
    "anchor": _anchor,
    "expansion": _expansion,
    "digest": _digest,
    "result": _result,
    "error": _error,
    "seal": _seal,
}


def _refuse_markup(value: Any) -> None:
    """Raise where any string would be changed by stripping: no stage's output holds such a string."""
    if isinstance(value, str):
        if may_hold_tag(value) and strip_private(value) != value:
            raise _Fault
    elif isinstance(value, dict):
        for part in value.values():
            _refuse_markup(part)
    elif isinstance(value, list):
        for part in value:
            _refuse_markup(part)
