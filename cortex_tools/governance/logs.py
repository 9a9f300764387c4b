"""Logs of one JSON object a line: rows are added, and taken back where the write is refused after all."""

from __future__ import annotations

import os
import stat

from cortex_tools.files.durable import sync
from cortex_tools.governance.folders import Folder
from cortex_tools.governance.refusal import Refusal, write_failed
from cortex_tools.governance.store import PRIVATE_MODE, Store

_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def append(store: Store, folder: Folder, name: str, row: bytes) -> None:
    """Add one row to a log in one synced write; taken back where the write is refused.

    A last line that a crash left torn is completed first.  A log that is no regular file, or that has
    another name somewhere (a hard link), is refused.  A new log appears with its first row in it.
    """
    path = folder.shown(name)
    try:
        descriptor = store.open(folder.descriptor, name, _APPEND_FLAGS, path)
    except FileNotFoundError:
        begin(store, folder, name, row)
        return
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise write_failed(f"{path} is no regular file of its own (a special file, or hard-linked); move it away")
    size = status.st_size
    if size and store.operation("read", path, lambda: os.pread(descriptor, 1, size - 1)) != b"\n":
        row = b"\n" + row
    store.later(path, lambda: _take_back(store, path, descriptor, size, row), on_refusal=True)
    if store.operation("write", path, lambda: os.write(descriptor, row)) != len(row):
        raise write_failed(f"{path}: the disk took only part of a row")
    store.operation("fsync", path, lambda: sync(descriptor))


def _take_back(store: Store, path: str, descriptor: int, size: int, row: bytes) -> None:
    """Remove a row of ours, as long as nothing but (part of) it has been added to the log since."""
    now = os.fstat(descriptor).st_size
    if not row.startswith(os.pread(descriptor, max(0, now - size), size)):
        raise _added_to(path)
    store.operation("truncate", path, lambda: os.ftruncate(descriptor, size))


def begin(store: Store, folder: Folder, name: str, row: bytes) -> None:
    """Make a log with its first row, readable by its owner alone; taken away where the write is refused."""
    path = folder.shown(name)
    temporary = store.temporary(folder, name, row, PRIVATE_MODE, exact=True)
    try:
        store.link(folder, temporary, name)
    except FileExistsError:
        raise write_failed(f"{path} was made by another program meanwhile; try again") from None
    store.later(path, lambda: _take_away(store, folder, name, row), on_refusal=True)
    store.unlink(folder, temporary)
    store.sync(folder)


def _take_away(store: Store, folder: Folder, name: str, row: bytes) -> None:
    """Remove a log that we began, as long as it holds nothing but our row."""
    file = store.read(folder, name)
    if file is not None and file.data != row:
        raise _added_to(folder.shown(name))
    store.unlink(folder, name)


def _added_to(path: str) -> Refusal:
    return write_failed(f"{path} was added to by another program; the row of the refused write stays in it")
