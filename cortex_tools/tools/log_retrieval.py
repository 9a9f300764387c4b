"""cortex-log-retrieval: run a search and record that it took place (docs/evidence.md)."""

from __future__ import annotations

import json
import time

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.domain import envelope
from cortex_tools.domain.envelope import Answer
from cortex_tools.driver.request import parse_request
from cortex_tools.driver.respond import respond
from cortex_tools.driver.runtime import Runtime
from cortex_tools.driver.workers import Spread
from cortex_tools.evidence import retrieval_log
from cortex_tools.evidence.appending import CannotAppend
from cortex_tools.files.root import pin_root, requested_root
from cortex_tools.files.stdio import say, write_all
from cortex_tools.tools import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NAME = "cortex-log-retrieval"
CANNOT_WRITE = 1


def main() -> NoReturn:
    """Run cortex-log-retrieval and exit with the status of the search."""
    program.run(NAME, work, cannot_write=CANNOT_WRITE)


def work(argv: list[str]) -> int:
    """Answer the search, then record it; only a search that succeeded is evidence of retrieval."""
    if argv[:1] != ["search"]:
        error = invalid_input(f"{NAME} runs and records searches only: {NAME} search QUERY ...")
        refused = envelope.failed(argv[0] if argv else "", error)
        write_all(refused.line.encode())
        return refused.status
    start = time.perf_counter_ns()
    answer = respond(argv, Runtime(), Spread())
    duration_ms = (time.perf_counter_ns() - start) / 1e6
    write_all(answer.line.encode())
    if answer.status == 0:
        try:
            _record(argv, answer, duration_ms)
        except (CannotAppend, CortexError) as error:
            say(f"{NAME}: the search was answered but not recorded: {error}")
        except OSError as error:
            say(f"{NAME}: the search was answered but not recorded: {error.strerror}")
        except Exception as error:  # noqa: BLE001 (the answer stands; by its type alone: its words may quote a note)
            say(f"{NAME}: the search was answered but not recorded: an unexpected {type(error).__name__}")
    return answer.status


def _record(argv: list[str], answer: Answer, duration_ms: float) -> None:
    arguments = parse_request(argv).arguments
    items = json.loads(answer.line)["data"]["items"]
    root = pin_root(requested_root(None, arguments.text("--memory-root")))
    try:
        retrieval_log.append_row(
            root,
            arguments.positionals[0],
            now_ms=time.time_ns() // 1_000_000,
            returned_count=len(items),
            duration_ms=duration_ms,
            top_score=max((item["score"] for item in items), default=None),
        )
    finally:
        root.close()
