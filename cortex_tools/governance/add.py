"""`add(item)`: the order in which a write is decided (docs/writing.md)."""

from __future__ import annotations

import os
import time

from cortex_tools.files.root import Root, pin_root, requested_root
from cortex_tools.governance import hot, items, notes, proposals
from cortex_tools.governance.refusal import Refusal
from cortex_tools.governance.session import governed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WRITERS = {"memory": hot.write, "idea": notes.write, "knowledge": notes.write, "proposal": proposals.write}


def add(item: object, root: str | bytes | os.PathLike[str] | None = None, now_ms: int | None = None) -> dict[str, Any]:
    """Persist one typed item below `root` (else the root that section 2 of the contract gives).

    The answer is {"ok": True, "type", "path", "detail"}, or {"ok": False, "code", "message"} where governance
    refuses it, and then the tree is as it was (but for the audit row of a guard's or a lock's refusal).
    `now_ms` stands in for the clock (ms since 1970).

    Raises CortexError: integrity_error for a root that is none, internal_error for a change that is in place
    but was not confirmed by the disk.  Permission is the caller's affair: whoever calls this writes.
    """
    requested = requested_root(root, None)
    pinned = pin_root(requested)
    try:
        return add_below(item, pinned, requested, now_ms)
    finally:
        pinned.close()


def add_below(item: object, root: Root, requested: bytes, now_ms: int | None = None) -> dict[str, Any]:
    """The same below a root that is pinned already; `requested` is how it was asked for, which decides the layout."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    try:
        clean = items.sanitize(item)
        (path, detail), warnings = governed(
            root, requested, now, lambda session: _WRITERS[clean["type"]](session, clean)
        )
    except Refusal as refusal:
        return {"ok": False, "code": refusal.code, "message": refusal.message}
    if warnings:
        detail["warnings"] = warnings
    return {"ok": True, "type": clean["type"], "path": path, "detail": detail}
