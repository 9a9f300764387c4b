"""Manual pages out of the declaration: one for each executable and each contract command."""

from __future__ import annotations

import re

from cortex_tools import __version__
from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS, DEFAULT_ROOT, ROOT_VARIABLE, Command, Option
from cortex_tools.manual import overview, roff
from cortex_tools.manual.statuses import statuses
from cortex_tools.manual.usage import HELP, VERSION, described

# Of the manual, not of the build: the same sources give the same pages.
DATE = "2026-01-31"


def files() -> dict[str, str]:
    """The pages by path below a `share` folder."""
    found = {f"man/man1/{name}.1": page(declared) for name, declared in EXECUTABLES.items()}
    # `man cortex search` finds these, too.
    found |= {f"man/man1/cortex-{name}.1": page(declared) for name, declared in COMMANDS.items()}
    found["man/man7/cortex-tools.7"] = head("cortex-tools", 7) + overview.body()
    return found


def head(name: str, number: int) -> str:
    title = roff.text(name.upper())
    return (
        '.\\" Generated from the declaration of options.\n'
        f'.TH {title} {number} {DATE} "Cortex Tools {__version__}" "Cortex Tools"\n'
    )


def page(declared: Command) -> str:
    """The page of an executable or a contract command."""
    contract = declared.name in COMMANDS
    name = f"cortex-{declared.name}" if contract else declared.name
    typed = f"cortex {declared.name}" if contract else declared.name
    tables = {key: table for key, table in SUBCOMMANDS.items() if key.split()[0] == name}
    parts = [
        head(name, 1),
        roff.section("NAME"),
        roff.paragraph(f"{name} - {declared.summary}"),
        roff.section("SYNOPSIS"),
        ".br\n".join(_synopses(typed, declared) + [line for key in tables for line in _synopses(key, tables[key])]),
        roff.section("DESCRIPTION"),
        *_description(declared, contract),
        *_options(declared, contract, tables),
        roff.section("ENVIRONMENT"),
        *_environment(declared),
        roff.section("EXIT STATUS"),
        *(roff.tagged(roff.bold(str(status)), f"{meaning}.") for status, meaning in statuses(declared).items()),
        roff.section("EXAMPLES"),
        ".PP\n".join(map(roff.example, declared.examples)),
        roff.section("SEE ALSO"),
        _see_also(name, declared),
    ]
    return "".join(parts)


def _synopses(typed: str, declared: Command) -> list[str]:
    metavar, least, most = declared.positionals
    alternatives = metavar.split(" | ") if metavar else []
    if len(alternatives) > 1 or (alternatives and least == 0 and alternatives[0].islower()):
        lines = [f"{roff.bold(typed)} {_shape(one)} [{roff.italic('OPTION')}...]" for one in alternatives]
        if least == 0:
            lines.insert(0, f"{roff.bold(typed)} [{roff.italic('OPTION')}...]")
        return [f"{line}\n" for line in lines]
    if "[OPTION...]" in metavar:  # options of its own stand alone
        own = [f"{roff.bold(typed)} {_option_shape(option)}\n" for option in declared.options.values()]
        return [f"{roff.bold(typed)} {_shape(metavar)}\n", *own]
    shape = _shape(metavar)
    if most > 1 and re.fullmatch("[A-Z]+", metavar):
        shape += "..."
    options = [_bracketed(option) for option in declared.options.values()]
    words = [roff.bold(typed), *([shape] if shape and not declared.ends_options else []), *options]
    if declared.ends_options:
        words.append(shape)
    return ["\n".join(words) + "\n"]


def _shape(metavar: str) -> str:
    """A metavar with what is typed as it stands in bold, and what is to be filled in in italics."""
    parts = re.split(r"([A-Z]+|-?-?[a-z][a-z-]*)", metavar)
    return "".join(
        roff.italic(part)
        if part.isupper()
        else roff.bold(part)
        if part[:1].isalpha() or part[:2] == "--"
        else roff.text(part)
        for part in parts
        if part
    )


def _bracketed(option: Option) -> str:
    shape = _option_shape(option)
    required = option.summary.startswith("required")
    return ("" if required else "[") + shape + ("" if required else "]") + ("...\\&" if option.repeatable else "")


def _description(declared: Command, contract: bool) -> list[str]:
    parts = [roff.paragraph(roff.sentence(declared.summary))]
    if declared.reads:
        parts.append(".PP\n" + roff.paragraph(f"Reads {declared.reads}. Writes {declared.writes}."))
    if contract:
        parts.append(".PP\n" + roff.paragraph(overview.ENVELOPE))
    elif "--unsealed" in declared.options:
        parts.append(".PP\n" + roff.paragraph(overview.SEALED))
    if declared.name == "cortex":
        parts += [roff.section("COMMANDS")]
        parts += [
            roff.tagged(roff.bold(name), f"{roff.sentence(one.summary)} See `cortex-{name}`(1).")
            for name, one in COMMANDS.items()
        ]
    return parts


def _options(declared: Command, contract: bool, tables: dict[str, Command]) -> list[str]:
    parts = [roff.section("OPTIONS"), *map(_option, declared.options.values())]
    if not contract:
        parts += [_option(HELP), _option(VERSION)]
    for key, table in tables.items():
        parts.append(f".SS {roff.text(key)}\n" + roff.paragraph(roff.sentence(table.summary)))
        parts += map(_option, table.options.values())
    return parts


def _option(option: Option) -> str:
    return roff.tagged(_option_shape(option), described(option))


def _option_shape(option: Option) -> str:
    return " ".join(filter(None, (roff.bold(option.name), _shape(option.metavar))))


def _environment(declared: Command) -> list[str]:
    takes_root = "--memory-root" in declared.options or "[OPTION...]" in declared.positionals[0]
    root = f"The memory root where `--memory-root` names none; where neither is set, `{DEFAULT_ROOT}`."
    return [
        *([roff.tagged(roff.bold(ROOT_VARIABLE), root)] if takes_root else []),
        roff.tagged(
            f"{roff.bold('NO_COLOR')}, {roff.bold('TERM')}", "Set to anything, or to `dumb`: no colour anywhere."
        ),
    ]


def _see_also(name: str, declared: Command) -> str:
    """The overview, and the executables that the examples name."""
    shown = " ".join((*declared.examples, "cortex" if name.removeprefix("cortex-") in COMMANDS else ""))
    named = set(re.findall(r"(?<![\w-])cortex(?:-[a-z-]+)?(?![\w-])", shown)) & set(EXECUTABLES) - {name}
    if name == "cortex":
        named |= {f"cortex-{command}" for command in COMMANDS} | {"cortex-plan"}
    pages = [*(f"{roff.bold(one)}(1)" for one in sorted(named)), f"{roff.bold('cortex-tools')}(7)"]
    return ",\n".join(pages) + "\n"
