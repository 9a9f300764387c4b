"""What the executables that are no stages share: arguments, help, failures, and the end of the process."""

from __future__ import annotations

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.grammar import Arguments, count_positionals, parse
from cortex_tools.contract.options import Command
from cortex_tools.domain.text import without_surrogates
from cortex_tools.files import interrupts, stdio
from cortex_tools.files.stdio import OutputError, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    # What an executable does by its first word: the function, and the options that have a meaning beside it.
    Actions = dict[str, tuple[Callable[[Arguments], None], tuple[str, ...]]]


def run(name: str, work: Callable[[list[str]], int], *, cannot_write: int) -> NoReturn:
    """Run the executable `name` and exit with the status that `work` gives for its arguments.

    `cannot_write` is the status where standard output cannot be written, and where nobody expected what
    happened: that is named by its type alone, since its words may quote a note.
    """

    def answer(argv: list[str]) -> int:
        try:
            interrupts.raise_on_interrupt()  # these write, and clean up after themselves
            if "--help" in argv or "--version" in argv:
                from cortex_tools.manual.help import show

                return show(name, argv)
            return work(argv)
        except OutputError:
            raise
        except Exception as error:  # noqa: BLE001 (the last guard of the process)
            say(f"{name}: internal_error: an unexpected {type(error).__name__} stopped it")
            return cannot_write

    stdio.run(name, answer, cannot_write=cannot_write)


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


def act(name: str, argv: list[str], actions: Actions, object: str) -> int:
    """Do the one of `actions` that the first word names; the answer is the exit status.

    `list` takes nothing more, any other action one `object`.
    """
    try:
        given = arguments(EXECUTABLES[name], argv)
        count_positionals(EXECUTABLES[name], given.positionals)
        action, *rest = given.positionals
        if action not in actions:
            raise invalid_input(f"{name} does one of {', '.join(actions)}")
        if len(rest) != (action != "list"):
            raise invalid_input(f"{name} {action} takes {'no' if action == 'list' else 'one'} {object}")
        work, options = actions[action]
        for option in given.options:
            if option not in ("--memory-root", *options):
                raise invalid_input(f"{option} has no meaning beside {action}")
        work(given)
    except CortexError as error:
        complain(name, error)
        return error.status
    return 0
