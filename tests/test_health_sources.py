"""Each source of evidence in every bad state: a finding, bounded memory, no crash, no hang."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.evidence import reading, report
from tests.support import BIN, environment, note, write_corpus
from tests.test_health_healthy import (
    HOT,
    NOW,
    REVIEWER_POLICY,
    healthy,
    ids,
    jsonl,
    measure,
    only,
    retrieval,
    with_manifest,
)

# Of each file of evidence: its path, the finding for what cannot be read, and for what is empty or torn.
REVIEWER = ("OBSERVABILITY/reviewer-runs.jsonl", "reviewer-evidence-invalid", "reviewer-latest-parse-failed")
RETRIEVAL = ("OBSERVABILITY/memory-retrievals.jsonl", "retrieval-evidence-malformed", "retrieval-evidence-malformed")
QUEUE = ("OBSERVABILITY/pending-proposals.jsonl", "proposal-evidence-malformed", "proposal-evidence-malformed")
INDEX_POLICY = ("CORTEX_INDEX_POLICY.json", "index-manifest-invalid", "index-manifest-invalid")
REVIEWER_MARKER = ("CORTEX_REVIEWER_POLICY.json", "reviewer-evidence-invalid", "reviewer-evidence-invalid")
MANIFEST = ("INDEX/index-manifest.json", "index-manifest-invalid", "index-manifest-invalid")
INDEX = ("INDEX/data/index.bin", "index-manifest-invalid", "index-integrity-mismatch")
HOT_FILE = ("PRINCIPAL_MEMORY.md", "hot-memory-unreadable", "markers-corrupt")
SOURCES = [REVIEWER, RETRIEVAL, QUEUE, INDEX_POLICY, REVIEWER_MARKER, MANIFEST, INDEX, HOT_FILE]
LOGS = [REVIEWER, RETRIEVAL, QUEUE]
EMPTY = {REVIEWER: "reviewer-evidence-missing", RETRIEVAL: "retrieval-missing", QUEUE: "proposal-evidence-missing"}

Source = tuple[str, str, str]


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """A read that hangs on a FIFO fails its test instead of stopping all of them."""

    def give_up(*_: Any) -> None:
        pytest.fail("it hangs")  # no OSError, which the code under test would take for an unreadable file

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def by_path(source: Any) -> str:
    return str(source[0].rpartition("/")[2])


def full(root: Path, source: Source) -> Path:
    """A healthy tree in which `source` exists; gives the path of it."""
    healthy(root)
    if source in (MANIFEST, INDEX):
        with_manifest(root)
    if source == REVIEWER_MARKER:
        (root / "OBSERVABILITY/reviewer-runs.jsonl").unlink()
        (root / source[0]).write_text(json.dumps(REVIEWER_POLICY))
    assert measure(root)["overall"] == "ok"
    return root / source[0]


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


def as_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere")


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as unix:
        before = os.getcwd()
        os.chdir(path.parent)  # the name of a socket must be short
        try:
            unix.bind(path.name)
        finally:
            os.chdir(before)


@pytest.mark.parametrize("change", [as_folder, as_link, as_dangling_link, as_fifo, as_socket])
@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_what_is_no_regular_file_is_a_finding(tmp_path: Path, source: Source, change: Callable[[Path], None]) -> None:
    change(full(tmp_path, source))
    value = measure(tmp_path)
    assert source[1] in ids(value)
    assert set(ids(value)) <= {source[1], "observability-evidence-unreadable"}
    if source in LOGS and change is not as_folder:  # it is a log that cannot be measured, too
        assert "observability-evidence-unreadable" in ids(value)


@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_a_missing_file_is_missing_evidence(tmp_path: Path, source: Source) -> None:
    full(tmp_path, source).unlink()
    expected = {
        **EMPTY,
        INDEX_POLICY: "index-evidence-missing",
        REVIEWER_MARKER: "reviewer-evidence-missing",
        INDEX: "index-manifest-invalid",
    }
    value = measure(tmp_path)
    # Without a manifest the marker decides, and a hot file that does not exist is none that is damaged.
    assert ids(value) == ([expected[source]] if source in expected else [])


@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_an_empty_file_is_a_finding(tmp_path: Path, source: Source) -> None:
    full(tmp_path, source).write_bytes(b"")
    assert ids(measure(tmp_path)) == [EMPTY.get(source, source[2])]


@pytest.mark.parametrize("blank", [b"\n", b"\n\r\n \n\t\n"])
@pytest.mark.parametrize("source", LOGS, ids=by_path)
def test_blank_lines_are_no_rows(tmp_path: Path, source: Source, blank: bytes) -> None:
    path = full(tmp_path, source)
    path.write_bytes(blank)
    assert ids(measure(tmp_path)) == [EMPTY[source]]


@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_a_file_cut_off_mid_line_is_a_finding(tmp_path: Path, source: Source) -> None:
    path = full(tmp_path, source)
    path.write_bytes(path.read_bytes().rstrip()[:-4])
    assert ids(measure(tmp_path)) == [source[2]]


@pytest.mark.parametrize("source", LOGS, ids=by_path)
def test_a_torn_last_line_does_not_hide_behind_good_ones(tmp_path: Path, source: Source) -> None:
    path = full(tmp_path, source)
    path.write_bytes(path.read_bytes() * 2 + path.read_bytes()[:9])
    value = measure(tmp_path)
    assert ids(value) == [source[2]] and value["findings"][0]["evidence"]["malformed_lines"] == [3]


@pytest.mark.parametrize("source", LOGS, ids=by_path)
def test_a_whole_last_row_without_its_line_feed_counts(tmp_path: Path, source: Source) -> None:
    path = full(tmp_path, source)
    path.write_bytes(path.read_bytes().rstrip())
    assert measure(tmp_path)["overall"] == "ok"


@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_bytes_that_are_not_utf8_are_a_finding(tmp_path: Path, source: Source) -> None:
    path = full(tmp_path, source)
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
    assert ids(measure(tmp_path)) == [source[1] if source == HOT_FILE else source[2]]


BAD_ROWS = ["null", "7", "1e999", "[]", '["a"]', '"text"', "true", "{", "{}{}", '{"a":NaN}', '{"a":"\t"}', "{'a':1}"]
BAD_ROWS += ["[" * 100_000, "9" * 5000, '{"a":' * 50_000, "\x00", "\ufeff{}", '{"a":1}x']


@pytest.mark.parametrize("bad", BAD_ROWS, ids=lambda text: text[:10].encode("unicode_escape").decode())
@pytest.mark.parametrize("source", LOGS, ids=by_path)
def test_a_row_that_is_no_object_is_malformed(tmp_path: Path, source: Source, bad: str) -> None:
    path = full(tmp_path, source)
    path.write_bytes(bad.encode() + b"\n" + path.read_bytes())
    value = measure(tmp_path)
    assert ids(value) == [source[2]] and value["findings"][0]["evidence"]["malformed_lines"] == [1]


@pytest.mark.parametrize("source", LOGS, ids=by_path)
def test_only_the_first_of_very_many_malformed_lines_are_named(tmp_path: Path, source: Source) -> None:
    full(tmp_path, source).write_bytes(b"x\n" * 10_000)
    evidence = measure(tmp_path)["findings"][0]["evidence"]
    assert evidence["malformed"] == 10_000 and evidence["malformed_lines"] == list(range(1, 21))


def test_a_line_may_have_a_mebibyte_and_no_more(tmp_path: Path) -> None:
    path = full(tmp_path, QUEUE)
    line = b'{"x":"%s"}'
    path.write_bytes(line % (b"y" * (2**20 - 8)) + b"\n")
    assert measure(tmp_path)["overall"] == "ok"
    path.write_bytes(line % (b"y" * (2**20 - 7)) + b"\n" + b'{"status":"approved"}\n')
    evidence = only(measure(tmp_path), "proposal-evidence-malformed", "warn")
    assert (evidence["malformed_lines"], evidence["rows"]) == ([1], 1)


# 300 MB long, in a process that may not use them


def limited(root: Path) -> subprocess.CompletedProcess[bytes]:
    """Run cortex-health with 200 MB of address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (200_000_000, 200_000_000))

    return subprocess.run(
        [BIN / "cortex-health", "--json", "--memory-root", root],
        capture_output=True,
        env=environment(CORTEX_HEALTH_NOW=NOW, CORTEX_HEALTH_NO_WRITE="1"),
        timeout=120,
        preexec_fn=limit,
    )


