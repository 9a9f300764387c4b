"""What a write must not do to the corpus: change which folder it is, or make it unsound (docs/writing.md).

The reader's own functions judge; nothing of its rules is repeated here.
"""

from __future__ import annotations

import re
import stat

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.records import Record
from cortex_tools.files.reading import parse_note, read_records
from cortex_tools.files.root import Root
from cortex_tools.files.walk import NoteFile, walk
from cortex_tools.governance.folders import Folder
from cortex_tools.governance.places import KNOWLEDGE, LOGS, OBSERVABILITY, SNAPSHOTS
from cortex_tools.governance.refusal import Refusal, write_failed
from cortex_tools.governance.store import Store

# What this suite and the store's other program keep beside the notes.
_BOOKKEEPING = re.compile(rf"{OBSERVABILITY}/(?:{'|'.join(map(re.escape, LOGS))}|{SNAPSHOTS}/[^/]+\.md)")
# No row of a JSONL note is shorter: every required field with one character.
_LEAST_ROW = len('{"id":"x","type":"x","title":"x","created":"2000-01-01","updated":"2000-01-01","content":"x"}')
_TRIES = 20


def is_bookkeeping(path: str) -> bool:
    """Whether a file that the walk of a root without KNOWLEDGE lists is none of the operator's notes."""
    return _BOOKKEEPING.fullmatch(path) is not None


def settle(store: Store, root: Root, base: Folder, *, beside_nested: bool) -> None:
    """See to it that there is a KNOWLEDGE folder; raises EWRITE_FAILED where making one would hide notes.

    With `beside_nested`, a MEMORY/KNOWLEDGE will do.
    """
    try:
        status = store.status(base, KNOWLEDGE)
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISDIR(status.st_mode):
            raise write_failed(f"{KNOWLEDGE} is no folder of its own (a file or a link); move it away")
        return
    if _has_nested_knowledge(store, base):
        if beside_nested:
            return
        raise _elsewhere("MEMORY/KNOWLEDGE")
    if any(not is_bookkeeping(file.path) for file in _list(root)):
        raise _elsewhere("the root itself")
    # Undone last of all: should another writer have begun its logs meanwhile, KNOWLEDGE must be there.
    store.later(KNOWLEDGE, lambda: _restore(store, base), on_refusal=True)
    store.below(base, KNOWLEDGE, make=True)


def ensure(store: Store, base: Folder, *, beside_nested: bool) -> None:
    """Make KNOWLEDGE again where another writer, refused, took back the one it had made."""
    if beside_nested and _has_nested_knowledge(store, base):
        return
    store.below(base, KNOWLEDGE, make=True)


def _restore(store: Store, base: Folder) -> None:
    try:
        store.status(base, OBSERVABILITY)
    except FileNotFoundError:
        return
    store.make(base, KNOWLEDGE)


def _has_nested_knowledge(store: Store, base: Folder) -> bool:
    try:
        if not stat.S_ISDIR(store.status(base, "MEMORY").st_mode):
            return False
        memory = store.below(base, "MEMORY", make=False)
        if memory is not None:
            store.status(memory, KNOWLEDGE)
    except FileNotFoundError:
        return False
    return memory is not None


def _elsewhere(where: str) -> Refusal:
    return write_failed(
        f"the notes lie below {where}, where a write would hide or spoil them; "
        "make a folder KNOWLEDGE in the memory root and move them into it "
        "(files named *_MEMORY.md stay in the root, those of USER where they are)"
    )


def _list(root: Root) -> list[NoteFile]:
    """The files of the corpus; raises EWRITE_FAILED where it is unsound, so that nothing could be found in it."""
    for attempt in range(_TRIES):
        try:
            return walk(root)
        except CortexError as error:
            if not error.changed or attempt == _TRIES - 1:
                raise write_failed(f"the corpus is not sound: {error.message}") from None
    raise AssertionError("unreachable")


def read(path: str, data: bytes) -> Record:
    """The record that the reader makes of a note; raises CortexError where it refuses it."""
    return next(parse_note(NoteFile(path, "markdown", len(data), 0, 0, 0), data))


def check_bytes(path: str, data: bytes) -> Record:
    """The same; raises EWRITE_FAILED."""
    try:
        return read(path, data)
    except CortexError as error:
        raise write_failed(f"the reader would refuse the file: {error.message}") from None


def check_room(root: Root, path: str, size: int) -> None:
    """Raise EWRITE_FAILED where a note of `size` bytes at `path` would take the corpus past a limit.

    Under the corpus lock, so that two writers cannot both take the last place.
    """
    if size > limits.FILE_BYTES:
        raise write_failed(f"{path} would have {size} bytes, more than {limits.FILE_BYTES}; begin another note")
    others = [file for file in _list(root) if file.path != path]
    if len(others) >= limits.CORPUS_FILES:
        raise write_failed(f"the corpus has {limits.CORPUS_FILES} files, as many as it may; move some away")
    total = size + sum(file.bytes for file in others)
    if total > limits.CORPUS_BYTES:
        raise write_failed(f"the corpus would have {total} bytes, more than {limits.CORPUS_BYTES}; move some away")
    rows = [file for file in others if file.format == "jsonl"]
    notes = len(others) - len(rows) + 1
    if notes + sum(file.bytes // _LEAST_ROW + 1 for file in rows) > limits.RECORDS:
        _count_records(root, rows, notes)


def _count_records(root: Root, rows: list[NoteFile], notes: int) -> None:
    """The same for the number of records, where the sizes of the JSONL notes alone do not settle it."""
    try:
        records = notes + sum(1 for _ in read_records(root.descriptor, rows))
    except CortexError as error:
        raise write_failed(f"the corpus is not sound: {error.message}") from None
    if records > limits.RECORDS:
        raise write_failed(f"the corpus has {limits.RECORDS} records, as many as it may; move some away")
