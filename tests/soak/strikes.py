"""Signals to random processes of a driver, a pipeline or a tool, failing system calls (strace), and tight limits."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.governed import MEMORY, PROPOSAL, write
from tests.soak import kit
from tests.support import environment, note, write_corpus

SHARE = 4
COMMANDS = ("search loom", "get a", "status", "rebuild --from-canonical", "timeline --anchor 2024-01-01")
TOOLS = (
    "cortex-check --json",
    "cortex-health --json",
    "cortex-health --json --corpus",
    "cortex-proposals list --json",
    "cortex-restore list",
    "cortex-benchmark --labels {labels}",
    "cortex-benchmark label loom --expect a",
    "cortex-log-retrieval search loom",
)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
# Not close: strace makes it fail without closing anything, which no kernel does, and a shell's pipe left open hangs
# whoever reads it.  tests/seam.py closes and fails.
CALLS = (
    *("read", "openat", "newfstatat", "fstat", "write", "getdents64", "pipe2", "clone", "mmap", "lseek", "wait4"),
    *("fsync", "rename,renameat,renameat2", "link,linkat", "unlink,unlinkat", "mkdir,mkdirat", "flock", "ftruncate"),
)
ERRORS = ("EIO", "ENOMEM", "EMFILE", "EINTR", "ENOSPC", "EACCES")
SECRET = "SECRETWORD"
PATIENCE = 60  # seconds until a process counts as hanging
# What differs from one run to the next even where nothing fails.
VOLATILE = re.compile(
    rb'"(ts|generated_at|executed_at|verified_at|valid_at|p95_latency_ms|peak_rss_bytes)":("[^"]*"|[0-9.e+-]+)'
)
VERDICTS = ("ok", "warn", "critical")


class Ended(NamedTuple):
    """How a struck command ended, and what was done to it."""

    status: int
    stdout: bytes
    stderr: bytes
    case: object


def search(budget: kit.Budget) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = corpus(Path(folder, "root"))
        there = f"--memory-root {shlex.quote(str(root))}"
        lines = [f"cortex {command} {there}" for command in COMMANDS]
        plans = [output("cortex-plan" + line.removeprefix("cortex")).decode() for line in lines]
        labels = Path(folder, "labels.jsonl")
        labels.write_bytes(output(f"cortex-benchmark label loom --expect a {there}"))
        tools = [f"{tool.format(labels=shlex.quote(str(labels)))} {there}" for tool in TOOLS]
        judges: dict[str, Callable[[Ended], str]] = {line: partial(judge, output(line)) for line in (*lines, *plans)}
        judges |= {line: partial(judge, output(line)) for line in tools if "health" not in line}
        judges |= {line: partial(judge_verdict, verdict(output(line))) for line in tools if "health" in line}
        while not budget.over():
            budget.tried += 1
            line = budget.random.choice(budget.random.choice((lines, plans, tools)))
            ended = strike(budget, line)
            wrong = judges[line](ended)
            if wrong:
                raise kit.Finding(f"{wrong}: {ended.stdout[:300]!r} {ended.stderr[:300]!r}", ended.case)


def strike(budget: kit.Budget, line: str) -> Ended:
    """Run a line of the shell, do something to it, and see that it leaves no process, traceback or private text."""
    kind = budget.random.random()
    if kind < 0.4 and shutil.which("strace"):
        return injected(budget, line)
    return limited(budget, line) if kind < 0.55 else struck(budget, line)


def corpus(root: Path) -> Path:
    """Notes enough for a worker, each with something to hide."""
    filler = "weft and warp " * 4_500
    names = ["a", *(f"n{number}" for number in range(50))]
    content = f"loom <private>{SECRET}</private> {filler}"
    write_corpus(root, {f"KNOWLEDGE/{name}.md": note(name, content) for name in names})
    for item in (MEMORY, MEMORY | {"content": "RULE: another"}, PROPOSAL):  # with a snapshot and a queue
        write(root, item)
    return root


def output(line: str) -> bytes:
    """What a line of the shell writes that nothing happens to; its status is 0, or a verdict."""
    done = subprocess.run(["sh", "-c", line], capture_output=True, env=environment(), check=False)
    if done.returncode and not line.startswith("cortex-health"):
        raise RuntimeError(f"{line}: {done}")
    return done.stdout


def struck(budget: kit.Budget, line: str) -> Ended:
    """One signal to one process, any of them, at any time."""
    process = start(["sh", "-c", line])
    number = signalled(budget, process.pid)
    return end(process, (line, number.name, budget.tried))


def signalled(budget: kit.Budget, session: int) -> signal.Signals:
    """After a while, a signal to any process of a session; one that it stops goes on a moment later."""
    time.sleep(budget.random.random() * 0.25)
    number = budget.random.choice(SIGNALS)
    victims = sorted(living(session))
    victim = budget.random.choice(victims) if victims else 0
    if victim:
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            os.kill(victim, number)
            if number == signal.SIGSTOP:
                time.sleep(0.05)
                os.kill(victim, signal.SIGCONT)
    return number


def injected(budget: kit.Budget, line: str) -> Ended:
    """The N-th call of one kind fails, in every process that makes so many."""
    call, error = budget.random.choice(CALLS), budget.random.choice(ERRORS)
    fault = f"inject={call}:error={error}:when={int(budget.random.paretovariate(0.4)) % 3_000 + 1}"
    process = start(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", fault, "sh", "-c", line])
    return end(process, (line, fault))


def limited(budget: kit.Budget, line: str) -> Ended:
    """Little memory, few descriptors or small files, for the shell and all that it starts."""
    most = budget.random.choice(
        (
            f"-v {budget.random.randrange(9_000, 40_000)}",
            f"-n {budget.random.randrange(4, 20)}",
            f"-f {budget.random.randrange(3)}",
        )
    )
    return end(start(["sh", "-c", f"ulimit {most}; {line}"]), (line, most))


def start(command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment(), start_new_session=True)


def living(session: int) -> set[int]:
    """The processes of a session that are not dead."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, owner = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # gone meanwhile
        if int(owner) == session and state not in "ZX":
            found.add(int(folder.name))
    return found


