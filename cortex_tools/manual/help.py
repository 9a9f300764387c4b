"""--help and --version of every executable."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shutil
from typing import Any

import typer

from cortex_tools import __version__
from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS, Command, Option
from cortex_tools.files.stdio import colour_wanted, write_all
from cortex_tools.manual.statuses import statuses
from cortex_tools.manual.usage import described

_NARROWEST = 60
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def show(name: str, argv: list[str]) -> int:
    """Print the version, or the help that `argv` asks for; raises OutputError where it cannot be printed."""
    if "--help" not in argv:
        write_all(f"{name} {__version__}\n".encode())
        return 0
    declared = _topic(name, argv)
    shown_name = f"cortex {declared.name}" if declared.name in COMMANDS else declared.name
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command(help=_description(declared))(_callback(declared))
    if shutil.get_terminal_size().columns < _NARROWEST:
        os.environ["COLUMNS"] = str(_NARROWEST)  # better wrapped by the terminal than options cut short
    page = _Page()
    with contextlib.redirect_stdout(page):
        app(args=["--help"], prog_name=shown_name, standalone_mode=False)
    # The closing is past Typer, whose line wrapping would break a pipeline that is to be pasted.
    text = page.getvalue().replace("{" + declared.positionals[0] + "}", declared.positionals[0])
    if not colour_wanted():  # NO_COLOR leaves Rich bold, and FORCE_COLOR colours a file
        text = _STYLE.sub("", text)
    write_all((text + _closing(shown_name, declared)).encode())
    return 0


class _Page(io.StringIO):
    """Collects what Typer prints, in colour where standard output would show it."""

    def isatty(self) -> bool:
        return colour_wanted()


def _topic(name: str, argv: list[str]) -> Command:
    """What the help is about: a contract command, a subcommand, or the executable itself."""
    for argument in argv:
        if name == "cortex" and argument in COMMANDS:
            return COMMANDS[argument]
        if f"{name} {argument}" in SUBCOMMANDS:
            return SUBCOMMANDS[f"{name} {argument}"]
    return EXECUTABLES[name]


def _callback(declared: Command) -> Any:
    """A function whose signature Typer reads as the declared options and positionals."""
    parameters = []
    metavar, least, most = declared.positionals
    if most:
        argument = typer.Argument(... if least else None, metavar=metavar, show_default=False)
        parameters.append(_parameter("positional", argument, str))
    for number, option in enumerate(declared.options.values()):
        parameters.append(_parameter(f"option{number}", _option(option), _annotation(option)))
    version = typer.Option(False, "--version", help="Show the version and exit.")
    parameters.append(_parameter("version", version, bool))

    def callback(**values: Any) -> None:
        raise AssertionError("the strict parser runs commands, Typer only describes them")

    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return callback


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(option: Option) -> Any:
    if option.values == 0:
        return bool
    if option.repeatable:
        return list[str]
    return str if option.values == 1 else tuple[str, str]


def _option(option: Option) -> Any:
    empty = False if option.values == 0 else None
    return typer.Option(empty, option.name, metavar=option.metavar or None, help=described(option), show_default=False)


def _description(declared: Command) -> str:
    sentence = declared.summary[0].upper() + declared.summary[1:] + "."
    if declared.reads:
        sentence += f"\n\nReads {declared.reads}.\n\nWrites {declared.writes}."
    return _plain(sentence)


def _closing(shown_name: str, declared: Command) -> str:
    """Commands, examples and exit statuses, as they stand."""
    lines = []
    if shown_name in ("cortex", "cortex-plan"):
        width = max(map(len, COMMANDS))
        lines += ["Commands:", *(f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()), ""]
    lines += ["Examples:", *(f"  {example}" for example in declared.examples), "", "Exit status:"]
    lines += [f"  {status}  {meaning}" for status, meaning in statuses(declared).items()]
    if shown_name == "cortex":
        lines += ["", "cortex --help COMMAND shows the options of a command."]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text in which Rich sees no markup of its own."""
    return text.replace("[", r"\[")
