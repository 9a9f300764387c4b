"""cortex-log-retrieval: the search's own answer and status, and one row that never holds the query."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract import limits
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.evidence import appending, retrieval, retrieval_log
from cortex_tools.files.root import pin_root
from tests.support import envelope, environment, failure, note, run, write_corpus

LOG = "OBSERVABILITY/memory-retrievals.jsonl"
KEY = "OBSERVABILITY/.retrieval-key"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_corpus(
        tmp_path, {f"KNOWLEDGE/{name}.md": note(name, "canary loom " * n) for n, name in enumerate("abc", 1)}
    )


def log(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return run("cortex-log-retrieval", "search", *arguments, "--memory-root", root)


def rows(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / LOG).read_text().splitlines()]


def test_the_answer_is_that_of_the_search_and_a_row_tells_of_it(root: Path) -> None:
    arguments = ["search", "Canary loom", "--page-size", "2", "--memory-root", str(root)]
    before = time.time_ns() // 1_000_000
    done = run("cortex-log-retrieval", *arguments)
    plain = run("cortex", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, b"")
    (row,) = rows(root)
    assert list(row) == ["ts", "query_hash", "returned_count", "duration_ms", "top_score"]
    assert row["returned_count"] == 2 and row["top_score"] == envelope(plain)["data"]["items"][0]["score"] > 0
    assert before <= (parse_ms(row["ts"]) or 0) <= time.time_ns() // 1_000_000
    assert row["duration_ms"] > 0 and retrieval.row_ms(row) == parse_ms(row["ts"])
    everything = b"".join(path.read_bytes() for path in (root / "OBSERVABILITY").iterdir())
    assert b"anary" not in everything and b"loom" not in everything


def test_a_search_that_finds_nothing_is_a_retrieval_too(root: Path) -> None:
    assert log(root, "zebra").returncode == 0
    (row,) = rows(root)
    assert row["returned_count"] == 0 and "top_score" not in row
    assert retrieval.row_ms(row) is not None


def test_equal_queries_have_equal_hashes_and_another_root_has_another_key(root: Path, tmp_path: Path) -> None:
    for query in ("loom", "loom", "Loom"):
        assert log(root, query).returncode == 0
    first, second, third = (row["query_hash"] for row in rows(root))
    assert first == second != third
    other = write_corpus(tmp_path / "other", {"KNOWLEDGE/a.md": note("a")})
    log(other, "loom")
    assert rows(other)[0]["query_hash"] != first
    assert stat.S_IMODE((root / KEY).stat().st_mode) == 0o600
    secret = bytes.fromhex((root / KEY).read_text())
    assert len(secret) == 32 and retrieval_log.query_hash(secret, "loom") == first


def test_failed_searches_keep_their_status_and_leave_no_row(root: Path) -> None:
    failure(log(root, "..."), 4, "invalid_input", "no term")
    failure(log(root, "loom", "--expand", "gone"), 3, "not_found")
    failure(log(root, "loom", "--nope"), 4, "invalid_input", "--nope")
    write_corpus(root, {"KNOWLEDGE/bad.jsonl": "{\n"})
    failure(log(root, "loom"), 4, "integrity_error", "bad.jsonl:1")
    assert not (root / "OBSERVABILITY").exists()


@pytest.mark.parametrize("arguments", [[], ["status"], ["get", "a"], ["loom"], ["--memory-root", "x"]])
def test_only_searches_are_run(arguments: list[str]) -> None:
    done = run("cortex-log-retrieval", *arguments)
    failure(done, 4, "invalid_input", "cortex-log-retrieval search QUERY")
    assert envelope(done)["command"] == (arguments[0] if arguments else "")


def test_the_root_may_come_from_the_environment(root: Path) -> None:
    done = run("cortex-log-retrieval", "search", "loom", env=environment(CORTEX_MEMORY_ROOT=str(root)))
    assert done.returncode == 0 and len(rows(root)) == 1


def test_an_empty_root_gets_a_knowledge_folder_first_so_that_the_log_is_no_note(tmp_path: Path) -> None:
    assert log(tmp_path, "loom").returncode == 0
    assert (tmp_path / "KNOWLEDGE").is_dir() and len(rows(tmp_path)) == 1
    assert log(tmp_path, "loom").returncode == 0


def test_beside_flat_notes_nothing_is_written_and_it_is_said(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"flat.md": note("flat")})
    done = log(tmp_path, "loom")
    assert done.returncode == 0 and envelope(done)["data"]["total"] == 1
    assert b"answered but not recorded" in done.stderr and b"move them into it" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["flat.md"]


@pytest.mark.parametrize("tool", [("cortex-health",), ("cortex-log-retrieval", "search", "loom")])
def test_a_note_below_observability_alone_stays_in_the_corpus(tmp_path: Path, tool: tuple[str, ...]) -> None:
    write_corpus(tmp_path, {"OBSERVABILITY/f.md": note("f", "loom")})
    before = envelope(run("cortex", "status", "--memory-root", tmp_path))
    run(*tool, "--memory-root", tmp_path, env=environment(CORTEX_HEALTH_NO_WRITE=None))
    assert envelope(run("cortex", "status", "--memory-root", tmp_path)) == before
    assert before["data"]["canonical"]["records"] == 1
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["OBSERVABILITY", "OBSERVABILITY/f.md"]


def test_notes_below_memory_knowledge_are_not_disturbed(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"MEMORY/KNOWLEDGE/a.md": note("a")})
    assert log(tmp_path, "loom").stderr == b"" and len(rows(tmp_path)) == 1
    assert envelope(run("cortex", "status", "--memory-root", tmp_path))["data"]["canonical"]["records"] == 1


def test_a_torn_last_line_is_ended_never_overwritten(root: Path) -> None:
    write_corpus(root, {LOG: b'{"ts":"2026'})
    log(root, "loom")
    torn, row = (root / LOG).read_bytes().splitlines()
    assert torn == b'{"ts":"2026' and retrieval.row_ms(json.loads(row)) is not None


def outside_is_untouched(root: Path, outside: Path) -> None:
    before = outside.read_bytes()
    done = log(root, "loom")
    assert done.returncode == 0 and envelope(done)["ok"], "the search is answered all the same"
    assert b"answered but not recorded" in done.stderr and done.stderr.count(b"\n") == 1
    assert outside.read_bytes() == before


def test_no_link_is_followed_and_no_second_name_of_a_file_written(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious\n")
    (root / "OBSERVABILITY").mkdir()
    (root / LOG).symlink_to(outside)
    outside_is_untouched(root, outside)
    (root / LOG).unlink()
    os.link(outside, root / LOG)
    outside_is_untouched(root, outside)
    (root / LOG).unlink()
    os.mkfifo(root / LOG)
    outside_is_untouched(root, outside)
    (root / LOG).unlink()
    assert not (root / KEY).exists(), "what a refused write made is taken back"
    outside.chmod(0o600)
    (root / KEY).symlink_to(outside)
    outside_is_untouched(root, outside)
    assert not (root / LOG).exists()
    folder = root / "OBSERVABILITY"
    (root / KEY).unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    outside_is_untouched(root, outside)


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("0" * 64, 0o644, b"set its mode to 600"),
        ("0" * 62, 0o600, b"32 bytes in hex"),
        ("x" * 64, 0o600, b"32 bytes in hex"),
        ("", 0o600, b"32 bytes in hex"),
        ("0" * 4096, 0o600, b"more than 128 bytes"),
    ],
)
def test_a_key_that_is_open_to_others_or_damaged_is_not_used(root: Path, content: str, mode: int, said: bytes) -> None:
    write_corpus(root, {KEY: content})
    (root / KEY).chmod(mode)
    done = log(root, "loom")
    assert done.returncode == 0 and said in done.stderr
    assert not (root / LOG).exists()


def test_many_at_once_share_one_key_and_lose_no_row(root: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: log(root, "loom"), range(16)))
    assert all(one.returncode == 0 and one.stderr == b"" for one in done)
    assert len(rows(root)) == 16 and len({row["query_hash"] for row in rows(root)}) == 1
    assert sorted(path.name for path in (root / "OBSERVABILITY").iterdir()) == [
        ".retrieval-key",
        LOG.rpartition("/")[2],
    ]


def test_a_lock_that_is_never_given_up_is_said(root: Path, monkeypatch: Any) -> None:
    import fcntl

    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.05)
    (root / "OBSERVABILITY").mkdir()
    held = os.open(root / "OBSERVABILITY", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    pinned = pin_root(os.fsencode(root))
    try:
        with pytest.raises(appending.CannotAppend, match="Lock held: OBSERVABILITY "):
            appending.append(pinned, LOG, b"{}\n")
    finally:
        pinned.close()
        os.close(held)
    assert not (root / LOG).exists()
