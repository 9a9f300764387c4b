"""cortex-benchmark: measure retrieval on labelled queries, make labels, plot reports (docs/evidence.md)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.grammar import Arguments, count_positionals
from cortex_tools.domain import values
from cortex_tools.files.root import Root, pin_root, requested_root
from cortex_tools.files.stdio import STDERR, STDOUT, OutputError, say, write_all
from cortex_tools.tools import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from cortex_tools.evidence.benchmark.labels import Labels
    from cortex_tools.evidence.benchmark.output import Output

NAME = "cortex-benchmark"
FAILED = 4
UNEXPECTED = 1


def main() -> NoReturn:
    """Run cortex-benchmark and exit with its status."""
    program.run(NAME, work, cannot_write=UNEXPECTED)


def work(argv: list[str]) -> int:
    """Measure, label or plot; the answer is the exit status."""
    if argv[:1] in (["label"], ["plot"]):
        try:
            return (_label if argv[0] == "label" else _plot)(argv[1:])
        except CortexError as error:
            # Not on standard output, which is appended to a file of labels or kept as an SVG.
            program.complain(f"{NAME} {argv[0]}", error)
            return FAILED
    from cortex_tools.evidence.benchmark import report

    try:
        return _benchmark(argv)
    except CortexError as error:
        write_all(report.line(report.failure(error.code, error.message)))
        return FAILED
    except OutputError:
        raise
    except Exception as error:  # noqa: BLE001 (by its type alone: its words may quote a note)
        message = f"an unexpected {type(error).__name__} stopped the benchmark"
        write_all(report.line(report.failure("internal_error", message)))
        return UNEXPECTED


def _benchmark(argv: list[str]) -> int:
    from cortex_tools.evidence.benchmark import labels, output, report

    arguments = program.arguments(EXECUTABLES[NAME], argv)
    count_positionals(EXECUTABLES[NAME], arguments.positionals)
    path = values.required(EXECUTABLES[NAME].options["--labels"], arguments.text("--labels"))
    root = pin_root(requested_root(None, arguments.text("--memory-root")))
    kept: Output | None = None
    try:
        destination = arguments.text("--output")
        if destination is not None:
            kept = output.reserve(root, destination)
        line = report.line(_measure(root, labels.read(path), [NAME, *argv]))
        write_all(line)
        if kept is not None:
            return _keep(kept, line)
    finally:
        root.close()
        if kept is not None:
            kept.close()
    return 0


def _keep(kept: Output, line: bytes) -> int:
    """Standard output has the report already, so a failure is said elsewhere."""
    try:
        kept.write(line)
    except CortexError as error:
        program.complain(NAME, error)
        return FAILED
    return 0


def _measure(root: Root, labels: Labels, command: list[str]) -> dict[str, Any]:
    from cortex_tools.evidence.benchmark import report

    if not os.isatty(STDERR):
        return report.run(root, labels, command)
    from cortex_tools.files.progress import Progress

    with Progress("measuring queries", labels.rows) as progress:
        steps = iter(progress)
        next(steps, None)
        return report.run(root, labels, command, progress=lambda: next(steps, None))


def _label(argv: list[str]) -> int:
    from cortex_tools.evidence.benchmark import make

    command = SUBCOMMANDS[f"{NAME} label"]
    arguments = program.arguments(command, spread(argv, ("--expect", "--order", "--false")))
    count_positionals(command, arguments.positionals)
    path = arguments.text("--labels")
    line = make.make(_wanted(arguments), set() if path is None else make.taken_ids(path))
    if path is None:
        write_all(line)
    else:
        make.check_place(path, arguments.text("--memory-root"))
        make.append(path, line)
        say(f"{NAME} label: one label added to {path}")
    return 0


def _wanted(arguments: Arguments) -> Any:
    from cortex_tools.evidence.benchmark.make import Wanted

    return Wanted(
        arguments.positionals[0],
        arguments.texts("--expect"),
        arguments.texts("--order"),
        arguments.texts("--false"),
        arguments.text("--id"),
        arguments.text("--memory-root"),
    )


def spread(argv: list[str], options: tuple[str, ...]) -> list[str]:
    """`argv` with each of `options` repeated before each of the arguments that follow it up to the next option."""
    result: list[str] = []
    current: str | None = None
    first = True
    for argument in argv:
        if argument.startswith("--"):
            current = argument if argument in options else None
            first = True
        elif current is not None and not first:
            result.append(current)
        else:
            first = False
        result.append(argument)
    return result


def _plot(argv: list[str]) -> int:
    from cortex_tools.evidence.benchmark import plot

    command = SUBCOMMANDS[f"{NAME} plot"]
    arguments = program.arguments(command, argv)
    count_positionals(command, arguments.positionals)
    if os.isatty(STDOUT):
        raise invalid_input("an SVG is no use on a terminal; redirect it: cortex-benchmark plot REPORT > plot.svg")
    write_all(plot.draw([plot.read(path) for path in arguments.positionals]))
    return 0
