"""Every executable behaves alike, whatever goes wrong: one sentence, the right status, no traceback, nothing partial.

All that are declared are called as their first example calls them, so that a new one is held to it at once.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS
from tests.examples import VERDICTS, Call, Place, call, make_place, upstream
from tests.support import BIN, SAMPLE, run, shell, with_options

ALL = list(EXECUTABLES)
# What its first example feeds on standard input.
READERS = [name for name in ALL if upstream(name) or re.search(f"{name} .*<", EXECUTABLES[name].examples[0])]
# Whose failures are envelopes.
ENVELOPES = ("cortex", "cortex-plan", "cortex-envelope", "cortex-log-retrieval")
# What else some print, beside what their example makes them print.
PRINT = {"cortex": [["--help"], ["--completion", "bash"]], "cortex-envelope": [["--help"], ["--schema"]]}

Calls = Callable[[str], Call]
Done = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def calls(shared: Place) -> Calls:
    return cache(lambda name: call(name, shared))


@pytest.fixture
def place(name: str, shared: Place, tmp_path: Path) -> Place:
    """A place of its own for what may write there; a filter only reads."""
    return shared if upstream(name) or name in ("cortex", "cortex-plan", "cortex-scan") else make_place(tmp_path)


def execute(one: Call, place: Place, input: bytes | None = None, **environment: str) -> Done:
    given = one.input if input is None else input
    return run(one.name, *one.arguments, input=given or b"", env=place.env(**environment), cwd=place.folder)


def execute_on(descriptor: int, one: Call, words: list[str], place: Place) -> Done:
    """The executable with another standard output."""
    return subprocess.run(
        [BIN / one.name, *words],
        input=one.input or b"", stdout=descriptor, stderr=subprocess.PIPE,
        env=place.env(), cwd=place.folder, timeout=120,
    )  # fmt: skip


def said(done: Done, name: str) -> str:
    """The one sentence of a failure, on the one channel that is its executable's own."""
    assert b"Traceback" not in done.stdout + done.stderr
    errors = done.stderr.decode().splitlines()
    if not done.stdout:
        assert len(errors) == 1 and errors[0].startswith(name), errors
        return errors[0]
    assert done.stdout.endswith(b"\n")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if lines[-1].get("kind") != "seal":  # an envelope or a report: nothing beside it
        assert len(lines) == 1 and not errors and lines[0].get("data") is None
        message: str = lines[0]["error"]["message"]
        return message
    error = lines[-2]
    assert error["kind"] == "error" and error["exit"] == done.returncode
    assert errors == ([f"{name}: {error['code']}: {error['message']}"] if error["stage"] == name else [])
    return str(error["message"])


def succeeded(done: Done, name: str) -> None:
    assert done.returncode in VERDICTS.get(name, (0,)) and done.stdout.endswith(b"\n") and done.stderr == b"", done


@pytest.mark.parametrize("name", ALL)
def test_success_is_silent_on_standard_error(name: str, calls: Calls, place: Place) -> None:
    succeeded(execute(calls(name), place), name)


@pytest.mark.parametrize("name", ALL)
def test_bad_arguments_are_one_sentence(name: str, calls: Calls, shared: Place) -> None:
    one = calls(name)
    for words in (["--no-such-option"], ["--<private>loom=idea"], [b"--\xff"]):
        done = execute(one._replace(arguments=with_options(name, one.arguments, *words)), shared)
        assert done.returncode == 4, (words, done)
        message = said(done, name)
        assert "is not an option of" in message and "loom" not in message
        assert "--no-such-option" in message or words != ["--no-such-option"]


@pytest.mark.parametrize("name", ALL)
def test_an_argument_that_is_not_utf8_is_no_traceback(name: str, shared: Place) -> None:
    done = run(name, b"\xff", env=shared.env(), cwd=shared.folder)
    assert done.returncode in (1, 3, 4) and said(done, name)


