"""Ctrl-C: an executable that only reads ends at once and silently, as a filter does.

Executables import this module before any other of the project, since Python's own way, an exception,
would end in a traceback where the interrupt falls into an import.  The library does not import it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, without the milliseconds of importing it

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # else whoever started us had it ignored
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """For a process that writes: an interrupt becomes KeyboardInterrupt, so that it can clean up."""
    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
