"""Which folder is the memory root, pinned once (section 2)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import Unsound, invalid_input
from cortex_tools.contract.options import DEFAULT_ROOT, ROOT_VARIABLE
from cortex_tools.domain.privacy import strip_private
from cortex_tools.files.names import shown_path, utf8

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a FIFO put in a file's place would hang the open.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Root:
    """The pinned root: its resolved path as bytes and as text, and a descriptor of the folder itself."""

    __slots__ = ("descriptor", "path", "text")

    def __init__(self, path: bytes, text: str, descriptor: int) -> None:
        self.path = path
        self.text = text
        self.descriptor = descriptor

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def requested_root(injected: str | bytes | os.PathLike[str] | None, option: str | None) -> bytes:
    """The root as asked for: injected, by option, by environment, or the default; no link followed yet.

    Raises invalid_input for what calling code injected and is no path.
    """
    for value in (injected, option):
        if value is not None:
            try:
                path = os.fspath(value)
                return path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
            except (TypeError, UnicodeEncodeError):
                raise invalid_input("the memory root is no path: give str, bytes or os.PathLike, in UTF-8") from None
    by_environment = os.environb.get(ROOT_VARIABLE.encode())
    if by_environment is not None:
        return by_environment
    return os.path.expanduser(DEFAULT_ROOT.encode())


def pin_root(requested: bytes) -> Root:
    """Resolve `requested` once (`..` before links) and open it.

    Raises integrity_error where it is missing, no folder, not to be opened, or not named in UTF-8.
    """
    asked = shown_path(requested)
    try:
        absolute = requested if os.path.isabs(requested) else os.path.join(os.getcwdb(), requested)
        path = os.path.realpath(os.path.normpath(absolute), strict=True)
        descriptor = os.open(path, FOLDER_FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else "is no folder"
        raise Unsound("", f"memory root {asked} {what}", "give the folder that holds the notes") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name cannot be a path"
        raise Unsound("", f"memory root {asked} cannot be opened: {reason}", "allow it or give another") from None
    text = utf8(path)
    if text is None:
        os.close(descriptor)
        raise Unsound("", f"memory root {asked} has a name that is not UTF-8", "reach it by another path")
    if strip_private(text) != text:
        os.close(descriptor)
        raise Unsound("", f"memory root {asked} has private markup in its name", "reach it by another path")
    return Root(path, text, descriptor)
