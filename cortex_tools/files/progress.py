"""Progress on standard error, for a person who waits: one line, after a second of work, gone at the end.

Imported only where standard error is a terminal, and written by hand: rich would cost more to import than most
work takes, and its thread does not go well with forked workers.
"""

from __future__ import annotations

import os
import time

from cortex_tools.files.stdio import STDERR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

FIRST_AFTER = 1.0
"""Seconds of work before anything is shown: an answer that comes at once needs no progress."""
NEXT_AFTER = 0.1


def erase(what: str) -> None:
    """Take away the line of a process that was ended."""
    if _wanted():
        blank = " " * len(f"{what}: 100 %")
        _write(f"\r{blank}\r")


class Progress:
    """`items`, one after the other; how far they have got stands on the terminal while they last.

    `size` says what share of the whole an item is.  To be used in a `with`, which takes the line away again.
    """

    def __init__(self, what: str, items: Sequence[Any], size: Callable[[Any], int] = lambda item: 1) -> None:
        self._what = what
        self._items = items
        self._size = size
        self._next = time.monotonic() + FIRST_AFTER
        self._wanted = _wanted()
        self._shown = 0
        self._restore: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._erase()

    def __iter__(self) -> Iterator[Any]:
        total = sum(map(self._size, self._items)) or 1
        done = 0
        for item in self._items:
            yield item
            done += self._size(item)
            now = time.monotonic()
            if self._wanted and now >= self._next:
                self._next = now + NEXT_AFTER
                self._show(100 * done // total)

    def _show(self, percent: int) -> None:
        if not _in_foreground():
            return
        if not self._shown:
            self._erase_on_interrupt()
        text = f"{self._what}: {percent} %"
        line = "\r" + text.ljust(self._shown)
        self._shown = len(text)  # first, since an interrupt may come at once
        _write(line)

    def _erase(self) -> None:
        if self._shown:
            _write("\r" + " " * self._shown + "\r")
            self._shown = 0
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _erase_on_interrupt(self) -> None:
        """What ends by SIGINT silently still takes its line away; what catches it leaves the `with` anyway."""
        import signal

        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
            signal.signal(signal.SIGINT, self._interrupted)
            self._restore = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _interrupted(self, *signal_and_frame: object) -> None:
        from cortex_tools.files.stdio import die_by_interrupt

        self._erase()
        die_by_interrupt()


def _wanted() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb"


def _in_foreground() -> bool:
    """A job in the background writes over nobody's prompt."""
    try:
        return os.tcgetpgrp(STDERR) == os.getpgrp()
    except OSError:
        return True  # not our controlling terminal: there is no foreground to speak of


def _write(text: str) -> None:
    try:
        os.write(STDERR, text.encode())
    except OSError:
        pass  # the terminal is gone; the work goes on
