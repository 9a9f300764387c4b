"""A seam for faults: whole executables run in forked children whose calls of the system fail where a test wants.

The product carries no hook for this.  `python -P -c SERVER` imports the package once and forks for each run; the
child replaces functions of `os` (the package reaches the system through those, and never by `from os import`),
counts their calls, and lets the N-th fail.  So a run costs a few milliseconds instead of an interpreter's start,
and N can be every number up to the one at which the command ends without the fault.
"""

from __future__ import annotations

import functools
import marshal
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from tests.support import environment

# What can fail: the calls by which the package reads, writes, opens, asks, forks.
READING = ("open", "read", "pread", "readinto", "fstat", "stat", "lstat", "scandir", "next", "entry", "listdir", "dup")
WRITING = ("write", "fsync", "mkdir", "rename", "link", "unlink", "rmdir", "fchmod", "ftruncate", "flock")
PROCESSES = ("pipe", "fork", "waitpid", "posix_spawn")
OTHERS = ("close", "readlink", "getcwdb", "urandom", "dup2", "kill", "uname", "set_blocking")
EVERY = (*READING, *WRITING, *PROCESSES, *OTHERS)

SERVER = r"""
import errno, fcntl, gc, io, marshal, os, signal, sys, tempfile, time
import hashlib, ijson, json, rich.console, rich.table, xxhash  # once, not in each child
from cortex_tools.contract import executables, options
from cortex_tools.driver import main as driver, workers, writes, shell, plan
from cortex_tools.evidence import affirm, appending, corpus, findings, hot, index, layout, report, reviewer
from cortex_tools.evidence import retrieval_log
from cortex_tools.evidence.benchmark import labels, measure, output, report as benchmark
from cortex_tools.files import foreign, processes, spool
from cortex_tools.governance import add, restoring, proposals, store
from cortex_tools.stages import card, digest, envelope, executable, expand, rank, scan, select, strip, window, write
from cortex_tools.stages import through, unwrap
from cortex_tools.tools import check, health, log_retrieval, program, showing
from cortex_tools.tools import benchmark as benchmark_tool, proposals as proposals_tool, restore

LAUNCHERS = {"cortex": driver.cortex, "cortex-plan": driver.plan, "cortex-health": health.main,
             "cortex-log-retrieval": log_retrieval.main, "cortex-benchmark": benchmark_tool.main,
             "cortex-proposals": proposals_tool.main, "cortex-restore": restore.main, "cortex-check": check.main,
             "cortex-write": write.main}
REAL = {name: getattr(os, name) for name in dir(os)}
FLOCK = fcntl.flock
GRAIN = 3  # bytes that a short read or write gets through


class Seam:
    # `kinds` are counted; the `number`-th call (from 1) does `fault`; `who` counts: "all", "driver" or "workers".
    def __init__(self, kinds, number, fault, who):
        self.kinds, self.number, self.fault, self.who = frozenset(kinds), number, fault, who
        self.full = -1
        self.seen, self.active, self.hit = 0, who != "workers", os.open("hit", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def forked(self):
        self.active = self.who != "driver"

    def due(self, kind):
        if not self.active or kind not in self.kinds:
            return False
        self.seen += 1
        return self.seen == self.number

    def fire(self, kind, after=None):
        REAL["write"](self.hit, kind.encode() + b"\n")
        if self.fault == "MemoryError":
            raise MemoryError
        if self.fault == "SIGKILL":
            REAL["kill"](os.getpid(), 9)
        number = getattr(errno, self.fault)
        raise OSError(number, os.strerror(number))


def wrap(seam, name, kind):
    real = REAL[name]
    def call(*arguments, **keywords):
        if seam.due(kind):
            seam.fire(kind)
        return real(*arguments, **keywords)
    return call


class Entries:
    # What os.scandir gives, its steps and the questions to its entries countable.
    def __init__(self, seam, entries):
        self.seam, self.entries = seam, entries
    def __enter__(self):
        return self
    def __exit__(self, *why):
        self.entries.close()
    def close(self):
        self.entries.close()
    def __iter__(self):
        return self
    def __next__(self):
        if self.seam.due("next"):
            self.seam.fire("next")
        return Entry(self.seam, next(self.entries))


class Entry:
    def __init__(self, seam, entry):
        self.seam, self.entry, self.name, self.path = seam, entry, entry.name, entry.path
    def stat(self, **keywords):
        if self.seam.due("entry"):
            self.seam.fire("entry")
        return self.entry.stat(**keywords)
    def __getattr__(self, name):
        return getattr(self.entry, name)


class Raw(io.RawIOBase):
    # A descriptor behind a buffered reader, its reads countable.
    def __init__(self, seam, descriptor, closes):
        self.seam, self.descriptor, self.closes = seam, descriptor, closes
    def readable(self):
        return True
    def fileno(self):
        return self.descriptor
    def readinto(self, buffer):
        if self.seam.due("readinto"):
            self.seam.fire("readinto")
        most = GRAIN if self.seam.fault == "short" else len(buffer)
        data = REAL["read"](self.descriptor, most)
        buffer[:len(data)] = data
        return len(data)
    def close(self):
        if not self.closed and self.closes:
            REAL["close"](self.descriptor)
        super().close()


def patch(seam):
    for name in ("open", "fstat", "stat", "lstat", "listdir", "dup", "fsync", "mkdir", "rename", "link", "unlink",
                 "rmdir", "fchmod", "ftruncate", "pipe", "waitpid", "posix_spawn", "readlink", "getcwdb", "urandom",
                 "dup2", "kill", "uname", "set_blocking"):
        setattr(os, name, wrap(seam, name, name))
    def flock(*arguments):
        if seam.due("flock"):
            seam.fire("flock")
        return FLOCK(*arguments)
    fcntl.flock = flock
    def close(descriptor):
        due = seam.due("close")
        REAL["close"](descriptor)  # a close that fails has closed all the same
        if due:
            seam.fire("close")
    os.close = close
    def read(descriptor, size):
        if seam.due("read"):
            seam.fire("read")
        return REAL["read"](descriptor, min(size, GRAIN) if seam.fault == "short" else size)
    os.read = read
    def pread(descriptor, size, offset):
        if seam.due("pread"):
            seam.fire("pread")
        return REAL["pread"](descriptor, min(size, GRAIN) if seam.fault == "short" else size, offset)
    os.pread = pread
    def write(descriptor, data):
        if descriptor == seam.full or seam.due("write"):
            if seam.fault == "ENOSPC" and len(data) > 1 and descriptor != seam.full:
                seam.full = descriptor  # a disk that fills up takes the beginning, and then no more of this file
                REAL["write"](seam.hit, b"write\n")
                return REAL["write"](descriptor, data[:len(data) // 2])
            seam.fire("write")
        return REAL["write"](descriptor, data[:GRAIN] if seam.fault == "short" else data)
    os.write = write
    def fork():
        if seam.due("fork"):
            seam.fire("fork")
        pid = REAL["fork"]()
        if pid == 0:
            seam.forked()
        return pid
    os.fork = fork
    def scandir(path="."):
        if seam.due("scandir"):
            seam.fire("scandir")
        return Entries(seam, REAL["scandir"](path))
    os.scandir = scandir
    def fdopen(descriptor, mode="r", buffering=-1, closefd=True):
        assert mode == "rb"
        return io.BufferedReader(Raw(seam, descriptor, closefd), buffering if buffering > 1 else 8192)
    os.fdopen = fdopen


def run(argv, given, env, seam, forks, now_ns):
    # One executable to its end; the answer is its status, both outputs, and what the fault hit.
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(given)
    files[0].seek(0)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.environ.update(env)
            for number, file in enumerate(files):
                os.dup2(file.fileno(), number)
            signal.alarm(30)  # a hang
            sys.argv = argv
            if forks:
                workers.BYTES_WORTH_A_WORKER = 1
                os.sched_getaffinity = lambda pid: {0, 1, 2}
            if now_ns:
                time.time_ns = lambda: now_ns
            patch(Seam(*seam))
            if argv[0] in LAUNCHERS:
                LAUNCHERS[argv[0]]()
            executable.main(argv[0])
        except BaseException:
            sys.excepthook(*sys.exc_info())  # as the interpreter would
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    left = False
    for _ in range(400):  # a worker may need a moment to see that its parent is gone
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            left = False
            break
        left = True
        time.sleep(0.01)
    if left:
        os.killpg(pid, signal.SIGKILL)
    outputs = [os.pread(file.fileno(), 1 << 26, 0) for file in files[1:]]
    for file in files:
        file.close()
    with open("hit", "rb") as hit:
        return status, outputs[0], outputs[1], hit.read(), left


gc.disable()
if sys.platform == "linux":  # orphans come to us, so that none waits for somebody to notice its end
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
while True:
    try:
        jobs, until_unhit = marshal.load(sys.stdin.buffer)
    except EOFError:
        break
    done = []
    for job in jobs:
        done.append(run(*job))
        if until_unhit and not done[-1][3]:
            break
    marshal.dump(done, sys.stdout.buffer)
    sys.stdout.flush()
"""


