"""What calling code may inject (section 11)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # Takes the item and the path of the pinned root; gives {"ok": True, ...} or {"ok": False, "code", "message"}.
    MemoryAdd = Callable[[dict[str, Any], str], dict[str, Any]]


class Runtime:
    """`memory_root` comes before every other level of section 2; `memory_add` performs authorized writes
    (None: governance.add, the real one); `now_ms` stands in for the clock (ms since 1970).

    An exception in `memory_add` is answered as internal_error, a result {"ok": False, "code", "message"} as
    governance_refused."""

    __slots__ = ("memory_add", "memory_root", "now_ms")

    def __init__(
        self,
        memory_root: str | bytes | os.PathLike[str] | None = None,
        memory_add: MemoryAdd | None = None,
        now_ms: int | None = None,
    ) -> None:
        self.memory_root = memory_root
        self.memory_add = memory_add
        self.now_ms = now_ms
