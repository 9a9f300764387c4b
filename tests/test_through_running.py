"""cortex-through as a process: what must not run, must not hang, must not stay behind, must not grow."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import BIN, SAMPLE, environment, failure, note, row, run, shell, write_corpus
from tests.test_streams import of_kind, sealed, seals, split_lines
from tests.test_through import NAME, refused, through

MARK = ["sh", "-c", ': > "$RAN"; cat']


@pytest.fixture(scope="module")
def records() -> bytes:
    return shell(f"cortex-scan --memory-root '{SAMPLE}' | cortex-strip").stdout


def marked(stream: bytes, tmp_path: Path, *options: str) -> tuple[subprocess.CompletedProcess[bytes], bool]:
    """The outcome, and whether the filter was started at all."""
    mark = tmp_path / "ran"
    mark.unlink(missing_ok=True)
    done = through(stream, *options, *MARK, env=environment(RAN=str(mark)))
    return done, mark.exists()


# --- what is broken never reaches the filter -------------------------------------------------------------------------


def test_no_filter_runs_on_a_broken_stream(records: bytes, tmp_path: Path) -> None:
    lines = split_lines(records)
    broken = {
        "no seal": lines[:-1],
        "a line less": [*lines[:3], *lines[4:]],
        "a line altered": [*lines[:3], lines[3].replace(b"a", b"b", 1), *lines[4:]],
        "a line after the seal": [*lines, lines[3]],
        "nothing": [],
        "garbage": [lines[0], b"loom\n"],
        "no corpus line": [sealed(lines[1:-1])],
        "a duplicate": [sealed([*lines[:-1], lines[3]])],
        "a private span": [sealed([lines[0], lines[1].replace(b'"title":"', b'"title":"<private>')])],
    }
    assert marked(records, tmp_path)[1]
    for case, stream in broken.items():
        done, ran = marked(b"".join(stream), tmp_path)
        refused(done, "integrity_error")
        assert not ran, case
    missing = shell(f"cortex-scan --memory-root '{SAMPLE}' --parts 2 | cortex-strip").stdout
    done, ran = marked(missing[: missing.index(b'{"kind":"seal"')], tmp_path)
    refused(done, "integrity_error")
    assert not ran


def test_an_upstream_error_is_passed_on_and_no_filter_runs(records: bytes, tmp_path: Path) -> None:
    failed = run("cortex-window", "--anchor", "nobody", input=records)
    error = split_lines(failed.stdout)[-2]
    lines = split_lines(records)
    for stream in (failed.stdout, sealed([*lines[:-1], error]), b"".join([*lines[:4], error]), error):
        for options in ([], ["--unsealed"]):
            done, ran = marked(stream, tmp_path, *options)
            assert (done.returncode, split_lines(done.stdout)[0], ran) == (3, error, False)
            assert seals(done.stdout)[-1]["stage"] == NAME
    failure(run("cortex-envelope", "search", input=done.stdout), 3, "not_found", "nobody")


def test_unsealed_takes_a_stream_without_seals_and_says_so(records: bytes, tmp_path: Path) -> None:
    lines = split_lines(records)
    loose = b"\n".join([*(line.replace(b'":', b'": ').strip() for line in lines[:-1]), b""])
    done, ran = marked(loose, tmp_path, "--unsealed")
    assert done.returncode == 0 and ran and b"warning: seals are not checked" in done.stderr
    assert of_kind(done.stdout, "record") == of_kind(records, "record")
    assert seals(done.stdout)[-1]["unsealed"] is True
    assert split_lines(done.stdout)[:-1] == lines[:-1]  # the filter too was given lines as they should be
    further, _ = marked(done.stdout, tmp_path)
    assert further.returncode == 0 and seals(further.stdout)[-1]["unsealed"] is True
    headless, _ = marked(lines[1], tmp_path, "--unsealed")
    assert [json.loads(line)["kind"] for line in split_lines(headless.stdout)] == ["record", "seal"]


def test_a_terminal_is_answered_at_once() -> None:
    master, terminal = pty.openpty()
    try:
        done = subprocess.run([BIN / NAME, "cat"], stdin=terminal, capture_output=True, env=environment(), timeout=60)
    finally:
        os.close(terminal)
        os.close(master)
    refused(done, "invalid_input", "terminal", "cortex-scan | ")


# --- no deadlock, bounded memory -------------------------------------------------------------------------------------

ALL_THEN = "import sys; data = sys.stdin.buffer.readlines(); sys.stdout.buffer.writelines(data)"
FIRST_MUCH = (  # writes more than a pipe holds before it reads anything
    "import json, sys\n"
    "base = json.loads(sys.argv[1])\n"
    "for number in range(3000):\n"
    "    print(json.dumps({**base, 'id': f'made {number}', 'content': 'x' * 100}))\n"
    "sys.stdout.flush()\n"
    "sys.stdin.read()\n"
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Records of 3 MB in all, far more than pipes hold."""
    root = tmp_path_factory.mktemp("large")
    rows = "".join(row(f"r{number}", content="loom " * 200) for number in range(3000))
    write_corpus(root, {"rows.jsonl": rows, "a.md": note("a")})
    return shell(f"cortex-scan --memory-root {root} | cortex-strip").stdout


def test_neither_side_waits_for_the_other(large: bytes) -> None:
    done = through(large, sys.executable, "-c", ALL_THEN)
    assert done.returncode == 0 and split_lines(done.stdout)[:-1] == split_lines(large)[:-1]
    base = json.dumps(of_kind(large, "record")[0])
    done = through(large, sys.executable, "-c", FIRST_MUCH, base)
    assert done.returncode == 0 and len(of_kind(done.stdout, "record")) == 3000
    slow = shell(f"{NAME} cat | {{ sleep 0.3; cat; }}", input=large)  # nor does a slow reader matter
    assert split_lines(slow.stdout)[:-1] == split_lines(large)[:-1]
    refused(through(large, "head", "-n", "5"), "integrity_error", "cortex-select --limit")


