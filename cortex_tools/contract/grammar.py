"""The strict option grammar (section 4): left to right, nothing ignored, abbreviated or corrected."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.options import ADAPTERS, MEMORY_ROOT, Command


class Arguments:
    """A parsed command line: `options` maps each option given to its value(s), a flag to True."""

    __slots__ = ("options", "positionals")

    def __init__(self, options: dict[str, str | bool | list[str]], positionals: list[str]) -> None:
        self.options = options
        self.positionals = positionals

    def text(self, name: str) -> str | None:
        """The value of a single-valued option, None where it was not given."""
        value = self.options.get(name)
        return value if isinstance(value, str) else None

    def texts(self, name: str) -> list[str]:
        """The values of a repeatable or many-valued option, in the order given."""
        value = self.options.get(name)
        return value if isinstance(value, list) else []

    def flag(self, name: str) -> bool:
        return self.options.get(name) is True


def parse(command: Command, arguments: list[str]) -> Arguments:
    """Read `arguments` by the table of `command`.

    Raises invalid_input for an option that the command does not have, one given twice, and a value
    that is absent, empty or starts with `--`.  Counting positionals is left to the caller, because
    the contract settles the adapter and permission first.
    """
    options: dict[str, str | bool | list[str]] = {}
    positionals: list[str] = []
    arguments, foreign = own_words(command, arguments)
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        if not argument.startswith("--"):
            positionals.append(argument)
            continue
        option = command.options.get(argument)
        if option is None:
            raise invalid_input(_unknown(argument, command))
        if argument in options and not option.repeatable:
            raise invalid_input(f"{argument} was given twice; give it once")
        if option.values == 0:
            options[argument] = True
            continue
        values = arguments[at : at + option.values]
        at += option.values
        if len(values) < option.values or not _usable(option.kind, values):
            raise invalid_input(
                f"{argument} needs a value ({option.metavar}) after it, not empty and not another option"
            )
        if option.repeatable:
            options.setdefault(argument, []).extend(values)  # type: ignore[union-attr]
        else:
            options[argument] = values[0] if option.values == 1 else values
    return Arguments(options, positionals + foreign)


def own_words(command: Command, arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments that are the executable's own, and those of the foreign command that it is to run.

    The foreign command begins with the first word that is no option, or after `--`.
    """
    if not command.ends_options:
        return arguments, []
    at = 0
    while at < len(arguments) and arguments[at].startswith("--"):
        if arguments[at] == "--":
            return arguments[:at], arguments[at + 1 :]
        option = command.options.get(arguments[at])
        at += 1 + (option.values if option else 0)
    return arguments[:at], arguments[at:]


def _usable(kind: str, values: list[str]) -> bool:
    """`any` may be empty (an ID asked for may be) and a refusal is free text; the rest is the contract's rule."""
    if kind == "refusal":
        return True
    return all(not value.startswith("--") and (value or kind == "any") for value in values)


def _unknown(argument: str, command: Command) -> str:
    if argument == "--help":  # of executables, which have seen to it before
        return f"--help comes first: cortex --help {command.name}"
    # Quoted only where it can be an option's name: anything else may be a slip of private text.
    plain = argument.isascii() and len(argument) <= 40 and argument.replace("-", "a").isalnum()
    known = ", ".join(command.options) or "none"
    return f"{argument if plain else 'what was given'} is not an option of {command.name}; its options are: {known}"


def check_utf8(arguments: Arguments) -> None:
    """Raise invalid_input for an argument that is not UTF-8: it could be taken for another one.

    A path is left to whoever opens it.
    """
    for name, value in arguments.options.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and name != MEMORY_ROOT.name and not _is_utf8(text):
                raise invalid_input(f"the value of {name} is not UTF-8")
    for number, text in enumerate(arguments.positionals, 1):
        if not _is_utf8(text):
            raise invalid_input(f"argument {number} is not UTF-8")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_adapter(name: str | None) -> None:
    """Raise invalid_input for the value of --adapter that names none; None, where it was not given, is no fault."""
    if name is not None and name not in ADAPTERS:
        raise invalid_input(f"--adapter must be one of {', '.join(ADAPTERS)}")


def count_positionals(command: Command, positionals: list[str]) -> None:
    """Raise invalid_input unless the number of positionals is what `command` takes."""
    metavar, least, most = command.positionals
    number = len(positionals)
    if least <= number <= most:
        return
    if command.ends_options:
        raise invalid_input(f"{command.name} needs a command to run; for example: {command.examples[0]}")
    if most == 0:
        raise invalid_input(f"{command.name} takes no argument besides its options, {number} given")
    wanted = f"exactly one {metavar}" if least == most == 1 else f"{least} to {most} of {metavar}"
    raise invalid_input(f"{command.name} takes {wanted}, {number} given")
