"""Walking the corpus: every check that needs no content (section 5)."""

from __future__ import annotations

import errno
import os
import stat

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, Unsound, refuse
from cortex_tools.domain.privacy import may_hold_tag, strip_private
from cortex_tools.domain.text import utf16_order
from cortex_tools.files.names import shown, utf8
from cortex_tools.files.root import FOLDER_FLAGS, Root

FORMATS = {".md": "markdown", ".jsonl": "jsonl"}
HOT_SUFFIX = "_MEMORY.md"
_SKIPPED = "_."  # what begins with one of these is skipped whole

# What opening a link without following it gives: ENOTDIR where a folder is wanted, ELOOP, and EMLINK on FreeBSD.
NO_FOLDER = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
# What opening a socket gives, or a device that nobody serves; EOPNOTSUPP on macOS and BSD.
NO_FILE = (errno.ENXIO, errno.EOPNOTSUPP)
_GONE = (errno.ENOENT, *NO_FOLDER, *NO_FILE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cortex_tools.domain.records import Report

Identity = tuple[int, int, int, int]
State = tuple[int, int, int, int, int]


class _Unlisted:
    """What is known of a note only in the process that listed it: a stream carries the slots of NoteFile itself."""

    __slots__ = ("ctime_ns",)


class NoteFile(_Unlisted):
    """A note as listed: its path below the root, its format, and what must still hold when it is read."""

    kind = "file"
    __slots__ = ("path", "format", "bytes", "dev", "ino", "mtime_ns")

    def __init__(
        self, path: str, format: str, bytes: int, dev: int, ino: int, mtime_ns: int, ctime_ns: int = 0
    ) -> None:
        """`ctime_ns` is 0 where another process listed the note."""
        self.path = path
        self.format = format
        self.bytes = bytes
        self.dev = dev
        self.ino = ino
        self.mtime_ns = mtime_ns
        self.ctime_ns = ctime_ns

    @property
    def state(self) -> State:
        return (self.dev, self.ino, self.bytes, self.mtime_ns, self.ctime_ns)


def identity(status: os.stat_result) -> Identity:
    """Which file it is, with what content; another name of it has the same."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def state(status: os.stat_result) -> State:
    """What must not differ between listing, opening and the last read of a file.

    The time of modification can be set back to what it was; that of the last change of status cannot.
    """
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def walk(root: Root, report: Report = refuse) -> list[NoteFile]:
    """The notes of the corpus below `root`, in the order of their paths (UTF-16 code units).

    Raises integrity_error for a link, a special file, a name or a limit that section 5 refuses, and for
    a folder that cannot be read or that changed during the walk (`changed`).  Reads no content.

    Where `report` returns, the walk goes on without what was reported; it still raises where it cannot
    tell which files are the corpus, and for a change.
    """
    return _Walk(root, report).run()


def format_of(path: str) -> str | None:
    """The format of a note by the ending of its path; None where it is no note."""
    return FORMATS.get(path[path.rfind(".") :])


def corpus_folder(root: Root) -> str:
    """The folder that the corpus of `root` lies in, with a slash at its end; empty where that is the root itself."""
    for folder in ("KNOWLEDGE/", "MEMORY/KNOWLEDGE/"):
        try:
            os.stat(folder[:-1], dir_fd=root.descriptor, follow_symlinks=False)
        except OSError:
            continue
        return folder
    return ""


def would_list(folder: str, path: str) -> bool:
    """Whether the walk of a root whose corpus lies in `folder` (see corpus_folder) lists a file at `path`, by its name.

    `path` is relative to the root.
    """
    if format_of(path) is None:
        return False
    if folder == "KNOWLEDGE/" and path.endswith(HOT_SUFFIX) and "/" not in path:
        return True
    return path.startswith(folder) and not any(part[:1] in _SKIPPED for part in path[len(folder) :].split("/"))


class _Walk:
    def __init__(self, root: Root, report: Report) -> None:
        self._root = root
        self._report = report
        self._files: list[NoteFile] = []
        self._too_many = False
        self._folders: list[tuple[str, State]] = []
        self._absent: list[str] = []
        self._refused = False  # MEMORY, and that has been reported

    def run(self) -> list[NoteFile]:
        top = self._stat_top("KNOWLEDGE")
        memory = None
        try:
            memory = self._stat_top("MEMORY")  # looked at either way: a link of that name is refused
        except CortexError as error:
            if top is None:
                raise
            self._report(error)
            self._refused = True
        if top is not None:
            self._walk_top("KNOWLEDGE", top)
            self._hot_files()
        elif (nested := self._nested_knowledge(memory)) is not None:
            self._walk_top("MEMORY/KNOWLEDGE", nested)
        else:
            self._walk_folder(os.dup(self._root.descriptor), "")
        self._check_sizes()
        if top is None:
            self._check_absent()
        elif not self._refused:
            self._stat_top("MEMORY")  # nor may it have become a link
        self._check_folders()
        self._files.sort(key=lambda file: file.path)
        if not all(file.path.isascii() for file in self._files):
            self._files.sort(key=lambda file: utf16_order(file.path))
        return self._files

    def _stat_top(self, path: str) -> os.stat_result | None:
        """The status of a folder that decides which files are the corpus; None where there is none."""
        try:
            status = os.stat(path, dir_fd=self._root.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            self._absent.append(path)
            return None
        except OSError as error:
            raise unreadable(path, error) from None
        if stat.S_ISLNK(status.st_mode):
            raise _link(path)
        return status

    def _nested_knowledge(self, memory: os.stat_result | None) -> os.stat_result | None:
        if memory is None or not stat.S_ISDIR(memory.st_mode):
            return None
        return self._stat_top("MEMORY/KNOWLEDGE")

    def _walk_top(self, path: str, status: os.stat_result) -> None:
        if not stat.S_ISDIR(status.st_mode):
            raise Unsound(path, "no folder", "move it away, it is where the notes belong")
        descriptor = os.dup(self._root.descriptor)
        for name in path.split("/"):
            descriptor = self._open_below(descriptor, name, path)
        self._walk_folder(descriptor, path + "/")

    def _open_below(self, parent: int, name: str, path: str) -> int:
        """Open a folder below `parent` without following a link, and close `parent`."""
        try:
            return os.open(name.encode(), FOLDER_FLAGS, dir_fd=parent)
        except OSError as error:
            raise unreadable(path, error) from None
        finally:
            os.close(parent)

    def _walk_folder(self, descriptor: int, prefix: str) -> None:
        """List the open folder and all below it; closes `descriptor`."""
        try:
            self._folders.append((prefix, state(os.fstat(descriptor))))
            with os.scandir(descriptor) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            for entry in found:
                if entry.name[0] not in _SKIPPED:
                    self._take(entry, descriptor, prefix)
        except OSError as error:
            self._report(unreadable(prefix.rstrip("/") or ".", error))
        except RecursionError:
            self._report(Unsound(shown(prefix), "nests too deeply", "move its notes up"))
        finally:
            os.close(descriptor)

    def _take(self, entry: os.DirEntry[str], parent: int, prefix: str) -> None:
        path = self._checked_path(entry, prefix)
        if path is None:
            return
        if entry.is_dir(follow_symlinks=False):
            try:
                below = os.open(os.fsencode(entry.name), FOLDER_FLAGS, dir_fd=parent)
            except OSError as error:
                self._report(unreadable(path, error))
            else:
                self._walk_folder(below, path + "/")
            return
        format = format_of(path)
        if format is not None:
            self._add(path, format, entry.stat(follow_symlinks=False))

    def _hot_files(self) -> None:
        """The root's own files that end in _MEMORY.md, whatever they begin with."""
        try:
            self._folders.append(("", state(os.fstat(self._root.descriptor))))
            with os.scandir(self._root.descriptor) as entries:
                found = sorted((entry for entry in entries if entry.name.endswith(HOT_SUFFIX)), key=lambda e: e.name)
            for entry in found:
                path = self._checked_path(entry, "")
                if path is not None:
                    self._add(path, "markdown", entry.stat(follow_symlinks=False))
        except OSError as error:
            self._report(unreadable(".", error))

    def _checked_path(self, entry: os.DirEntry[str], prefix: str) -> str | None:
        """The path of an entry below `prefix`; None for a link or a bad name, which has been reported."""
        path = prefix + entry.name
        if not entry.name.isascii():
            name = utf8(os.fsencode(entry.name))
            if name is None:
                self._report(Unsound(shown(path), "its name is not UTF-8", "rename it"))
                return None
            path = prefix + name
        if entry.is_symlink():
            self._report(_link(path))
            return None
        if may_hold_tag(path) and strip_private(path) != path:
            self._report(Unsound(shown(path), "its name holds private markup", "rename it"))
            return None
        return path

    def _add(self, path: str, format: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self._report(Unsound(shown(path), "no regular file", "move it away or rename it"))
            return
        if len(self._files) == limits.CORPUS_FILES:
            if not self._too_many:
                what = f"the corpus has more than {limits.CORPUS_FILES} files, {shown(path)} among them"
                self._report(Unsound("", what, "move some away"))
            self._too_many = True
            return
        times = (status.st_mtime_ns, status.st_ctime_ns)
        self._files.append(NoteFile(path, format, status.st_size, status.st_dev, status.st_ino, *times))

    def _check_sizes(self) -> None:
        total = sum(file.bytes for file in self._files)
        too_big = [file for file in self._files if file.bytes > limits.FILE_BYTES]
        for file in too_big:
            what = f"it has {file.bytes} bytes, more than {limits.FILE_BYTES}"
            self._report(Unsound(shown(file.path), what, "split it"))
            self._files.remove(file)
        if total > limits.CORPUS_BYTES:
            what = f"the corpus has {total} bytes, more than {limits.CORPUS_BYTES}"
            self._report(Unsound("", what, "move some notes away"))

    def _check_absent(self) -> None:
        """What was walked is the corpus only as long as the folders that would come before it are not there."""
        for path in self._absent[:]:
            if self._stat_top(path) is not None:
                raise Unsound(path, "appeared while the corpus was being listed", "try again", changed=True)

    def _check_folders(self) -> None:
        """Look at each folder again: what was listed must have held at one moment."""
        for prefix, before in self._folders:
            try:
                # Without the slash at its end, which would lead through a link that has taken its place.
                now = os.stat(prefix[:-1].encode() or b".", dir_fd=self._root.descriptor, follow_symlinks=False)
            except OSError as error:
                raise unreadable(prefix.rstrip("/") or "the memory root", error) from None
            if state(now) != before:
                what = "changed while it was being listed"
                raise Unsound(shown(prefix) or "the memory root", what, "try again", changed=True)


def _link(path: str) -> CortexError:
    return Unsound(shown(path), "a symbolic link", "notes must be real files and folders, so remove it")


def unreadable(path: str, error: OSError) -> CortexError:
    """integrity_error for a file or folder that cannot be opened or read.

    What was there a moment ago and is gone, or has become a link or another kind of file, has changed,
    which is worth a fresh try; anything else will fail again.
    """
    if error.errno in _GONE:
        return Unsound(shown(path), "changed while the corpus was being read", "try again", changed=True)
    return Unsound(shown(path), f"cannot be read: {error.strerror}", "allow it or move it away")
