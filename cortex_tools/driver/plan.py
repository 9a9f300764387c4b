"""Plans: what each command stands for, as data (docs/streams.md).

There is one plan of a request.  The driver runs it, the library runs it in-process, and cortex-plan
prints it as shell.
"""

from __future__ import annotations

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.grammar import Arguments
from cortex_tools.driver.request import WRITES, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FILTERS = ("--type", "--source", "--session", "--from", "--to")
_PAGING = ("--page", "--page-size")
_BUDGETS = ("--max-nodes", "--max-tokens")


class Step:
    """A stage by the name of its executable, with its arguments."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: Arguments) -> None:
        self.name = name
        self.arguments = arguments


class Plan:
    """`passes` times scan, strip and `steps` over the corpus, all into one `envelope` step.

    A write has no pass: its one step reads `payload`, where None means standard input, and not the corpus.
    """

    __slots__ = ("envelope", "passes", "payload", "root", "steps")

    def __init__(
        self, root: str | None, steps: list[Step], envelope: Step, passes: int = 1, payload: str | None = None
    ) -> None:
        self.root = root
        self.steps = steps
        self.envelope = envelope
        self.passes = passes
        self.payload = payload


def plan_for(request: Request) -> Plan:
    """The plan of a command; raises what the command answers for a write that has not one payload.

    Its values are judged in the contract's order.  A bad one makes a plan that refuses with it once the
    corpus, and whatever the contract wants found before it, has proved sound.
    """
    name, arguments = request.command.name, request.arguments
    if name in WRITES:
        from cortex_tools.driver.writes import check_payloads  # not on the path of a read

        check_payloads(request)
        write = _step("cortex-write", arguments, ("--adapter", "--allow-write", "--memory-root"), (name,))
        envelope = Step("cortex-envelope", Arguments({}, [name]))
        payload = None if arguments.positionals == ["-"] else arguments.positionals[0]
        return Plan(arguments.text("--memory-root"), [write], envelope, passes=0, payload=payload)
    steps = _STEPS[name](arguments)
    judged: list[str] = []
    if request.command.values:
        from cortex_tools.domain import values  # not for a command without any
    for value in request.command.values:
        try:
            values.judge(request.command, value, _given(value, arguments))
        except CortexError as error:
            return _refusal(request, error, _found_first(steps, judged))
        judged.append(value)
    envelope = _step("cortex-envelope", arguments, _PAGING, (name, *_ids(name, arguments)))
    return Plan(arguments.text("--memory-root"), steps, envelope, passes=2 if name == "rebuild" else 1)


def _given(value: str, arguments: Arguments) -> str | None:
    return arguments.positionals[0] if value == "query" else arguments.text(value)


def _refusal(request: Request, error: CortexError, steps: list[Step]) -> Plan:
    refuse = Arguments({"--refuse": [error.code, error.message]}, [request.command.name])
    return Plan(request.arguments.text("--memory-root"), steps, Step("cortex-envelope", refuse))


def _found_first(steps: list[Step], judged: list[str]) -> list[Step]:
    """The steps that find what must be found before the values that are still to be judged.

    That is the anchor of a timeline, whose unknown ID is said before a bad page.
    """
    return steps if "--after" in judged else []


def _ids(name: str, arguments: Arguments) -> list[str]:
    return arguments.positionals if name in ("get", "export") else []


def _step(name: str, arguments: Arguments, options: Iterable[str], positionals: Iterable[str] = ()) -> Step:
    """The step `name` with those of `options` that were given."""
    given = {option: arguments.options[option] for option in options if option in arguments.options}
    return Step(name, Arguments(given, list(positionals)))


def _valid() -> Step:
    return Step("cortex-select", Arguments({"--valid": True}, []))


def _all(arguments: Arguments) -> list[Step]:
    return []


def _search(arguments: Arguments) -> list[Step]:
    steps = [_valid()]
    root = arguments.text("--expand")
    if root is not None:
        steps.append(_step("cortex-expand", arguments, _BUDGETS, (root,)))
    if any(option in arguments.options for option in _FILTERS):
        steps.append(_step("cortex-select", arguments, _FILTERS))
    steps.append(_step("cortex-rank", arguments, ("--recency",), arguments.positionals))
    steps.append(Step("cortex-card", Arguments({}, [])))
    return steps


def _timeline(arguments: Arguments) -> list[Step]:
    window = _step("cortex-window", arguments, ("--anchor", "--before", "--after", *_FILTERS))
    return [_valid(), window, Step("cortex-card", Arguments({}, []))]


def _get(arguments: Arguments) -> list[Step]:
    # Each ID once: a repeat changes what is answered, not what is looked for.
    ids = list(dict.fromkeys(arguments.positionals))
    return [Step("cortex-select", Arguments({"--valid": True, "--id": ids}, []))]


def _rebuild(arguments: Arguments) -> list[Step]:
    return [Step("cortex-digest", Arguments({}, []))]


_STEPS = {
    "status": _all,
    "search": _search,
    "timeline": _timeline,
    "get": _get,
    "export": _get,
    "rebuild": _rebuild,
}
