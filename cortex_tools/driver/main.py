"""The executables cortex and cortex-plan."""

from __future__ import annotations

from cortex_tools.files import interrupts  # isort: skip (first, so that Ctrl-C is quiet from here on)
from cortex_tools.domain.envelope import Answer
from cortex_tools.driver.respond import respond
from cortex_tools.driver.runtime import Runtime
from cortex_tools.driver.workers import Spread
from cortex_tools.files.stdio import run, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def cortex() -> NoReturn:
    """Answer one contract command on standard output and exit with its status."""
    _run("cortex", _answer)


def plan() -> NoReturn:
    """Print the shell pipeline of a contract command; for a line that has none, the same failure as cortex."""
    _run("cortex-plan", _print_plan)


def _run(name: str, work: Callable[[list[str]], int]) -> NoReturn:
    import gc

    gc.disable()  # a process that lives for one answer frees by counting references; collecting costs 5 %

    def answer(argv: list[str]) -> int:
        if argv[:1] in (["--help"], ["--version"]):
            from cortex_tools.manual.help import show

            return show(name, argv)
        return work(argv)

    run(name, answer)


def _answer(argv: list[str]) -> int:
    if argv[:1] in (["remember"], ["propose"]):
        interrupts.raise_on_interrupt()
    if argv[:1] == ["--completion"]:
        return _print_completion(argv)
    return _print(respond(argv, Runtime(), Spread()))


def _print_completion(argv: list[str]) -> int:
    from cortex_tools.contract.errors import CortexError
    from cortex_tools.domain import envelope
    from cortex_tools.manual.completion import script

    try:
        text = script(argv[1:])
    except CortexError as error:
        return _print(envelope.failed(argv[0], error))
    write_all(text.encode())
    return 0


def _print(result: Answer) -> int:
    write_all(result.line.encode())
    return result.status


def _print_plan(argv: list[str]) -> int:
    from cortex_tools.contract.errors import CortexError
    from cortex_tools.domain import envelope
    from cortex_tools.driver.plan import plan_for
    from cortex_tools.driver.request import parse_request
    from cortex_tools.driver.shell import render

    try:
        text = render(plan_for(parse_request(argv)))
    except CortexError as error:
        return _print(envelope.failed(argv[0] if argv else "", error))
    write_all(text.encode("utf-8", "surrogateescape"))  # a path or a payload, as it was given
    return 0
