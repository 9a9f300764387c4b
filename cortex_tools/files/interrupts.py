"""Ctrl-C, and the very last guard: nothing that an executable meets ends in a traceback.

An executable that only reads ends at once and silently, as a filter does.  Executables import this module
before any other of the project, since Python's own way, an exception, would end in a traceback where the
interrupt falls into an import; and memory may run out there.  The library does not import it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, without the milliseconds of importing it
import sys

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # else whoever started us had it ignored
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _say_it_in_a_line(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """In place of a traceback, which quotes code and, in the error's words, may quote a note."""
    name = sys.argv[0].rpartition("/")[2]
    try:
        sys.stderr.write(f"{name}: internal_error: an unexpected {kind.__name__} stopped it\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001 (there is nowhere left to say it; the exit status, 1, still tells)
        return


sys.excepthook = _say_it_in_a_line


def raise_on_interrupt() -> None:
    """For a process that writes: an interrupt becomes KeyboardInterrupt, so that it can clean up."""
    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
