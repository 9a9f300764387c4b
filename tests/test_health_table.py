"""The table for people: 80 columns, what is wrong first, each with what to do; and where reports are kept."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from cortex_tools.evidence import findings, layout, report, table
from tests.support import BIN, environment, note, run, write_corpus
from tests.test_health_healthy import NOW, NOW_MS, SCHEMA, health, healthy, measure

LOG = "OBSERVABILITY/memory-health.jsonl"


def ailing(root: Path) -> Path:
    """A tree with a warning that is found before a critical finding."""
    healthy(root)
    (root / "OBSERVABILITY/memory-retrievals.jsonl").unlink()
    (root / "PRINCIPAL_MEMORY.md").write_text("no markers\n")
    return root


def test_it_leads_with_what_is_wrong_and_says_what_to_do(tmp_path: Path) -> None:
    done = health(ailing(tmp_path))
    text = done.stdout.decode()
    assert text.splitlines()[0] == "CRITICAL: 1 critical, 1 warn, 6 ok"
    assert text.index("markers-corrupt") < text.index("retrieval-missing") < text.index("thresholds, clock")
    flat = " ".join(text.split())
    for id in ("markers-corrupt", "retrieval-missing"):
        assert f"-> {findings.TABLE[id][1]}" in flat
    assert done.stderr == b"" and b"\x1b" not in done.stdout


def test_a_healthy_tree_says_so_in_a_few_lines(tmp_path: Path) -> None:
    text = health(healthy(tmp_path)).stdout.decode()
    assert text.splitlines()[0] == "ok: 0 critical, 0 warn, 8 ok" and len(text.splitlines()) <= 3


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_finding_fits_the_width(tmp_path: Path, width: int) -> None:
    found = layout.find(os.fsencode(healthy(tmp_path)))
    result = report.measure(found, {}, now_ms=NOW_MS)
    found.close()
    words = f"/{'very-long-folder-name/' * 8}x.jsonl holds a \x1b[31m control and 漢字 [bold]brackets[/bold]"
    result.outcomes = [
        findings.Outcome("reviewer", {}, [findings.Finding(id, words, {}) for id in findings.TABLE]),
        findings.Outcome("index", {}, []),
    ]
    text = table.render(result, width=width)
    assert all(len(line) + sum(char in "漢字" for char in line) <= min(width, 80) for line in text.splitlines())
    assert "\x1b" not in text and "[bold]brackets[/bold]" in "".join(text.split())
    assert all(id in "".join(text.split()) for id in findings.TABLE)


def test_no_table_no_rich(tmp_path: Path) -> None:
    healthy(tmp_path)
    script = (
        "import sys; from cortex_tools.tools import health\n"
        f"status = health.work(['--json', '--memory-root', {str(tmp_path)!r}])\n"
        "assert status == 0, status\n"
        "assert not {'rich', 'typer', 'pydantic', 'ijson'} & set(sys.modules), sys.modules.keys()\n"
    )
    env = environment(CORTEX_HEALTH_NOW=NOW, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env)
    assert done.returncode == 0, done.stderr


def on_terminal(root: Path, **env: str | None) -> str:
    """What cortex-health writes on a terminal."""
    ours, theirs = pty.openpty()
    settings = environment(**{"CORTEX_HEALTH_NOW": NOW, "CORTEX_HEALTH_NO_WRITE": "1", "TERM": "xterm", **env})
    with subprocess.Popen([BIN / "cortex-health", "--memory-root", root], stdout=theirs, env=settings) as process:
        os.close(theirs)
        data = b""
        try:
            while more := os.read(ours, 65536):
                data += more
        except OSError:
            pass  # the other end is closed
        process.wait(60)
    os.close(ours)
    return data.decode()


def test_colour_is_for_terminals_that_want_it(tmp_path: Path) -> None:
    root = ailing(tmp_path)
    plain = health(root).stdout.decode()
    coloured = on_terminal(root, NO_COLOR=None)
    assert "\x1b[" in coloured
    assert re.sub(r" *\r\n", "\n", re.sub(r"\x1b\[[0-9;]*m", "", coloured)) == plain
    assert on_terminal(root, NO_COLOR="1").replace("\r\n", "\n") == plain
    assert on_terminal(root, TERM="dumb", NO_COLOR=None).replace("\r\n", "\n") == plain


# Where reports are kept


def test_each_run_appends_its_report_to_the_health_log(tmp_path: Path) -> None:
    root = healthy(tmp_path)
    first = health(root, "--json", CORTEX_HEALTH_NO_WRITE=None)
    health(root, CORTEX_HEALTH_NO_WRITE="0")
    assert first.returncode == 0
    lines = (root / LOG).read_bytes().splitlines(keepends=True)
    assert len(lines) == 2 and lines[0] == first.stdout
    for line in lines:
        value = json.loads(line)
        jsonschema.validate(value, SCHEMA)
        assert value["ok_summary"][-1] == "health-log"
    health(root)
    assert len((root / LOG).read_bytes().splitlines()) == 2, "CORTEX_HEALTH_NO_WRITE=1"


@pytest.mark.parametrize("obstacle", ["folder", "link", "hard link", "fifo", "flat notes"])
def test_a_log_that_cannot_be_written_is_a_warning_and_changes_no_other_verdict(tmp_path: Path, obstacle: str) -> None:
    root = healthy(tmp_path / "root")
    outside = tmp_path / "outside"
    outside.write_text("precious\n")
    if obstacle == "folder":
        (root / LOG).mkdir()
    if obstacle == "link":
        (root / LOG).symlink_to(outside)
    if obstacle == "hard link":
        os.link(outside, root / LOG)
        os.utime(outside, (NOW_MS / 1000, NOW_MS / 1000))
    if obstacle == "fifo":
        os.mkfifo(root / LOG)
    if obstacle == "flat notes":
        (root / "KNOWLEDGE").rename(root / "notes")
    before = measure(root)
    done = health(root, "--json", CORTEX_HEALTH_NO_WRITE=None)
    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    assert done.returncode == 1
    assert value["findings"][:-1] == before["findings"] and value["ok_summary"] == before["ok_summary"]
    assert (value["findings"][-1]["id"], value["findings"][-1]["severity"]) == ("health-log-unwritable", "warn")
    assert outside.read_text() == "precious\n"


def test_the_report_can_be_written_elsewhere_too(tmp_path: Path) -> None:
    root = healthy(tmp_path / "root")
    path = tmp_path / "report.json"
    path.write_text("older and longer than what comes" * 1000)
    done = health(root, "--json", CORTEX_HEALTH_REPORT_PATH=str(path))
    value = json.loads(path.read_bytes())
    assert done.returncode == 0 and path.read_bytes() == done.stdout
    assert value["ok_summary"][-1] == "health-report"
    target = tmp_path / "target"
    target.write_text("precious\n")
    path.unlink()
    path.symlink_to(target)
    health(root, CORTEX_HEALTH_REPORT_PATH=str(path))
    assert not path.is_symlink() and target.read_text() == "precious\n"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["report.json", "root", "target"]


@pytest.mark.parametrize("path", ["missing/report.json", "folder", "folder/", "x" * 300, "/dev/full/x"])
def test_a_report_that_cannot_be_written_is_a_warning(tmp_path: Path, path: str) -> None:
    root = healthy(tmp_path / "root")
    (tmp_path / "folder").mkdir()
    env = environment(CORTEX_HEALTH_NOW=NOW, CORTEX_HEALTH_NO_WRITE="1", CORTEX_HEALTH_REPORT_PATH=path)
    done = run("cortex-health", "--json", "--memory-root", root, env=env, cwd=tmp_path)
    value = json.loads(done.stdout)
    assert done.returncode == 1 and [finding["id"] for finding in value["findings"]] == ["health-report-unwritable"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "root"]


def test_flat_notes_and_an_empty_root(tmp_path: Path) -> None:
    flat = write_corpus(tmp_path / "flat", {"a.md": note("a")})
    assert health(flat, CORTEX_HEALTH_NO_WRITE=None).returncode == 1
    assert [path.name for path in flat.iterdir()] == ["a.md"], "nothing may be put beside flat notes"
    empty = tmp_path / "empty"
    empty.mkdir()
    health(empty, CORTEX_HEALTH_NO_WRITE=None)
    assert sorted(path.name for path in empty.iterdir()) == ["KNOWLEDGE", "OBSERVABILITY"]
    assert run("cortex", "status", "--memory-root", empty).returncode == 0


@pytest.mark.parametrize("name", ["cortex-health", "cortex-log-retrieval", "cortex-benchmark"])
def test_help_and_version_of_each_executable(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0 and done.stderr == b""
    assert b"Examples:" in done.stdout and name.encode() in done.stdout
    assert run(name, "--version").stdout.startswith(f"{name} ".encode())


def test_what_nobody_expected_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    script = (
        "from cortex_tools.tools import program\n"
        "def fail(argv): raise RuntimeError('canary')\n"
        "program.run('cortex-health', fail, cannot_write=4)\n"
    )
    env = environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == b"cortex-health: internal_error: an unexpected RuntimeError stopped it\n"
