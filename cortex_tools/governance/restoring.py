"""Going back to a snapshot, as a governed write of its own (docs/writing.md)."""

from __future__ import annotations

from cortex_tools.contract.errors import not_found
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.files.names import shown
from cortex_tools.governance import corpus, hot
from cortex_tools.governance.folders import File
from cortex_tools.governance.layout import Layout, Place
from cortex_tools.governance.places import HOT_FILES, MEMORY_LOG, NOTE_LOG, OBSERVABILITY, SNAPSHOTS, TARGETS
from cortex_tools.governance.proposals import difference
from cortex_tools.governance.refusal import write_failed
from cortex_tools.governance.session import SNAPSHOT_NAME, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Snapshot:
    """A snapshot: its name, the file it is of, when it was taken (ms since 1970), its bytes and its entries.

    `entries` is None for a file that holds none.
    """

    __slots__ = ("bytes", "entries", "name", "path", "taken_ms")

    def __init__(self, name: str, path: str, taken_ms: int, size: int, entries: int | None) -> None:
        self.name = name
        self.path = path
        self.taken_ms = taken_ms
        self.bytes = size
        self.entries = entries

    def as_dict(self, now_ms: int) -> dict[str, Any]:
        return {
            "name": self.name,
            "path": self.path,
            "age_seconds": max(0, now_ms - self.taken_ms) // 1000,
            "bytes": self.bytes,
            "entries": self.entries,
        }


class Restoration:
    """What restoring changes: where, and the difference for people to read."""

    __slots__ = ("diff", "path")

    def __init__(self, path: str, diff: str) -> None:
        self.path = path
        self.diff = diff


def snapshots(session: Session) -> list[Snapshot]:
    """All snapshots of known files, those of a file together, newest first."""
    folder = session.store.reach(session.root, (OBSERVABILITY, SNAPSHOTS), make=False)
    found = []
    for name in [] if folder is None else session.store.names(folder):
        match = SNAPSHOT_NAME.fullmatch(name)
        place = None if match is None else _place(session.layout, match[1])
        if match is None or place is None or folder is None:
            continue
        file = session.store.read(folder, name)
        if file is not None:
            path = "/".join((*place.parts, place.name))
            found.append(Snapshot(name, path, _taken(match[2]), len(file.data), _entries(session.layout, place, file)))
    return sorted(found, key=lambda snapshot: (snapshot.path, -snapshot.taken_ms))


def _taken(stamp: str) -> int:
    return parse_ms(f"{stamp[:13]}:{stamp[14:16]}:{stamp[17:19]}.{stamp[20:]}") or 0


def _entries(layout: Layout, place: Place, file: File) -> int | None:
    if not layout.is_hot(place):
        return None
    return len(hot.parse(file.data.decode("utf-8", "replace")).entries)


def _place(layout: Layout, stem: str) -> Place | None:
    """The file whose snapshots are called `stem`."""
    for actor, (_, name) in HOT_FILES.items():
        if name == stem + ".md":
            return layout.hot(actor)
    for targets in TARGETS.values():
        for target in targets:
            if target.rpartition("/")[2] == stem + ".md":
                return layout.target(target)
    return None


def _read(session: Session, name: str) -> tuple[Place, bytes]:
    """The place and the bytes of a snapshot; raises not_found or EWRITE_FAILED."""
    match = SNAPSHOT_NAME.fullmatch(name)
    place = None if match is None or "/" in name else _place(session.layout, match[1])
    folder = session.store.reach(session.root, (OBSERVABILITY, SNAPSHOTS), make=False)
    file = None if place is None or folder is None else session.store.read(folder, name)
    if place is None or file is None:
        raise not_found(f"there is no snapshot {shown(name)}; cortex-restore list shows them")
    try:
        file.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise write_failed(
            f"the snapshot {shown(name)} is not UTF-8 at byte {error.start}; it stays where it is"
        ) from None
    return place, file.data


def preview(session: Session, name: str) -> Restoration:
    """What restoring a snapshot would change now; changes nothing."""
    place, data = _read(session, name)
    folder = session.find(place, make=False)
    old = None if folder is None else session.store.read(folder, place.name)
    return _restoration(session, place, old, data)


def _restoration(session: Session, place: Place, old: File | None, data: bytes) -> Restoration:
    path = session.shown(place)
    before = b"" if old is None else old.data
    try:
        return Restoration(path, difference(path, before, data))
    except UnicodeDecodeError as error:
        raise write_failed(f"{path} is not UTF-8 at byte {error.start}; nothing is changed") from None


def restore(session: Session, name: str) -> Restoration:
    """Put a snapshot's bytes in place of the file, which becomes a snapshot itself; the answer is what changed."""
    place, data = _read(session, name)
    folder, file_name = session.take(place)
    old = session.store.read(folder, file_name)
    restoration = _restoration(session, place, old, data)
    if old is not None and old.data == data:
        return restoration
    path = folder.shown(file_name)
    if session.layout.is_note(place):
        corpus.check_bytes(path, data)
        session.check_note(path, len(data))
    log = NOTE_LOG if session.layout.tier(session.layout.path(place)) == "B" else MEMORY_LOG
    row = {"type": "restore", "path": path, "restored": name, "bytes_written": len(data), "rejected": False}
    session.replace(folder, file_name, old, data, log, row, snapshot=True)
    return restoration
