"""From a request to its answer, whatever happens on the way."""

from __future__ import annotations

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.domain import envelope
from cortex_tools.domain.envelope import Answer, Raw
from cortex_tools.driver.plan import plan_for
from cortex_tools.driver.request import WRITES, Request, parse_request
from cortex_tools.driver.run import run_plan
from cortex_tools.driver.runtime import Runtime
from cortex_tools.files.root import requested_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cortex_tools.driver.run import Layout


def respond(argv: list[str], runtime: Runtime, layout: Layout) -> Answer:
    """The answer to a contract command line."""
    return answer(argv[0] if argv else "", lambda: execute(parse_request(argv), runtime, layout))


def answer(command: str, work: Callable[[], Raw]) -> Answer:
    """The envelope of what `work` gives or raises; never an exception of its own.

    What nobody expected becomes internal_error, named by its type alone: its words may quote a note.
    """
    try:
        return envelope.success(command, work())
    except CortexError as error:
        return envelope.failed(command, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the last guard of the process)
        message = f"an unexpected {type(error).__name__} stopped the command; nothing was answered"
        return envelope.failed(command, CortexError("internal_error", message))


def execute(request: Request, runtime: Runtime, layout: Layout) -> Raw:
    """The data of the request's envelope; raises CortexError."""
    if type(runtime.now_ms) not in (int, type(None)):
        raise invalid_input("now_ms must be a whole number of milliseconds since 1970")
    if request.command.name in WRITES:
        from cortex_tools.driver.writes import run_write  # not on the path of a read

        return run_write(request, runtime)
    plan = plan_for(request)
    return run_plan(plan, requested_root(runtime.memory_root, plan.root), layout, runtime.now_ms)
