"""Keeping a report: below BENCHMARKS alone, under a versioned name, never over another."""

from __future__ import annotations

import os
import re

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.evidence import reading
from cortex_tools.evidence.layout import BENCHMARKS
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.durable import write_new
from cortex_tools.files.names import shown
from cortex_tools.files.root import Root

_NAME = re.compile(r"cortex-benchmark-v[0-9]+-[A-Za-z0-9._-]*\.json")


class Output:
    """A place for a report that is free: an open folder below BENCHMARKS and a name in it."""

    __slots__ = ("_folder", "_name", "_shown")

    def __init__(self, folder: int, name: str, shown_path: str) -> None:
        self._folder = folder
        self._name = name
        self._shown = shown_path

    def write(self, data: bytes) -> None:
        """Write the report, whole or not at all; raises CortexError where it cannot be or one has appeared."""
        try:
            write_new(self._folder, self._name, data)
        except FileExistsError:
            raise _exists(self._shown) from None
        except OSError as error:
            raise invalid_input(f"--output {self._shown} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        os.close(self._folder)


def reserve(root: Root, path: str) -> Output:
    """Look whether a report may be written to `path`; nothing is written yet.

    Raises invalid_input for a place outside BENCHMARKS, a link on the way, a bad name, an existing file.
    """
    said = shown(path)
    folders, name = _below(root, path, said)
    if not _NAME.fullmatch(name):
        raise invalid_input(
            f"--output {said} must be named cortex-benchmark-vN-NAME.json, of ASCII letters, digits, '.', '_' and '-'"
        )
    try:
        folder = reading.open_folder(root.descriptor, "/".join(folders))
    except Missing:
        raise invalid_input(f"--output {said}: its folder is missing; make it first") from None
    except Unreadable as error:
        raise invalid_input(f"--output {said}: its folder {error}") from None
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return Output(folder, name, said)
    except OSError as error:
        os.close(folder)
        raise invalid_input(f"--output {said} cannot be looked at: {error.strerror}") from None
    os.close(folder)
    raise _exists(said)


def _below(root: Root, path: str, said: str) -> tuple[list[str], str]:
    """The folders from the root on and the name; whichever alias of the root the path goes by."""
    lexical = os.path.normpath(os.path.join(os.getcwd(), path))
    pinned = os.fstat(root.descriptor)
    above, name = os.path.split(lexical)
    folders: list[str] = []
    while True:
        try:
            is_root = os.path.samestat(os.stat(above), pinned)
        except (OSError, ValueError):
            is_root = False
        if is_root:
            break
        if above == os.path.dirname(above):
            folders = []
            break
        above, folder = os.path.split(above)
        folders.insert(0, folder)
    if folders[:1] != [BENCHMARKS]:
        raise invalid_input(f"--output {said} does not lie below {BENCHMARKS} in the memory root")
    return folders, name


def _exists(said: str) -> CortexError:
    return invalid_input(f"--output {said} exists; reports are never overwritten, give another name")