def test_300_megabytes_in_every_file_are_findings_in_bounded_memory(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    for source in SOURCES:
        path = tmp_path / source[0]
        path.touch()
        os.truncate(path, 300_000_000)
    done = limited(tmp_path)
    assert done.returncode == 2 and done.stderr == b""
    assert sorted(ids(json.loads(done.stdout))) == [
        "hot-memory-unreadable",
        "index-manifest-invalid",
        "observability-bytes-exceeded",
        "proposal-evidence-malformed",
        "retrieval-evidence-malformed",
        "reviewer-evidence-invalid",
    ]


def test_a_large_index_is_hashed_in_pieces(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    os.truncate(tmp_path / INDEX[0], 300_000_000)
    done = limited(tmp_path)
    assert done.returncode == 2 and ids(json.loads(done.stdout)) == ["index-integrity-mismatch"]


def test_a_long_log_of_good_rows_is_read_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(jsonl(retrieval()) * 50_000)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    tracemalloc.start()
    try:
        log = reading.read_log(descriptor, "log.jsonl")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        os.close(descriptor)
    assert (log.rows, log.malformed, log.last) == (50_000, 0, retrieval())
    assert log.bytes > 7_000_000 and peak < 3_000_000


def test_a_log_that_grows_while_it_is_read_is_read_to_where_it_ended(tmp_path: Path, monkeypatch: Any) -> None:
    path = full(tmp_path, RETRIEVAL)
    whole = os.read

    def read_and_grow(descriptor: int, length: int) -> bytes:
        with path.open("ab") as log:
            log.write(b"torn")
        return whole(descriptor, length)

    monkeypatch.setattr(os, "read", read_and_grow)
    assert measure(tmp_path)["evidence"]["retrieval"]["rows"] == 1


# Folders


@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_an_observability_that_is_no_folder_fails_every_check_of_it(tmp_path: Path, kind: str) -> None:
    healthy(tmp_path)
    folder = tmp_path / "OBSERVABILITY"
    folder.rename(tmp_path / "elsewhere")
    {"file": folder.touch, "fifo": lambda: os.mkfifo(folder), "link": lambda: folder.symlink_to("elsewhere")}[kind]()
    value = measure(tmp_path)
    assert ids(value) == [
        "reviewer-evidence-invalid",
        "retrieval-evidence-malformed",
        "proposal-evidence-malformed",
        "observability-evidence-unreadable",
        "observability-evidence-missing",
    ]
    said = "is a symbolic link" if kind == "link" else "is no folder"
    assert all(said in finding["message"] for finding in value["findings"][:4])


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_runs_folder_that_is_none_is_invalid_evidence(tmp_path: Path, kind: str) -> None:
    healthy(tmp_path)
    runs = tmp_path / "OBSERVABILITY/reviewer-runs"
    if kind == "file":
        runs.touch()
    else:
        runs.symlink_to(tmp_path)
    assert "reviewer-evidence-invalid" in ids(measure(tmp_path))


def test_a_linked_run_is_invalid_evidence(tmp_path: Path) -> None:
    healthy(tmp_path)
    runs = tmp_path / "OBSERVABILITY/reviewer-runs"
    runs.mkdir()
    (runs / "2026-03-10T11-00-00-000Z").symlink_to(tmp_path)
    assert "reviewer-evidence-invalid" in ids(measure(tmp_path))


def test_links_below_observability_are_said_and_never_followed(tmp_path: Path) -> None:
    healthy(tmp_path)
    outside = write_corpus(tmp_path / "outside", {"big.log": b"x" * 1000})
    obs = tmp_path / "OBSERVABILITY"
    (obs / "folder").symlink_to(outside)
    (obs / "linked.log").symlink_to(outside / "big.log")
    (obs / "loop").symlink_to(obs)
    (obs / "notes.txt").symlink_to(outside / "big.log")  # no log, nothing is missed
    os.mkfifo(obs / "pipe.log")
    before = measure(healthy(tmp_path / "other"))["evidence"]["observability"]
    evidence = only(measure(tmp_path), "observability-evidence-unreadable", "warn")
    assert (evidence["bytes"], evidence["files"]) == (before["bytes"], before["files"])
    assert evidence["unreadable"] == 4 and len(evidence["unreadable_paths"]) == 4


def test_an_index_folder_that_is_a_link_is_critical(tmp_path: Path) -> None:
    healthy(tmp_path)
    (tmp_path / "INDEX").symlink_to(tmp_path / "nowhere")
    only(measure(tmp_path), "index-manifest-invalid", "critical")


def test_names_that_are_not_utf8_or_hold_markup_come_out_clean(tmp_path: Path) -> None:
    healthy(tmp_path)
    folder = os.fsencode(tmp_path / "OBSERVABILITY")
    for name in (b"\xff.log", b"<private>canary.log"):
        os.symlink(b"/nowhere", folder + b"/" + name)
    value = measure(tmp_path)
    assert ids(value) == ["observability-evidence-unreadable"] and "canary" not in json.dumps(value)


# Without permission


def drop() -> None:
    """Become a user who may not read what is closed; another user than root is one already."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def as_nobody(root: Path) -> dict[str, Any]:
    """The report of a process that may not read everything."""
    env = environment(CORTEX_HEALTH_NOW=NOW)
    try:
        probe = subprocess.run([BIN / "cortex-health", "--none"], capture_output=True, env=env, preexec_fn=drop)
    except PermissionError:
        pytest.skip("another user cannot reach the executables")
    if b"--none is not an option" not in probe.stderr:
        pytest.skip("another user cannot run the executables")
    command = [BIN / "cortex-health", "--json", "--memory-root", root]
    done = subprocess.run(command, capture_output=True, env=env, timeout=120, preexec_fn=drop)
    assert done.stderr == b"", done
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A temporary folder that another user can reach; pytest closes its own to them again at each start."""
    with tempfile.TemporaryDirectory(prefix="cortex-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("source", SOURCES, ids=by_path)
def test_a_file_without_permission_is_a_finding(open_path: Path, source: Source) -> None:
    full(open_path, source).chmod(0)
    found = set(ids(as_nobody(open_path)))
    assert source[1] in found and found <= {source[1], "health-log-unwritable"}


def test_a_folder_without_permission_is_a_finding(open_path: Path) -> None:
    root = healthy(open_path)
    (root / "OBSERVABILITY").chmod(0)
    try:
        found = ids(as_nobody(root))
    finally:
        (root / "OBSERVABILITY").chmod(0o755)
    assert found == [
        "reviewer-evidence-invalid",
        "retrieval-evidence-malformed",
        "proposal-evidence-malformed",
        "observability-evidence-unreadable",
        "observability-evidence-missing",
        "health-log-unwritable",
    ]


# What fails in a check, and hot files that are links


def test_a_check_that_fails_itself_is_critical_and_the_others_still_measure(tmp_path: Path, monkeypatch: Any) -> None:
    healthy(tmp_path)

    def fail(*_: Any) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(report.hot, "check", fail)
    value = measure(tmp_path)
    assert only(value, "check-failed", "critical") == {"check": "hot-memory", "exception": "RuntimeError"}
    assert "canary" not in json.dumps(value) and "index" in value["ok_summary"]


def test_a_user_folder_may_itself_be_a_link_but_nothing_below_it(tmp_path: Path) -> None:
    memory = healthy(tmp_path / "LIFEOS/MEMORY")
    (memory / "CORTEX_INDEX_POLICY.json").rename(memory.parent / "CORTEX_INDEX_POLICY.json")
    write_corpus(tmp_path / "real", {"PRINCIPAL/PRINCIPAL_MEMORY.md": HOT})
    (memory.parent / "USER").symlink_to(tmp_path / "real")
    value = measure(memory)
    assert value["overall"] == "ok" and len(value["evidence"]["hot-memory"]["files"]) == 1
    (tmp_path / "real/PRINCIPAL").rename(tmp_path / "real/other")
    (tmp_path / "real/PRINCIPAL").symlink_to("other")
    only(measure(memory), "hot-memory-unreadable", "warn")


def test_a_corpus_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    root = healthy(tmp_path)
    (root / "KNOWLEDGE/link.md").symlink_to("a.md")
    only(measure(root, corpus=True), "corpus-unsound", "critical")
    (root / "KNOWLEDGE/link.md").unlink()
    write_corpus(root, {"KNOWLEDGE/twice.md": note("a")})
    only(measure(root, corpus=True), "corpus-unsound", "critical")
