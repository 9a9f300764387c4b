"""Writing whole files: a reader finds the old file or the new one, never a part."""

from __future__ import annotations

import os

from cortex_tools.files.durable import sync

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new(folder: int, name: str, data: bytes, mode: int = 0o644) -> None:
    """Make the file `name` in an open folder; raises FileExistsError where anything stands there, or OSError."""
    temporary = _write_temporary(folder, data, mode)
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.unlink(temporary, dir_fd=folder)
    sync(folder)


def replace(folder: int, name: bytes, data: bytes) -> None:
    """Put `data` in the place of the file `name` in an open folder, whether there was one or not; raises OSError."""
    temporary = _write_temporary(folder, data, 0o644)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    sync(folder)


def _write_temporary(folder: int, data: bytes, mode: int) -> str:
    """The name of a synced file that holds `data`; its leading dot keeps readers from taking it for a note."""
    name = f".cortex-{os.getpid()}-{os.urandom(8).hex()}"
    descriptor = os.open(name, _NEW, mode, dir_fd=folder)
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
