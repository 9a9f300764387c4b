"""Death and want: killed stages and workers, full disks, closed descriptors, absent readers, interrupts, few files."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import BIN, SAMPLE, environment, failure, note, row, run, shell, write_corpus
from tests.test_executables import ALL, ENVELOPES, READ_SIDE, READERS, Streams, command_line, refused, streams_of

PATIENCE = 30  # seconds until a test calls something a hang
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
FORKS = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="with one processor the driver starts no worker",
)


@pytest.fixture(scope="module")
def streams() -> Streams:
    return streams_of(str(SAMPLE))


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that is bound to happen."""
    for _ in range(PATIENCE * 200):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"{what} did not happen")


def unread(descriptor: int) -> int:
    """How many bytes wait in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0])


# --- stages killed -------------------------------------------------------------------------------------------------

ROOT = shlex.quote(str(SAMPLE))
PLANS = {
    "search": [
        f"cortex-scan --memory-root {ROOT}",
        "cortex-strip",
        "cortex-select --valid",
        "cortex-expand idea-tension-logger",
        "cortex-rank 'loom the'",
        "cortex-card",
        "cortex-envelope search",
    ],
    "timeline": [
        f"cortex-scan --memory-root {ROOT}",
        "cortex-strip",
        "cortex-window --anchor 2024-06-01 --before 100 --after 100 --bodies",
        "cortex-card",
        "cortex-envelope timeline",
    ],
}
KILLED = [
    ("search", 0, 4096),
    *(("search", number, size) for number in range(1, 6) for size in (0, 4096)),
    *(("timeline", number, size) for number in (2, 3) for size in (0, 4096)),
]


@functools.cache
def output_of(plan: str, length: int) -> bytes:
    """What the first `length` stages of a plan write."""
    done = shell(PLANS[plan][length - 1], input=output_of(plan, length - 1) if length > 1 else b"")
    assert done.returncode == 0
    return done.stdout


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="the size of a pipe cannot be set here")
@pytest.mark.parametrize(("plan", "number", "size"), KILLED)
def test_a_stage_killed_before_its_seal_fails_the_pipeline(plan: str, number: int, size: int) -> None:
    """`size` bytes of output have gone by when SIGKILL strikes: the pipe holds one page and nobody reads it."""
    stages = PLANS[plan]
    before = output_of(plan, number) if number else b""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    stage = subprocess.Popen(
        ["sh", "-c", f"exec {stages[number]}"], stdin=subprocess.PIPE, stdout=writing, env=environment()
    )
    os.close(writing)
    assert stage.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # scan reads nothing
        # Without the seal at its end a stage is still reading; most of the input is more than a pipe holds.
        stage.stdin.write(before if size else before[: len(before) // 2])
        stage.stdin.flush()
        if size:
            stage.stdin.close()
    if size:
        until(lambda: unread(reading) >= size, "a page of output")
    else:
        until(lambda: unread(stage.stdin.fileno()) == 0, "reading")  # type: ignore[union-attr]
    stage.kill()
    assert stage.wait(PATIENCE) == -signal.SIGKILL
    if not stage.stdin.closed:
        stage.stdin.close()
    with os.fdopen(reading, "rb") as pipe:
        left = pipe.read()
    assert len(left) >= size and (size or left == b"")
    failure(shell(" | ".join(stages[number + 1 :]), input=left), 4, "integrity_error")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
@pytest.mark.parametrize("number", range(1, 6))
def test_a_stage_stopped_in_the_middle_goes_on_as_if_nothing_were_or_dies_as_any(
    number: int, then: signal.Signals
) -> None:
    stages, given = PLANS["search"], output_of("search", number)
    stage = subprocess.Popen(
        ["sh", "-c", f"exec {stages[number]}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    after = subprocess.Popen(
        ["sh", "-c", " | ".join(stages[number + 1 :])], stdin=stage.stdout, stdout=subprocess.PIPE, env=environment()
    )
    assert stage.stdin is not None and stage.stdout is not None
    stage.stdout.close()
    half = len(given) // 2
    stage.stdin.write(given[:half])
    stage.stdin.flush()
    until(lambda: unread(stage.stdin.fileno()) == 0, "reading")  # type: ignore[union-attr]
    stage.send_signal(signal.SIGSTOP)
    until(lambda: stopped(stage.pid), "the stop")
    stage.stdin.write(given[half : half + 1_000])  # what comes meanwhile waits
    stage.stdin.flush()
    stage.send_signal(then)
    with contextlib.suppress(BrokenPipeError):
        stage.stdin.write(given[half + 1_000 :])
    with contextlib.suppress(BrokenPipeError):
        stage.stdin.close()
    output, _ = after.communicate(timeout=PATIENCE)
    assert stage.wait(PATIENCE) == (0 if then == signal.SIGCONT else -signal.SIGKILL)
    if then == signal.SIGCONT:
        assert (after.returncode, output) == (0, output_of("search", len(stages)))
    else:
        failure(subprocess.CompletedProcess([], after.returncode, output), 4, "integrity_error")


@pytest.mark.parametrize(
    ("number", "strict"), [*((number, "") for number in range(6)), (1, "set -o pipefail; "), (4, "set -o pipefail; ")]
)
def test_death_after_the_seal_is_nothing_and_before_it_a_failure(number: int, strict: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    stages = PLANS["search"]
    for dying, dead in ((f"{{ {stages[number]}; kill -KILL $BASHPID; }}", False), ("{ kill -KILL $BASHPID; }", True)):
        script = strict + " | ".join([*stages[:number], dying, *stages[number + 1 :]])
        done = subprocess.run([bash, "-c", script], capture_output=True, env=environment(), timeout=PATIENCE)
        if dead:
            failure(done, 4, "integrity_error")
        else:
            assert done.stdout == output_of("search", len(stages))
            assert done.returncode == (128 + signal.SIGKILL if strict else 0)


def test_a_rebuild_whose_second_pass_died_is_no_rebuild() -> None:
    one_pass = f"cortex-scan --memory-root {ROOT} | cortex-strip | cortex-digest"
    for script in (f"{one_pass}; {one_pass} | head -c 50", one_pass, f"{one_pass} | head -n 1; {one_pass}"):
        failure(shell(f"{{ {script}; }} | cortex-envelope rebuild"), 4, "integrity_error")


def test_a_stage_killed_at_any_moment_never_makes_a_smaller_answer(tmp_path: Path) -> None:
    """Eight random moments; what was drawn is in the message of a failure."""
    write_corpus(tmp_path, {f"{number}.md": note(f"n{number}", "loom " * 2_000) for number in range(40)})
    stages = [["cortex-scan", "--memory-root", str(tmp_path)], ["cortex-strip"], ["cortex-select", "--valid"]]
    stages += [["cortex-rank", "loom"], ["cortex-card"], ["cortex-envelope", "search"]]
    whole, _ = _killed(stages, None, 0)
    assert whole.returncode == 0
    for seed in range(8):
        drawn = random.Random(seed)
        number, moment = drawn.randrange(5), drawn.uniform(0, 0.4)
        done, status = _killed(stages, number, moment)
        if done.returncode == 0:
            assert done.stdout == whole.stdout, (number, moment)
        else:
            failure(done, 4, "integrity_error")
            assert status == -signal.SIGKILL, (number, moment)


def _killed(
    stages: list[list[str]], number: int | None, moment: float
) -> tuple[subprocess.CompletedProcess[bytes], int | None]:
    """What the pipeline answers when stage `number` is killed after `moment` seconds, and that stage's status."""
    processes: list[subprocess.Popen[bytes]] = []
    previous: int = subprocess.DEVNULL
    for argv in stages:
        process = subprocess.Popen(
            [BIN / argv[0], *argv[1:]],
            stdin=previous,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        if processes and processes[-1].stdout is not None:
            processes[-1].stdout.close()
        assert process.stdout is not None
        previous = process.stdout.fileno()
        processes.append(process)
    if number is not None:
        time.sleep(moment)
        processes[number].kill()
    output, errors = processes[-1].communicate(timeout=PATIENCE)
    for process in processes[:-1]:
        process.wait(PATIENCE)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        process.stderr.close()
    status = None if number is None else processes[number].returncode
    return subprocess.CompletedProcess(stages[-1], processes[-1].returncode, output, errors), status


# --- the driver and its workers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Worth a worker, which has more to answer than a pipe holds."""
    body = "loom tension " * 60
    rows = {
        f"{part}.jsonl": "".join(row(f"{part}-{number}", content=f"{body}{number}") for number in range(1_000))
        for part in range(4)
    }
    return write_corpus(tmp_path_factory.mktemp("large"), rows)


def hooked(folder: Path, code: str) -> dict[str, str]:
    """An environment in which every Python process starts with `code`: it makes moments happen where we want them."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import os, signal, sys\n{code}\n")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return environment(PYTHONPATH=path)


STOP_WORKER = "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGSTOP))"
STOP_DRIVER = "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGSTOP))"
COMMANDS = {
    "search": ["search", "loom"],
    "status": ["status"],
    "get": ["get", "0-7", "3-999"],
    "timeline": ["timeline", "--anchor", "3-999"],
    "rebuild": ["rebuild", "--from-canonical"],
}


class Driver:
    """`cortex COMMAND` at work on a corpus.

    In a session of its own it can be interrupted together with its workers; but there the kernel hangs up a
    stopped worker whose driver dies, which would hide one that lives on.
    """

    def __init__(self, command: str, corpus: Path, env: dict[str, str], *, session: bool) -> None:
        self.process = subprocess.Popen(
            [BIN / "cortex", *COMMANDS[command], "--memory-root", str(corpus)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=session,
        )
        self.pid = self.process.pid
        self.workers: list[int] = []

    def worker(self) -> int:
        """The ID of a worker, once there is one."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [pid for pid, (_, parent, _) in processes() if parent == self.pid]
            return bool(found)

        until(look, "a worker")
        self.workers += found
        return found[0]

    def end(self) -> subprocess.CompletedProcess[bytes]:
        output, errors = self.process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess([], self.process.returncode, output, errors)


def processes() -> Iterator[tuple[int, tuple[str, int, int]]]:
    """Each process with its state, its parent and the processor time that it has used (ticks)."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):  # gone since it was listed
                fields = Path("/proc", entry, "stat").read_text().rpartition(") ")[2].split()
                yield int(entry), (fields[0], int(fields[1]), int(fields[11]) + int(fields[12]))


def stopped(pid: int) -> bool:
    return dict(processes()).get(pid, ("",))[0] == "T"


def ended(pid: int) -> bool:
    """Gone, or dead and waiting for whoever adopted it."""
    return dict(processes()).get(pid, ("Z",))[0] in "ZX"


def at_rest(pid: int) -> bool:
    """Asleep, and no processor time used for a while: blocked."""
    before = dict(processes()).get(pid)
    time.sleep(0.2)
    return before is not None and before[0] == "S" and before == dict(processes()).get(pid)


def kill_the_living(workers: list[int]) -> None:
    """What a failed test leaves."""
    for pid in workers:
        if not ended(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def drive(large: Path, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Starts drivers under a hook; nothing of theirs is left when the test ends."""
    started: list[Driver] = []

    def start(command: str, code: str, *, session: bool = False) -> Driver:
        env = hooked(tmp_path / f"hook{len(started)}", code)
        started.append(Driver(command, large, env, session=session))
        return started[-1]

    yield start
    for driver in started:
        driver.process.kill()
        kill_the_living(driver.workers)
        driver.process.communicate()


@LINUX
@FORKS
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_worker_is_an_integrity_error(command: str, drive: Callable[..., Driver]) -> None:
    driver = drive(command, STOP_WORKER)
    worker = driver.worker()
    until(lambda: stopped(worker), "the stop")
    os.kill(worker, signal.SIGKILL)
    done = driver.end()
    failure(done, 4, "integrity_error", "try again")
    assert done.stderr == b""
    assert worker not in dict(processes()), "the driver left a zombie"


@LINUX
@FORKS
def test_a_worker_killed_in_the_middle_of_its_answer_is_an_integrity_error(
    drive: Callable[..., Driver],
) -> None:
    driver = drive("search", STOP_DRIVER)
    worker = driver.worker()
    until(lambda: stopped(driver.pid) and at_rest(worker), "a full pipe")
    os.kill(worker, signal.SIGKILL)
    os.kill(driver.pid, signal.SIGCONT)
    failure(driver.end(), 4, "integrity_error")


@LINUX
@FORKS
@pytest.mark.parametrize("whom", ["the driver", "a worker"])
@pytest.mark.parametrize("command", ["search", "rebuild"])
def test_what_was_stopped_and_goes_on_answers_as_ever(
    command: str, whom: str, large: Path, drive: Callable[..., Driver]
) -> None:
    driver = drive(command, STOP_DRIVER if whom == "the driver" else STOP_WORKER)
    driver.worker()
    stops = 0

    def goes_on() -> bool:
        nonlocal stops
        for pid, (state, parent, _) in processes():
            if state == "T" and driver.pid in (pid, parent):
                stops += 1
                os.kill(pid, signal.SIGCONT)
        return ended(driver.pid) or unread_answer()

    def unread_answer() -> bool:
        assert driver.process.stdout is not None
        return unread(driver.process.stdout.fileno()) > 0

    until(goes_on, "the end")
    done = driver.end()
    assert stops > 0 and (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == run("cortex", *COMMANDS[command], "--memory-root", large).stdout


@LINUX
@FORKS
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["worker begins", "worker answers"])
def test_a_killed_driver_leaves_no_worker_and_no_output(
    moment: str, ending: signal.Signals, drive: Callable[..., Driver]
) -> None:
    if signal.getsignal(ending) == signal.SIG_IGN:
        pytest.skip(f"{ending.name} is ignored here, as under nohup, and a child inherits that")
    driver = drive("search", STOP_WORKER if moment == "worker begins" else STOP_DRIVER)
    worker = driver.worker()
    if moment == "worker begins":
        until(lambda: stopped(worker), "the stop")
        # Where the driver is now does not matter: its worker's part is missing.
        os.kill(driver.pid, ending)
        driver.process.wait(PATIENCE)
        os.kill(worker, signal.SIGCONT)
    else:
        until(lambda: stopped(driver.pid) and at_rest(worker), "a full pipe")
        os.kill(driver.pid, ending)
        os.kill(driver.pid, signal.SIGCONT)
    done = driver.end()
    assert (done.returncode, done.stdout, done.stderr) == (-ending, b"", b"")
    until(lambda: ended(worker), "the end of the worker")


@LINUX
@FORKS
@pytest.mark.parametrize("whom", ["the driver", "the process group"])
def test_an_interrupt_while_the_driver_waits_ends_its_workers(whom: str, drive: Callable[..., Driver]) -> None:
    driver = drive("search", STOP_WORKER, session=True)
    worker = driver.worker()
    until(lambda: stopped(worker) and at_rest(driver.pid), "waiting for the worker")
    (os.kill if whom == "the driver" else os.killpg)(driver.pid, signal.SIGINT)
    until(lambda: ended(driver.pid), "the end of the driver")
    with contextlib.suppress(ProcessLookupError):  # the driver may have ended it
        os.kill(worker, signal.SIGCONT)
    done = driver.end()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    until(lambda: ended(worker), "the end of the worker")


@LINUX
@FORKS
def test_an_interrupt_from_the_keyboard_is_silent_in_workers_too(drive: Callable[..., Driver]) -> None:
    """The whole process group gets it, as from a terminal, at the moment when a worker opens its first note."""
    opens = "event == 'open' and isinstance(what[0], bytes) and os.getpid() != driver"
    hook = f"lambda event, what: {opens} and os.killpg(0, signal.SIGINT)"
    driver = drive("search", f"driver = os.getpid()\nsys.addaudithook({hook})", session=True)
    done = driver.end()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    until(lambda: not left_of(driver), "the end of the workers")


@LINUX
@FORKS
def test_a_driver_killed_at_any_moment_writes_all_or_nothing(large: Path, drive: Callable[..., Driver]) -> None:
    whole = run("cortex", *COMMANDS["search"], "--memory-root", large).stdout
    for seed in range(6):
        driver = drive("search", "", session=True)
        time.sleep(random.Random(seed).uniform(0, 0.3))
        driver.process.kill()
        done = driver.end()
        assert done.stdout in (b"", whole) and done.stderr == b"", seed
        until(lambda: not left_of(driver), "the end of the workers")  # noqa: B023 (awaited at once)


def left_of(driver: Driver) -> list[int]:
    """What still lives in the driver's session."""
    living = []
    for pid, (state, _, _) in processes():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == driver.pid and state not in "ZX":
                living.append(pid)
    return living


@LINUX
@pytest.mark.parametrize("killed", ["a worker", "strip"])
def test_strip_over_several_processes_dies_as_one(killed: str, large: Path, tmp_path: Path) -> None:
    (tmp_path / "listing").write_bytes(run("cortex-scan", "--memory-root", large).stdout)
    with open(tmp_path / "listing", "rb") as listing:
        strip = subprocess.Popen(
            [BIN / "cortex-strip", "--jobs", "2"],
            stdin=listing,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=hooked(tmp_path / "hook", STOP_WORKER),
        )

    def workers() -> list[int]:
        return [pid for pid, (state, parent, _) in processes() if parent == strip.pid and state == "T"]

    found: list[int] = []
    try:
        until(lambda: len(workers()) == 2, "two workers")
        found = workers()
        os.kill(found[0] if killed == "a worker" else strip.pid, signal.SIGKILL)
        if killed == "strip":
            strip.wait(PATIENCE)
            os.kill(found[0], signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):  # strip may have ended it already
            os.kill(found[1], signal.SIGCONT)
        output, errors = strip.communicate(timeout=PATIENCE)
        until(lambda: all(ended(pid) for pid in found), "the end of the workers")
    finally:
        strip.kill()
        kill_the_living(found)
        strip.communicate()
    done = subprocess.CompletedProcess([], strip.returncode, output, errors)
    if killed == "a worker":
        assert "try again" in refused(done, "cortex-strip", "integrity_error")
    else:
        assert (done.returncode, errors) == (-signal.SIGKILL, b"")
    failure(run("cortex-envelope", "status", input=output), 4, "integrity_error")


@LINUX
@pytest.mark.parametrize("command", COMMANDS)
def test_the_driver_leaves_no_process_behind(command: str, drive: Callable[..., Driver]) -> None:
    driver = drive(command, "", session=True)
    assert driver.end().returncode == 0
    assert not [pid for pid, (_, parent, _) in processes() if parent == driver.pid] and not left_of(driver)


# --- standard output that cannot be written ------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_at_any_place_of_a_pipeline_is_a_failure() -> None:
    """The stage behind a stage that cannot write gets nothing, and says so."""
    for stages in ("cortex-scan >/dev/full | cortex-strip", "cortex-scan | cortex-strip >/dev/full"):
        done = shell(f"{stages} | cortex-envelope status", env=environment(CORTEX_MEMORY_ROOT=str(SAMPLE)))
        failure(done, 4, "integrity_error")
        assert b"standard output cannot be written: No space left" in done.stderr


def test_a_spool_that_cannot_be_written_is_an_internal_error(streams: Streams, tmp_path: Path) -> None:
    """What needs bodies late keeps them in a temporary file."""
    for argv in (["cortex-digest"], ["cortex-rank", "loom", "--bodies"]):
        done = run(*argv, input=streams.records, env=environment(TMPDIR=str(tmp_path / "none")))
        assert "TMPDIR" in refused(done, argv[0], "internal_error")
        ended_by = run("cortex-envelope", "rebuild" if len(argv) == 1 else "search", input=done.stdout)
        failure(ended_by, 1, "internal_error", "TMPDIR")


CLOSED = [closed for size in (1, 2, 3) for closed in itertools.combinations((0, 1, 2), size)]


@pytest.fixture(scope="module")
def two_notes(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    notes = {"a.md": note("idea-tension-logger"), "b.md": note("b")}
    return streams_of(str(write_corpus(tmp_path_factory.mktemp("two"), notes)))


@pytest.mark.parametrize("name", ALL)
def test_closed_descriptors_hang_nothing_and_write_nowhere(name: str, two_notes: Streams, tmp_path: Path) -> None:
    corpus = Path(two_notes.root)
    before = {path: path.read_bytes() for path in corpus.iterdir()}
    arguments, data = command_line(name, two_notes)
    (tmp_path / "input").write_bytes(data)
    command = shlex.join([name, *arguments])
    for closed in CLOSED:
        redirections = " ".join(f"{'<' if number == 0 else f'{number}>'}&-" for number in closed)
        given = "" if 0 in closed else "<input"
        done = shell(f"{command} {given} {redirections}", cwd=tmp_path)
        assert done.stdout == b"" or 1 not in closed
        if 1 in closed:
            assert done.returncode == 1, (closed, done)
            assert 2 in closed or done.stderr.decode().splitlines()[-1].startswith(
                f"{name}: standard output cannot be written: "
            )
        elif 0 in closed and READ_SIDE[name][1]:  # nobody feeds it: as an empty stream
            assert done.returncode == 4 and (2 in closed or name in ENVELOPES or done.stderr.count(b"\n") == 1)
        else:
            assert (done.returncode, done.stderr) == (0, b"") and done.stdout
        assert b"Traceback" not in done.stderr
        assert {path: path.read_bytes() for path in corpus.iterdir()} == before
    assert os.listdir(tmp_path) == ["input"]


@pytest.mark.parametrize("name", ["cortex", "cortex-envelope"])
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_on_closed_descriptors_is_no_traceback(name: str, word: str) -> None:
    for redirection, status in ((">&-", 1), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 1)):
        done = shell(f"{name} {word} {redirection}")
        assert done.returncode == status, (redirection, done)
        assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") <= 1


@FORKS
def test_workers_and_closed_descriptors(large: Path) -> None:
    """Pipes to workers must not take the numbers of standard streams."""
    command = f"cortex search loom --memory-root {shlex.quote(str(large))}"
    whole = shell(command)
    assert whole.returncode == 0
    assert shell(f"{command} <&- 2>&-").stdout == whole.stdout
    done = shell(f"{command} <&- >&-")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)


