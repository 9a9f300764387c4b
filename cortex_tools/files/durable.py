"""What is written, made to outlast a power cut."""

from __future__ import annotations

import fcntl
import os

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


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
