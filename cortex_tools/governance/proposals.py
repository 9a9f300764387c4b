"""Proposals (tier C): a queue that only a person's decision takes anything out of (docs/writing.md).

Approving adds the proposed text to the end of its target, once: where the target holds it already, as
whole lines, only the queue changes.  So a decision that a crash interrupted can simply be taken again.
"""

from __future__ import annotations

import difflib
import hashlib
import json

from cortex_tools.contract.errors import CortexError, not_found
from cortex_tools.domain.privacy import strip, strip_private
from cortex_tools.domain.text import trim
from cortex_tools.files.names import shown
from cortex_tools.governance import items, logs
from cortex_tools.governance.folders import File, Folder
from cortex_tools.governance.layout import Layout, Place
from cortex_tools.governance.places import MEMORY_LOG, NOTE_LOG, OBSERVABILITY, QUEUE
from cortex_tools.governance.refusal import ETIER_MISMATCH, Refusal, write_failed
from cortex_tools.governance.rows import row_line
from cortex_tools.governance.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = dict[str, Any]

PENDING, APPROVED, REJECTED = "pending", "approved", "rejected"
_CONTEXT = 3


def write(session: Session, item: Item) -> tuple[str, Item]:
    """Queue a sanitized proposal; the answer is the queue's path and the result's detail."""
    kind, target = session.layout.target_named(item["target_file"], item.get("target_kind"))
    folder, name = session.take_queue()
    ids = {row.id for row in read_queue(session.store.read(folder, name), folder.shown(name))}
    row = {
        "id": "",
        "ts": session.now,
        "status": PENDING,
        "target_file": session.layout.path(session.layout.target(target)),
        "target_kind": kind,
        "edit": item["edit"],
        "confidence": item["confidence"],
        "rationale": item["rationale"],
        "observed_across_sessions": item["observed_across_sessions"],
        "source_session": item.get("source_session"),
    }
    row["id"] = _new_id(row, ids)
    with session.store.committing():
        logs.append(session.store, folder, name, row_line(row))
    return folder.shown(name), {"id": row["id"], "status": "queued"}


def _new_id(row: Item, taken: set[str | None]) -> str:
    """An ID made from the row, and from a count where the same row is queued in the same millisecond."""
    count = 0
    while True:
        identifier = "prop_" + hashlib.sha256(row_line(row) + b"%d" % count).hexdigest()[:12]
        if identifier not in taken:
            return identifier
        count += 1


# The queue.


class Row:
    """A line of the queue: its number from 1, its bytes, and its object, None where it is torn or no object."""

    __slots__ = ("line", "number", "value")

    def __init__(self, number: int, line: bytes) -> None:
        self.number = number
        self.line = line
        self.value = _object(line)

    @property
    def id(self) -> str | None:
        identifier = None if self.value is None else self.value.get("id")
        return identifier if isinstance(identifier, str) else None

    @property
    def status(self) -> str:
        status = None if self.value is None else self.value.get("status")
        return status if isinstance(status, str) else "unreadable"


def _object(line: bytes) -> Item | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_queue(file: File | None, path: str) -> list[Row]:
    """The rows of the queue, blank lines left out; raises EWRITE_FAILED where it is not UTF-8."""
    if file is None:
        return []
    try:
        file.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise write_failed(f"{path} is not UTF-8 at byte {error.start}; nothing is changed in it") from None
    return [Row(number, line) for number, line in enumerate(_queue_lines(file.data), 1) if line.strip()]


