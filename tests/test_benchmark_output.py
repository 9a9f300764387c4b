"""cortex-benchmark from the shell: refusals, --output, and nothing written where nothing may be."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.evidence.benchmark import output
from cortex_tools.files.root import pin_root
from tests.support import note, run, write_corpus
from tests.test_benchmark_labels import jsonl, label
from tests.test_benchmark_measure import SCHEMA


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {f"KNOWLEDGE/{id}.md": note(id, "loom " + id) for id in "abc"}
    files["BENCHMARKS/labels.jsonl"] = jsonl(label("q", "loom", ["a"]))
    return write_corpus(tmp_path / "root", files)


def benchmark(root: Path, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return run(
        "cortex-benchmark",
        "--labels",
        root / "BENCHMARKS/labels.jsonl",
        "--memory-root",
        root,
        *arguments,
        **options,
    )


def listing(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def refusal(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """The error of a failure, which is all there is on standard output."""
    assert done.returncode == 4 and done.stderr == b"" and done.stdout.count(b"\n") == 1, done
    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    assert list(value) == ["schema", "ok", "error"] and value["ok"] is False
    error: dict[str, Any] = value["error"]
    return error


@pytest.mark.parametrize(
    "name",
    [
        "cortex-benchmark-v1-20260310.json",
        "cortex-benchmark-v12-A.b_c-d.json",
        "deeper/cortex-benchmark-v1-x.json",
        "deeper/../cortex-benchmark-v1-x.json",
    ],
)
def test_a_report_is_kept_and_printed_alike(root: Path, name: str) -> None:
    (root / "BENCHMARKS/deeper").mkdir()
    done = benchmark(root, "--output", root / "BENCHMARKS" / name)
    assert done.returncode == 0 and done.stderr == b""
    kept = Path(os.path.normpath(root / "BENCHMARKS" / name))
    assert kept.read_bytes() == done.stdout
    jsonschema.validate(json.loads(done.stdout), SCHEMA)
    assert [path for path in kept.parent.iterdir() if path.name.startswith(".")] == []


def test_any_alias_of_the_root_will_do(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert benchmark(root, "--output", tmp_path / "alias/BENCHMARKS/cortex-benchmark-v1-a.json").returncode == 0
    assert benchmark(tmp_path / "alias", "--output", root / "BENCHMARKS/cortex-benchmark-v1-b.json").returncode == 0
    done = benchmark(root, "--output", "BENCHMARKS/cortex-benchmark-v1-c.json", cwd=root)
    assert done.returncode == 0
    assert len(list((root / "BENCHMARKS").glob("cortex-benchmark-v1-?.json"))) == 3


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/tmp/cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/KNOWLEDGE/cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/KNOWLEDGE/BENCHMARKS/cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/BENCHMARKS/../cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/BENCHMARKS/../../cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/BENCHMARKSX/cortex-benchmark-v1-a.json", "does not lie below BENCHMARKS"),
        ("{root}/BENCHMARKS", "does not lie below BENCHMARKS"),
        ("{root}/BENCHMARKS/missing/cortex-benchmark-v1-a.json", "its folder is missing"),
        ("{root}/BENCHMARKS/labels.jsonl/cortex-benchmark-v1-a.json", "its folder is no folder"),
        ("{root}/BENCHMARKS/report.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-a.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v-a.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v1.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v1-a.jsonl", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v1-a b.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v1-ä.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v٣-a.json", "must be named"),
        ("{root}/BENCHMARKS/cortex-benchmark-v1-a.json\n", "must be named"),
        ("{root}/BENCHMARKS/x-cortex-benchmark-v1-a.json", "must be named"),
        ("{root}/BENCHMARKS/labels.jsonl", "must be named"),
    ],
)
def test_a_place_that_is_not_allowed_is_refused_and_nothing_written(root: Path, place: str, said: str) -> None:
    (root / "BENCHMARKSX").mkdir()
    (root / "KNOWLEDGE/BENCHMARKS").mkdir()
    before = listing(root.parent)
    error = refusal(benchmark(root, "--output", place.format(root=root), cwd=root.parent))
    assert error["code"] == "invalid_input" and "--output" in error["message"] and said in error["message"]
    assert listing(root.parent) == before and not Path("/tmp/cortex-benchmark-v1-a.json").exists()


def test_no_link_below_the_root_is_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "BENCHMARKS/link").symlink_to(outside)
    (root / "BENCHMARKS/inner").symlink_to(root / "BENCHMARKS")
    (root / "BENCHMARKS/cortex-benchmark-v1-dangling.json").symlink_to(outside / "report.json")
    before = listing(tmp_path)
    for place in ("link/cortex-benchmark-v1-a.json", "inner/cortex-benchmark-v1-a.json"):
        assert "is a symbolic link" in refusal(benchmark(root, "--output", root / "BENCHMARKS" / place))["message"]
    done = benchmark(root, "--output", root / "BENCHMARKS/cortex-benchmark-v1-dangling.json")
    assert "exists" in refusal(done)["message"]
    (root / "BENCHMARKS").rename(root / "real")
    (root / "BENCHMARKS").symlink_to("real")
    done = benchmark(root, "--output", root / "BENCHMARKS/cortex-benchmark-v1-a.json")
    assert "is a symbolic link" in refusal(done)["message"]
    (root / "BENCHMARKS").unlink()
    (root / "real").rename(root / "BENCHMARKS")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("kind", ["report", "empty", "folder", "fifo"])
def test_nothing_is_overwritten(root: Path, kind: str) -> None:
    path = root / "BENCHMARKS/cortex-benchmark-v1-a.json"
    {
        "report": lambda: path.write_text("precious"),
        "empty": path.touch,
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    before = path.lstat()
    assert "exists; reports are never overwritten" in refusal(benchmark(root, "--output", path))["message"]
    assert path.lstat() == before or kind == "report"
    assert kind != "report" or path.read_text() == "precious"


def test_a_report_that_appears_meanwhile_is_not_overwritten_either(root: Path) -> None:
    path = root / "BENCHMARKS/cortex-benchmark-v1-a.json"
    pinned = pin_root(os.fsencode(root))
    kept = output.reserve(pinned, str(path))
    path.write_text("precious")
    with pytest.raises(CortexError, match="never overwritten"):
        kept.write(b"ours")
    kept.close()
    pinned.close()
    assert path.read_text() == "precious" and listing(root / "BENCHMARKS") == [path.name, "labels.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], "invalid_input", "--labels is required"),
        (["--labels"], "invalid_input", "--labels needs a value"),
        (["--labels", "x", "--labels", "y"], "invalid_input", "--labels was given twice"),
        (["--label", "x"], "invalid_input", "--label is not an option"),
        (["more", "--labels", "x"], "invalid_input", "1 given"),
        (["--labels", "gone.jsonl"], "invalid_input", "gone.jsonl is missing"),
        (["--labels", "labels.jsonl", "--memory-root", "gone"], "integrity_error", "gone is missing"),
        (["--labels", "bad.jsonl"], "invalid_input", "bad.jsonl:2: not one valid JSON value"),
        (["--labels", "lacking.jsonl"], "invalid_input", "lacking.jsonl:1: the corpus has no record gone"),
    ],
)
def test_refusals_are_reports_of_failure(root: Path, arguments: list[str], code: str, said: str) -> None:
    folder = root / "BENCHMARKS"
    write_corpus(folder, {"bad.jsonl": jsonl(label("q", "loom", ["a"])) + b"{\n"})
    write_corpus(folder, {"lacking.jsonl": jsonl(label("q", "loom", ["gone"]))})
    given = [] if "--memory-root" in arguments else ["--memory-root", str(root)]
    error = refusal(run("cortex-benchmark", *arguments, *given, cwd=folder))
    assert error["code"] == code and said in error["message"]


def test_an_unsound_corpus_is_a_failure_with_its_place_and_no_text(root: Path) -> None:
    write_corpus(root, {"KNOWLEDGE/bad.jsonl": "canary {\n"})
    error = refusal(benchmark(root))
    assert error["code"] == "integrity_error" and "bad.jsonl:1" in error["message"] and "canary" not in str(error)


def test_the_private_text_of_notes_is_in_no_report(root: Path) -> None:
    write_corpus(root, {"KNOWLEDGE/secret.md": note("secret", "loom <private>canary</private> open words")})
    done = benchmark(root)
    assert done.returncode == 0 and b"canary" not in done.stdout and b"open words" not in done.stdout
