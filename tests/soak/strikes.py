"""Signals to random processes of a driver and of a pipeline, and failing system calls (strace); too little memory."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.soak import kit
from tests.support import environment, note, write_corpus

SHARE = 3
COMMANDS = ("search loom", "get a", "status", "rebuild --from-canonical", "timeline --anchor 2024-01-01")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
# Not close: strace makes it fail without closing anything, which no kernel does, and a shell's pipe left open hangs
# whoever reads it.  tests/seam.py closes and fails.
CALLS = (
    "read",
    "openat",
    "newfstatat",
    "fstat",
    "write",
    "getdents64",
    "pipe2",
    "clone",
    "mmap",
    "lseek",
    "wait4",
)
ERRORS = ("EIO", "ENOMEM", "EMFILE", "EINTR", "ENOSPC", "EACCES")
SECRET = "SECRETWORD"
PATIENCE = 60  # seconds until a process counts as hanging


def search(budget: kit.Budget) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = corpus(Path(folder, "root"))
        lines = [f"cortex {command} --memory-root {shlex.quote(str(root))}" for command in COMMANDS]
        plans = [output("cortex-plan" + line.removeprefix("cortex")).decode() for line in lines]
        right = {line: output(line) for line in (*lines, *plans)}
        while not budget.over():
            budget.tried += 1
            line = budget.random.choice([*lines, *plans])
            kind = budget.random.random()
            if kind < 0.4 and shutil.which("strace"):
                injected(budget, line, right[line])
            elif kind < 0.55:
                limited(budget, line, right[line])
            else:
                struck(budget, line, right[line])


def corpus(root: Path) -> Path:
    """Notes enough for a worker, each with something to hide."""
    filler = "weft and warp " * 6_000
    names = ["a", *(f"n{number}" for number in range(50))]
    content = f"loom <private>{SECRET}</private> {filler}"
    return write_corpus(root, {f"KNOWLEDGE/{name}.md": note(name, content) for name in names})


def output(line: str) -> bytes:
    return subprocess.run(["sh", "-c", line], capture_output=True, env=environment(), check=True).stdout


def struck(budget: kit.Budget, line: str, right: bytes) -> None:
    """One signal to one process, any of them, at any time."""
    process = start(["sh", "-c", line])
    time.sleep(budget.random.random() * 0.25)
    number = budget.random.choice(SIGNALS)
    victims = sorted(living(process.pid))
    victim = budget.random.choice(victims) if victims else 0
    if victim:
        try:
            os.kill(victim, number)
            if number == signal.SIGSTOP:
                time.sleep(0.05)
                os.kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it was quicker
    judge(process, right, (line, number.name, budget.tried))


def injected(budget: kit.Budget, line: str, right: bytes) -> None:
    """The N-th call of one kind fails, in every process that makes so many."""
    call, error = budget.random.choice(CALLS), budget.random.choice(ERRORS)
    fault = f"inject={call}:error={error}:when={int(budget.random.paretovariate(0.4)) % 3_000 + 1}"
    process = start(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", fault, "sh", "-c", line])
    judge(process, right, (line, fault))


def limited(budget: kit.Budget, line: str, right: bytes) -> None:
    """Little memory, or few descriptors, for the shell and all that it starts."""
    most = budget.random.choice(
        (f"-v {budget.random.randrange(9_000, 40_000)}", f"-n {budget.random.randrange(4, 20)}")
    )
    judge(start(["sh", "-c", f"ulimit {most}; {line}"]), right, (line, most))


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


def judge(process: subprocess.Popen[bytes], right: bytes, case: object) -> None:
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise kit.Finding("a hang", case) from None
    if process.returncode == 0 and stdout != right:
        raise kit.Finding(f"status 0 without the right answer: {stdout[:300]!r} {stderr[:300]!r}", case)
    if process.returncode != 0 and b'"ok":true' in stdout and stdout.endswith(b"}\n") and stdout != right:
        raise kit.Finding(f"a success that is none: {stdout[:300]!r}", case)
    if re.search(rb'File "[^"]*cortex_tools/', stderr):  # up to our first module it is the interpreter's
        raise kit.Finding(f"a traceback: {stderr[-300:]!r}", case)
    if SECRET.encode() in stdout + stderr:
        raise kit.Finding("private text", case)
    for _ in range(500):
        if not living(process.pid):
            return
        time.sleep(0.01)
    raise kit.Finding("a process is left", case)


if __name__ == "__main__":
    kit.main(search)
