"""What the executables of evidence share: descriptors, arguments, help, and the end of the process."""

from __future__ import annotations

from cortex_tools.files import interrupts  # isort: skip (first, so that Ctrl-C is quiet from here on)

import os
import sys

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.grammar import Arguments, parse
from cortex_tools.contract.options import Command
from cortex_tools.domain.text import without_surrogates
from cortex_tools.files.stdio import OutputError, die_by_interrupt, ensure_descriptors, say, text_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def run(name: str, work: Callable[[list[str]], int], *, cannot_write: int) -> NoReturn:
    """Run the executable `name` and exit with the status that `work` gives for its arguments.

    `cannot_write` is the status where standard output cannot be written, and where nobody expected what
    happened: that is named by its type alone, since its words may quote a note.
    """
    ensure_descriptors()
    argv = text_arguments(sys.argv[1:])
    try:
        interrupts.raise_on_interrupt()  # these write, and clean up after themselves
        if "--help" in argv or "--version" in argv:
            from cortex_tools.manual.help import show

            status = show(name, argv)
        else:
            status = work(argv)
    except OutputError as error:
        say(f"{name}: standard output cannot be written: {error}")
        status = cannot_write
    except KeyboardInterrupt:
        die_by_interrupt()
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        say(f"{name}: internal_error: an unexpected {type(error).__name__} stopped it")
        status = cannot_write
    os._exit(status)  # all is written; taking the interpreter apart would only cost time


def arguments(command: Command, argv: list[str]) -> Arguments:
    """`argv` by the table of `command`, with U+FFFD for what is not UTF-8 but in paths; raises invalid_input."""
    parsed = parse(command, argv)
    paths = {name for name, option in command.options.items() if option.kind == "path"}
    options = {name: value if name in paths else _readable(value) for name, value in parsed.options.items()}
    return Arguments(options, [without_surrogates(value) for value in parsed.positionals])


def _readable(value: str | bool | list[str]) -> str | bool | list[str]:
    if isinstance(value, str):
        return without_surrogates(value)
    return [without_surrogates(one) for one in value] if isinstance(value, list) else value


def complain(name: str, error: CortexError) -> None:
    """Say a failure on standard error in one line."""
    say(f"{name}: {error.code}: {error.message}")
