"""Temporary files without a name, for stripped text that is needed in an order known only at the end."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import CortexError
from cortex_tools.files.names import shown

_FLUSH = 1 << 20


class Spool:
    """Append bytes, get their place, read them back.  The file vanishes with its descriptor.

    Opened before a fork, the child's additions can be read by the parent: both share the descriptor,
    and places count from the start of the file.  Raises internal_error where the disk is full.
    """

    __slots__ = ("_flushed", "_pending", "_size", "descriptor")

    def __init__(self) -> None:
        self.descriptor = -1
        self.descriptor = _open_unlinked()
        self._pending: list[bytes] = []
        self._flushed = 0
        self._size = 0

    def add(self, data: bytes) -> tuple[int, int]:
        """Append `data`; the answer is its offset and length in bytes."""
        place = (self._size, len(data))
        self._pending.append(data)
        self._size += len(data)
        if self._size - self._flushed >= _FLUSH:
            self.flush()
        return place

    def flush(self) -> None:
        """Write what is pending, so that read() here or in the parent process finds it."""
        data = b"".join(self._pending)
        self._pending.clear()
        try:
            while data:
                data = data[os.write(self.descriptor, data) :]
        except OSError as error:
            raise CortexError("internal_error", f"the temporary file cannot be written: {error.strerror}") from None
        self._flushed = self._size

    def read(self, offset: int, length: int) -> bytes:
        data = os.pread(self.descriptor, length, offset)
        while len(data) < length:
            more = os.pread(self.descriptor, length - len(data), offset + len(data))
            if not more:
                raise CortexError("internal_error", "the temporary file is shorter than what was written to it")
            data += more
        return data

    def __del__(self) -> None:
        self.close()  # wherever a failure left it

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError:
                pass  # what was wanted of it has been read by now, and nothing else keeps it


def _open_unlinked() -> int:
    folder = os.environ.get("TMPDIR") or "/tmp"
    try:
        if hasattr(os, "O_TMPFILE"):
            try:
                return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
            except OSError:
                pass  # a file system without nameless files: make one with a name and take the name away
        name = os.path.join(folder, f".cortex-{os.getpid()}-{os.urandom(8).hex()}")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.unlink(name)
        return descriptor
    except OSError as error:
        raise CortexError(
            "internal_error", f"no temporary file can be made in {shown(folder)}: {error.strerror}; set TMPDIR"
        ) from None
