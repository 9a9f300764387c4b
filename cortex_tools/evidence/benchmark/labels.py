"""Labelled queries: reading and judging them, each with the proof of where its IDs come from."""

from __future__ import annotations

import hashlib
import json
import os
import re

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.domain import values
from cortex_tools.domain.text import has_control, text_fault, utf16_length
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.evidence import reading
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

PROVENANCE_SCHEMA = "lifeos-cortex-benchmark-label-provenance/v1"
EXECUTION_METHOD = "live-cortex-cli"
VERIFICATION_METHOD = "manual-corpus-verification"
VERIFIER = "upgrade-validation"

_REQUIRED = ("id", "query", "expected_ids", "provenance")
_OPTIONAL = ("temporal_expected_order", "false_ids")
_EXECUTION = ("method", "command", "executed_at", "query", "returned_ids")
_VERIFICATION = ("method", "verified_at", "verifier", "verified_ids")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


class Label:
    """A query, the IDs it should find, the order in which they should come, and IDs it should not find."""

    __slots__ = ("expected", "false", "id", "order", "query")

    def __init__(self, id: str, query: str, expected: list[str], order: list[str], false: list[str]) -> None:
        self.id = id
        self.query = query
        self.expected = expected
        self.order = order
        self.false = false


class Labels:
    """All labels of a file with their line numbers, and the SHA-256 of its bytes in hex."""

    __slots__ = ("digest", "rows", "shown_path")

    def __init__(self, shown_path: str, rows: list[tuple[int, Label]], digest: str) -> None:
        self.shown_path = shown_path
        self.rows = rows
        self.digest = digest

    def check_ids(self, known: Container[str]) -> None:
        """Raise invalid_input, with file and line, for an ID that the corpus does not hold."""
        for number, label in self.rows:
            for id in (*label.expected, *label.order, *label.false):
                if id not in known:
                    raise _at(self.shown_path, number, f"the corpus has no record {shown(id)}; correct the label")


class Fault(Exception):
    """What is wrong with a row, in words that fit after `FILE:LINE: `."""


def read(path: str) -> Labels:
    """The labels of a file, none of them looked up in a corpus yet.

    Raises invalid_input, naming file and line, for anything that is not exactly a label.
    """
    data = _read(path)
    where = shown(path)
    rows: list[tuple[int, Label]] = []
    first: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        if len(rows) == limits.LABELS:
            raise _at(where, number, f"more than {limits.LABELS} labels; split the file")
        try:
            label = parse(line)
        except Fault as fault:
            raise _at(where, number, str(fault)) from None
        except CortexError as error:
            raise _at(where, number, error.message) from None
        if label.id in first:
            raise _at(where, number, f"the ID stands in line {first[label.id]} already; give it another one")
        first[label.id] = number
        rows.append((number, label))
    if not rows:
        raise invalid_input(f"{where} holds no label; cortex-benchmark label makes one")
    return Labels(where, rows, hashlib.sha256(data).hexdigest())


def _read(path: str) -> bytes:
    try:
        opened = reading.open_path(path)
    except Missing:
        raise invalid_input(f"{shown(path)} is missing; cortex-benchmark label makes labels") from None
    except Unreadable as error:
        raise invalid_input(f"{shown(path)} {error}") from None
    try:
        return reading.read_small(opened, limits.LABEL_FILE_BYTES)
    except Unreadable as error:
        raise invalid_input(f"{shown(path)} {error}") from None
    finally:
        os.close(opened)


def _at(where: str, number: int, words: str) -> CortexError:
    return invalid_input(f"{where}:{number}: {words}")


