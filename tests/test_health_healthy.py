"""A healthy tree, made by hand for the other tests of health, and the proof that it is one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.evidence import findings, layout, report
from tests.support import BIN, NEEDS_DEV_FULL, SCHEMAS, environment, note, row, run, write_corpus

NOW = "2026-03-10T12:00:00.000Z"
NOW_MS = parse_ms(NOW) or 0
RECENT = "2026-03-10T11:00:00.000Z"
SCHEMA = json.loads((SCHEMAS / "health-v1.schema.json").read_text())
CHECKS = ["thresholds", "clock", "reviewer", "retrieval", "proposals", "observability", "index", "hot-memory"]

INDEX_POLICY = {"schema": "lifeos-cortex-index-policy/v1", "policy": "no-index-v1"}
REVIEWER_POLICY = {"schema": "lifeos-cortex-reviewer-policy/v1", "policy": "no-reviewer-v1"}
HOT = "# Hot\n\n<!-- BEGIN ENTRIES -->\nNAME: Ves\nRULE: plain text\n<!-- END ENTRIES -->\n"


def success(**changes: Any) -> dict[str, Any]:
    """A valid success row of the reviewer; None removes a field."""
    fields = {
        "ts": RECENT,
        "ok": True,
        "runId": "2026-03-10T10-59-00-000Z",
        "transcript": "t.jsonl",
        "exchanges": 4,
        "inference_duration_ms": 812.5,
        "parse_ok": True,
        "dispatch_summary": summary(),
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ...}


def summary(**changes: Any) -> dict[str, Any]:
    fields = {
        "total": 3,
        "by_type": {"memory": 1, "proposal": 2},
        "succeeded": 2,
        "failed": 0,
        "failures": [],
        "skipped_guard": 1,
        "skips": [],
        "proposals_auto_applied": 1,
        "proposals_auto_apply_failed": 0,
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ...}


def skip(**changes: Any) -> dict[str, Any]:
    fields = {
        "ts": RECENT,
        "ok": True,
        "runId": "2026-03-10T10-59-00-000Z",
        "exchanges": 0,
        "inference_duration_ms": 0,
        "parse_ok": True,
        "skipped": True,
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ...}


def retrieval(**changes: Any) -> dict[str, Any]:
    fields = {"ts": RECENT, "query_hash": "ab" * 32, "returned_count": 2, "duration_ms": 12.5, **changes}
    return {name: value for name, value in fields.items() if value is not ...}


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


def write_log(root: Path, name: str, content: str | bytes) -> Path:
    """A file below OBSERVABILITY, last written at NOW."""
    path = root / "OBSERVABILITY" / name
    write_corpus(root, {f"OBSERVABILITY/{name}": content})
    os.utime(path, (NOW_MS / 1000, NOW_MS / 1000))
    return path


def healthy(root: Path) -> Path:
    """A self-contained root on which every check passes at NOW."""
    write_corpus(
        root,
        {
            "KNOWLEDGE/a.md": note("a"),
            "KNOWLEDGE/log.jsonl": row("b"),
            "CORTEX_INDEX_POLICY.json": json.dumps(INDEX_POLICY),
            "PRINCIPAL_MEMORY.md": HOT,
        },
    )
    write_log(root, "reviewer-runs.jsonl", jsonl(success()))
    write_log(root, "memory-retrievals.jsonl", jsonl(retrieval()))
    write_log(root, "pending-proposals.jsonl", jsonl({"id": "p1", "status": "pending"}))
    return root


def with_manifest(root: Path, **changes: Any) -> Path:
    """The same with an index and a manifest that belongs to it; gives the manifest's path."""
    done = run("cortex", "rebuild", "--from-canonical", "--memory-root", root)
    digest = json.loads(done.stdout)["data"]["canonical_digest"]
    write_corpus(root, {"INDEX/data/index.bin": b"index bytes"})
    manifest = {
        "schema": "lifeos-cortex-index/v1",
        "canonical_sha256": digest,
        "index_path": "data/index.bin",
        "index_sha256": hashlib.sha256(b"index bytes").hexdigest(),
        "indexed_at": RECENT,
        **changes,
    }
    path = root / "INDEX" / "index-manifest.json"
    path.write_text(json.dumps({name: value for name, value in manifest.items() if value is not ...}))
    return path


def measure(root: Path, *, corpus: bool = False, now: int = NOW_MS, **env: str) -> dict[str, Any]:
    """The report on `root` at NOW, validated against the schema that ships."""
    found = layout.find(os.fsencode(root))
    try:
        result = report.measure(found, env, corpus=corpus, now_ms=now)
    finally:
        found.close()
    value: dict[str, Any] = json.loads(result.line())
    jsonschema.validate(value, SCHEMA)
    assert result.status == {"ok": 0, "warn": 1, "critical": 2}[value["overall"]]
    for severity in ("critical", "warn"):
        assert value["counts"][severity] == sum(f["severity"] == severity for f in value["findings"])
    assert value["counts"]["ok"] == len(value["ok_summary"])
    return value


def ids(value: dict[str, Any]) -> list[str]:
    return [finding["id"] for finding in value["findings"]]


def only(value: dict[str, Any], id: str, severity: str) -> dict[str, Any]:
    """The evidence of the one finding there is; fails where there is another."""
    assert ids(value) == [id], value["findings"]
    (finding,) = value["findings"]
    assert finding["severity"] == severity == value["overall"]
    assert findings.TABLE[id][1] in finding["message"], "the message says what to do"
    evidence: dict[str, Any] = finding["evidence"]
    return evidence


