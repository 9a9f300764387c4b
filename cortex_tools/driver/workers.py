"""Plans laid out over processes: a forked worker for each part of the listing but the first, and for a second pass."""

from __future__ import annotations

import os

from cortex_tools.driver.run import Layout, measure_here
from cortex_tools.files.processes import Worker, available_cores, close_all, split, while_alive
from cortex_tools.files.root import Root
from cortex_tools.files.stdio import STDERR
from cortex_tools.files.walk import NoteFile
from cortex_tools.stages.base import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cortex_tools.driver.run import Digests

# Below this many bytes a worker costs more than it saves (measured at 300 notes of 1 MiB together).
BYTES_WORTH_A_WORKER = 1_500_000
MOST_WORKERS = 8


class Spread(Layout):
    """Work over `cores` processes; `parent` is the process that wants it, where that is another one."""

    def __init__(self, cores: int | None = None, parent: int | None = None) -> None:
        self._cores = available_cores() if cores is None else cores
        self._parent = parent

    def measure(self, root: Root, files: list[NoteFile], chain: list[Stage]) -> None:
        """Read and measure the corpus with as many processes as are worth it; this one takes the first part.

        Only measurements cross the pipes.  The failure of the earliest part wins, as it would in one process;
        a worker that dies is an integrity_error, never a smaller answer.
        """
        total = sum(file.bytes for file in files)
        parts = min(self._cores, MOST_WORKERS, max(1, total // BYTES_WORTH_A_WORKER), max(1, len(files)))
        if parts == 1:
            self._measure_here(root, files, chain)
            return
        shares = split(files, parts)
        for stage in chain:
            stage.prepare(parts)
        workers: list[Worker] = []
        try:
            for part in range(1, parts):
                workers.append(Worker(_measuring(part, root, shares[part], chain), f"part {part + 1} of {parts}"))
            self._measure_here(root, shares[0], chain)
            for worker in workers:
                for stage, partial in zip(chain, worker.result(), strict=True):
                    stage.absorb(partial)
        finally:
            close_all(workers)

    def passes(self, number: int, one_pass: Callable[[Layout], Digests]) -> list[Digests]:
        """All passes at once where there are cores for it: nothing then waits for the hashing of one at its end."""
        if self._cores < number:
            return super().passes(number, one_pass)
        cores, parent = self._cores // number, os.getpid()
        workers: list[Worker] = []
        try:
            for other in range(2, number + 1):
                beside = Spread(cores, parent)
                workers.append(Worker(lambda beside=beside: one_pass(beside), f"pass {other} of {number}"))  # type: ignore[misc]
            first = one_pass(Spread(cores, self._parent))
            return [first, *(worker.result() for worker in workers)]
        finally:
            close_all(workers)

    def _measure_here(self, root: Root, files: list[NoteFile], chain: list[Stage]) -> None:
        """This process's own part; on a terminal it shows how far that is, and so about how far all are."""
        if self._parent is not None:
            measure_here(root, while_alive(files, self._parent), chain)
        elif not os.isatty(STDERR):
            measure_here(root, files, chain)
        else:
            from cortex_tools.files.progress import Progress

            with Progress("reading notes", files, lambda file: file.bytes) as shown:
                measure_here(root, shown, chain)


def _measuring(part: int, root: Root, files: list[NoteFile], chain: list[Stage]) -> Callable[[], list[Any]]:
    """The work of the process that measures `part`: what each stage of the chain has measured at its end."""
    parent = os.getpid()

    def work() -> list[Any]:
        for stage in chain:
            stage.enter(part)
        measure_here(root, while_alive(files, parent), chain)
        return [stage.partial() for stage in chain]

    return work
