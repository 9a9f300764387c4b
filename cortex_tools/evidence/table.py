"""The health report for people: at most 80 columns, what is wrong first, each with what to do about it."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cortex_tools.domain.text import printable
from cortex_tools.evidence.findings import CRITICAL, OK, WARN
from cortex_tools.evidence.report import Report

WIDTH = 80
_NARROWEST = 40
_STYLES = {CRITICAL: "bold red", WARN: "yellow", OK: "green"}
_WORDS = {CRITICAL: "CRITICAL", WARN: "WARN", OK: "ok"}


def render(report: Report, *, width: int = WIDTH, colour: bool = False) -> str:
    """The table as text, lines of at most `width` (40 to 80) columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(_NARROWEST, min(width, WIDTH)),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
    )
    counts = report.as_dict()["counts"]
    summary = f"{counts[CRITICAL]} critical, {counts[WARN]} warn, {counts[OK]} ok"
    console.print(Text.assemble((f"{_WORDS[report.overall]}: ", _STYLES[report.overall]), summary))
    console.print(_table(report))
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return "\n".join(lines).rstrip() + "\n"


def _table(report: Report) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for severity in (CRITICAL, WARN):
        for finding in report.findings:
            if finding.severity == severity:
                cell = Text.assemble(
                    (finding.id, "bold"), "\n", printable(finding.what), "\n", (f"-> {finding.remedy}", "italic")
                )
                table.add_row(Text(_WORDS[severity], style=_STYLES[severity]), cell)
    if report.passed:
        table.add_row(Text(_WORDS[OK], style=_STYLES[OK]), Text(", ".join(report.passed)))
    return table
