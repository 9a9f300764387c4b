"""From arguments to a request: what the contract settles before the corpus is looked at (section 4)."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.grammar import Arguments, check_adapter, check_utf8, count_positionals, parse
from cortex_tools.contract.options import COMMANDS, Command
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    ArgumentsFor = Callable[[Command], Arguments]

WRITES = ("remember", "propose")


class Request:
    """A contract command with its arguments, grammar, adapter name and number of positionals in order."""

    __slots__ = ("arguments", "command")

    def __init__(self, command: Command, arguments: Arguments) -> None:
        self.command = command
        self.arguments = arguments


def parse_request(argv: list[str]) -> Request:
    """Read a command line; raises invalid_input at the first thing the grammar refuses."""
    name = argv[0] if argv else ""
    return checked_request(name, lambda command: parse(command, argv[1:]))


def checked_request(name: str, arguments_for: ArgumentsFor) -> Request:
    """The request for command `name`; `arguments_for` gives its arguments once it is known."""
    command = COMMANDS.get(name)
    if command is None:
        raise invalid_input(f"{_shown(name)}; the commands are {', '.join(COMMANDS)}")
    arguments = arguments_for(command)
    if name not in WRITES:  # a payload must be UTF-8 as it stands, and is judged later
        check_utf8(arguments)
    check_adapter(arguments.text("--adapter"))
    if name not in WRITES:
        count_positionals(command, arguments.positionals)
        if name == "rebuild" and not arguments.flag("--from-canonical"):
            raise invalid_input("rebuild needs --from-canonical")
    return Request(command, arguments)


def _shown(name: str) -> str:
    return f"{shown(name)} is no command" if name else "no command was given"