def _queue_lines(data: bytes) -> list[bytes]:
    """The lines with their ends; the last may be without one."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def find(rows: list[Row], identifier: str) -> Row:
    """The one row with this ID; raises not_found, or EWRITE_FAILED where it stands twice."""
    found = [row for row in rows if row.id == identifier]
    if not found:
        torn = [str(row.number) for row in rows if row.value is None]
        unread = f"; line {', '.join(torn[:10])} of the queue cannot be read" if torn else ""
        raise not_found(f"no proposal has the ID {shown(identifier)}{unread}")
    if len(found) > 1:
        lines = ", ".join(str(row.number) for row in found)
        raise write_failed(f"the ID {shown(identifier)} stands on lines {lines} of {OBSERVABILITY}/{QUEUE}; rename one")
    return found[0]


def _pending(row: Row) -> Item:
    """The object of a row that waits for a decision; raises EWRITE_FAILED."""
    assert row.value is not None
    if row.status != PENDING:
        when = row.value.get("decided_at")
        at = f" at {shown(when)}" if isinstance(when, str) else ""
        raise write_failed(f"proposal {shown(row.id or '')} is {shown(row.status)} already{at}; nothing is changed")
    return row.value


# What a proposal would change.


class Change:
    """A proposal's effect: where, from which bytes to which, and the difference for people to read."""

    __slots__ = ("after", "before", "diff", "place")

    def __init__(self, place: Place, path: str, before: File, after: bytes) -> None:
        self.place = place
        self.before = before
        self.after = after
        self.diff = difference(path, before.data, after)


def target_of(layout: Layout, proposal: Item) -> Place:
    """The place that a queued proposal means; raises EINVAL_ITEM for a row that names none."""
    target_file, kind = proposal.get("target_file"), proposal.get("target_kind")
    checked = {"type": "proposal", "target_file": target_file, "confidence": 1, "edit": "x", "rationale": "x"}
    clean = items.sanitize(checked | ({} if kind is None else {"target_kind": kind}))
    place = layout.target(layout.target_named(clean["target_file"], kind)[1])
    if layout.tier(layout.path(place)) not in ("B", "C"):
        raise Refusal(ETIER_MISMATCH, f"{place.name} is not open to proposals")
    return place


def change(session: Session, proposal: Item, folder: Folder | None, place: Place) -> Change:
    """What approving would do to the target as it is now; raises EWRITE_FAILED where it is gone or unreadable."""
    path = session.shown(place)
    old = None if folder is None else session.store.read(folder, place.name)
    if old is None:
        raise write_failed(f"{path} does not exist; make it first (an empty file will do), nothing is changed")
    clean = items.sanitize(
        {"type": "proposal", "target_file": place.name, "confidence": 1, "edit": proposal.get("edit"), "rationale": "x"}
    )
    return Change(place, path, old, apply(old.data, clean["edit"], path))