class Fault(NamedTuple):
    """The `number`-th (from 1) call of one of `kinds` fails: with an errno by name, MemoryError or SIGKILL.

    `short` lets every read and write get only a few bytes through; number 0 hits nothing.  `who` of a driver and
    its workers counts: all, driver, workers (each by itself).
    """

    kinds: tuple[str, ...] = ()
    number: int = 0
    fault: str = ""
    who: str = "all"


NO_FAULT = Fault()


class Outcome(NamedTuple):
    """What an executable did: `hit` names the call that failed, empty where none did; `left` says that a process is."""

    status: int
    stdout: bytes
    stderr: bytes
    hit: str
    left: bool


class Job(NamedTuple):
    """One executable (`argv`), its standard input, and the time that it takes for now (ns; 0: the real one)."""

    argv: list[str]
    given: bytes = b""
    forks: bool = False
    env: dict[str, str] = {}
    now_ns: int = 0


class Seam:
    """A server of runs, in a working directory of its own."""

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(TMPDIR=folder),
            cwd=folder,
        )

    def run(self, job: Job, fault: Fault = NO_FAULT) -> Outcome:
        return self.batch([(job, fault)])[0]

    def batch(self, runs: Iterable[tuple[Job, Fault]], *, until_unhit: bool = False) -> list[Outcome]:
        """All of these runs, or those up to the first whose fault hit nothing."""
        assert self._process.stdin is not None and self._process.stdout is not None
        jobs = [(job.argv, job.given, job.env, tuple(fault), job.forks, job.now_ns) for job, fault in runs]
        marshal.dump((jobs, until_unhit), self._process.stdin)
        self._process.stdin.flush()
        found = marshal.load(self._process.stdout)
        return [Outcome(one[0], one[1], one[2], one[3].decode().strip(), one[4]) for one in found]

    def close(self) -> None:
        self._process.communicate(timeout=30)


@functools.cache
def applicable(fault: str) -> tuple[str, ...]:
    """The kinds of calls that can fail in this way."""
    if fault == "ENOSPC":
        return ("write", "fsync", "mkdir", "rename", "link", "open", "ftruncate")
    if fault == "EMFILE":
        return ("open", "dup", "pipe", "scandir", "listdir", "posix_spawn")
    if fault == "ENOENT":
        return ("open", "stat", "scandir")
    if fault == "EAGAIN":
        return ("fork", "posix_spawn", "pipe")
    return EVERY
