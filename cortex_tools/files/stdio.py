"""Standard descriptors: present, written whole, and given up quietly when nobody reads."""

from __future__ import annotations

import os
import sys

from cortex_tools.domain.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

STDIN, STDOUT, STDERR = 0, 1, 2


class OutputError(Exception):
    """Standard output cannot be written; the message says why."""


def ensure_descriptors() -> None:
    """Open the null device on a closed standard input or error, so that no file takes its number.

    A closed standard output stays closed in effect: the null device is opened there read-only, so that
    writing fails instead of landing in whatever file was opened next.
    """
    for descriptor, flags in ((STDIN, os.O_RDONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError as error:
            if error.errno != 9:  # EBADF; anything else is the trouble of a descriptor that is open
                continue
            opened = os.open(os.devnull, flags)
            if opened == descriptor:
                os.set_inheritable(descriptor, True)  # else a child would find it closed again
            else:
                os.dup2(opened, descriptor)
                os.close(opened)


def write_all(data: bytes, descriptor: int = STDOUT) -> None:
    """Write all of `data`; ends the process by SIGPIPE where the reader is gone, else raises OutputError."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        die_by_sigpipe()
    except OSError as error:
        raise OutputError(error.strerror) from None


def die_by_sigpipe() -> None:
    """End as a filter ends whose reader is gone: silently, by the signal."""
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def say(text: str) -> None:
    """One line on standard error, controls shown as escapes; nothing is raised where it cannot be said."""
    try:
        data = printable(text).encode("utf-8", "replace") + b"\n"
        while data:
            data = data[os.write(STDERR, data) :]
    except OSError:
        pass  # there is nowhere left to say it; the exit status still tells


def run(name: str, work: Callable[[list[str]], int], *, cannot_write: int = 1) -> NoReturn:
    """Run the executable `name` and exit with the status that `work` gives for its arguments.

    `cannot_write` is the status where standard output cannot be written.
    """
    ensure_descriptors()
    argv = text_arguments(sys.argv[1:])
    try:
        status = work(argv)
    except OutputError as error:
        say(f"{name}: standard output cannot be written: {error}")
        status = cannot_write
    except KeyboardInterrupt:
        die_by_interrupt()
    os._exit(status)  # all is written; taking the interpreter apart would only cost time


def colour_wanted() -> bool:
    """Whether standard output is a terminal that may show colours and the like (https://no-color.org)."""
    return os.isatty(STDOUT) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def text_arguments(arguments: list[str]) -> list[str]:
    """Command-line arguments decoded as UTF-8 whatever the locale says; other bytes as lone surrogates."""
    if all(argument.isascii() for argument in arguments):
        return arguments
    return [os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in arguments]


def die_by_interrupt() -> None:
    """End as an interrupted program ends, so that the shell sees 130."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
