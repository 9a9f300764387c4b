"""Reading evidence files: below a folder, no link followed, regular files only, never more than a bound in memory."""

from __future__ import annotations

import errno
import os
import stat

from cortex_tools.domain.jsontext import json_value
from cortex_tools.files.root import FILE_FLAGS, FOLDER_FLAGS
from cortex_tools.files.walk import NO_FILE, NO_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CHUNK = 1 << 18
LINE_BYTES = 1 << 20
"""A longer line of a log is malformed: no row of ours comes near it, and memory stays bounded."""
SMALL_BYTES = 1 << 16
"""A policy marker or an index manifest is a few hundred bytes."""
SHOWN_LINES = 20
"""So many numbers of malformed lines are named; the count tells of the rest."""


class Missing(Exception):
    """There is nothing of that name."""


class Unreadable(Exception):
    """Something is there and cannot be read; the message says why, without its content."""


def open_folder(descriptor: int, path: str) -> int:
    """A descriptor of the folder `path` (parts by `/`) below an open folder; the caller closes it."""
    return _descend(descriptor, path.split("/") if path else [])


def open_file(descriptor: int, path: str) -> int:
    """A descriptor of the regular file `path` below an open folder; the caller closes it.

    Raises Missing where any part of the path is absent, else Unreadable.
    """
    *folders, name = path.split("/")
    parent = _descend(descriptor, folders)
    try:
        opened = os.open(os.fsencode(name), FILE_FLAGS, dir_fd=parent)
    except OSError as error:
        raise _fault(error, parent, name) from None
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise Unreadable("is no regular file")
    return opened


def holds(folder: int, name: str) -> bool:
    """Whether anything stands under a name in an open folder, which is closed; raises OSError."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    finally:
        os.close(folder)
    return True


def open_path(path: str) -> int:
    """A descriptor of the regular file at a path that an operator names: only its last part may be no link."""
    folder, name = os.path.split(path)
    if name in ("", ".", "..") or "\0" in path:
        raise Unreadable("is no regular file")
    try:
        parent = os.open(os.fsencode(folder or "."), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing(folder) from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    try:
        return open_file(parent, name)
    finally:
        os.close(parent)


def _descend(descriptor: int, folders: list[str]) -> int:
    current = os.dup(descriptor)
    for name in folders:
        try:
            below = os.open(os.fsencode(name), FOLDER_FLAGS, dir_fd=current)
        except OSError as error:
            raise _fault(error, current, name) from None
        finally:
            os.close(current)
        current = below
    return current


def _fault(error: OSError, parent: int, name: str) -> Missing | Unreadable:
    """What an open that failed tells; `parent` is still good where the caller's `finally` has not run yet."""
    if error.errno == errno.ENOENT:
        return Missing(name)
    if error.errno in NO_FOLDER:
        try:
            linked = stat.S_ISLNK(os.stat(os.fsencode(name), dir_fd=parent, follow_symlinks=False).st_mode)
        except OSError:
            linked = False
        return Unreadable("is a symbolic link" if linked else "is no folder")
    if error.errno in NO_FILE:
        return Unreadable("is no regular file")
    return Unreadable(f"cannot be read: {error.strerror}")


def read_small(descriptor: int, limit: int = SMALL_BYTES) -> bytes:
    """The whole file, at most `limit` bytes of it; raises Unreadable for a longer one."""
    data = b""
    try:
        while len(data) <= limit:
            more = os.read(descriptor, limit + 1 - len(data))
            if not more:
                return data
            data += more
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    raise Unreadable(f"has more than {limit} bytes")


def read_file(descriptor: int, path: str, limit: int = SMALL_BYTES) -> bytes:
    """The content of the file `path` below an open folder; raises Missing or Unreadable."""
    opened = open_file(descriptor, path)
    try:
        return read_small(opened, limit)
    finally:
        os.close(opened)


class Log:
    """A JSONL log read to its end: how many rows, which lines are malformed, and the last row.

    `malformed` counts; `malformed_lines` names the first of them.  `last` is None where there is no row.
    """

    __slots__ = ("bytes", "last", "malformed", "malformed_lines", "rows")

    def __init__(self) -> None:
        self.bytes = 0
        self.rows = 0
        self.malformed = 0
        self.malformed_lines: list[int] = []
        self.last: dict[str, Any] | None = None

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.malformed

    def evidence(self) -> dict[str, Any]:
        """The counts, for a report."""
        return {
            "bytes": self.bytes,
            "rows": self.rows,
            "malformed": self.malformed,
            "malformed_lines": self.malformed_lines,
        }


def each_row(descriptor: int, path: str, log: Log) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file one after the other, counted in `log`; raises Missing or Unreadable.

    A blank line is no row.  A line that is not UTF-8, not strict JSON, no object or too long is malformed.
    """
    opened = open_file(descriptor, path)
    try:
        log.bytes = os.fstat(opened).st_size
        for number, line in _lines(opened, log.bytes):
            if line is not None and not line.strip():
                continue
            row = None if line is None else parse_object(line)
            if row is None:
                log.malformed += 1
                if len(log.malformed_lines) < SHOWN_LINES:
                    log.malformed_lines.append(number)
                continue
            log.rows += 1
            log.last = row
            yield row
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(opened)


def read_log(descriptor: int, path: str) -> Log:
    """A JSONL file read to its end; raises Missing or Unreadable."""
    log = Log()
    for _ in each_row(descriptor, path, log):
        pass
    return log


def _lines(descriptor: int, size: int) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines of the first `size` bytes, without their line feed; None for one that is too long.

    The bound keeps a file that grows faster than it is read from being read for ever.
    """
    number = 1
    pieces: list[bytes] = []
    held = 0
    left = size
    while left > 0:
        data = os.read(descriptor, min(CHUNK, left))
        if not data:
            break
        left -= len(data)
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            held += end - start
            pieces.append(data[start:end])
            yield number, b"".join(pieces) if held <= LINE_BYTES else None
            number, pieces, held, start = number + 1, [], 0, end + 1
        held += len(data) - start
        if held <= LINE_BYTES:
            pieces.append(data[start:])
        else:
            pieces.clear()  # it is malformed whatever it says
    if held:
        yield number, b"".join(pieces) if held <= LINE_BYTES else None


def parse_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object that `data` is, None where it is anything else."""
    try:
        value = json_value(data.decode("utf-8"))
    except (RecursionError, ValueError):  # UnicodeDecodeError is a ValueError
        return None
    return value if isinstance(value, dict) else None