def health(root: Path, *arguments: str, **env: str | None) -> subprocess.CompletedProcess[bytes]:
    """Run the executable at NOW."""
    return run(
        "cortex-health",
        "--memory-root",
        root,
        *arguments,
        env=environment(**{"CORTEX_HEALTH_NOW": NOW, "CORTEX_HEALTH_NO_WRITE": "1", **env}),
    )


def test_the_healthy_tree_has_no_finding(tmp_path: Path) -> None:
    value = measure(healthy(tmp_path))
    assert value["overall"] == "ok" and value["findings"] == []
    assert value["ok_summary"] == CHECKS
    assert set(value["evidence"]) == set(CHECKS)
    assert value["ts"] == NOW
    assert value["thresholds"] == {
        "reviewerStaleMs": 604_800_000,
        "reviewerRunGraceMs": 600_000,
        "retrievalStaleMs": 86_400_000,
        "proposalBacklog": 10,
        "observabilityMaxBytes": 268_435_456,
        "observabilityMaxAgeMs": 2_592_000_000,
        "indexStaleMs": 604_800_000,
    }


def test_the_executable_says_the_same(tmp_path: Path) -> None:
    done = health(healthy(tmp_path), "--json")
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.endswith(b"\n") and done.stdout.count(b"\n") == 1
    assert json.loads(done.stdout) == measure(tmp_path) | {
        "evidence": measure(tmp_path)["evidence"] | {"clock": {"source": "CORTEX_HEALTH_NOW"}}
    }
    assert not (tmp_path / "OBSERVABILITY/memory-health.jsonl").exists()


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_status_is_the_overall_verdict(tmp_path: Path, status: int) -> None:
    root = healthy(tmp_path)
    if status == 1:
        (root / "OBSERVABILITY/memory-retrievals.jsonl").unlink()
    if status == 2:
        (root / "PRINCIPAL_MEMORY.md").write_text("no markers\n")
    done = health(root)
    assert done.returncode == status and done.stderr == b""
    assert done.stdout.startswith({0: b"ok:", 1: b"WARN:", 2: b"CRITICAL:"}[status])


def test_a_lifeos_store_keeps_its_markers_and_hot_files_beside_memory(tmp_path: Path) -> None:
    memory = tmp_path / "LIFEOS" / "MEMORY"
    healthy(memory)
    (memory / "PRINCIPAL_MEMORY.md").unlink()
    assert ids(measure(memory)) == ["index-evidence-missing"], "a marker inside MEMORY is not beside it"
    (memory / "CORTEX_INDEX_POLICY.json").rename(memory.parent / "CORTEX_INDEX_POLICY.json")
    assert measure(memory)["overall"] == "ok"
    write_corpus(tmp_path, {"LIFEOS/USER/PRINCIPAL/PRINCIPAL_MEMORY.md": "no markers"})
    write_corpus(tmp_path, {"LIFEOS/USER/DIGITAL_ASSISTANT/DA_MEMORY.md": "no markers"})
    assert ids(measure(memory)) == ["markers-corrupt", "markers-corrupt"]


def test_the_folder_that_holds_the_store_can_be_given(tmp_path: Path) -> None:
    healthy(tmp_path / "LIFEOS" / "MEMORY")
    done = run("cortex-health", "--json", env=environment(CORTEX_HEALTH_ROOT=str(tmp_path), CORTEX_HEALTH_NOW=NOW))
    value = json.loads(done.stdout)
    assert ids(value) == ["index-evidence-missing"], "its marker is beside MEMORY, where there is none"
    assert (tmp_path / "LIFEOS/MEMORY/OBSERVABILITY/memory-health.jsonl").exists()
    other = healthy(tmp_path / "other")
    done = health(other, "--json", CORTEX_HEALTH_ROOT=str(tmp_path))
    assert json.loads(done.stdout)["overall"] == "ok", "what is asked for on the command line comes first"


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["--jsn"], "--jsn"),
        (["--json", "--json"], "--json was given twice"),
        (["affirm"], "affirm no-index"),
        (["confirm", "no-index"], "affirm no-index"),
        (["affirm", "no-brain"], "no-index, no-reviewer"),
        (["affirm", "no-index", "no-reviewer"], "3 given"),
        (["affirm", "no-index", "--json"], "--json has no meaning"),
        (["affirm", "no-index", "--corpus"], "--corpus has no meaning"),
        (["--memory-root"], "--memory-root needs a value"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, arguments: list[str], mentions: str) -> None:
    given = [] if arguments == ["--memory-root"] else ["--memory-root", str(tmp_path)]
    done = run("cortex-health", *given, *arguments)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.startswith(b"cortex-health: invalid_input: ") and mentions in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1 and not list(tmp_path.iterdir())


def test_a_missing_root_is_no_verdict(tmp_path: Path) -> None:
    done = run("cortex-health", "--json", "--memory-root", tmp_path / "gone")
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"gone is missing" in done.stderr


@NEEDS_DEV_FULL
def test_an_output_that_cannot_be_written_is_no_verdict(tmp_path: Path) -> None:
    healthy(tmp_path)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [BIN / "cortex-health", "--memory-root", tmp_path, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    assert done.returncode == 4 and b"standard output cannot be written" in done.stderr


def test_every_finding_is_in_the_schema() -> None:
    listed = SCHEMA["properties"]["findings"]["items"]["properties"]["id"]["enum"]
    assert listed == list(findings.TABLE)