def parse(line: bytes) -> Label:
    """The label of one line; raises an exception whose words say what is wrong with it."""
    row = _object(line)
    _fields(row, "the label", _REQUIRED, _OPTIONAL)
    _refuse_text_faults(row)
    id, query = row["id"], row["query"]
    if not isinstance(id, str) or not id.strip() or utf16_length(id) > limits.LABEL_ID_UNITS:
        raise Fault(f"id must be a string of 1 to {limits.LABEL_ID_UNITS} characters")
    if not isinstance(query, str):
        raise Fault("query must be a string")
    values.query(query)
    expected = _ids(row["expected_ids"], "expected_ids", least=1)
    order = (
        _ids(row["temporal_expected_order"], "temporal_expected_order", least=1) if _OPTIONAL[0] in row else expected
    )
    false = _ids(row["false_ids"], "false_ids", least=0) if "false_ids" in row else []
    if set(expected) & set(false):
        raise Fault("an ID stands in expected_ids and in false_ids; it can only be one of them")
    _check_provenance(row["provenance"], query, expected)
    return Label(id, query, expected, order, false)


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault(f"not UTF-8 at byte {error.start} of the line") from None
    if has_control(line):
        raise Fault("a control character; remove it")
    try:
        row = _decode(text)
    except (RecursionError, ValueError):
        raise Fault("not one valid JSON value, or a key stands twice in it") from None
    if not isinstance(row, dict):
        raise Fault("the row is no JSON object")
    return row


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a repeated key")
    return value


_decode = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique).decode


def _fields(value: Any, name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(value, dict):
        raise Fault(f"{name} must be an object")
    missing = [field for field in required if field not in value]
    if missing:
        raise Fault(f"{name} lacks {', '.join(missing)}")
    if not set(value) <= {*required, *optional}:
        raise Fault(f"{name} has a field that is not allowed; it has only {', '.join(required + optional)}")


def _refuse_text_faults(value: Any) -> None:
    """Escapes may hide what the line itself may not hold."""
    if isinstance(value, str):
        fault = text_fault(value)
        if fault is not None:
            raise Fault(f"a string holds {fault}; remove it")
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_text_faults(part)


def _ids(value: Any, name: str, *, least: int, most: int = limits.EXPECTED_IDS) -> list[str]:
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise Fault(f"{name} must be a list of {least} to {most} IDs")
    if not all(isinstance(id, str) and id for id in value):
        raise Fault(f"{name} must hold non-empty strings")
    if len(set(value)) != len(value):
        raise Fault(f"{name} holds an ID twice")
    return value


def _check_provenance(provenance: Any, query: str, expected: list[str]) -> None:
    parts = ("schema", "query_execution", "expected_ids_verification")
    _fields(provenance, "provenance", parts)
    _const(provenance["schema"], PROVENANCE_SCHEMA, "provenance.schema")
    execution = provenance["query_execution"]
    _fields(execution, "query_execution", _EXECUTION)
    _const(execution["method"], EXECUTION_METHOD, "query_execution.method")
    _check_command(execution["command"], query)
    _moment(execution["executed_at"], "executed_at")
    _const(execution["query"], query, "query_execution.query")
    returned = _ids(execution["returned_ids"], "returned_ids", least=1, most=limits.RECORDS)
    if not set(expected) <= set(returned):
        raise Fault("an expected ID is not among returned_ids: the search did not return it")
    verification = provenance["expected_ids_verification"]
    _fields(verification, "expected_ids_verification", _VERIFICATION)
    _const(verification["method"], VERIFICATION_METHOD, "expected_ids_verification.method")
    _moment(verification["verified_at"], "verified_at")
    _const(verification["verifier"], VERIFIER, "verifier")
    if verification["verified_ids"] != expected:
        raise Fault("verified_ids must equal expected_ids")


def _const(value: Any, wanted: str, name: str) -> None:
    if value != wanted:
        raise Fault(f"{name} must be {'the query of the label' if name.endswith('query') else wanted}")


def _check_command(command: Any, query: str) -> None:
    most = limits.COMMAND_PARTS
    if not isinstance(command, list) or not 1 <= len(command) <= most:
        raise Fault(f"command must be a list of 1 to {most} parts")
    if not all(isinstance(part, str) and part for part in command):
        raise Fault("command must hold non-empty strings")
    if sum(len(part.encode()) for part in command) > limits.COMMAND_BYTES:
        raise Fault(f"command has more than {limits.COMMAND_BYTES} bytes")
    if "search" not in command or query not in command:
        raise Fault("command must hold search and the query as parts of their own")


def _moment(value: Any, name: str) -> None:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value) or parse_ms(value) is None:
        raise Fault(f"{name} must be a time in UTC with milliseconds, such as 2026-03-10T12:00:00.000Z")