def end(process: subprocess.Popen[bytes], case: object) -> Ended:
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise kit.Finding("a hang", case) from None
    # Up to our first module a traceback is the interpreter's.
    if re.search(rb'File "[^"]*cortex_tools/(?!files/interrupts)', stderr):
        raise kit.Finding(f"a traceback: {stderr[-300:]!r}", case)
    if SECRET.encode() in stdout + stderr:
        raise kit.Finding("private text", case)
    for _ in range(500):
        if not living(process.pid):
            return Ended(process.returncode, stdout, stderr, case)
        time.sleep(0.01)
    raise kit.Finding("a process is left", case)


def judge(right: bytes, ended: Ended) -> str:
    """What is wrong with the answer of a line whose right answer is known; empty where nothing is."""
    right, found = (VOLATILE.sub(rb'"\1":0', each) for each in (right, ended.stdout))
    if ended.status == 0 and found != right:
        return "status 0 without the right answer"
    if ended.status != 0 and b'"ok":true' in found and found.endswith(b"}\n") and found != right:
        return "a success that is none"
    return ""


def verdict(data: bytes) -> tuple[int, int]:
    """How bad health finds what it found, and how much it looked at."""
    report = json.loads(data)
    return VERDICTS.index(report["overall"]), len(report["evidence"])


def judge_verdict(right: tuple[int, int], ended: Ended) -> str:
    """A verdict is whole, and no better than without the fault."""
    if ended.status not in range(len(VERDICTS)):
        return ""
    if ended.status == 1 and not ended.stdout.endswith(b"}\n"):  # the interpreter's own failure has this number, too
        return "" if ended.stderr else "half a verdict"
    try:
        overall, evidence = verdict(ended.stdout)
    except ValueError:
        return "" if ended.stderr and ended.status else "half a verdict"
    if overall != ended.status or overall < right[0] or evidence != right[1]:
        return "a better verdict under a fault"
    return ""


if __name__ == "__main__":
    kit.main(search)
