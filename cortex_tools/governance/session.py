"""One governed write from its first look at the tree to its last: locks, audit, snapshot, rename."""

from __future__ import annotations

import hashlib
import os
import re

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.files.root import Root
from cortex_tools.governance import corpus, logs
from cortex_tools.governance.folders import File, Folder
from cortex_tools.governance.layout import Layout, Place
from cortex_tools.governance.locks import Locks
from cortex_tools.governance.places import KNOWLEDGE, LOCK_LOG, OBSERVABILITY, QUEUE, SNAPSHOTS
from cortex_tools.governance.refusal import Refusal, write_failed
from cortex_tools.governance.rows import row_line
from cortex_tools.governance.store import NOTE_MODE, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Result = TypeVar("Result")

SNAPSHOT_NAME = re.compile(r"(.+)__([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{3}Z)\.md", re.DOTALL)


_OBSERVABILITY = Place("root", (OBSERVABILITY,), "")
_SNAPSHOTS = Place("root", (OBSERVABILITY, SNAPSHOTS), "")


class Session:
    """What one write needs; made by `governed`.

    `warnings` collects what could not be tidied up after the write was done and is no reason to refuse it.
    """

    def __init__(self, layout: Layout, now_ms: int, *, writes: bool = True, beside_nested: bool = False) -> None:
        self.writes = writes
        self._beside_nested = beside_nested
        self.layout = layout
        self.now_ms = now_ms
        self.now = format_ms(now_ms)
        self.store = Store()
        self.locks = Locks(self.store, now_ms, self._log_lock)
        self.warnings: list[str] = []
        self._bases: dict[str, Folder] = {}
        self._logging = False

    # Folders.

    @property
    def root(self) -> Folder:
        return self.base(Place("root", (), ""))

    def base(self, place: Place) -> Folder:
        if place.base not in self._bases:
            self._bases[place.base] = self.layout.base(self.store, place, make=self.writes)
        return self._bases[place.base]

    def find(self, place: Place, *, make: bool = True) -> Folder | None:
        return self.store.reach(self.base(place), place.parts, make=make)

    def take(self, place: Place, choose: Callable[[Folder], str] | None = None) -> tuple[Folder, str]:
        """The locked folder of a place and the name, its lock file ours; the folder is made where it is missing."""
        choose = choose or (lambda _: place.name)
        return self.locks.take(_key(place), lambda: self._made(place), choose, self.shown(place))

    def take_queue(self) -> tuple[Folder, str]:
        """OBSERVABILITY and the proposal queue in it, locked; after every other lock."""
        place = Place("root", (OBSERVABILITY,), QUEUE)
        return self.locks.take(_key(place), self._find_observability, lambda _: QUEUE, self.shown(place))

    def shown(self, place: Place) -> str:
        """How answers name a place: relative to the root, or by its real path in USER."""
        return "/".join(part for part in (self.base(place).path, *place.parts, place.name) if part)

    def _made(self, place: Place) -> Folder:
        folder = self.find(place)
        assert folder is not None
        return folder

    def observability(self) -> Folder:
        """OBSERVABILITY, locked; the last lock that a write takes."""
        return self.locks.enter(_key(_OBSERVABILITY), self._find_observability)

    def _find_observability(self) -> Folder:
        folder = self.store.below(self.root, OBSERVABILITY, make=True)
        corpus.ensure(self.store, self.root, beside_nested=self._beside_nested)
        assert folder is not None
        return folder

    # The corpus.

    def check_note(self, path: str, size: int) -> None:
        """Take the corpus lock and see whether a note of this size has room; raises EWRITE_FAILED."""
        knowledge = Place("root", (KNOWLEDGE,), "")
        self.locks.enter(_key(knowledge), lambda: self._made(knowledge))
        corpus.check_room(self.layout.root, path, size)

    # Audit.

    def audit(self, log: str, row: dict[str, Any], *, keep: bool = False) -> None:
        """Append a row to a log; with `keep` it stays though the write is refused."""
        self._append(self.observability(), log, row, keep=keep)

    def _append(self, folder: Folder, log: str, row: dict[str, Any], *, keep: bool) -> None:
        logs.append(self.store, folder, log, row_line({"ts": self.now} | row))
        if keep:
            self.store.keep(KNOWLEDGE, OBSERVABILITY, folder.shown(log))

    def _log_lock(self, row: dict[str, Any]) -> None:
        """A row of the lock log; without a lock where it is that log's own folder that is held."""
        held_here = row["event"] == "refused" and row["path"].startswith(OBSERVABILITY)
        if (self._logging or held_here) and not self.locks.holds(_key(_OBSERVABILITY)):
            self._append(self._find_observability(), LOCK_LOG, row, keep=True)
            return
        self._logging = True
        try:
            self.audit(LOCK_LOG, row, keep=True)
        finally:
            self._logging = False

    # Snapshots.

    def snapshot(self, name: str, old: File) -> str:
        """Keep the bytes of a file that is about to change; the answer is the snapshot's name."""
        folder = self.snapshots()
        stem = name.removesuffix(".md")
        taken = set(self.store.names(folder))
        ms = self.now_ms
        while (snapshot := f"{stem}__{_stamp(ms)}.md") in taken:
            ms += 1  # two changes within a millisecond
        temporary = self.store.temporary(folder, snapshot, old.data, old.mode, exact=True)
        self.store.later(folder.shown(snapshot), lambda: self.store.unlink(folder, snapshot), on_refusal=True)
        self.store.rename(folder, temporary, snapshot)
        self.store.sync(folder)
        return snapshot

    def snapshots(self) -> Folder:
        """The folder of snapshots, locked; before OBSERVABILITY."""
        return self.locks.enter(_key(_SNAPSHOTS), self._find_snapshots)

    def _find_snapshots(self) -> Folder:
        self._find_observability()
        return self._made(_SNAPSHOTS)

    def _prune(self, name: str) -> None:
        """Keep the newest snapshots of a file; what cannot be removed now will be next time."""
        folder = self.snapshots()
        stem = name.removesuffix(".md")
        ours = sorted(one for one in self.store.names(folder) if (m := SNAPSHOT_NAME.fullmatch(one)) and m[1] == stem)
        for snapshot in ours[: -limits.SNAPSHOTS]:
            self.store.unlink(folder, snapshot)

    # The change itself.

    def replace(
        self,
        folder: Folder,
        name: str,
        old: File | None,
        data: bytes,
        log: str,
        row: dict[str, Any],
        *,
        snapshot: bool = False,
    ) -> None:
        """Put `data` in the place of `old` (None: there is no such file yet), with its audit row.

        All that may fail is done before the rename.  Raises EWRITE_FAILED, or internal_error where the change
        is in place but the disk does not confirm it.
        """
        mode = NOTE_MODE if old is None else old.mode
        temporary = self.store.temporary(folder, name, data, mode, exact=old is not None)
        if snapshot and old is not None:
            row = row | {"snapshot": self.snapshot(name, old)}
        self.audit(log, row | {"sha256": hashlib.sha256(data).hexdigest()})
        self.check_unmoved(folder, name, old)
        if old is None:
            self._link_new(folder, temporary, name)
        else:
            with self.store.committing():
                self.store.rename(folder, temporary, name)
        self.confirm(folder, name)
        if old is None:
            self.tidy(lambda: self.store.unlink(folder, temporary))
        elif snapshot:
            self.tidy(lambda: self._prune(name))

    def _link_new(self, folder: Folder, temporary: str, name: str) -> None:
        """Give a new file its name; unlike a rename this cannot put it over one that has come meanwhile."""
        try:
            with self.store.committing():
                self.store.link(folder, temporary, name)
        except FileExistsError:
            raise write_failed(f"{folder.shown(name)} was made by another program meanwhile; try again") from None

    def check_unmoved(self, folder: Folder, name: str, old: File | None) -> None:
        """The last look: the path still leads here, and the file is still the one that was read."""
        if not self.store.is_in_place(folder):
            raise write_failed(f"{folder.path or 'the memory root'} was moved or replaced meanwhile; try again")
        again = self.store.read(folder, name)
        if again != old:
            raise write_failed(f"{folder.shown(name)} was changed by another program meanwhile; try again")

    def confirm(self, folder: Folder, name: str) -> None:
        """Make a rename durable; raises internal_error where the disk does not confirm it."""
        try:
            self.store.sync(folder)
        except (Refusal, OSError):
            raise CortexError(
                "internal_error",
                f"{folder.shown(name)} is written, but the disk did not confirm it; see whether it is there",
            ) from None

    def tidy(self, work: Callable[[], None]) -> None:
        """Do what is no part of the change, after it; a failure is a warning."""
        try:
            work()
        except Refusal as error:
            self.warnings.append(error.message)
        except OSError as error:
            self.warnings.append(f"{error.filename}: {error.strerror}")


