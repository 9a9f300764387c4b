"""cortex-benchmark label: labels from live searches that the benchmark takes as they are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.tools.benchmark import spread
from tests.support import environment, note, run, shell, write_corpus
from tests.test_benchmark_measure import SCHEMA


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {f"KNOWLEDGE/n{n}.md": note(f"n{n}", "loom" + " pad" * n) for n in range(1, 8)}
    return write_corpus(tmp_path / "root", files)


def make(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return run("cortex-benchmark", "label", *arguments, "--memory-root", root)


def row(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n") == 1, done
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def refused(done: subprocess.CompletedProcess[bytes], said: str) -> None:
    """Nothing on standard output, which may be appended to a file of labels."""
    assert (done.returncode, done.stdout) == (4, b""), done
    assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr
    assert done.stderr.startswith(b"cortex-benchmark label: ")


def test_a_label_records_the_search_it_came_from(root: Path) -> None:
    value = row(make(root, "loom", "--expect", "n2", "n1", "--order", "n1", "n2", "--false", "n7"))
    assert list(value) == ["id", "query", "expected_ids", "temporal_expected_order", "false_ids", "provenance"]
    assert (value["query"], value["expected_ids"], value["temporal_expected_order"], value["false_ids"]) == (
        "loom",
        ["n2", "n1"],
        ["n1", "n2"],
        ["n7"],
    )
    execution = value["provenance"]["query_execution"]
    done = run(*execution["command"])
    assert [card["id"] for card in json.loads(done.stdout)["data"]["items"]] == execution["returned_ids"]
    assert execution["returned_ids"] == [f"n{n}" for n in range(1, 8)]
    assert value["provenance"]["expected_ids_verification"]["verified_ids"] == ["n2", "n1"]


def test_from_a_corpus_to_a_report(root: Path) -> None:
    script = """
        cortex-benchmark label "loom" --expect n1 n2 >> labels.jsonl &&
        cortex-benchmark label "pad" --expect n7 --false n1 >> labels.jsonl &&
        cortex-benchmark label "loom pad" --expect n3 --labels labels.jsonl &&
        mkdir -p "$CORTEX_MEMORY_ROOT/BENCHMARKS" &&
        cortex-benchmark --labels labels.jsonl --output "$CORTEX_MEMORY_ROOT/BENCHMARKS/cortex-benchmark-v1-a.json"
    """
    done = shell(script, env=environment(CORTEX_MEMORY_ROOT=str(root)), cwd=root.parent)
    assert done.returncode == 0, done
    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    assert value["labels"] == 3
    assert (root / "BENCHMARKS/cortex-benchmark-v1-a.json").read_bytes() == done.stdout


def test_an_id_that_was_not_returned_is_refused(root: Path) -> None:
    write_corpus(root, {"KNOWLEDGE/far.md": note("far", "nothing of it")})
    refused(make(root, "loom", "--expect", "n1", "far"), "did not return far")
    refused(make(root, "loom", "--expect", "gone"), "did not return gone")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "exactly one QUERY, 0 given"),
        (("loom",), "--expect is required"),
        (("loom", "pad", "--expect", "n1"), "exactly one QUERY, 2 given"),
        (("--expect", "n1", "loom"), "exactly one QUERY, 0 given"),
        (("loom", "--expect"), "--expect needs a value"),
        (("loom", "--expect", ""), "--expect needs a value"),
        (("loom", "--expect", "n1", "n1"), "expected_ids holds an ID twice"),
        (("loom", "--expect", "n1", "--false", "n1"), "it can only be one of them"),
        (("loom", "--expect", "n1", "--id", "x" * 257), "1 to 256 characters"),
        (("…", "--expect", "n1"), "no term"),
        (("x " * 65, "--expect", "n1"), "65 terms"),
        (("loom", "--expect", "n1", "--output", "x"), "--output is not an option"),
    ],
)
def test_bad_arguments_are_refused(root: Path, arguments: tuple[str, ...], said: str) -> None:
    refused(make(root, *arguments), said)


def test_a_failing_search_makes_no_label(root: Path) -> None:
    write_corpus(root, {"KNOWLEDGE/bad.jsonl": "canary {\n"})
    done = make(root, "loom", "--expect", "n1")
    refused(done, "bad.jsonl:1")
    assert b"canary" not in done.stderr


def test_each_label_has_an_id_of_its_own(root: Path) -> None:
    path = root / "labels.jsonl"
    for _ in range(3):
        done = make(root, "Loom, pad!", "--expect", "n1", "--labels", path)
        assert (done.returncode, done.stdout) == (0, b"") and b"one label added" in done.stderr
    ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert ids[0].startswith("loom-pad-") and ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]
    before = path.read_bytes()
    refused(make(root, "loom", "--expect", "n1", "--id", ids[0], "--labels", path), "is taken by another label")
    assert path.read_bytes() == before
    assert row(make(root, "loom", "--expect", "n1", "--id", "mine"))["id"] == "mine"


def test_a_file_is_only_added_to_when_it_is_sound(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b"{torn\n")
    refused(make(root, "loom", "--expect", "n1", "--labels", path), "labels.jsonl:1: not one valid JSON")
    assert path.read_bytes() == b"{torn\n"
    good = make(root, "loom", "--expect", "n1").stdout.rstrip()
    path.write_bytes(good)  # without its line feed
    assert make(root, "pad", "--expect", "n1", "--labels", path).returncode == 0
    assert len(path.read_bytes().splitlines()) == 2
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    path.unlink()
    path.symlink_to(outside)
    refused(make(root, "loom", "--expect", "n1", "--labels", path), "is a symbolic link")
    assert outside.read_bytes() == b""
    refused(make(root, "loom", "--expect", "n1", "--labels", tmp_path / "gone/labels.jsonl"), "cannot be written")


@pytest.mark.parametrize(
    ("notes", "labels", "note_too"),
    [
        ("", "BENCHMARKS/l.jsonl", True),
        ("", "l.jsonl", True),
        ("", "_l.jsonl", False),
        ("", ".b/l.jsonl", False),
        ("", "l.txt", False),
        ("", "../l.jsonl", False),
        ("KNOWLEDGE/", "BENCHMARKS/l.jsonl", False),
        ("KNOWLEDGE/", "KNOWLEDGE/l.jsonl", True),
        ("KNOWLEDGE/", "L_MEMORY.md", True),
        ("MEMORY/KNOWLEDGE/", "l.jsonl", False),
        ("MEMORY/KNOWLEDGE/", "MEMORY/KNOWLEDGE/b/l.jsonl", True),
    ],
)
def test_no_file_of_labels_becomes_a_note(tmp_path: Path, notes: str, labels: str, note_too: bool) -> None:
    root = write_corpus(tmp_path / "root", {f"{notes}n1.md": note("n1", "loom")})
    (root / labels).parent.mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(root)
    for way in (root, tmp_path / "link"):
        done = make(root, "loom", "--expect", "n1", "--labels", way / labels)
        if note_too:
            refused(done, "move the notes into it")
        else:
            assert done.returncode == 0, done
    assert (root / labels).exists() is not note_too
    assert run("cortex", "status", "--memory-root", root).returncode == 0


def test_values_after_an_option_are_spread() -> None:
    given = ["q", "--expect", "a", "b", "--id", "x", "--false", "c", "--expect", "d"]
    assert spread(given, ("--expect", "--false")) == [
        *("q", "--expect", "a", "--expect", "b", "--id", "x", "--false", "c", "--expect", "d")
    ]
