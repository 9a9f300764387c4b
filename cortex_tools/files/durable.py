"""What is written, made to outlast a power cut; a reader finds the old file or the new one, never a part."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Dot-prefixed and not ending in .md, so that no reader takes one for a note, not even in the root.
_TEMPORARY = re.compile(r"\..*\.cortex-[0-9a-f]{16}\.tmp", re.DOTALL)
ABANDONED_SECONDS = 3_600
"""A temporary file that nothing has been written to for so long belongs to a writer that was killed."""


def sync(descriptor: int) -> None:
    """Wait until the disk has what was written to a file or a folder; raises OSError.

    On macOS fsync leaves it in the drive's own cache.  A file system that cannot do more says so; then
    fsync is all there is.
    """
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
        except OSError:
            pass  # not every file system can; a real failure shows again below
    os.fsync(descriptor)


def temporary_name(name: str) -> str:
    """A new name beside `name` for what is to take its place."""
    return f".{name}.cortex-{os.urandom(8).hex()}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is what a writer of ours has not finished, or was killed over."""
    return _TEMPORARY.fullmatch(name) is not None


def write_new(folder: int, name: str, data: bytes) -> None:
    """Make the file `name` in an open folder; raises FileExistsError where anything stands there, or OSError."""
    temporary = _write_temporary(folder, data)
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.unlink(temporary, dir_fd=folder)
    sync(folder)


def replace(folder: int, name: bytes, data: bytes) -> None:
    """Put `data` in the place of the file `name` in an open folder, whether there was one or not; raises OSError."""
    temporary = _write_temporary(folder, data)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    sync(folder)


def _write_temporary(folder: int, data: bytes) -> str:
    """The name of a synced file that holds `data`; what killed writers left in the folder is removed first."""
    _sweep(folder)
    name = temporary_name("new")  # whatever the file is called: its own name may be as long as one can be
    descriptor = os.open(name, NEW_FLAGS, 0o644, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        sync(descriptor)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    return name


def _sweep(folder: int) -> None:
    """Remove abandoned temporary files; one that cannot be removed is left to the next write."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in filter(is_temporary, names):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_mtime < time.time() - ABANDONED_SECONDS:
                os.unlink(name, dir_fd=folder)
        except OSError:
            continue