def governed(
    root: Root, requested: bytes, now_ms: int, work: Callable[[Session], Result], *, beside_nested: bool = False
) -> tuple[Result, list[str]]:
    """What `work` answers, and what could not be tidied up after it.

    With `beside_nested`, notes below MEMORY/KNOWLEDGE are no obstacle: what is written is none itself.
    Raises Refusal, and then the tree is as it was; or internal_error, where a change is in place that could
    not be confirmed.
    """
    layout = Layout(root, requested)
    session = Session(layout, now_ms, beside_nested=beside_nested)
    try:
        corpus.settle(session.store, root, session.root, beside_nested=beside_nested)
        answer = work(session)
    except BaseException as error:
        _fail(session, error)
        raise
    else:
        session.warnings += session.store.finish()
    finally:
        layout.close()
    return answer, session.warnings


def looking(root: Root, requested: bytes, now_ms: int, work: Callable[[Session], Result]) -> Result:
    """What `work` answers that only reads; raises Refusal."""
    layout = Layout(root, requested)
    session = Session(layout, now_ms, writes=False)
    try:
        return work(session)
    except BaseException as error:
        _fail(session, error)
        raise
    finally:
        session.store.finish()
        layout.close()


def _fail(session: Session, error: BaseException) -> None:
    """Undo, and raise the failure in words: what could not be undone belongs to them."""
    failures = session.store.finish()
    message = f"; besides, {'; '.join(failures)}" if failures else ""
    if isinstance(error, Refusal):
        raise Refusal(error.code, error.message + message) from None
    if isinstance(error, OSError):
        name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "a file"
        raise write_failed(f"{name}: {error.strerror}; nothing was written{message}") from None


def _key(place: Place) -> str:
    """The name of a folder among the locks of a write."""
    return "/".join((place.base, *place.parts))


def _stamp(ms: int) -> str:
    """ISO time with `-` for `:` and `.`."""
    return format_ms(ms).replace(":", "-").replace(".", "-")
