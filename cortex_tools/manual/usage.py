"""What can stand where on a command line, read out of the declaration: the ground of completion and synopses.

A metavar of positionals is a small language.  ` | ` separates alternatives; a word in lower case stands for itself,
several joined by `|` for any one of them; `COMMAND` is a contract command, `REPORT` or `FILE` the path of a file,
`DIR` of a folder, `CMD` a foreign command with all that follows; `[OPTION...]` says that the contract command before
it brings its own arguments; other capitals are free text.  `...` marks what repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS, Command, Option

FREE, FILE, FOLDER, FOREIGN = "free", "file", "folder", "foreign"
HELP = Option("--help", "flag", "", "show what it does, its options, examples and exit statuses", values=0)
VERSION = Option("--version", "flag", "", "show the version", values=0)
_FILES = ("REPORT", "FILE")


@dataclass(frozen=True)
class Value:
    """What a positional or a value of an option can be: one of `words`, or something of a `kind`."""

    name: str
    kind: str = FREE
    words: tuple[str, ...] = ()
    repeats: bool = False


@dataclass(frozen=True)
class Context:
    """A command line up to a point: the words that lead there, the options and positionals that can follow.

    `path` is the executable's name, and perhaps a word that chooses a table of its own.
    """

    path: tuple[str, ...]
    options: tuple[Option, ...]
    alternatives: tuple[tuple[Value, ...], ...]
    summary: str

    @property
    def first_words(self) -> tuple[str, ...]:
        """The words that can stand at the first place."""
        return tuple(dict.fromkeys(word for values in self.alternatives if values for word in values[0].words))


def contexts(name: str) -> list[Context]:
    """The contexts of an executable: its own first, then one for each word that has a table of its own."""
    declared = EXECUTABLES[name]
    tables = subcommands(name)
    # `cortex search --help` is refused by the contract's grammar: help and version come first there or not at all.
    contract = name in ("cortex", "cortex-plan")
    first = (*declared.options.values(), HELP, VERSION)
    found = [Context((name,), first, _alternatives(declared), declared.summary)]
    for word, table in tables.items():
        options = (*table.options.values(), *(() if contract else (HELP,)))
        found.append(Context((name, word), options, _alternatives(table), table.summary))
    return found


def subcommands(name: str) -> dict[str, Command]:
    """The first words of an executable that have a table of options of their own, with that table."""
    metavar = EXECUTABLES[name].positionals[0]
    found = {key.split()[1]: table for key, table in SUBCOMMANDS.items() if key.split()[0] == name}
    for alternative in metavar.split(" | "):
        if "[OPTION...]" in alternative:
            words = _value(alternative.split()[0]).words
            found.update({word: COMMANDS[word] for word in words})
    return found


def value(option: Option, number: int = 0) -> Value:
    """What the value of an option can be, `number` counting from 0 where it takes several."""
    name = option.metavar.split()[min(number, len(option.metavar.split()) - 1)].removesuffix("...")
    if option.kind == "path":
        return Value(name, FOLDER if name == "DIR" else FILE)
    return Value(name, words=option.choices if number == 0 else ())


def summary_of(word: str, name: str) -> str:
    """One line about a word at the first place, empty where nothing is declared."""
    table = subcommands(name).get(word) or (COMMANDS.get(word) if name == "cortex-envelope" else None)
    return table.summary if table is not None else ""


def described(option: Option) -> str:
    """What an option does, with its bounds and its default, as a sentence."""
    words = option.summary[0].upper() + option.summary[1:]
    if option.kind == "count":
        default = "" if option.default is None else f", default {option.default}"
        words += f" ({option.low} to {option.high}{default})"
    return words + "."


def _alternatives(declared: Command) -> tuple[tuple[Value, ...], ...]:
    metavar, _, most = declared.positionals
    if most == 0 and not metavar:
        return ()
    found = []
    for alternative in metavar.split(" | "):
        values = []
        for token in alternative.split():
            if token.startswith("--"):
                break  # the options have a table of their own
            if token != "[OPTION...]":
                values.append(_value(token))
            if values and values[-1].kind == FOREIGN:
                break  # the rest is the foreign command's
        if len(values) == 1 and most > 1 and " | " not in metavar and values[0].kind in (FREE, FILE, FOLDER):
            values[0] = Value(values[0].name, values[0].kind, repeats=True)
        found.append(tuple(values))
    return tuple(found)


def _value(token: str) -> Value:
    bare = token.strip("[]")
    name = bare.removesuffix("...")
    repeats = bare.endswith("...")
    if name == "COMMAND":
        return Value(name, words=tuple(COMMANDS))
    if name.islower():
        return Value(name, words=tuple(name.split("|")))
    kinds = dict.fromkeys(_FILES, FILE) | {"DIR": FOLDER, "CMD": FOREIGN}
    return Value(name, kinds.get(name, FREE), repeats=repeats)
