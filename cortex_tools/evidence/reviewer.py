"""The reviewer: the latest run decides, whatever succeeded before it."""

from __future__ import annotations

import os
import re

from cortex_tools.domain.timestamps import format_ms, parse_ms
from cortex_tools.evidence import policy, reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.kinds import is_duration, is_text, is_whole, time_ms
from cortex_tools.evidence.layout import REVIEWER_LOG, REVIEWER_RUNS, Layout
from cortex_tools.evidence.reading import Log, Missing, Unreadable
from cortex_tools.evidence.thresholds import Thresholds
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK = "reviewer"
PARSE_ERROR = "parse-error.txt"

_RUN_ID = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2})-([0-9]{2})-([0-9]{2})(?:-([0-9]{1,9}))?Z")
_TIMEOUT = re.compile(r"time[ds]?[\s_-]*out", re.IGNORECASE)

_SUCCESS_KEYS = {
    "ts",
    "ok",
    "runId",
    "transcript",
    "exchanges",
    "inference_duration_ms",
    "parse_ok",
    "dispatch_summary",
}
_SKIP_KEYS = {"ts", "ok", "runId", "exchanges", "inference_duration_ms", "parse_ok", "skipped"}
_SKIP_OPTIONAL = {"transcript", "error"}
_SUMMARY_COUNTS = (
    "total",
    "succeeded",
    "failed",
    "skipped_guard",
    "proposals_auto_applied",
    "proposals_auto_apply_failed",
)
_SUMMARY_KEYS = {*_SUMMARY_COUNTS, "by_type", "failures", "skips"}
_TYPES = {"memory", "idea", "knowledge", "proposal"}


class Runs:
    """The run folders: how many, the newest by its name, and how many names are no time of a run."""

    __slots__ = ("folders", "newest", "newest_ms", "parse_error", "unrecognized")

    def __init__(self) -> None:
        self.folders = 0
        self.newest: str | None = None
        self.newest_ms = 0
        self.parse_error = False
        self.unrecognized = 0


def check(layout: Layout, thresholds: Thresholds, now_ms: int) -> Outcome:
    """Judge the reviewer's log and its run folders."""
    marker = policy.read(layout.beside, policy.NO_REVIEWER)
    evidence: dict[str, Any] = {"path": REVIEWER_LOG, "policy": marker.state}
    try:
        log = _read_log(layout)
        runs = _read_runs(layout)
    except Unreadable as error:
        return Outcome(CHECK, evidence, [Finding("reviewer-evidence-invalid", str(error), evidence)])
    evidence |= log.evidence() | {"run_folders": runs.folders, "newest_run": runs.newest}
    findings = _judge(marker, log, runs, thresholds, now_ms, evidence)
    if runs.unrecognized:
        evidence["unrecognized_folders"] = runs.unrecognized
        what = f"{runs.unrecognized} folders in {REVIEWER_RUNS} have no name that tells the time of a run"
        findings.append(Finding("reviewer-run-unrecognized", what, evidence))
    return Outcome(CHECK, evidence, findings)


def _judge(
    marker: policy.Marker, log: Log, runs: Runs, thresholds: Thresholds, now_ms: int, evidence: dict[str, Any]
) -> list[Finding]:
    def finding(id: str, what: str) -> list[Finding]:
        return [Finding(id, what, evidence)]

    nothing = log.is_empty and not runs.folders
    if marker.state == policy.INVALID:
        evidence["policy_path"] = marker.path
        return finding("reviewer-evidence-invalid", f"{shown(marker.path)} {marker.fault}")
    if marker.state == policy.VALID:
        evidence["policy_path"] = marker.path
        if nothing:
            evidence["state"] = "no-reviewer-v1"
            return []
        return finding(
            "reviewer-evidence-invalid",
            f"{shown(marker.path)} affirms that no reviewer runs, yet there are {log.rows + log.malformed} rows "
            f"and {runs.folders} run folders",
        )
    if log.malformed:
        lines = ", ".join(map(str, log.malformed_lines))
        return finding("reviewer-latest-parse-failed", f"{REVIEWER_LOG} has malformed lines: {lines}")
    unfinished = _judge_newest_run(log, runs, thresholds, now_ms, evidence)
    if unfinished is not None:
        return [unfinished]
    if log.last is None:
        evidence["state"] = "no-evidence"
        what = "a first run has begun, and none has ended" if runs.folders else "no reviewer run is recorded"
        return finding("reviewer-evidence-missing", what)
    return _judge_last_row(log.last, runs, thresholds, now_ms, evidence)


def _judge_newest_run(
    log: Log, runs: Runs, thresholds: Thresholds, now_ms: int, evidence: dict[str, Any]
) -> Finding | None:
    """What a run folder newer than the last row says, None where the row decides."""
    if runs.newest is None:
        return None
    row_ms = None if log.last is None else time_ms(log.last.get("ts"))
    if log.last is not None and (log.last.get("runId") == runs.newest or row_ms is None or row_ms >= runs.newest_ms):
        return None
    age = now_ms - runs.newest_ms
    evidence |= {"newest_run_age_ms": age, "grace_ms": thresholds["reviewerRunGraceMs"]}
    if runs.parse_error:
        return Finding("reviewer-latest-parse-failed", f"the newest run {runs.newest} left a {PARSE_ERROR}", evidence)
    if age > thresholds["reviewerRunGraceMs"]:
        return Finding("reviewer-latest-timed-out", f"the newest run {runs.newest} never ended with a row", evidence)
    return None


