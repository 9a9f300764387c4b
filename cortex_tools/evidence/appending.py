"""Appending to a log below OBSERVABILITY, without ever making the corpus unsound by it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from cortex_tools.contract.errors import CortexError
from cortex_tools.evidence import reading
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.durable import sync
from cortex_tools.files.root import Root
from cortex_tools.governance.places import OBSERVABILITY

APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LOCK_SECONDS = 5.0
_CORPUS_FOLDERS = ("KNOWLEDGE", "MEMORY/KNOWLEDGE")


class CannotAppend(Exception):
    """The row was not written; the message says why and what to do."""


def append(root: Root, path: str, row: bytes) -> None:
    """Append `row`, which ends in a line feed, to the log `path` (OBSERVABILITY/NAME), made where it is missing.

    One write in append mode, synced, under the folder's lock; a last line that a crash left torn is ended
    first, never overwritten.  Raises CannotAppend.
    """
    folder = open_observability(root)
    try:
        lock(folder)
        _append(folder, path.rpartition("/")[2], row)
    except OSError as error:
        raise CannotAppend(error.strerror) from None
    finally:
        os.close(folder)


def open_observability(root: Root) -> int:
    """A descriptor of OBSERVABILITY, made where it is missing; raises CannotAppend."""
    settle_corpus(root)
    try:
        os.mkdir(OBSERVABILITY, 0o755, dir_fd=root.descriptor)
    except FileExistsError:
        pass
    except OSError as error:
        raise CannotAppend(f"{OBSERVABILITY} cannot be made: {error.strerror}") from None
    try:
        return reading.open_folder(root.descriptor, OBSERVABILITY)
    except (Missing, Unreadable) as error:
        raise CannotAppend(f"{OBSERVABILITY} {error}") from None


def settle_corpus(root: Root) -> None:
    """See to it that a log does not become part of the corpus.

    Without a KNOWLEDGE folder all that lies below the root is the corpus: where there are notes, nothing
    may be put beside them; where there are none, KNOWLEDGE is made first (governance, section 1).
    Raises CannotAppend.
    """
    for path in _CORPUS_FOLDERS:
        try:
            os.close(reading.open_folder(root.descriptor, path))
            return
        except Missing:
            continue
        except Unreadable as error:
            raise CannotAppend(f"{path} {error}") from None
    if _holds_notes(root):
        raise CannotAppend("the notes lie flat below the root, where a log would count as one; move them to KNOWLEDGE")
    try:
        os.mkdir("KNOWLEDGE", 0o755, dir_fd=root.descriptor)
    except FileExistsError:
        pass
    except OSError as error:
        raise CannotAppend(f"KNOWLEDGE cannot be made: {error.strerror}") from None


def _holds_notes(root: Root) -> bool:
    from cortex_tools.files.walk import walk  # only a root without KNOWLEDGE is walked
    from cortex_tools.governance.corpus import is_bookkeeping

    try:
        return any(not is_bookkeeping(file.path) for file in walk(root))
    except CortexError:
        return True  # what cannot be listed may hold notes


def lock(folder: int) -> None:
    """Take the folder's lock, which goes with its descriptor; raises CannotAppend after some seconds."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise
        if time.monotonic() > deadline:
            raise CannotAppend(f"another process keeps {OBSERVABILITY} locked; try again")
        time.sleep(0.02)


def _append(folder: int, name: str, row: bytes) -> None:
    try:
        descriptor = os.open(name, APPEND_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        descriptor = os.open(name, APPEND_FLAGS | os.O_CREAT, 0o600, dir_fd=folder)
        sync(folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise CannotAppend("it is no regular file of its own (a special file, or hard-linked)")
        if status.st_size and os.pread(descriptor, 1, status.st_size - 1) != b"\n":
            row = b"\n" + row
        written = os.write(descriptor, row)
        if written != len(row):
            if os.fstat(descriptor).st_size == status.st_size + written:  # nobody has added to it since
                os.ftruncate(descriptor, status.st_size)  # half a row is none, and would count as damage
            raise CannotAppend("the disk is full")
        sync(descriptor)
    finally:
        os.close(descriptor)
