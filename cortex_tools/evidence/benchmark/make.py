"""Making a label from a live search, so that nobody has to write provenance by hand."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.domain import values
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import reading
from cortex_tools.evidence.benchmark import labels
from cortex_tools.evidence.reading import Unreadable
from cortex_tools.files.durable import sync
from cortex_tools.files.names import shown
from cortex_tools.files.root import pin_root, requested_root
from cortex_tools.files.walk import corpus_folder, would_list
from cortex_tools.library import run_cortex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RETURNED = limits.PAGE_SIZE
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Wanted:
    """What the operator asks for: the query, the IDs, an ID of the label's own or None, a root or None."""

    __slots__ = ("expected", "false", "id", "order", "query", "root")

    def __init__(
        self, query: str, expected: list[str], order: list[str], false: list[str], id: str | None, root: str | None
    ) -> None:
        self.query = query
        self.expected = expected
        self.order = order
        self.false = false
        self.id = id
        self.root = root


def make(wanted: Wanted, taken: set[str]) -> bytes:
    """A label's line, from a search run now; `taken` are IDs of labels that it must not have.

    Raises CortexError where the search fails, did not return an expected ID, or the label is not sound.
    """
    values.query(wanted.query)
    if not wanted.expected:
        raise invalid_input("--expect is required; give the IDs that the query should find")
    searched = ["search", wanted.query, "--page-size", str(_RETURNED)]
    if wanted.root is not None:
        searched += ["--memory-root", wanted.root]
    now = format_ms(time.time_ns() // 1_000_000)
    returned = _returned_ids(searched)
    for id in wanted.expected:
        if id not in returned:
            raise invalid_input(
                f"the search did not return {shown(id)} among its first {_RETURNED}; "
                "expect what a query finds, or ask another query"
            )
    row: dict[str, Any] = {"id": _label_id(wanted, taken), "query": wanted.query, "expected_ids": wanted.expected}
    if wanted.order:
        row["temporal_expected_order"] = wanted.order
    if wanted.false:
        row["false_ids"] = wanted.false
    row["provenance"] = _provenance(wanted, ["cortex", *searched], now, returned)
    try:
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise invalid_input("an ID is not UTF-8") from None
    try:
        labels.parse(line)
    except labels.Fault as fault:
        raise invalid_input(f"this makes no label: {fault}") from None
    return line + b"\n"


def _returned_ids(arguments: list[str]) -> list[str]:
    _, envelope = run_cortex(arguments)
    if not envelope["ok"]:
        raise CortexError(envelope["error"]["code"], envelope["error"]["message"])
    return [card["id"] for card in envelope["data"]["items"]]


def _label_id(wanted: Wanted, taken: set[str]) -> str:
    if wanted.id is not None:
        if wanted.id in taken:
            raise invalid_input(f"--id {shown(wanted.id)} is taken by another label; give another one")
        return wanted.id
    slug = re.sub("[^a-z0-9]+", "-", wanted.query.lower()).strip("-")[:64].rstrip("-")
    made = f"{slug}-{hashlib.sha256(wanted.query.encode()).hexdigest()[:8]}"
    number = 1
    unique = made
    while unique in taken:
        number += 1
        unique = f"{made}-{number}"
    return unique


def _provenance(wanted: Wanted, command: list[str], now: str, returned: list[str]) -> dict[str, Any]:
    return {
        "schema": labels.PROVENANCE_SCHEMA,
        "query_execution": {
            "method": labels.EXECUTION_METHOD,
            "command": command,
            "executed_at": now,
            "query": wanted.query,
            "returned_ids": returned,
        },
        "expected_ids_verification": {
            "method": labels.VERIFICATION_METHOD,
            "verified_at": now,
            "verifier": labels.VERIFIER,
            "verified_ids": wanted.expected,
        },
    }


def taken_ids(path: str) -> set[str]:
    """The IDs of the labels that a file holds already; none where it is missing or empty."""
    try:
        os.close(reading.open_path(path))
        if os.path.getsize(path) == 0:
            return set()
    except reading.Missing:
        return set()
    except Unreadable as error:
        raise invalid_input(f"{shown(path)} {error}") from None
    return {label.id for _, label in labels.read(path).rows}


def check_place(path: str, asked: str | None) -> None:
    """Raise invalid_input where the corpus of the root that was searched takes, or would take, the file for a note."""
    root = pin_root(requested_root(None, asked))
    try:
        folder, name = os.path.split(os.fsencode(path))
        below = os.path.relpath(os.path.join(os.path.realpath(folder), name), root.path)
        if below.split(b"/")[0] != b".." and would_list(corpus_folder(root), os.fsdecode(below)):
            raise invalid_input(
                f"{shown(path)} would count as a note and spoil the corpus; give a file outside the memory root, "
                "or make a folder KNOWLEDGE in the root, move the notes into it and give a file beside it"
            )
    except (OSError, ValueError):
        pass  # it cannot be written either, and that is said in its turn
    finally:
        root.close()


def append(path: str, line: bytes) -> None:
    """Add a label's line to the file, which is made where it is missing; raises invalid_input."""
    try:
        descriptor = os.open(os.fsencode(path), _APPEND, 0o600)  # it holds queries
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name cannot be a path"
        raise invalid_input(f"{shown(path)} cannot be written: {reason}") from None
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if size + len(line) > limits.LABEL_FILE_BYTES:
            raise invalid_input(f"{shown(path)} would have more than {limits.LABEL_FILE_BYTES} bytes; begin another")
        if os.write(descriptor, line) != len(line):
            raise invalid_input(f"{shown(path)} was not written whole: the disk is full; remove its last line")
        sync(descriptor)
    except OSError as error:
        raise invalid_input(f"{shown(path)} cannot be written: {error.strerror}") from None
    finally:
        os.close(descriptor)
