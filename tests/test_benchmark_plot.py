"""cortex-benchmark plot: an SVG over reports, and one sentence where the plotting library is not there."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support import BIN, environment, note, run, write_corpus
from tests.test_benchmark_labels import jsonl, label

plotting = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib, the plot extra, is not installed"
)


@pytest.fixture
def reports(tmp_path: Path) -> list[Path]:
    """Two reports, of two days, given in the wrong order."""
    root = write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": note("a"), "labels.jsonl": jsonl(label("q", "loom"))})
    done = run("cortex-benchmark", "--labels", root / "labels.jsonl", "--memory-root", root)
    value = json.loads(done.stdout)
    paths = []
    for day in ("2026-03-11", "2026-03-10"):
        path = tmp_path / f"{day}.json"
        path.write_text(json.dumps({**value, "generated_at": f"{day}T12:00:00.000Z"}))
        paths.append(path)
    return paths


@plotting
def test_the_svg_shows_the_three_measures_over_the_reports(reports: list[Path]) -> None:
    done = run("cortex-benchmark", "plot", *reports)
    assert done.returncode == 0 and done.stderr == b"", done
    root = ElementTree.fromstring(done.stdout)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for word in ("recall at 5", "MRR", "injected tokens", "bm25-baseline", "progressive"):
        assert word in words, words
    days = [word for word in words if word and word.startswith("2026-")]
    assert days == ["2026-03-10", "2026-03-11"], "oldest first, however they were given"
    assert run("cortex-benchmark", "plot", *reversed(reports)).stdout == done.stdout, "reproducible"


def test_without_the_library_one_sentence_says_how_to_get_it(reports: list[Path]) -> None:
    hide = "import sys; sys.modules['matplotlib'] = None; from cortex_tools.tools.benchmark import work; "
    env = environment(PYTHONPATH=":".join(sys.path))
    command = [sys.executable, "-c", hide + f"sys.exit(work(['plot', {str(reports[0])!r}]))"]
    done = subprocess.run(command, capture_output=True, env=env)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == (
        b"cortex-benchmark plot: invalid_input: plotting needs matplotlib; "
        b"get it with: pip install 'cortex-tools[plot]'\n"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is missing"),
        ("", "is no report"),
        ("{}", "is no report"),
        ("[]", "is no report"),
        ('{"schema":"lifeos-cortex-benchmark/v1","ok":false,"error":{}}', "is no report"),
        ('{"schema":"lifeos-cortex-benchmark/v1","generated_at":"2026-03-10","configs":[]}', "is no report"),
        ('{"schema":"lifeos-cortex-benchmark/v1","generated_at":"2026-03-10","configs":[{"name":"x"}]}', "no report"),
        (" " * (2**20 + 1), "more than 1048576 bytes"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_report_is_refused_by_name(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "r.json").write_text(content)
    done = run("cortex-benchmark", "plot", tmp_path / "r.json")
    assert (done.returncode, done.stdout) == (4, b"")
    assert f"{tmp_path}/r.json" in done.stderr.decode() and said in done.stderr.decode()


def test_reports_are_required_and_a_terminal_is_refused(reports: list[Path]) -> None:
    done = run("cortex-benchmark", "plot")
    assert done.returncode == 4 and b"REPORT, 0 given" in done.stderr
    ours, theirs = pty.openpty()
    command = [BIN / "cortex-benchmark", "plot", reports[0]]
    onto = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=environment())
    os.close(theirs)
    os.close(ours)
    assert onto.returncode == 4 and b"redirect it" in onto.stderr
