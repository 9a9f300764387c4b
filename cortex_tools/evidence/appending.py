"""Appending to what lies in OBSERVABILITY, as a governed write does, without ever making the corpus unsound by it."""

from __future__ import annotations

import time

from cortex_tools.files.root import Root
from cortex_tools.governance import logs
from cortex_tools.governance.refusal import Refusal
from cortex_tools.governance.session import Session, governed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class CannotAppend(Exception):
    """The row was not written; the message says why and what to do."""


def append(root: Root, path: str, row: bytes) -> None:
    """Append `row`, which ends in a line feed, to the log `path` (OBSERVABILITY/NAME); see `below`."""
    below(root, lambda session: add(session, path, row))


def add(session: Session, path: str, row: bytes) -> None:
    """The same within a session; raises Refusal."""
    folder = session.observability()
    with session.store.committing():  # the row is all that is written
        logs.append(session.store, folder, path.rpartition("/")[2], row)


def below(root: Root, work: Callable[[Session], None]) -> None:
    """Do `work`, all or nothing, in OBSERVABILITY, which is made where it is missing; raises CannotAppend.

    Without a KNOWLEDGE folder all that lies below the root is the corpus: where there are notes, nothing
    may be put beside them; where there are none, KNOWLEDGE is made first (governance, section 1).
    """
    try:
        governed(root, root.path, time.time_ns() // 1_000_000, work, beside_nested=True)
    except Refusal as refusal:
        raise CannotAppend(refusal.message) from None
