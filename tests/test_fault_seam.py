"""One call of the system fails, each in turn: the answer is right to the byte, or a failure with a name.

The ordinary tests take the pairs that have found most; `make soak` takes all of them (tests/soak/calls.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seam import Fault, Job, Outcome, Seam, applicable
from tests.support import note, row, write_corpus

FAULTS = ("EIO", "ENOMEM", "EMFILE", "ENOSPC", "ENOENT", "EAGAIN", "MemoryError", "SIGKILL")
COMMANDS = {
    "search": ["cortex", "search", "loom"],
    "timeline": ["cortex", "timeline", "--anchor", "2024-01-01"],
    "get": ["cortex", "get", "a", "b"],
    "status": ["cortex", "status"],
    "rebuild": ["cortex", "rebuild", "--from-canonical"],
    "scan": ["cortex-scan"],
    "check": ["cortex-check"],
}
AT_ONCE = 40  # runs asked for in one go; more than a command has calls of one kind is a waste of a few


@pytest.fixture(scope="module")
def seam(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seam]:
    server = Seam(str(tmp_path_factory.mktemp("seam")))
    yield server
    server.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("corpus"))


def corpus(folder: Path) -> Path:
    secret = "a loom <private>SECRETWORD</private> here"
    notes = {"KNOWLEDGE/a.md": note("a", secret), "KNOWLEDGE/deep/b.md": note("b", "no loom")}
    return write_corpus(folder, notes | {"KNOWLEDGE/r.jsonl": row("c")})


def outcomes(seam: Seam, job: Job, fault: str, who: str) -> Iterator[tuple[int, Outcome]]:
    """What the command does as its first, second, … call fails, up to the first run without a fault."""
    kinds = applicable(fault)
    number = 1
    while True:
        batch = range(number, number + AT_ONCE)
        for tried, outcome in zip(batch, seam.batch((job, Fault(kinds, n, fault, who)) for n in batch), strict=True):
            if not outcome.hit and outcome.status == 0:
                assert tried > 1 or who == "workers" or fault == "EAGAIN", "the fault never struck"
                return
            yield tried, outcome
        number += AT_ONCE


def judge(outcome: Outcome, right: bytes, where: str) -> None:
    said = (where, outcome)
    assert not outcome.left, said
    assert b"Traceback" not in outcome.stderr and b"SECRETWORD" not in outcome.stdout + outcome.stderr, said
    if outcome.status == 0:
        assert outcome.stdout == right, said
        return
    assert outcome.status in (1, 2, 3, 4, 5, 6, -9), said
    if outcome.stdout and not (right.startswith(outcome.stdout) and outcome.stdout != right):
        assert b'"ok":false' in outcome.stdout or b'"kind":"error"' in outcome.stdout or b"check" in where.encode(), (
            said
        )
        for line in outcome.stdout.splitlines() if "check" not in where else ():
            json.loads(line)


def try_each(seam: Seam, root: Path, command: str, fault: str, who: str) -> int:
    """Let each call fail in turn; the answer is how many runs that took."""
    argv = [*COMMANDS[command], "--memory-root", str(root)]
    right = seam.run(Job(argv))
    assert right.status == 0 and right.stdout and not right.hit
    runs = 0
    for number, outcome in outcomes(seam, Job(argv, forks=who != "all"), fault, who):
        judge(outcome, right.stdout, f"{command} {fault} {number} {who}")
        runs += 1
    return runs


@pytest.mark.parametrize(
    ("command", "fault"),
    [("search", "EIO"), ("search", "MemoryError"), ("rebuild", "EIO"), ("scan", "ENOSPC"), ("status", "EMFILE")],
)
def test_each_call_fails_in_turn(seam: Seam, root: Path, command: str, fault: str) -> None:
    assert try_each(seam, root, command, fault, "all") > 3


@pytest.mark.parametrize(("fault", "who"), [("EIO", "workers"), ("SIGKILL", "workers"), ("EAGAIN", "driver")])
def test_each_call_of_a_driver_or_of_its_workers_fails_in_turn(seam: Seam, root: Path, fault: str, who: str) -> None:
    assert try_each(seam, root, "search", fault, who) > 0


@pytest.mark.parametrize("command", ["search", "rebuild", "scan"])
def test_reads_and_writes_that_get_a_few_bytes_through_change_nothing(seam: Seam, root: Path, command: str) -> None:
    argv = [*COMMANDS[command], "--memory-root", str(root)]
    right = seam.run(Job(argv))
    for forks in (False, True):
        short = seam.run(Job(argv, forks=forks), Fault(fault="short"))
        assert (short.status, short.stdout, short.stderr) == (0, right.stdout, right.stderr)
