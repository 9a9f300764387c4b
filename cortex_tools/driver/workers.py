"""Measuring a corpus with several processes: a forked worker for each part of the listing but the first."""

from __future__ import annotations

import marshal
import os

from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.driver.run import measure_here
from cortex_tools.files.root import Root
from cortex_tools.files.walk import NoteFile
from cortex_tools.stages.base import Stage
from cortex_tools.stages.scan import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

# Below this many bytes a worker costs more than it saves (measured at 300 notes of 1 MiB together).
BYTES_WORTH_A_WORKER = 1_500_000
MOST_WORKERS = 8
_END = b"end\n"


def measure_with_workers(root: Root, files: list[NoteFile], chain: list[Stage]) -> None:
    """Read and measure the corpus with as many processes as are worth it; this one takes the first part.

    Only measurements cross the pipes.  The failure of the earliest part wins, as it would in one process;
    a worker that dies is an integrity_error, never a smaller answer.
    """
    total = sum(file.bytes for file in files)
    parts = min(len(os.sched_getaffinity(0)), MOST_WORKERS, max(1, total // BYTES_WORTH_A_WORKER), max(1, len(files)))
    if parts == 1:
        measure_here(root, files, chain)
        return
    shares = split(files, parts)
    for stage in chain:
        stage.prepare(parts)
    workers: list[_Worker] = []
    try:
        for part in range(1, parts):
            workers.append(_Worker(part, root, shares[part], chain))
        measure_here(root, shares[0], chain)
        for worker in workers:
            for stage, partial in zip(chain, worker.result(parts), strict=True):
                stage.absorb(partial)
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    """A forked process that measures one part, and the pipe it answers on."""

    def __init__(self, part: int, root: Root, files: list[NoteFile], chain: list[Stage]) -> None:
        self._part = part
        self._pipe, write_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _work(part, root, files, chain, write_end)
        os.close(write_end)

    def result(self, parts: int) -> list[Any]:
        """What each stage of the chain measured; raises what the worker raised."""
        with os.fdopen(os.dup(self._pipe), "rb") as pipe:
            data = pipe.read()
        if not data.endswith(_END):
            raise integrity_error(
                f"the process reading part {self._part + 1} of {parts} ended before it was done; try again"
            )
        outcome: dict[str, Any] = marshal.loads(data[: -len(_END)])
        if "code" in outcome:
            raise CortexError(outcome["code"], outcome["message"], changed=outcome["changed"])
        partials: list[Any] = outcome["partials"]
        return partials

    def close(self) -> None:
        """Leave nothing behind: a worker whose part no longer matters is ended at once."""
        os.close(self._pipe)
        try:
            os.kill(self._pid, 9)
        finally:
            os.waitpid(self._pid, 0)


def _work(part: int, root: Root, files: list[NoteFile], chain: list[Stage], write_end: int) -> NoReturn:
    """Measure one part, answer, and leave without any of the parent's clean-up.

    Should the answer not get through, the end that it lacks tells the parent.
    """
    try:
        view = memoryview(marshal.dumps(_outcome(part, root, files, chain)) + _END)
        while view:
            view = view[os.write(write_end, view) :]
    finally:
        os._exit(0)


def _outcome(part: int, root: Root, files: list[NoteFile], chain: list[Stage]) -> dict[str, Any]:
    parent = os.getppid()
    try:
        for stage in chain:
            stage.enter(part)
        measure_here(root, _while_alive(files, parent), chain)
        return {"partials": [stage.partial() for stage in chain]}
    except CortexError as error:
        return {"code": error.code, "message": error.message, "changed": error.changed}
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        message = f"an unexpected {type(error).__name__} stopped the command; nothing was answered"
        return {"code": "internal_error", "message": message, "changed": False}


def _while_alive(files: list[NoteFile], parent: int) -> Iterator[NoteFile]:
    """`files`, until the parent is gone: then nobody wants the rest."""
    for file in files:
        if os.getppid() != parent:
            os._exit(1)
        yield file