def _judge_last_row(
    row: dict[str, Any], runs: Runs, thresholds: Thresholds, now_ms: int, evidence: dict[str, Any]
) -> list[Finding]:
    at = time_ms(row.get("ts"))
    if at is not None:
        evidence |= {"last_ts": format_ms(at), "age_ms": now_ms - at, "threshold_ms": thresholds["reviewerStaleMs"]}
    if not (row.get("skipped") is True and is_skip(row)):
        if row.get("ok") is False or row.get("parse_ok") is False:
            return [_failure(row, evidence)]
        if not is_success(row):
            what = "the last row is neither a valid success row nor a valid skip row"
            return [Finding("reviewer-evidence-invalid", what, evidence)]
    latest = at if runs.newest is None else max(at or 0, runs.newest_ms)
    if latest is not None and latest > now_ms:
        return [Finding("reviewer-future", f"the latest reviewer evidence is of {format_ms(latest)}", evidence)]
    if at is not None and now_ms - at > thresholds["reviewerStaleMs"]:
        return [Finding("reviewer-stale", f"the reviewer last ended well on {format_ms(at)}", evidence)]
    return []


def _failure(row: dict[str, Any], evidence: dict[str, Any]) -> Finding:
    error = row.get("error")
    if isinstance(error, str) and _TIMEOUT.search(error):
        return Finding("reviewer-latest-timed-out", "the latest reviewer run timed out", evidence)
    if row.get("parse_ok") is False:
        return Finding("reviewer-latest-parse-failed", "the answer of the latest reviewer run did not parse", evidence)
    return Finding("reviewer-latest-failed", "the latest reviewer run failed", evidence)


def is_success(row: dict[str, Any]) -> bool:
    """Exactly a valid success row."""
    return (
        set(row) == _SUCCESS_KEYS
        and row["ok"] is True
        and row["parse_ok"] is True
        and is_text(row["runId"])
        and is_text(row["transcript"])
        and time_ms(row["ts"]) is not None
        and is_whole(row["exchanges"])
        and is_duration(row["inference_duration_ms"])
        and _is_summary(row["dispatch_summary"])
    )


def is_skip(row: dict[str, Any]) -> bool:
    """Exactly a valid skip row."""
    return (
        set(row) >= _SKIP_KEYS
        and set(row) <= _SKIP_KEYS | _SKIP_OPTIONAL
        and row["ok"] is True
        and row["parse_ok"] is True
        and row["skipped"] is True
        and is_text(row["runId"])
        and time_ms(row["ts"]) is not None
        and is_whole(row["exchanges"])
        and row["exchanges"] == 0
        and is_duration(row["inference_duration_ms"])
        and all(isinstance(row.get(name), (str, type(None))) for name in _SKIP_OPTIONAL)
    )


def _is_summary(summary: Any) -> bool:
    if not isinstance(summary, dict) or set(summary) != _SUMMARY_KEYS:
        return False
    if not all(is_whole(summary[name]) for name in _SUMMARY_COUNTS):
        return False
    by_type = summary["by_type"]
    if not isinstance(by_type, dict) or not set(by_type) <= _TYPES or not all(map(is_whole, by_type.values())):
        return False
    return bool(
        summary["failed"] == 0
        and summary["failures"] == []
        and (isinstance(summary["skips"], list) or is_whole(summary["skips"]))
        and summary["proposals_auto_apply_failed"] == 0
        and summary["total"] == summary["succeeded"] + summary["skipped_guard"]
        and sum(by_type.values()) == summary["total"]
        and summary["proposals_auto_applied"] <= by_type.get("proposal", 0)
    )


def has_evidence(layout: Layout) -> bool:
    """Whether a row, a run folder, or anything that cannot be read stands where a reviewer leaves its evidence."""
    try:
        return not _read_log(layout).is_empty or bool(_read_runs(layout).folders)
    except Unreadable:
        return True


def _read_log(layout: Layout) -> Log:
    try:
        return reading.read_log(layout.root.descriptor, REVIEWER_LOG)
    except Missing:
        return Log()
    except Unreadable as error:
        raise Unreadable(f"{REVIEWER_LOG} {error}") from None


def _read_runs(layout: Layout) -> Runs:
    runs = Runs()
    try:
        descriptor = reading.open_folder(layout.root.descriptor, REVIEWER_RUNS)
    except Missing:
        return runs
    except Unreadable as error:
        raise Unreadable(f"{REVIEWER_RUNS} {error}") from None
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise Unreadable(f"{REVIEWER_RUNS}/{shown(entry.name)} is a symbolic link")
                if entry.is_dir(follow_symlinks=False):
                    _count(runs, entry.name)
        if runs.newest is not None:
            runs.parse_error = _has_parse_error(descriptor, runs.newest)
    except OSError as error:
        raise Unreadable(f"{REVIEWER_RUNS} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return runs


def _count(runs: Runs, name: str) -> None:
    runs.folders += 1
    at = run_ms(name)
    if at is None:
        runs.unrecognized += 1
    elif runs.newest is None or at > runs.newest_ms:
        runs.newest, runs.newest_ms = name, at


def run_ms(name: str) -> int | None:
    """When the run of this name began, in ms since 1970; None where it is no RUN_ID."""
    match = _RUN_ID.fullmatch(name)
    if match is None:
        return None
    date, hour, minute, second, fraction = match.groups()
    return parse_ms(f"{date}T{hour}:{minute}:{second}{'.' + fraction if fraction else ''}Z")


def _has_parse_error(descriptor: int, run: str) -> bool:
    try:
        folder = reading.open_folder(descriptor, run)
    except Missing:
        return False  # cleared away a moment ago
    except Unreadable as error:
        raise Unreadable(f"{REVIEWER_RUNS}/{run} {error}") from None
    return reading.holds(folder, PARSE_ERROR)
