"""Forked processes that work on a share of the corpus and answer with plain values."""

from __future__ import annotations

import marshal
import os

from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.files.walk import NoteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn

# Opening and closing a file costs about as much as reading and parsing this many bytes of it.
_FILE_COST = 8_192
_END = b"end\n"


def available_cores() -> int:
    """How many processors this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split(files: list[NoteFile], parts: int) -> list[list[NoteFile]]:
    """`files` in `parts` runs of about equal work, in order; some are empty where there are too few files."""
    shares: list[list[NoteFile]] = [[] for _ in range(parts)]
    total = sum(file.bytes + _FILE_COST for file in files)
    done = 0
    for file in files:
        # A file belongs to the part in which its middle lies.
        middle = done + (file.bytes + _FILE_COST) // 2
        shares[min(parts - 1, middle * parts // max(1, total))].append(file)
        done += file.bytes + _FILE_COST
    return shares


class Worker:
    """A forked process that does `work` and sends back its value, which marshal must be able to carry.

    `what` names its share, for the message should it die.
    """

    def __init__(self, work: Callable[[], Any], what: str) -> None:
        self._what = what
        self._pid = 0
        try:
            self._pipe, write_end = os.pipe()
            self._pid = os.fork()
        except OSError as error:
            raise CortexError("internal_error", f"no process can be started to read {what}: {error.strerror}") from None
        if self._pid == 0:
            _work(work, self._pipe, write_end)
        os.close(write_end)

    def result(self) -> Any:
        """What the work gave; raises the CortexError that it raised, and integrity_error where it died."""
        with os.fdopen(os.dup(self._pipe), "rb") as pipe:
            data = pipe.read()
        if not data.endswith(_END):
            raise integrity_error(f"the process reading {self._what} ended before it was done; try again")
        outcome: dict[str, Any] = marshal.loads(data[: -len(_END)])
        if "code" in outcome:
            raise CortexError(outcome["code"], outcome["message"], changed=outcome["changed"])
        return outcome["value"]

    def close(self) -> None:
        """Leave nothing behind: a worker whose share no longer matters is ended at once."""
        try:
            os.kill(self._pid, 9)  # SIGKILL; the signal module costs two milliseconds to import
        finally:
            os.close(self._pipe)  # which ends it, too, as soon as it writes
        os.waitpid(self._pid, 0)


def close_all(workers: list[Worker]) -> None:
    """Close every worker, also where closing one fails; then raise that failure."""
    failed: Exception | None = None
    for worker in workers:
        try:
            worker.close()
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def while_alive(files: Iterable[NoteFile], parent: int) -> Iterator[NoteFile]:
    """`files`, until the process `parent` is gone: then nobody wants the rest."""
    for file in files:
        if os.getppid() != parent:
            os._exit(1)
        yield file


def _work(work: Callable[[], Any], read_end: int, write_end: int) -> NoReturn:
    """Answer, and leave without any of the parent's clean-up.

    Should the answer not get through, the end that it lacks tells the parent.  Nothing that fails here may
    reach the parent's code, which would answer a second time.
    """
    try:
        os.close(read_end)  # else a worker whose parent is killed would wait for itself to read
        view = memoryview(marshal.dumps(_outcome(work)) + _END)
        while view:
            view = view[os.write(write_end, view) :]
    finally:
        os._exit(0)


def _outcome(work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": work()}
    except CortexError as error:
        return {"code": error.code, "message": error.message, "changed": error.changed}
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        message = f"an unexpected {type(error).__name__} stopped the command; nothing was answered"
        return {"code": "internal_error", "message": message, "changed": False}
