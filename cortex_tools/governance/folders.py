"""Open folders and what was read of files: the values that the seam works with."""

from __future__ import annotations

import os
import stat

from cortex_tools.files.names import shown_path
from cortex_tools.files.walk import NO_FOLDER, Identity, identity
from cortex_tools.governance.refusal import Refusal, write_failed


class Folder:
    """An open folder; `path` is how messages and answers name it ("" for the root itself)."""

    __slots__ = ("base", "descriptor", "name", "parent", "path")

    def __init__(self, descriptor: int, path: str, parent: Folder | None, name: str, base: bytes | None = None) -> None:
        self.descriptor = descriptor
        self.path = path
        self.parent = parent
        self.name = name
        self.base = base

    def base_folder(self) -> Folder:
        return self if self.parent is None else self.parent.base_folder()

    def shown(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


class File:
    """What a regular file held when it was read, and what must still hold when it is replaced."""

    __slots__ = ("data", "identity", "mode")

    def __init__(self, data: bytes, status: os.stat_result) -> None:
        self.data = data
        self.identity: Identity = identity(status)
        self.mode = stat.S_IMODE(status.st_mode)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and (self.identity, self.data) == (other.identity, other.data)

    __hash__ = None  # type: ignore[assignment]


def failed(path: str, error: OSError) -> Refusal:
    """EWRITE_FAILED in the words of an operating system error."""
    what = shown_path(os.fsencode(path)) or "the memory root"
    if error.errno in NO_FOLDER:
        return write_failed(f"{what} is a symbolic link, or no folder where one belongs; writes follow no link")
    return write_failed(f"{what}: {error.strerror}; nothing was written")