def apply(data: bytes, edit: str, path: str) -> bytes:
    """`data` with the proposed text as its last paragraph; unchanged where it holds it already.

    Raises EWRITE_FAILED where that cannot be read as text, or where an open tag would hide what is added.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise write_failed(f"{path} is not UTF-8 at byte {error.start}; nothing is changed") from None
    edit = trim(edit)
    if f"\n{edit}\n".replace("\r\n", "\n") in f"\n{text}\n".replace("\r\n", "\n"):
        return data
    if strip(text).cut is not None:
        raise write_failed(
            f"{path} has a private tag that is malformed or never closed, which would hide what is added; close it, "
            "nothing is changed"
        )
    if not text.removeprefix("\ufeff"):
        gap = ""
    elif not text.endswith("\n"):
        gap = "\n\n"
    else:
        gap = "" if text.endswith(("\n\n", "\n\r\n")) else "\n"
    return (text + gap + edit + "\n").encode()


def difference(path: str, before: bytes, after: bytes) -> str:
    """A unified diff of what the privacy boundary leaves of both, empty only where the bytes are the same."""
    old, new = before.decode("utf-8"), after.decode("utf-8")
    shown_old, shown_new = strip_private(old), strip_private(new)
    lines = difflib.unified_diff(_lines(shown_old), _lines(shown_new), path, path, n=_CONTEXT)
    text = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    if old == new or (shown_old, shown_new) == (old, new):
        return text
    head = "" if text else f"--- {path}\n+++ {path}\n"
    return f"{head}{text}\\ Private text is not shown\n"


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


# Deciding.


def preview(session: Session, identifier: str) -> tuple[Item, Change]:
    """A proposal and what approving it would do now; changes nothing."""
    proposal = queued(session, identifier)
    place = target_of(session.layout, proposal)
    return proposal, change(session, proposal, session.find(place, make=False), place)


def queued(session: Session, identifier: str) -> Item:
    """The queued object with this ID, decided or not."""
    return find(rows_of(session), identifier).value or {}


def rows_of(session: Session) -> list[Row]:
    """The queue as it is; changes nothing."""
    folder = session.store.reach(session.root, (OBSERVABILITY,), make=False)
    return [] if folder is None else read_queue(session.store.read(folder, QUEUE), f"{OBSERVABILITY}/{QUEUE}")


def approve(session: Session, identifier: str) -> Change:
    """Apply a pending proposal to its target and mark it; the answer is what was changed."""
    proposal = _pending(find(rows_of(session), identifier))
    place = target_of(session.layout, proposal)
    if session.find(place, make=False) is None:
        raise write_failed(f"{session.shown(place)} does not exist; make it first (an empty file will do)")
    folder, name = session.take(place)
    session.snapshots()
    queue = _Queue(session, identifier)
    proposal = _pending(queue.row)
    if target_of(session.layout, proposal).name != place.name:
        raise write_failed("the proposal was changed meanwhile; look at it again")
    done = change(session, proposal, folder, place)
    queue.prepare(APPROVED, None)
    if done.after == done.before.data:
        queue.commit()
        return done
    log = NOTE_LOG if session.layout.tier(session.layout.path(place)) == "B" else MEMORY_LOG
    row: Item = {"type": "proposal", "op": "approve", "proposal_id": identifier, "path": session.shown(place)}
    row |= {"target_kind": proposal.get("target_kind"), "bytes_written": len(done.after), "rejected": False}
    session.replace(folder, name, done.before, done.after, log, row, snapshot=True)
    try:
        queue.commit()
    except (Refusal, OSError):
        session.tidy(queue.discard)
        raise CortexError(
            "internal_error",
            f"the proposal is applied to {session.shown(place)} but could not be marked; approve it again, "
            "its text will not be added twice",
        ) from None
    return done


def reject(session: Session, identifier: str, reason: str | None) -> None:
    """Mark a pending proposal as rejected."""
    queue = _Queue(session, identifier)
    _pending(queue.row)
    queue.prepare(REJECTED, reason)
    queue.commit()


class _Queue:
    """The queue under its lock, about to have one row decided; every other byte of it is kept."""

    def __init__(self, session: Session, identifier: str) -> None:
        self._session = session
        self._folder, self._name = session.take_queue()
        self._old = session.store.read(self._folder, self._name)
        self._rows = read_queue(self._old, self._folder.shown(self._name))
        self.row = find(self._rows, identifier)
        self._temporary = ""

    def prepare(self, status: str, reason: str | None) -> None:
        """Write the new queue beside the old one."""
        assert self._old is not None and self.row.value is not None
        decided = {**self.row.value, "status": status, "decided_at": self._session.now}
        if reason is not None:
            decided["reason"] = reason
        lines = _queue_lines(self._old.data)
        lines[self.row.number - 1] = row_line(decided)
        self._temporary = self._session.store.temporary(
            self._folder, self._name, b"".join(lines), self._old.mode, exact=True
        )

    def discard(self) -> None:
        """Remove the new queue; FileNotFoundError where it is in place already."""
        self._session.store.unlink(self._folder, self._temporary)

    def commit(self) -> None:
        """Put it in place."""
        self._session.check_unmoved(self._folder, self._name, self._old)
        with self._session.store.committing():
            self._session.store.rename(self._folder, self._temporary, self._name)
        self._session.confirm(self._folder, self._name)