GARBAGE = {
    "nothing": b"",
    "bytes": bytes(range(256)) * 16,
    "a long line without its end": b"loom " * 200_000,
    "foreign lines": b'{"level":"info","msg":"loom"}\n{"level":"warn"}\n',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("case", GARBAGE)
@pytest.mark.parametrize("name", READERS)
def test_garbage_is_refused(name: str, case: str, calls: Calls, shared: Place) -> None:
    """Nothing at all, too, means that what stands before died, not that there is nothing to find."""
    done = execute(calls(name), shared, GARBAGE[case])
    assert done.returncode in (4, 5) and "loom" not in said(done, name)
    assert b"loom" not in done.stdout


@pytest.mark.parametrize("name", READERS)
def test_a_foreign_stream_is_no_answer(name: str, calls: Calls, shared: Place) -> None:
    """A valid stream of a kind that the executable cannot take is refused, or passed on whole."""
    foreign = run("cortex-scan", env=shared.env()).stdout
    if calls(name).input == foreign:
        foreign = run("cortex-strip", input=foreign).stdout
    done = execute(calls(name), shared, foreign)
    if done.returncode:
        assert done.returncode in (3, 4, 5) and said(done, name)
    else:
        assert (done.stdout.splitlines()[:-1], done.stderr) == (foreign.splitlines()[:-1], b"")


@pytest.mark.parametrize("name", READERS)
def test_what_was_cut_or_altered_is_refused(name: str, calls: Calls, shared: Place) -> None:
    whole = calls(name).input or b""
    sealed = b'"kind":"seal"' in whole
    middle = whole.index(b"\n", len(whole) // 2) + 1 if sealed else len(whole) // 2
    for broken in [whole[:middle], *([whole.replace(b'"bytes":', b'"bytes":1', 1)] if sealed else [])]:
        done = execute(calls(name), shared, broken)
        assert done.returncode == 4, done
        assert "seal" in said(done, name) or not sealed


@pytest.mark.parametrize("name", [name for name in READERS if upstream(name)])
def test_an_upstream_error_goes_through(name: str, calls: Calls, shared: Place) -> None:
    """Silently, since who found it has said so; what turns an envelope into a stream is the first that can."""
    failed = shell(upstream(name), env=shared.env(CORTEX_MEMORY_ROOT=str(shared.folder / "nowhere")))
    done = execute(calls(name), shared, failed.stdout)
    assert done.returncode == 4 and "nowhere" in said(done, name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("name", ALL)
def test_a_full_disk_is_one_sentence(name: str, calls: Calls, place: Place) -> None:
    failing = [["nothing"]] if name in ENVELOPES else []
    for words in (calls(name).arguments, ["--version"], *PRINT.get(name, []), *failing):
        with open("/dev/full", "wb") as full:
            done = execute_on(full.fileno(), calls(name), words, place)
        assert done.returncode in (1, 4)
        assert done.stderr.decode() == f"{name}: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("name", ALL)
def test_a_reader_that_is_gone_is_silence(name: str, calls: Calls, place: Place) -> None:
    for words in (calls(name).arguments, ["--version"], *PRINT.get(name, []), ["--no-such-option"]):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            done = execute_on(pipe.fileno(), calls(name), words, place)
        if words == ["--no-such-option"] and done.stderr:  # said there, and nothing to print
            assert done.returncode in (4, -signal.SIGPIPE) and done.stderr.count(b"\n") == 1
        else:
            assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("name", ALL)
def test_closed_standard_streams(name: str, calls: Calls, place: Place, tmp_path: Path) -> None:
    given = tmp_path / "input"
    given.write_bytes(calls(name).input or b"")
    line = shlex.join([name, *calls(name).arguments])
    for closed, redirection in {"input": "<&-", "error": f"<{given} 2>&-", "output": f"<{given} >&-"}.items():
        done = shell(f"{line} {redirection}", env=place.env(), cwd=place.folder)
        if closed == "output":
            assert done.returncode in (1, 4) and done.stderr.count(b"\n") == 1
            assert done.stderr.startswith(f"{name}: standard output cannot be written: ".encode())
        elif closed == "input" and name in READERS:
            assert done.returncode == 4 and said(done, name)
        else:
            succeeded(done, name)
    done = shell(f"{line} <&- >&- 2>&-", env=place.env(), cwd=place.folder)
    assert done.returncode in (1, 4)


def on_terminal_input(words: list[str], place: Place) -> Done:
    master, terminal = pty.openpty()
    try:
        return subprocess.run(
            [BIN / words[0], *words[1:]],
            stdin=terminal, capture_output=True, env=place.env(), cwd=place.folder, timeout=60,
        )  # fmt: skip
    finally:
        os.close(terminal)
        os.close(master)


@pytest.mark.parametrize("name", ALL)
def test_a_terminal_as_standard_input_is_answered_at_once(name: str, calls: Calls, place: Place) -> None:
    done = on_terminal_input([name, *calls(name).arguments], place)
    if name not in READERS:
        succeeded(done, name)
        return
    message, declared = said(done, name), EXECUTABLES[name]
    assert done.returncode == 4 and "terminal" in message
    assert declared.reads in message and declared.examples[0] in message


@pytest.mark.parametrize("command", ["remember", "propose"])
def test_a_payload_from_a_terminal_is_answered_at_once(command: str, shared: Place) -> None:
    done = on_terminal_input(["cortex", command, "-", "--adapter", "claude", "--allow-write"], shared)
    message = said(done, "cortex")
    assert done.returncode == 4 and "terminal" in message and COMMANDS[command].examples[0] in message


@pytest.mark.parametrize("name", ALL)
def test_a_directory_as_standard_input_is_no_answer(name: str) -> None:
    """CPython itself refuses it, in its own words, before it runs any line of ours (docs/streams.md)."""
    folder = os.open(SAMPLE, os.O_RDONLY)
    try:
        done = subprocess.run([BIN / name, "--version"], stdin=folder, capture_output=True, timeout=60)
    finally:
        os.close(folder)
    assert done.returncode == 1 and done.stdout == b""


INTERRUPTED = {
    "at its start": "event == 'import' and what[0] == 'cortex_tools.contract.options'",
    "at work": "event in ('open', 'os.scandir', 'os.listdir') and b'memory' in os.fsencode(str(what[0]))",
}


@pytest.mark.parametrize("moment", INTERRUPTED)
@pytest.mark.parametrize("name", ALL)
def test_an_interrupt_is_silent_and_by_signal(
    name: str, moment: str, calls: Calls, place: Place, tmp_path: Path
) -> None:
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        f"sys.addaudithook(lambda event, what: {INTERRUPTED[moment]} and os.kill(os.getpid(), signal.SIGINT))\n"
    )
    path = os.pathsep.join(filter(None, (str(hook), os.environ.get("PYTHONPATH"))))
    done = execute(calls(name), place, PYTHONPATH=path)
    if moment == "at its start" or done.returncode < 0:
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    else:  # nothing of the kind happened: it opens nothing by its name
        succeeded(done, name)
