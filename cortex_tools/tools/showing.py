"""What a person sees of the store: tables, and text that may come from another program."""

from __future__ import annotations

import os
import re

from cortex_tools.domain.privacy import strip_private
from cortex_tools.files.stdio import STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from cortex_tools.governance.session import Session

    Result = TypeVar("Result")

WIDTH = 100


def looked(root: str | None, work: Callable[[Session], Result]) -> Result:
    """What `work` answers that only reads below `root` (an option's value); raises CortexError."""
    answer, _ = _below(root, work, writes=False)
    return answer


def written(root: str | None, work: Callable[[Session], Result]) -> tuple[Result, list[str]]:
    """What a governed `work` answers, and its warnings; raises CortexError."""
    return _below(root, work, writes=True)


def _below(root: str | None, work: Callable[[Session], Result], *, writes: bool) -> tuple[Result, list[str]]:
    import time

    from cortex_tools.contract.errors import CortexError
    from cortex_tools.files.root import pin_root, requested_root
    from cortex_tools.governance.refusal import Refusal
    from cortex_tools.governance.session import governed, looking

    requested = requested_root(None, root)
    pinned = pin_root(requested)
    now_ms = time.time_ns() // 1_000_000
    try:
        if writes:
            return governed(pinned, requested, now_ms, work)
        return looking(pinned, requested, now_ms, work), []
    except Refusal as refusal:
        raise CortexError("governance_refused", f"{refusal.code}: {refusal.message}") from None
    finally:
        pinned.close()


def stripped(value: Any) -> Any:
    """A JSON value without private spans in any of its strings: another program may have queued it."""
    if isinstance(value, str):
        return strip_private(value)
    if isinstance(value, list):
        return [stripped(part) for part in value]
    if isinstance(value, dict):
        return {stripped(key): stripped(part) for key, part in value.items()}
    return value


# Controls, and the characters that turn the direction of what follows them.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """`text` with controls as escapes, but for tab and line feed: a terminal must not obey what a file holds."""
    return _UNSAFE.sub(lambda char: char[0].encode("unicode_escape").decode(), text)


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table for people: no colour, as wide as the terminal."""
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*(Text(visible(cell), overflow="fold") for cell in row))
    width = os.get_terminal_size(STDOUT).columns if os.isatty(STDOUT) else WIDTH
    console = Console(file=io.StringIO(), width=width or WIDTH, no_color=True, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n") + "\n"


def age(ms: int) -> str:
    """A span of time in its largest whole unit."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= length:
            return f"{ms // length} {unit}"
    return f"{max(0, ms) // 1000} s"
