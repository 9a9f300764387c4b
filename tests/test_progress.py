"""Progress: a line on a terminal while work lasts, nowhere else, and nothing of it left at the end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support import SAMPLE, environment, run, shell, write_corpus
from tests.terminals import on_terminal
from tests.test_imports import imported

# A clock on which every look is more than half a second after the one before: all work is long.
SLOW_CLOCK = "import time; looks = [0.0]; time.monotonic = lambda: looks.append(looks[-1] + 0.6) or looks[-1]"
# An interrupt as soon as progress is shown.
INTERRUPT = """
import os, signal
write = os.write
def interrupting(descriptor, data):
    written = write(descriptor, data)
    if descriptor == 2 and b" %" in bytes(data):
        os.kill(os.getpid(), signal.SIGINT)
    return written
os.write = interrupting
"""


def hooked(folder: Path, code: str, **changes: str | None) -> dict[str, str]:
    (folder / "hook").mkdir(exist_ok=True)
    (folder / "hook/sitecustomize.py").write_text(code)
    path = os.pathsep.join(filter(None, (str(folder / "hook"), os.environ.get("PYTHONPATH"))))
    return environment(**{"PYTHONPATH": path, "TERM": "xterm", **changes})


def screen(sent: bytes) -> str:
    """What is left to see: a carriage return goes back to the start of the line, what follows writes over it."""
    lines = []
    for line in sent.decode().replace("\r\n", "\n").split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return "\n".join(lines)


@pytest.fixture(scope="module")
def listing() -> bytes:
    return run("cortex-scan", "--memory-root", str(SAMPLE)).stdout


SEARCH = ["cortex", "search", "loom", "--memory-root", str(SAMPLE)]


def test_long_work_is_shown_and_goes_away(tmp_path: Path, listing: bytes) -> None:
    env = hooked(tmp_path, SLOW_CLOCK)
    for argv, given in ((SEARCH, b""), (["cortex-strip"], listing), (["cortex-strip", "--jobs", "3"], listing)):
        done, sent = on_terminal(argv, env, given)
        shown = [int(part.split(b" ")[-2]) for part in sent.split(b"\r") if part.strip().endswith(b"%")]
        assert len(shown) > 3 and shown == sorted(shown) and set(shown) <= set(range(101))
        assert b"reading notes: " in sent and screen(sent) == ""
        assert (done.returncode, done.stdout) == (0, run(*argv, input=given).stdout)


def test_a_check_shows_its_notes(tmp_path: Path) -> None:
    argv = ["cortex-check", "--json", "--memory-root", str(SAMPLE)]
    done, sent = on_terminal(argv, hooked(tmp_path, SLOW_CLOCK))
    assert b"checking notes: " in sent and screen(sent) == ""
    assert (done.returncode, done.stdout) == (0, run(*argv).stdout)


def test_a_benchmark_shows_its_queries(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    for query in ("loom", "loom hook", "loom card", "loom lift"):
        label = f"cortex-benchmark label '{query}' --expect idea-open-dobby --labels {labels}"
        made = shell(label, env=environment(CORTEX_MEMORY_ROOT=str(SAMPLE)))
        assert made.returncode == 0, made
    argv = ["cortex-benchmark", "--labels", str(labels), "--memory-root", str(SAMPLE)]
    done, sent = on_terminal(argv, hooked(tmp_path, SLOW_CLOCK))
    assert done.returncode == 0 and done.stdout.count(b"\n") == 1 and json.loads(done.stdout)
    assert b"measuring queries: 75 %" in sent and screen(sent) == ""


@pytest.mark.parametrize("case", ["short work", "a dumb terminal", "no kind of terminal", "no terminal"])
def test_otherwise_nothing_is_shown(case: str, tmp_path: Path, listing: bytes) -> None:
    terms = {"a dumb terminal": "dumb", "no kind of terminal": None}
    env = hooked(tmp_path, "" if case == "short work" else SLOW_CLOCK, TERM=terms.get(case, "xterm"))
    for argv, given in ((SEARCH, b""), (["cortex-strip"], listing), (["cortex-strip", "--jobs", "2"], listing)):
        if case == "no terminal":
            done = run(*argv, input=given, env=env)
            assert (done.returncode, done.stderr) == (0, b"")
        else:
            done, sent = on_terminal(argv, env, given)
            assert done.returncode == 0 and sent.strip(b"\r ") == b""


def test_records_on_the_same_terminal_are_progress_enough(tmp_path: Path, listing: bytes) -> None:
    _, sent = on_terminal(["cortex-strip"], hooked(tmp_path, SLOW_CLOCK), listing, output_too=True)
    assert b'"kind":"seal"' in sent and b"reading notes" not in sent


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_a_failure_stands_on_a_line_of_its_own(jobs: list[str], tmp_path: Path) -> None:
    notes = {f"KNOWLEDGE/{number:02}.md": f"---\nid: {number}\ncreated: 2024-01-01\n---\n" for number in range(30)}
    root = write_corpus(tmp_path / "root", {**notes, "KNOWLEDGE/29.md": "---\ncreated: never\n---\n"})
    env = hooked(tmp_path, SLOW_CLOCK)
    done, sent = on_terminal(["cortex-strip", *jobs], env, run("cortex-scan", "--memory-root", str(root)).stdout)
    assert done.returncode == 4 and b" %" in sent
    message, *rest = screen(sent).split("\n")
    assert message.startswith("cortex-strip: integrity_error: KNOWLEDGE/29.md") and rest == [""]
    done, sent = on_terminal(["cortex", "status", "--memory-root", str(root)], env)
    assert done.returncode == 4 and b" %" in sent and screen(sent) == ""


def test_an_interrupt_takes_it_away_too(tmp_path: Path, listing: bytes) -> None:
    env = hooked(tmp_path, SLOW_CLOCK + INTERRUPT)
    for argv, given in ((SEARCH, b""), (["cortex-strip"], listing)):
        done, sent = on_terminal(argv, env, given)
        assert done.returncode == -signal.SIGINT and b" %" in sent and screen(sent) == ""


def test_it_costs_nothing_where_nobody_sees_it(listing: bytes) -> None:
    """Standard error is no terminal there."""
    assert "cortex_tools.files.progress" not in imported(*SEARCH) | imported("cortex-strip", input=listing)
