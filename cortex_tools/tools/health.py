"""cortex-health: measure whether memory is in operation (docs/evidence.md)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.grammar import Arguments, count_positionals
from cortex_tools.evidence import layout as layouts
from cortex_tools.files.stdio import STDOUT, colour_wanted, write_all
from cortex_tools.tools import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cortex_tools.evidence.report import Report

NAME = "cortex-health"
REFUSED = 4
"""No verdict was reached or could be told: 0, 1 and 2 are verdicts."""


def main() -> NoReturn:
    """Run cortex-health and exit with its status."""
    program.run(NAME, work, cannot_write=REFUSED)


def work(argv: list[str]) -> int:
    """Do what the arguments ask for; the answer is the exit status."""
    try:
        arguments = program.arguments(EXECUTABLES[NAME], argv)
        count_positionals(EXECUTABLES[NAME], arguments.positionals)
        if arguments.positionals:
            return _affirm(arguments)
        layout = layouts.find(layouts.requested(arguments.text("--memory-root"), os.environ))
    except CortexError as error:
        program.complain(NAME, error)
        return REFUSED
    from cortex_tools.evidence import report as reports

    try:
        report = reports.measure(layout, os.environ, corpus=arguments.flag("--corpus"))
        reports.keep(report, layout, os.environ)
    finally:
        layout.close()
    write_all(report.line() if arguments.flag("--json") else _for_people(report))
    return report.status


def _for_people(report: Report) -> bytes:
    from cortex_tools.evidence import table  # rich costs more than the whole measurement

    width = os.get_terminal_size(STDOUT).columns if os.isatty(STDOUT) else 0
    return table.render(report, width=width or table.WIDTH, colour=colour_wanted()).encode("utf-8", "replace")


def _affirm(arguments: Arguments) -> int:
    from cortex_tools.evidence.affirm import affirm

    if arguments.positionals[0] != "affirm" or len(arguments.positionals) != 2:
        raise invalid_input(f"{NAME} takes no argument but: affirm no-index, or: affirm no-reviewer")
    for option in ("--json", "--corpus"):
        if option in arguments.options:
            raise invalid_input(f"{option} has no meaning beside affirm")
    layout = layouts.find(layouts.requested(arguments.text("--memory-root"), os.environ))
    try:
        said = affirm(layout, arguments.positionals[1], os.environ)
    finally:
        layout.close()
    write_all(f"{said}\n".encode())
    return 0
