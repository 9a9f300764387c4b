"""The one seam through which every file operation of a write goes.

Folders are descriptors below a pinned base, opened without following links; files are reached by name
below an open folder.  `before`, where it is set, is called before each operation with its kind and path:
tests fail the N-th one there, or kill the process.

A Store is one write.  What it does to the tree before it commits is undone when it is refused, in
reverse order; what it holds is given back either way.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from contextlib import contextmanager

from cortex_tools.contract import limits
from cortex_tools.files.durable import NEW_FLAGS, is_temporary, sync, temporary_name
from cortex_tools.files.root import FILE_FLAGS, FOLDER_FLAGS, Root
from cortex_tools.files.walk import identity
from cortex_tools.governance.folders import File, Folder, failed
from cortex_tools.governance.refusal import Refusal, write_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    Result = TypeVar("Result")

before: Callable[[str, str], None] | None = None

# Of what is made new, before the umask: nobody but the owner may write, even where the umask would let them.
FOLDER_MODE = 0o755
NOTE_MODE = 0o644
PRIVATE_MODE = 0o600


class _Step:
    """Something to give back; `on_refusal` where it must stay after a success."""

    __slots__ = ("act", "on_refusal", "path")

    def __init__(self, path: str, act: Callable[[], None], *, on_refusal: bool) -> None:
        self.path = path
        self.act = act
        self.on_refusal = on_refusal


class Store:
    """The file operations of one write, and the way back from them."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._descriptors: list[int] = []
        self.committed = False

    @contextmanager
    def committing(self) -> Iterator[None]:
        """The block puts the change in place; an interrupt during it comes only once `committed` says so.

        Else a Ctrl-C that arrives inside the rename would undo the audit row of a change that stands.
        """
        before_it = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
            self.committed = True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before_it)

    # Keeping and undoing.

    def later(self, path: str, act: Callable[[], None], *, on_refusal: bool) -> None:
        """Remember to `act` at the end: only where the write is refused, or always."""
        self._steps.append(_Step(path, act, on_refusal=on_refusal))

    def keep(self, *paths: str) -> None:
        """Whatever happens, do not undo what was made at `paths`."""
        self._steps = [step for step in self._steps if not (step.on_refusal and step.path in paths)]

    def finish(self) -> list[str]:
        """Give back what is held, and undo all where nothing was committed; the answer says what could not be."""
        failures = []
        while self._steps:
            step = self._steps.pop()
            if step.on_refusal and self.committed:
                continue
            try:
                step.act()
            except FileNotFoundError:
                continue
            except (OSError, Refusal) as error:
                reason = error.message if isinstance(error, Refusal) else f"{step.path}: {error.strerror}"
                failures.append(reason)
        while self._descriptors:
            os.close(self._descriptors.pop())
        return failures

    # The seam.

    def operation(self, kind: str, path: str, work: Callable[[], Result]) -> Result:
        """One file operation.

        FileNotFoundError and FileExistsError reach the caller, who knows what they mean; any other
        failure is EWRITE_FAILED.
        """
        try:
            if before is not None:
                before(kind, path)
            return work()
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            raise failed(path, error) from None

    # Folders.

    def base(self, root: Root, path: str) -> Folder:
        """The open folder of a pinned root, as a description of its own, so that its lock is this write's."""
        descriptor = self.open(root.descriptor, ".", FOLDER_FLAGS, path or root.text)
        return Folder(descriptor, path, None, "", root.path)

    def below(self, folder: Folder, name: str, *, make: bool) -> Folder | None:
        """The folder `name` in `folder`, made where it is missing and `make` says so, else None."""
        path = folder.shown(name)
        for _ in range(10):
            try:
                return Folder(self.open(folder.descriptor, name, FOLDER_FLAGS, path), path, folder, name)
            except FileNotFoundError:
                if not make:
                    return None
            if self.make(folder, name):
                self.later(path, lambda: self._remove_folder(folder, name), on_refusal=True)
                self.sync(folder)
        raise write_failed(f"{path} comes and goes; try again")

    def make(self, folder: Folder, name: str) -> bool:
        """Make a folder that is not to be taken back; False where there is something of that name."""
        try:
            self.operation("mkdir", folder.shown(name), lambda: os.mkdir(name, FOLDER_MODE, dir_fd=folder.descriptor))
        except FileExistsError:
            return False
        return True

    def _remove_folder(self, folder: Folder, name: str) -> None:
        """Take back a folder of ours; another writer may have put something there by now, then it stays."""
        self.operation("rmdir", folder.shown(name), lambda: _rmdir_if_empty(name, folder.descriptor))

    def reach(self, base: Folder, parts: tuple[str, ...], *, make: bool) -> Folder | None:
        """The folder at `parts` below `base`, itself where there are none; None where it is missing."""
        folder: Folder | None = base
        for name in parts:
            if folder is None:
                return None
            folder = self.below(folder, name, make=make)
        return folder

    def is_in_place(self, folder: Folder) -> bool:
        """Whether its path still leads to the open folder, link by link up to the base."""
        here: Folder | None = folder
        while here is not None:
            status = os.fstat(here.descriptor)
            try:
                now = self._status_of(here)
            except FileNotFoundError:
                return False
            if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
                return False
            here = here.parent
        return True

    def _status_of(self, folder: Folder) -> os.stat_result:
        parent, base = folder.parent, folder.base
        if parent is None:
            assert base is not None
            return self.operation("stat", folder.path, lambda: os.stat(base, follow_symlinks=False))
        return self.operation(
            "stat",
            folder.path,
            lambda: os.stat(folder.name, dir_fd=parent.descriptor, follow_symlinks=False),
        )

    def close(self, folder: Folder) -> None:
        """Give up a folder, its lock with it, and those above it up to the base."""
        here: Folder | None = folder
        while here is not None and here.parent is not None:
            self._close(here.descriptor)
            here = here.parent

    def names(self, folder: Folder) -> list[str]:
        return self.operation("list", folder.path, lambda: os.listdir(folder.descriptor))

    def sync(self, folder: Folder) -> None:
        self.operation("fsync", folder.path, lambda: sync(folder.descriptor))

    def lock(self, folder: Folder) -> bool:
        """Take the folder's lock if it is free; it goes with the descriptor."""
        try:
            self.operation("flock", folder.path, lambda: _flock(folder.descriptor))
        except _Held:
            return False
        return True

    def unlock(self, folder: Folder) -> None:
        self.operation("unlock", folder.path, lambda: fcntl.flock(folder.descriptor, fcntl.LOCK_UN))

    def sweep(self, folder: Folder) -> None:
        """Remove temporary files of writers that were killed: under the folder's lock none is in use."""
        for name in self.names(folder):
            if is_temporary(name) and not stat.S_ISDIR(self.status(folder, name).st_mode):
                self.unlink(folder, name)

    # Files.

    def open(self, parent: int, name: str, flags: int, path: str, mode: int = 0) -> int:
        descriptor = self.operation("open", path, lambda: os.open(name, flags, mode, dir_fd=parent))
        self._descriptors.append(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._descriptors.remove(descriptor)
        os.close(descriptor)

    def status(self, folder: Folder, name: str) -> os.stat_result:
        """Of the name itself, a link not followed; raises FileNotFoundError."""
        path = folder.shown(name)
        return self.operation("stat", path, lambda: os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False))

    def read(self, folder: Folder, name: str, limit: int = limits.FILE_BYTES) -> File | None:
        """A regular file of at most `limit` bytes; None where there is none of that name."""
        path = folder.shown(name)
        try:
            descriptor = self.open(folder.descriptor, name, FILE_FLAGS, path)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise write_failed(f"{path} is no regular file; move it away")
            if status.st_size > limit:
                raise write_failed(f"{path} has {status.st_size} bytes, more than {limit}; split it")
            data = self.operation("read", path, lambda: _read_all(descriptor, limit))
            if len(data) != status.st_size or identity(os.fstat(descriptor)) != identity(status):
                raise write_failed(f"{path} changed while it was read; try again")
            return File(data, status)
        finally:
            self._close(descriptor)

    def temporary(self, folder: Folder, name: str, data: bytes, mode: int, *, exact: bool) -> str:
        """A new synced file beside `name`, under a name that no reader takes for a note.

        With `exact` its mode is `mode` whatever the umask says.
        """
        temporary = temporary_name(name)
        path = folder.shown(temporary)
        descriptor = self.open(folder.descriptor, temporary, NEW_FLAGS, path, PRIVATE_MODE if exact else mode)
        self.later(path, lambda: self.unlink(folder, temporary), on_refusal=True)
        try:
            self._write(descriptor, data, path)
            if exact:
                self.operation("chmod", path, lambda: os.fchmod(descriptor, mode))
            self.operation("fsync", path, lambda: sync(descriptor))
        finally:
            self._close(descriptor)
        return temporary

    def _write(self, descriptor: int, data: bytes, path: str) -> None:
        view = memoryview(data)
        while view:
            view = view[self.operation("write", path, lambda view=view: os.write(descriptor, view)) :]  # type: ignore[misc]

    def rename(self, folder: Folder, name: str, new: str) -> None:
        path = folder.shown(new)
        fd = folder.descriptor
        self.operation("rename", path, lambda: os.rename(name, new, src_dir_fd=fd, dst_dir_fd=fd))

    def link(self, folder: Folder, name: str, new: str) -> None:
        """Give a file a second name; raises FileExistsError where that is taken."""
        path = folder.shown(new)
        fd = folder.descriptor
        self.operation("link", path, lambda: os.link(name, new, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False))

    def unlink(self, folder: Folder, name: str) -> None:
        self.operation("unlink", folder.shown(name), lambda: os.unlink(name, dir_fd=folder.descriptor))

    def remove_folder(self, folder: Folder, name: str) -> None:
        """Remove an empty folder; raises EWRITE_FAILED where it is not empty."""
        self.operation("rmdir", folder.shown(name), lambda: os.rmdir(name, dir_fd=folder.descriptor))


class _Held(Exception):
    """Another process has the folder's lock."""


def _flock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _Held from None


def _rmdir_if_empty(name: str, parent: int) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _read_all(descriptor: int, limit: int) -> bytes:
    pieces = []
    left = limit + 1
    while left and (piece := os.read(descriptor, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
