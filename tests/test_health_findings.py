"""Every finding produced by a tree built for it, with its severity and evidence; limits at, below and above."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.domain.timestamps import format_ms
from tests.support import note, row, write_corpus
from tests.test_health_healthy import (
    NOW_MS,
    RECENT,
    REVIEWER_POLICY,
    health,
    healthy,
    ids,
    jsonl,
    measure,
    only,
    retrieval,
    skip,
    success,
    summary,
    write_log,
)

HOUR, DAY = 3_600_000, 86_400_000
RUNS = "OBSERVABILITY/reviewer-runs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return healthy(tmp_path)


def at(ms: int) -> str:
    return format_ms(NOW_MS + ms)


def reviewed(root: Path, *rows: Any) -> dict[str, Any]:
    write_log(root, "reviewer-runs.jsonl", jsonl(*rows))
    return measure(root)


def add_run(root: Path, ms: int) -> Path:
    """The folder of a run that began `ms` after NOW."""
    folder = root / RUNS / at(ms).replace(":", "-").replace(".", "-")
    folder.mkdir(parents=True)
    return folder


# Reviewer


def test_any_malformed_line_of_the_reviewer_log_is_named(root: Path) -> None:
    write_log(root, "reviewer-runs.jsonl", jsonl(success()) + "{torn\n\nnull\n" + jsonl(success()))
    evidence = only(measure(root), "reviewer-latest-parse-failed", "critical")
    assert (evidence["malformed"], evidence["malformed_lines"], evidence["rows"]) == (2, [2, 4], 2)


def test_a_newer_run_folder_with_a_parse_error_wins_over_older_successes(root: Path) -> None:
    (add_run(root, -60_000) / "parse-error.txt").write_text("private words")
    value = measure(root)
    evidence = only(value, "reviewer-latest-parse-failed", "critical")
    assert evidence["newest_run"] == "2026-03-10T11-59-00-000Z" and evidence["newest_run_age_ms"] == 60_000
    assert "private words" not in json.dumps(value)


@pytest.mark.parametrize(("age", "found"), [(599_999, False), (600_000, False), (600_001, True)])
def test_a_newer_run_folder_older_than_the_grace_has_timed_out(root: Path, age: int, found: bool) -> None:
    add_run(root, -age)
    value = measure(root)
    if found:
        evidence = only(value, "reviewer-latest-timed-out", "critical")
        assert (evidence["newest_run_age_ms"], evidence["grace_ms"]) == (600_001, 600_000)
    else:
        assert value["overall"] == "ok", "within the grace the last row decides"


def test_a_run_folder_that_the_last_row_belongs_to_or_that_is_older_says_nothing(root: Path) -> None:
    add_run(root, -2 * HOUR)
    add_run(root, -HOUR)  # as old as the row
    assert measure(root)["overall"] == "ok"
    name = add_run(root, -HOUR + 1).name
    assert ids(measure(root)) == ["reviewer-latest-timed-out"]
    assert reviewed(root, success(runId=name))["overall"] == "ok"


def test_a_folder_without_any_row_times_out_too_and_before_that_is_no_evidence(root: Path) -> None:
    (root / "OBSERVABILITY/reviewer-runs.jsonl").unlink()
    add_run(root, -60_000)
    only(measure(root), "reviewer-evidence-missing", "warn")
    assert ids(measure(root, now=NOW_MS + HOUR)) == ["reviewer-latest-timed-out"]


def test_no_row_and_no_folder_is_missing_evidence(root: Path) -> None:
    (root / "OBSERVABILITY/reviewer-runs.jsonl").unlink()
    assert only(measure(root), "reviewer-evidence-missing", "warn")["rows"] == 0


@pytest.mark.parametrize(
    ("row", "id"),
    [
        ({"ok": False, "parse_ok": True, "error": "inference timeout after 60 s"}, "reviewer-latest-timed-out"),
        ({"ok": False, "parse_ok": False, "error": "request Timed Out"}, "reviewer-latest-timed-out"),
        ({"ok": False, "parse_ok": False, "error": "ETIMEDOUT"}, "reviewer-latest-timed-out"),
        ({"ok": False, "parse_ok": False, "error": "no JSON"}, "reviewer-latest-parse-failed"),
        ({"ok": True, "parse_ok": False}, "reviewer-latest-parse-failed"),
        ({"ok": False, "parse_ok": True, "error": "disk"}, "reviewer-latest-failed"),
        ({"ok": False, "error": {"timeout": 1}}, "reviewer-latest-failed"),
        ({"ok": False}, "reviewer-latest-failed"),
    ],
)
def test_a_failure_in_the_last_row_wins_over_any_success(root: Path, row: dict[str, Any], id: str) -> None:
    value = reviewed(root, *[success()] * 3, {"ts": RECENT, **row})
    evidence = only(value, id, "critical")
    assert evidence["rows"] == 4 and "error" not in evidence
    assert reviewed(root, {"ts": RECENT, **row}, success())["overall"] == "ok", "an older failure is history"


SUCCESS_FAULTS: list[dict[str, Any]] = [
    *({name: ...} for name in success()),
    {"extra": 1},
    {"ok": 1},
    {"ok": None},
    {"parse_ok": "true"},
    {"runId": ""},
    {"runId": " "},
    {"transcript": ""},
    {"transcript": 7},
    {"ts": "yesterday"},
    {"ts": NOW_MS},
    {"exchanges": -1},
    {"exchanges": 1.5},
    {"exchanges": True},
    {"exchanges": "4"},
    {"inference_duration_ms": -0.5},
    {"inference_duration_ms": None},
    {"inference_duration_ms": True},
    {"dispatch_summary": []},
    {"skipped": True},
    {"skipped": False},
]
SUMMARY_FAULTS: list[dict[str, Any]] = [
    *({name: ...} for name in summary()),
    {"extra": 0},
    {"total": -3},
    {"total": 4},
    {"succeeded": 3},
    {"failed": 1},
    {"failures": ["x"]},
    {"failures": {}},
    {"skipped_guard": 1.5},
    {"skips": "none"},
    {"by_type": {"memory": 3, "dream": 0}},
    {"by_type": {"memory": 2}},
    {"by_type": {"memory": "3"}},
    {"by_type": [3]},
    {"proposals_auto_applied": 3},
    {"proposals_auto_apply_failed": 1},
    {"total": True, "succeeded": 0, "by_type": {"memory": 1}},
]


@pytest.mark.parametrize("change", SUCCESS_FAULTS, ids=str)
def test_a_last_row_that_is_not_exactly_a_success_is_invalid(root: Path, change: dict[str, Any]) -> None:
    only(reviewed(root, success(**change)), "reviewer-evidence-invalid", "critical")


@pytest.mark.parametrize("change", SUMMARY_FAULTS, ids=str)
def test_a_summary_that_does_not_add_up_is_invalid(root: Path, change: dict[str, Any]) -> None:
    only(reviewed(root, success(dispatch_summary=summary(**change))), "reviewer-evidence-invalid", "critical")


@pytest.mark.parametrize("change", [{}, {"transcript": "t"}, {"error": "nothing new"}, {"transcript": "", "error": ""}])
def test_a_skip_row_is_healthy(root: Path, change: dict[str, Any]) -> None:
    assert reviewed(root, skip(**change))["overall"] == "ok"


@pytest.mark.parametrize(
    "change",
    [
        *({name: ...} for name in skip()),
        {"extra": 1},
        {"ok": 1},
        {"exchanges": 1},
        {"exchanges": False},
        {"runId": ""},
        {"ts": "now"},
        {"inference_duration_ms": -1},
        {"error": 7},
        {"skipped": 1},
    ],
    ids=str,
)
def test_a_skip_row_is_exact(root: Path, change: dict[str, Any]) -> None:
    only(reviewed(root, skip(**change)), "reviewer-evidence-invalid", "critical")


def test_a_skip_row_that_failed_is_a_failure(root: Path) -> None:
    only(reviewed(root, skip(ok=False)), "reviewer-latest-failed", "critical")


@pytest.mark.parametrize(
    ("ms", "id"),
    [
        (1, "reviewer-future"),
        (0, None),
        (-7 * DAY + 1, None),
        (-7 * DAY, None),
        (-7 * DAY - 1, "reviewer-stale"),
    ],
)
@pytest.mark.parametrize("make", [success, skip])
def test_a_healthy_row_must_be_recent_and_not_of_the_future(root: Path, make: Any, ms: int, id: str | None) -> None:
    value = reviewed(root, make(ts=at(ms)))
    if id is None:
        assert value["overall"] == "ok"
    else:
        evidence = only(value, id, "warn")
        assert (evidence["age_ms"], evidence["threshold_ms"], evidence["last_ts"]) == (-ms, 7 * DAY, at(ms))


def test_a_run_folder_of_the_future_proves_no_freshness(root: Path) -> None:
    add_run(root, HOUR)
    only(measure(root), "reviewer-future", "warn")


def test_a_folder_whose_name_is_no_time_is_said(root: Path) -> None:
    (root / RUNS / "2026-03-10T11-59-00-000Z-again").mkdir(parents=True)
    assert only(measure(root), "reviewer-run-unrecognized", "warn")["unrecognized_folders"] == 1


def test_an_affirmed_absence_of_a_reviewer_is_healthy_only_without_evidence(root: Path) -> None:
    marker = root / "CORTEX_REVIEWER_POLICY.json"
    marker.write_text(json.dumps(REVIEWER_POLICY))
    only(measure(root), "reviewer-evidence-invalid", "critical")
    (root / "OBSERVABILITY/reviewer-runs.jsonl").unlink()
    value = measure(root)
    assert value["overall"] == "ok" and value["evidence"]["reviewer"]["state"] == "no-reviewer-v1"
    folder = add_run(root, 0)
    only(measure(root), "reviewer-evidence-invalid", "critical")
    folder.rmdir()
    for bad in ('{"policy":"no-reviewer-v1"}', json.dumps({**REVIEWER_POLICY, "by": "me"}), "[]", "", "{"):
        marker.write_text(bad)
        only(measure(root), "reviewer-evidence-invalid", "critical")
    marker.unlink()
    marker.symlink_to(root / "elsewhere")
    only(measure(root), "reviewer-evidence-invalid", "critical")


# Retrieval


def retrieved(root: Path, *rows: Any) -> dict[str, Any]:
    write_log(root, "memory-retrievals.jsonl", jsonl(*rows))
    return measure(root)


def test_a_missing_retrieval_log_is_missing_evidence(root: Path) -> None:
    (root / "OBSERVABILITY/memory-retrievals.jsonl").unlink()
    assert only(measure(root), "retrieval-missing", "warn")["path"] == "OBSERVABILITY/memory-retrievals.jsonl"


@pytest.mark.parametrize(
    ("ms", "id"),
    [(1, "retrieval-future"), (0, None), (-DAY + 1, None), (-DAY, None), (-DAY - 1, "retrieval-stale")],
)
def test_the_last_retrieval_must_be_recent(root: Path, ms: int, id: str | None) -> None:
    value = retrieved(root, retrieval(ts=at(-HOUR)), retrieval(ts=at(ms)))
    if id is None:
        assert value["overall"] == "ok"
    else:
        evidence = only(value, id, "warn")
        assert (evidence["age_ms"], evidence["threshold_ms"], evidence["last_ts"]) == (-ms, DAY, at(ms))


@pytest.mark.parametrize(
    "change",
    [
        *({name: ...} for name in retrieval()),
        {"extra": 1},
        {"query": "loom"},
        {"ts": "soon"},
        {"ts": 1},
        {"query_hash": ""},
        {"query_hash": "loom tension"},
        {"query_hash": 12},
        {"returned_count": -1},
        {"returned_count": 0.5},
        {"returned_count": True},
        {"duration_ms": -1},
        {"duration_ms": "1"},
        {"top_score": "high"},
        {"top_score": None},
    ],
    ids=str,
)
def test_a_last_row_that_is_no_retrieval_row_is_malformed(root: Path, change: dict[str, Any]) -> None:
    only(retrieved(root, retrieval(), retrieval(**change)), "retrieval-evidence-malformed", "warn")


def test_a_score_beside_it_is_fine_and_only_the_last_row_is_judged(root: Path) -> None:
    assert retrieved(root, {"anything": 1}, retrieval(top_score=1.25))["overall"] == "ok"


def test_malformed_lines_of_the_retrieval_log_are_named(root: Path) -> None:
    write_log(root, "memory-retrievals.jsonl", "[]\n" + jsonl(retrieval()))
    assert only(measure(root), "retrieval-evidence-malformed", "warn")["malformed_lines"] == [1]


# Proposals


@pytest.mark.parametrize(("pending", "found"), [(9, False), (10, False), (11, True)])
def test_the_backlog_counts_rows_that_are_exactly_pending(root: Path, pending: int, found: bool) -> None:
    others = [{"status": status} for status in ("approved", "rejected", "Pending", " pending", None, ["pending"])]
    write_log(root, "pending-proposals.jsonl", jsonl(*others, *[{"status": "pending"}] * pending, {"id": "x"}))
    value = measure(root)
    assert value["evidence"]["proposals"]["pending"] == pending
    if found:
        evidence = only(value, "proposal-backlog-high", "warn")
        assert (evidence["pending"], evidence["threshold"]) == (11, 10)
    else:
        assert value["overall"] == "ok"


def test_a_missing_queue_is_missing_evidence(root: Path) -> None:
    (root / "OBSERVABILITY/pending-proposals.jsonl").unlink()
    only(measure(root), "proposal-evidence-missing", "warn")


def test_malformed_lines_of_the_queue_hide_no_backlog(root: Path) -> None:
    write_log(root, "pending-proposals.jsonl", jsonl(*[{"status": "pending"}] * 11) + "{\n")
    value = measure(root)
    assert ids(value) == ["proposal-evidence-malformed", "proposal-backlog-high"] and value["overall"] == "warn"
    assert value["findings"][0]["evidence"]["malformed_lines"] == [12]


# Observability volume


def test_all_logs_below_observability_are_measured(root: Path) -> None:
    before = measure(root)["evidence"]["observability"]
    write_log(root, "deep/er/x.log", b"12345")
    write_log(root, "deep/y.jsonl", b"123")
    write_log(root, "deep/z.txt", b"ignored")
    evidence = measure(root)["evidence"]["observability"]
    assert (evidence["bytes"], evidence["files"]) == (before["bytes"] + 8, before["files"] + 2)


@pytest.mark.parametrize(("over", "found"), [(-1, False), (0, False), (1, True)])
def test_too_many_bytes(root: Path, over: int, found: bool) -> None:
    log = write_log(root, "big.log", b"")
    os.truncate(log, 256 * 1024 * 1024 + over - measure(root)["evidence"]["observability"]["bytes"])
    os.utime(log, (NOW_MS / 1000, NOW_MS / 1000))
    value = measure(root)
    if found:
        evidence = only(value, "observability-bytes-exceeded", "warn")
        assert (evidence["bytes"], evidence["max_bytes"], evidence["files"]) == (268_435_457, 268_435_456, 4)
    else:
        assert value["overall"] == "ok"


@pytest.mark.parametrize(("over", "found"), [(-1, False), (0, False), (1, True)])
def test_the_oldest_log_may_not_be_too_old(root: Path, over: int, found: bool) -> None:
    log = write_log(root, "deep/old.log", b"x")
    moment = (NOW_MS - 30 * DAY - over) * 1_000_000
    os.utime(log, ns=(moment, moment))
    value = measure(root)
    if found:
        evidence = only(value, "observability-age-exceeded", "warn")
        assert (evidence["oldest"], evidence["oldest_age_ms"]) == ("OBSERVABILITY/deep/old.log", 30 * DAY + 1)
    else:
        assert value["overall"] == "ok"


def test_no_log_at_all_is_missing_evidence(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), "OBSERVABILITY/readme.txt": "x"})
    assert "observability-evidence-missing" in ids(measure(tmp_path))


# Hot memory


def hot(root: Path, text: str) -> dict[str, Any]:
    (root / "DA_MEMORY.md").write_text(text)
    return measure(root)


BEGIN, END = "<!-- BEGIN ENTRIES -->\n", "<!-- END ENTRIES -->\n"


@pytest.mark.parametrize(
    "text",
    ["", "body\n", BEGIN, END, END + BEGIN, BEGIN + BEGIN + END, BEGIN + END + END, BEGIN + END + BEGIN + END],
)
def test_damaged_markers_are_critical(root: Path, text: str) -> None:
    evidence = only(hot(root, text), "markers-corrupt", "critical")
    assert evidence["path"].endswith("/DA_MEMORY.md")


def test_lines_that_a_writer_would_drop_are_counted_never_quoted(root: Path) -> None:
    long = "RULE: " + "x" * 257
    text = f"# Body\nfree text\n{BEGIN}NAME: a\n\nloose words\n{long}\nRULE: {'y' * 256}\n{END}after\n"
    value = hot(root, text)
    evidence = only(value, "pending-silent-loss", "warn")
    assert (evidence["count"], evidence["lines"], evidence["entries"]) == (2, [6, 7], 3)
    assert "loose" not in json.dumps(value)


@pytest.mark.parametrize(("count", "found"), [(45, False), (46, True), (47, True)])
def test_the_cap_is_announced_before_it_is_reached(root: Path, count: int, found: bool) -> None:
    entries = "".join(f"RULE: number {number}\n" for number in range(count)) + "RULE: number 0\n"
    value = hot(root, BEGIN + entries + END)
    if found:
        evidence = only(value, "cap-pressure", "warn")
        assert (evidence["entries"], evidence["threshold"], evidence["cap"]) == (count, 46, 48)
    else:
        assert value["overall"] == "ok"


# Cut notes


def test_notes_cut_short_are_listed_only_when_the_corpus_is_read(root: Path) -> None:
    write_corpus(
        root,
        {
            "KNOWLEDGE/cut.md": note("cut", "if a < private_count: canary"),
            "KNOWLEDGE/open.md": note("open", "x <private> never closed canary"),
            "KNOWLEDGE/fine.md": note("fine", "x <private>canary</private> y"),
            "KNOWLEDGE/rows.jsonl": row("r1") + row("r2", content="a \\u003cprivateer canary").replace("\\\\u", "\\u"),
        },
    )
    assert measure(root)["overall"] == "ok"
    value = measure(root, corpus=True)
    evidence = only(value, "notes-cut-short", "warn")
    assert evidence == {
        "notes": 7,
        "count": 3,
        "paths": ["KNOWLEDGE/cut.md", "KNOWLEDGE/open.md", "KNOWLEDGE/rows.jsonl:2"],
    }
    assert "canary" not in json.dumps(value)
    done = health(root, "--corpus", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["findings"] == value["findings"]


def test_a_corpus_without_cuts_passes_and_an_unsound_one_is_critical(root: Path) -> None:
    value = measure(root, corpus=True)
    assert value["overall"] == "ok" and value["ok_summary"][-1] == "cut-notes"
    write_corpus(root, {"KNOWLEDGE/bad.jsonl": "canary {\n"})
    value = measure(root, corpus=True)
    only(value, "corpus-unsound", "critical")
    assert "bad.jsonl:1" in value["findings"][0]["message"] and "canary" not in json.dumps(value)
    assert measure(root)["overall"] == "ok", "nothing else reads the corpus"


# Overrides and the clock

OVERRIDES = {
    "CORTEX_RETRIEVAL_STALE_MS": "retrievalStaleMs",
    "CORTEX_PROPOSAL_BACKLOG": "proposalBacklog",
    "CORTEX_OBSERVABILITY_MAX_BYTES": "observabilityMaxBytes",
    "CORTEX_OBSERVABILITY_MAX_AGE_MS": "observabilityMaxAgeMs",
}


@pytest.mark.parametrize("variable", OVERRIDES)
@pytest.mark.parametrize(
    "text", ["0", "-1", "nan", "1e309", "abc", " ", "inf", "1_000", "0x10", "٣", "9" * 5000, "1,5"]
)
def test_a_bad_override_is_critical_and_the_default_applies(root: Path, variable: str, text: str) -> None:
    value = measure(root, **{variable: text})
    evidence = only(value, "cortex-threshold-invalid", "critical")
    assert (evidence["variable"], evidence["threshold"]) == (variable, OVERRIDES[variable])
    assert evidence["value"] == text[:80]
    assert value["thresholds"] == measure(root)["thresholds"]
    assert "thresholds" not in value["ok_summary"]


@pytest.mark.parametrize("variable", OVERRIDES)
@pytest.mark.parametrize(
    ("text", "number"), [("1e12", 10**12), ("1000000000000.5", 1e12 + 0.5), ("00012345678901", 12345678901)]
)
def test_a_good_override_applies(root: Path, variable: str, text: str, number: float) -> None:
    value = measure(root, **{variable: text})
    assert value["overall"] == "ok"
    assert value["thresholds"] == measure(root)["thresholds"] | {OVERRIDES[variable]: number}


@pytest.mark.parametrize("variable", OVERRIDES)
def test_an_empty_override_counts_as_unset(root: Path, variable: str) -> None:
    assert measure(root, **{variable: ""}) == measure(root)


@pytest.mark.parametrize(
    ("variable", "text", "id"),
    [
        ("CORTEX_RETRIEVAL_STALE_MS", "3599999", "retrieval-stale"),
        ("CORTEX_PROPOSAL_BACKLOG", "0.5", "proposal-backlog-high"),
        ("CORTEX_OBSERVABILITY_MAX_BYTES", "10", "observability-bytes-exceeded"),
        ("CORTEX_OBSERVABILITY_MAX_AGE_MS", "1e-3", "observability-age-exceeded"),
    ],
)
def test_an_override_moves_the_verdict(root: Path, variable: str, text: str, id: str) -> None:
    assert ids(measure(root, now=NOW_MS + 1, **{variable: text})) == [id]


def test_the_environment_reaches_the_executable(root: Path) -> None:
    done = health(root, "--json", CORTEX_RETRIEVAL_STALE_MS="abc", CORTEX_PROPOSAL_BACKLOG="0.5")
    value = json.loads(done.stdout)
    assert done.returncode == 2 and ids(value) == ["cortex-threshold-invalid", "proposal-backlog-high"]
    assert value["thresholds"]["proposalBacklog"] == 0.5


@pytest.mark.parametrize("text", ["garbage", "2026-13-01", "1773144000000", " ", "2026-03-10 12:00", "0099-01-01"])
def test_a_clock_that_cannot_be_used_is_never_green(root: Path, text: str) -> None:
    done = health(root, "--json", CORTEX_HEALTH_NOW=text)
    value = json.loads(done.stdout)
    assert done.returncode == 2 and value["overall"] == "critical"
    assert "cortex-now-invalid" in ids(value) and "clock" not in value["ok_summary"]
    assert value["ts"] > "2026-03-11", "what else is measured is measured by the real clock"
    assert value["evidence"]["clock"] == {"source": "clock", "variable": "CORTEX_HEALTH_NOW", "value": text}


def test_a_given_clock_is_used_and_an_empty_one_counts_as_unset(root: Path) -> None:
    assert json.loads(health(root, "--json", CORTEX_HEALTH_NOW="2026-03-10T13:00:00+01:00").stdout)["ts"] == at(0)
    value = json.loads(health(root, "--json", CORTEX_HEALTH_NOW="").stdout)
    assert "clock" in value["ok_summary"]
