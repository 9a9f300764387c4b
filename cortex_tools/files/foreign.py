"""Foreign filters: a child process, fed and read at once, that never outlives us."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, without the milliseconds of importing it
import os
import time

from cortex_tools.contract.errors import invalid_input
from cortex_tools.files.names import shown
from cortex_tools.files.stdio import STDIN, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 16
_ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
# Python ignores these, and a child would inherit that.
_IGNORED_HERE = (_signal.SIGPIPE, _signal.SIGXFSZ)
_GRACE_SECONDS = 1.0


def find(program: str) -> str:
    """The path of `program`, looked up in $PATH where it holds no slash; raises invalid_input where there is none."""
    if not program:
        raise invalid_input("the name of the command is empty")
    tried = [program] if "/" in program else [os.path.join(folder, program) for folder in os.get_exec_path()]
    files = [path for path in tried if os.path.isfile(path)]
    for path in files:
        if os.access(path, os.X_OK):
            return path
    if files:
        raise invalid_input(f"the command {shown(program)} is no executable file; make it one with chmod +x")
    where = "" if "/" in program else " in any folder of $PATH"
    raise invalid_input(f"there is no command {shown(program)}{where}; a script of the shell goes behind sh -c")


class ForeignFilter:
    """A running filter.  Its standard error is ours.

    `exchange` feeds it and gives its output; then `wait` gives its status, and `stopped_early` says
    whether it ended without having read all that it was given.  `end` leaves nothing behind, whatever
    happened.  While it runs, a signal that ends us ends it first.
    """

    def __init__(self, path: str, words: list[str]) -> None:
        """Start the program at `path` with the arguments `words`, its own name first; raises invalid_input."""
        self.stopped_early = False
        self._pid = 0
        self._handlers = {number: _signal.getsignal(number) for number in _ENDING}
        # Our own copy of the end that the filter reads shows, once it is gone, what it has left unread.
        self._unread, self._feed = os.pipe()
        self._output, writing = os.pipe()
        os.set_blocking(self._feed, False)
        for number, handler in self._handlers.items():
            if handler != _signal.SIG_IGN:
                _signal.signal(number, self._die_with_it)
        # No signal may fall between the start of the child and our knowing its number.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ENDING)
        try:
            self._pid = os.posix_spawn(
                path,
                [word.encode("utf-8", "surrogateescape") for word in words],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, self._unread, STDIN), (os.POSIX_SPAWN_DUP2, writing, STDOUT)],
                setsigmask=mask,
                setsigdef=_IGNORED_HERE,
            )
        except OSError as error:
            self.end()
            raise invalid_input(f"the command {shown(words[0])} cannot be run: {error.strerror}") from None
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
            os.close(writing)

    def exchange(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """Feed all of `source`, and give what the filter writes, in pieces, as it comes.

        Both at once, whichever is possible: a filter may write much before it reads, and the other way round.
        """
        import select

        poller = select.poll()
        poller.register(self._output, select.POLLIN)
        poller.register(self._feed, select.POLLOUT)
        pending = memoryview(b"")
        while self._output >= 0 or self._feed >= 0:
            for descriptor, _ in poller.poll():
                if descriptor == self._output:
                    piece = os.read(self._output, _PIECE)
                    if piece:
                        yield piece
                        continue
                    poller.unregister(self._output)
                    self._close("_output")
                    if self._feed >= 0:
                        self._close("_unread")  # so that feeding one that is gone fails instead of waiting
                else:
                    pending = pending or memoryview(next(source, b""))
                    written = self._write(pending) if pending else None
                    if written is None:
                        poller.unregister(self._feed)
                        self._close("_feed")
                    else:
                        pending = pending[written:]

    def _write(self, pending: memoryview) -> int | None:
        """How many bytes the filter's pipe took; None where nobody reads it any more."""
        try:
            return os.write(self._feed, pending)
        except BlockingIOError:
            return 0  # room was announced and is gone again
        except BrokenPipeError:
            self.stopped_early = True
            return None

    def wait(self) -> int:
        """The filter's exit status, or the number of the signal that killed it, negative."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        if self._unread >= 0 and os.read(self._unread, 1):
            self.stopped_early = True
        return status

    def end(self, number: int = _signal.SIGTERM) -> None:
        """Close everything; a filter that still runs gets the signal `number`, and is killed if that does not help."""
        for name in ("_unread", "_feed", "_output"):
            self._close(name)
        if self._pid:
            os.kill(self._pid, number)
            patience = time.monotonic() + _GRACE_SECONDS
            while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > patience:
                    os.kill(self._pid, _signal.SIGKILL)
                    os.waitpid(self._pid, 0)
                    break
                time.sleep(0.005)
            self._pid = 0
        for each, handler in self._handlers.items():
            _signal.signal(each, handler)

    def _die_with_it(self, number: int, _frame: object) -> None:
        self.end(number)
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _close(self, name: str) -> None:
        descriptor: int = getattr(self, name)
        if descriptor >= 0:
            setattr(self, name, -1)
            os.close(descriptor)
