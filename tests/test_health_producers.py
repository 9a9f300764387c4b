"""Every warning has a producer that clears it: from an empty root, documented commands lead to exit 0."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.evidence import findings
from tests.support import PACKAGE, envelope, environment, run, shell, write_corpus
from tests.test_health_healthy import (
    INDEX_POLICY,
    NOW,
    REVIEWER_POLICY,
    healthy,
    ids,
    jsonl,
    measure,
    success,
    with_manifest,
    write_log,
)

PROPOSAL = {
    "type": "proposal",
    "target_file": "DEFINITIONS.md",
    "target_kind": "definition",
    "edit": "Weft: the threads that run across.",
    "rationale": "It came up in three sessions.",
    "confidence": 0.8,
}


def health(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """The executable by the real clock, writing its log."""
    return run("cortex-health", *arguments, "--memory-root", root)


def found(root: Path) -> list[str]:
    return ids(json.loads(health(root, "--json").stdout))


def propose(root: Path) -> str:
    """Queue a proposal; the answer is its ID."""
    item = json.dumps(PROPOSAL)
    done = run("cortex", "propose", item, "--adapter", "claude", "--allow-write", "--memory-root", root)
    assert done.returncode == 0, done
    id: str = envelope(done)["data"]["result"]["detail"]["id"]
    return id


# Affirmations


@pytest.mark.parametrize(
    ("name", "file", "content", "finding"),
    [
        ("no-index", "CORTEX_INDEX_POLICY.json", INDEX_POLICY, "index-evidence-missing"),
        ("no-reviewer", "CORTEX_REVIEWER_POLICY.json", REVIEWER_POLICY, "reviewer-evidence-missing"),
    ],
)
def test_affirming_turns_the_warning_green(
    tmp_path: Path, name: str, file: str, content: dict[str, Any], finding: str
) -> None:
    assert finding in found(tmp_path)
    done = health(tmp_path, "affirm", name)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == f"{tmp_path}/{file} affirms {content['policy']}\n".encode()
    marker = tmp_path / file
    assert json.loads(marker.read_bytes()) == content and stat.S_IMODE(marker.stat().st_mode) == 0o644
    value = json.loads(health(tmp_path, "--json").stdout)
    assert finding not in ids(value)
    assert value["evidence"][finding.partition("-")[0]]["state"] == content["policy"]
    before = marker.stat()
    again = health(tmp_path, "affirm", name)
    assert again.returncode == 0 and b"already affirms" in again.stdout and marker.stat() == before


def test_the_index_marker_is_the_one_that_the_package_carries(tmp_path: Path) -> None:
    health(tmp_path, "affirm", "no-index")
    assert (tmp_path / "CORTEX_INDEX_POLICY.json").read_bytes() == (PACKAGE / "CORTEX_INDEX_POLICY.json").read_bytes()


def test_in_a_lifeos_store_the_marker_lies_beside_memory(tmp_path: Path) -> None:
    memory = tmp_path / "LIFEOS/MEMORY"
    memory.mkdir(parents=True)
    assert health(memory, "affirm", "no-index").returncode == 0
    assert (tmp_path / "LIFEOS/CORTEX_INDEX_POLICY.json").is_file() and not list(memory.iterdir())
    env = environment(CORTEX_HEALTH_ROOT=str(tmp_path))
    assert run("cortex-health", "affirm", "no-reviewer", env=env).returncode == 0
    assert (tmp_path / "LIFEOS/CORTEX_REVIEWER_POLICY.json").is_file()


@pytest.mark.parametrize("kind", ["malformed", "link", "dangling link", "folder", "fifo"])
@pytest.mark.parametrize("name", ["no-index", "no-reviewer"])
def test_what_stands_in_the_markers_place_is_left_alone(tmp_path: Path, name: str, kind: str) -> None:
    root = tmp_path / "root"
    outside = write_corpus(tmp_path, {"outside.json": "precious"}) / "outside.json"
    marker = root / f"CORTEX_{name.removeprefix('no-').upper()}_POLICY.json"
    root.mkdir()
    {
        "malformed": lambda: marker.write_text("{}"),
        "link": lambda: marker.symlink_to(outside),
        "dangling link": lambda: marker.symlink_to(tmp_path / "gone"),
        "folder": marker.mkdir,
        "fifo": lambda: os.mkfifo(marker),
    }[kind]()
    before = marker.lstat()
    done = health(root, "affirm", name)
    assert (done.returncode, done.stdout) == (4, b"") and b"move it away first" in done.stderr
    assert marker.lstat().st_mode == before.st_mode and outside.read_text() == "precious"
    assert not (tmp_path / "gone").exists() and list(root.iterdir()) == [marker]


def test_what_evidence_contradicts_is_not_affirmed(tmp_path: Path) -> None:
    root = healthy(tmp_path)
    (root / "CORTEX_INDEX_POLICY.json").unlink()
    manifest = with_manifest(root)
    before = sorted(path.name for path in root.iterdir())
    done = health(root, "affirm", "no-index")
    assert done.returncode == 4 and b"there is an index manifest" in done.stderr
    manifest.unlink()
    manifest.symlink_to("gone")
    assert health(root, "affirm", "no-index").returncode == 4
    done = health(root, "affirm", "no-reviewer")
    assert done.returncode == 4 and b"there is evidence of a reviewer" in done.stderr
    (root / "OBSERVABILITY/reviewer-runs.jsonl").unlink()
    run_folder = root / "OBSERVABILITY/reviewer-runs/2026-03-10T11-59-00-000Z"
    run_folder.mkdir(parents=True)
    assert health(root, "affirm", "no-reviewer").returncode == 4
    assert sorted(path.name for path in root.iterdir()) == before
    run_folder.rmdir()
    assert health(root, "affirm", "no-reviewer").returncode == 0


# Retrieval


def test_a_logged_search_turns_the_retrieval_warnings_green(tmp_path: Path) -> None:
    def search() -> None:
        assert run("cortex-log-retrieval", "search", "loom", "--memory-root", tmp_path).returncode == 0

    healthy(tmp_path)
    log = tmp_path / "OBSERVABILITY/memory-retrievals.jsonl"
    assert "retrieval-stale" in found(tmp_path), "the row is of long ago"
    search()
    assert not any(id.startswith("retrieval") for id in found(tmp_path))
    log.unlink()
    assert "retrieval-missing" in found(tmp_path)
    search()
    assert not any(id.startswith("retrieval") for id in found(tmp_path))
    log.write_bytes(b'{"torn')
    assert "retrieval-evidence-malformed" in found(tmp_path)
    log.rename(tmp_path / "moved-away")  # what the finding says to do
    search()
    assert not any(id.startswith("retrieval") for id in found(tmp_path))


# Proposals


def test_decisions_lower_the_backlog(tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE").mkdir()
    assert "proposal-evidence-missing" in found(tmp_path)
    queued = [propose(tmp_path) for _ in range(11)]
    assert "proposal-backlog-high" in found(tmp_path)
    done = run("cortex-proposals", "reject", queued[0], "--memory-root", tmp_path)
    assert done.returncode == 0, done
    assert not any(id.startswith("proposal") for id in found(tmp_path))
    write_corpus(tmp_path, {"USER/DEFINITIONS.md": "# Definitions\n"})
    done = run("cortex-proposals", "approve", queued[1], "--memory-root", tmp_path)
    assert done.returncode == 0, done
    value = json.loads(health(tmp_path, "--json").stdout)
    assert value["evidence"]["proposals"]["pending"] == 9


def test_a_queue_whose_every_row_is_decided_is_evidence_too(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_log(tmp_path, "pending-proposals.jsonl", jsonl({"id": "p", "status": "rejected"}))
    assert measure(tmp_path)["overall"] == "ok"


# Hot memory, volume, the reviewer


def test_one_remembered_entry_heals_damaged_markers(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/.keep": "", "PRINCIPAL_MEMORY.md": "# Body\nNAME: Ves\n"})
    assert "markers-corrupt" in found(tmp_path)
    item = json.dumps({"type": "memory", "actor": "principal", "content": "RULE: plain text"})
    done = run("cortex", "remember", item, "--adapter", "claude", "--allow-write", "--memory-root", tmp_path)
    assert done.returncode == 0, done
    assert "markers-corrupt" not in found(tmp_path)


def test_logs_that_are_moved_out_or_compressed_no_longer_count(tmp_path: Path) -> None:
    healthy(tmp_path)
    old = write_log(tmp_path, "old.log", b"x")
    os.utime(old, (0, 0))
    assert ids(measure(tmp_path)) == ["observability-age-exceeded"]
    old.rename(old.with_name("old.log.gz"))
    assert measure(tmp_path)["overall"] == "ok"


def test_a_later_success_clears_a_failed_review(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_log(tmp_path, "reviewer-runs.jsonl", jsonl({"ts": NOW, "ok": False, "parse_ok": True}))
    assert ids(measure(tmp_path)) == ["reviewer-latest-failed"]
    write_log(tmp_path, "reviewer-runs.jsonl", jsonl({"ts": NOW, "ok": False, "parse_ok": True}, success()))
    assert measure(tmp_path)["overall"] == "ok"


# The documented way


PAGE = (Path(__file__).parent.parent / "docs/evidence.md").read_text()


def documented() -> str:
    """The commands of the documentation's section for an empty root."""
    section = PAGE.partition("## From an empty root to exit 0")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"^    (.+)$", section, re.MULTILINE))


def test_the_documented_commands_lead_from_an_empty_root_to_exit_0(tmp_path: Path) -> None:
    commands = documented()
    assert "cortex-health affirm no-index" in commands and commands.rstrip().endswith("cortex-health")
    env = environment(CORTEX_MEMORY_ROOT=str(tmp_path), HOME=str(tmp_path / "home"))
    assert run("cortex-health", env=env).returncode == 1
    done = shell("set -e\n" + commands, env=env)
    assert done.returncode == 0, done
    assert b"\nok: 0 critical, 0 warn, 9 ok\n" in done.stdout


def test_every_finding_and_every_remedy_is_documented() -> None:
    for id, (severity, remedy) in findings.TABLE.items():
        (row,) = re.findall(rf"^\| `{id}` \| {severity} \|.*", PAGE, re.MULTILINE)
        assert remedy in row.replace("`", ""), id