# --- a reader that is gone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_statuses_in_a_shell_are_141_or_success(reader: str) -> None:
    """Whether a short output was written before its reader left is a matter of chance; an error it never is."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    for length in (1, 2, 6):
        script = f"{' | '.join(PLANS['search'][:length])} | {reader} >/dev/null; echo ${{PIPESTATUS[@]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, env=environment(), timeout=PATIENCE)
        *statuses, last = done.stdout.split()
        assert set(statuses) <= {b"0", b"141"} and last == b"0" and done.stderr == b""


# --- interrupts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_an_interrupt_while_reading_is_130_and_silent(name: str, streams: Streams) -> None:
    arguments, data = command_line(name, streams)
    stage = subprocess.Popen(
        [BIN / name, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert stage.stdin is not None
    stage.stdin.write(data[: len(data) // 2])
    stage.stdin.flush()
    until(lambda: unread(stage.stdin.fileno()) == 0, "reading")  # type: ignore[union-attr]
    stage.send_signal(signal.SIGINT)
    output, errors = stage.communicate(timeout=PATIENCE)
    assert (stage.returncode, errors) == (-signal.SIGINT, b"")
    assert b'"kind":"seal"' not in output


@pytest.mark.parametrize("name", ["cortex-select", "cortex-envelope"])
def test_an_ignored_interrupt_stays_ignored(name: str, streams: Streams) -> None:
    """A shell starts what it runs in the background so, and a script what must not be interrupted."""
    arguments, data = command_line(name, streams)
    stage = subprocess.Popen(
        ["sh", "-c", f"trap '' INT; exec {shlex.join([name, *arguments])}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert stage.stdin is not None
    stage.stdin.write(data[:1000])
    stage.stdin.flush()
    until(lambda: unread(stage.stdin.fileno()) == 0, "reading")  # type: ignore[union-attr]
    stage.send_signal(signal.SIGINT)
    output, errors = stage.communicate(data[1000:], timeout=PATIENCE)
    assert (stage.returncode, errors) == (0, b"") and output == run(name, *arguments, input=data).stdout


INTERRUPTED = {
    "while it lists": "lambda event, what: event == 'os.scandir' and os.kill(os.getpid(), signal.SIGINT)",
    "while it opens a note": (
        "lambda event, what: event == 'open' and isinstance(what[0], bytes) and what[0].endswith(b'.md')"
        " and os.kill(os.getpid(), signal.SIGINT)"
    ),
    "while it starts": (
        "lambda event, what: event == 'import' and what[0] == 'cortex_tools.domain.records'"
        " and os.kill(os.getpid(), signal.SIGINT)"
    ),
}


@pytest.mark.parametrize("moment", INTERRUPTED)
@pytest.mark.parametrize("name", ["cortex", "cortex-plan", "cortex-scan", "cortex-strip", "cortex-envelope"])
def test_an_interrupt_at_work_is_130_and_silent(name: str, moment: str, streams: Streams, tmp_path: Path) -> None:
    env = hooked(tmp_path / "hook", f"sys.addaudithook({INTERRUPTED[moment]})")
    arguments, data = command_line(name, streams)
    done = run(name, *arguments, input=data, env=env)
    reached = {
        "while it lists": ("cortex", "cortex-scan"),
        "while it opens a note": ("cortex", "cortex-strip"),
        "while it starts": (name,),
    }[moment]
    if name in reached:
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    else:
        assert (done.returncode, done.stderr) == (0, b"")


# --- few descriptors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [6, 8, 10, 12, 16])
def test_few_descriptors_give_the_answer_or_a_failure(most: int, large: Path, tmp_path: Path) -> None:
    """A walk holds a descriptor for each level of folders, a worker a pipe; running out is no traceback."""
    write_corpus(tmp_path, {"/".join("abcdefghij"[:depth]) + "/n.md": note(f"n{depth}") for depth in range(1, 10)})
    deep = shlex.quote(str(tmp_path))
    for command in (
        f"cortex status --memory-root {shlex.quote(str(large))}",
        f"cortex rebuild --from-canonical --memory-root {deep}",
        f"cortex-scan --memory-root {deep} | cortex-strip | cortex-rank loom --bodies | cortex-card | "
        "cortex-envelope search",
    ):
        done = shell(f"ulimit -n {most}; {command}")
        assert b"Traceback" not in done.stderr
        if done.returncode == 0:
            assert done.stdout == shell(command).stdout
        else:
            failure(done, done.returncode, "internal_error" if done.returncode == 1 else "integrity_error")


@pytest.mark.skipif(sys.platform != "linux", reason="only here does ulimit -v limit what is allocated")
@pytest.mark.parametrize("kilobytes", range(12_000, 22_000, 1_000))
def test_little_memory_gives_the_answer_or_a_failure(kilobytes: int, large: Path) -> None:
    """No smaller answer, and no traceback from our first module on: before it is the interpreter's own start."""
    command = f"cortex search loom --memory-root {shlex.quote(str(large))}"
    done = shell(f"ulimit -v {kilobytes}; {command}")
    assert b"cortex_tools/" not in done.stderr
    if done.returncode == 0:
        assert done.stdout == shell(command).stdout
    elif done.stdout:
        failure(done, done.returncode, "internal_error" if done.returncode == 1 else "integrity_error")
    else:
        assert done.stderr
