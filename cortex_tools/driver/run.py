"""Running a plan: in this process alone, or laid out over several."""

from __future__ import annotations

import time

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, Unsound
from cortex_tools.domain.envelope import Raw
from cortex_tools.driver.plan import Plan
from cortex_tools.files.reading import read_records
from cortex_tools.files.root import Root, pin_root
from cortex_tools.files.walk import NoteFile, walk
from cortex_tools.stages import registry
from cortex_tools.stages.base import Stage
from cortex_tools.stages.census import Census
from cortex_tools.stages.envelope import build as build_envelope
from cortex_tools.streams.items import Corpus, Digest, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    # What a pass has come to: the pinned root, and of each digest its SHA-256 and number of records.
    Digests = tuple[str, list[tuple[str, int]]]
    Result = TypeVar("Result")


class Layout:
    """Where the work of a plan is done: here, all of it in this process (see `driver.workers` for another)."""

    def measure(self, root: Root, files: list[NoteFile], chain: list[Stage]) -> None:
        """Feed the records of the files through the chain's measuring half."""
        measure_here(root, files, chain)

    def passes(self, number: int, one_pass: Callable[[Layout], Digests]) -> list[Digests]:
        """What `number` independent passes come to, in order; raises what the first that fails raises."""
        return [one_pass(self) for _ in range(number)]


def run_plan(plan: Plan, requested: bytes, layout: Layout, now_ms: int | None = None) -> Raw:
    """The data of the plan's envelope; raises CortexError where the answer is a failure.

    A corpus that changes while it is read is tried afresh, twice; then that is the failure.
    """
    return afresh(lambda: _run_once(plan, requested, layout, time.time_ns() // 1_000_000 if now_ms is None else now_ms))


def afresh(read: Callable[[], Result]) -> Result:
    """What `read` gives; where the corpus changes under it, it is called again, twice."""
    for fresh_try in range(limits.FRESH_TRIES + 1):
        try:
            return read()
        except CortexError as error:
            if not error.changed or fresh_try == limits.FRESH_TRIES:
                raise
    raise AssertionError("unreachable")


def _run_once(plan: Plan, requested: bytes, layout: Layout, now_ms: int) -> Raw:
    envelope = build_envelope(plan.envelope.arguments, now_ms)
    if plan.passes == 1:
        _run_pass(plan, requested, layout, now_ms, envelope)
        return envelope.data()

    def one_pass(where: Layout) -> Digests:
        kept = _Kept()
        _run_pass(plan, requested, where, now_ms, kept)
        return kept.root, kept.digests

    passes = layout.passes(plan.passes, one_pass)
    if any(root != passes[0][0] for root, _ in passes):
        raise Unsound("the memory root", "became another between the passes", "try again", changed=True)
    for _, digests in passes:
        for digest in digests:
            envelope.take(Digest(*digest))
    return envelope.data()


class _Kept(Stage):
    """The end of one pass of several: its root and digests as plain values, which can cross a pipe."""

    def __init__(self) -> None:
        self.root = ""
        self.digests: list[tuple[str, int]] = []

    def take(self, item: Item) -> None:
        if isinstance(item, Digest):
            self.digests.append((item.sha256, item.records))
        elif isinstance(item, Corpus):
            self.root = item.root or ""


def _run_pass(plan: Plan, requested: bytes, layout: Layout, now_ms: int, end: Stage) -> None:
    stages = [registry.build(step.name, step.arguments, now_ms) for step in plan.steps]
    chain: list[Stage] = [Census(), *stages, end]
    root = pin_root(requested)
    try:
        files = walk(root)
        # The listing's ID ties the segments of a stream together; in one process there is nothing to tie.
        push(chain, Corpus(root.text, "0" * 16, 1, 1, len(files), sum(file.bytes for file in files)))
        layout.measure(root, files, chain)
        for number, stage in enumerate(chain[:-1]):
            for item in stage.finish():
                push(chain[number + 1 :], item)
    finally:
        root.close()


def push(chain: list[Stage], item: Item) -> None:
    """Send one item down the chain until a stage keeps or drops it."""
    current: Item | None = item
    for stage in chain:
        if current is None:
            return
        current = stage.take(current)


def measure_here(root: Root, files: Iterable[NoteFile], chain: list[Stage]) -> None:
    """Read and measure everything in this process."""
    for record in read_records(root.descriptor, files):
        push(chain, record)