_PEAK = """
import os, subprocess, sys
with open(sys.argv[1], "rb") as stream:
    process = subprocess.Popen(sys.argv[2:], stdin=stream, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
assert status == 0
print(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


def peak_bytes(stream: Path, *argv: Any) -> int:
    """The resident memory of a command at its highest, apart from its children's."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, stream, *argv], capture_output=True, env=environment(), timeout=120, check=True
    )
    return int(done.stdout)


def test_memory_does_not_grow_with_the_bytes(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (4, 40):
        notes = {f"{number}.md": note(f"n{number}", "loom " * 50_000) for number in range(4 * megabytes)}
        root = write_corpus(tmp_path / str(megabytes), {**notes})
        stream = tmp_path / f"{megabytes}.stream"
        stream.write_bytes(shell(f"cortex-scan --memory-root {root} | cortex-strip").stdout)
        assert stream.stat().st_size > megabytes * 1_000_000
        peaks.append(peak_bytes(stream, BIN / NAME, "cat"))
    assert peaks[1] - peaks[0] < 8_000_000, peaks


# --- nothing stays behind --------------------------------------------------------------------------------------------

WAITING = 'trap "" PIPE; echo $$ > "$PID"; cat > /dev/null; exec sleep 100'
STUBBORN = 'trap "" INT TERM HUP; echo $$ > "$PID"; cat > /dev/null; while :; do sleep 0.1; done'


def started(records: bytes, script: str, tmp_path: Path, **options: Any) -> tuple[subprocess.Popen[bytes], int]:
    """cortex-through running `script`, and the process number of that."""
    file = tmp_path / "pid"
    process = subprocess.Popen(
        [BIN / NAME, "sh", "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(PID=str(file)), **options,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(records)
    process.stdin.close()
    process.stdin = None
    return process, int(within(lambda: file.exists() and file.read_text().strip()))


def within(condition: Any) -> Any:
    for _ in range(2000):
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("script", [WAITING, STUBBORN], ids=["waiting", "stubborn"])
def test_a_signal_ends_the_filter_too_and_silently(
    number: signal.Signals, script: str, records: bytes, tmp_path: Path
) -> None:
    process, child = started(records, script, tmp_path)
    process.send_signal(number)
    output, complaint = process.communicate(timeout=60)
    assert (process.returncode, output, complaint) == (-number, b"", b"")
    assert gone(child)


def test_an_ignored_interrupt_stays_ignored(records: bytes, tmp_path: Path) -> None:
    """As under nohup: neither we nor the filter end by it."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process, child = started(records, 'echo $$ > "$PID"; cat; sleep 0.5', tmp_path, preexec_fn=ignore)
    process.send_signal(signal.SIGINT)
    os.kill(child, signal.SIGINT)
    output, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, b"") and seals(output)


def test_a_filter_whose_output_is_refused_does_not_stay(records: bytes, tmp_path: Path) -> None:
    endless = 'echo $$ > "$PID"; exec yes'
    process, child = started(records, endless, tmp_path)
    assert process.communicate(timeout=60)[1].startswith(f"{NAME}: integrity_error: line 1 ".encode())
    assert process.returncode == 4 and gone(child)


def test_the_filter_gets_default_signals_and_no_descriptor_of_ours(records: bytes, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "held = [name for name in range(3, 64) if not closed(name)]\n"
        "with open(sys.argv[1], 'w') as out:\n"
        "    print(held, signal.pthread_sigmask(signal.SIG_BLOCK, []), file=out)\n"
        "sys.stdout.write(sys.stdin.read())\n"
    )
    script = (
        "def closed(name):\n    import os\n    try: os.fstat(name)\n    except OSError: return True\n    return False\n"
    ) + script
    out = tmp_path / "out"
    assert through(records, sys.executable, "-c", script, str(out)).returncode == 0
    assert out.read_text() == "[] set()\n"
    # A filter that writes on when nobody reads ends by SIGPIPE, as in any pipeline: Python itself ignores that signal.
    assert through(records, "sh", "-c", "yes | head -n 1 > /dev/null; cat").returncode == 0
    status = through(records, "sh", "-c", "kill -PIPE $$; cat")
    refused(status, "integrity_error", f"signal {int(signal.SIGPIPE)}")


def test_a_reader_that_is_gone_ends_us_by_sigpipe(large: bytes) -> None:
    done = shell(f"{{ {NAME} cat; echo $? >&2; }} | true", input=large)
    assert done.stderr.decode().strip() in ("141", "-13") or "signal" in done.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full_is_said(records: bytes) -> None:
    done = shell(f"{NAME} cat > /dev/full", input=records)
    assert done.returncode == 1 and b"standard output cannot be written" in done.stderr


def test_a_place_for_temporary_files_is_needed(records: bytes, tmp_path: Path) -> None:
    done = through(records, "cat", env=environment(TMPDIR=str(tmp_path / "nowhere")))
    refused(done, "internal_error", "TMPDIR")


def test_a_filter_finds_a_standard_error_where_ours_is_closed(records: bytes) -> None:
    """Else the first file that it opens would become its standard error."""
    closed = "exec 2>&-; cortex-through sh -c 'echo complaint >&2 || exit 9; cat'"
    done = shell(closed, input=records)
    assert done.returncode == 0 and done.stdout
