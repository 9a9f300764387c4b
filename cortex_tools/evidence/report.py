"""The health report: every check, the worst severity, and where the report is kept."""

from __future__ import annotations

import json
import os
import time

from cortex_tools.domain.text import without_surrogates
from cortex_tools.domain.timestamps import format_ms, parse_ms
from cortex_tools.evidence import appending, hot, index, proposals, retrieval, reviewer, thresholds, volume
from cortex_tools.evidence.findings import EXIT_STATUS, OK, Finding, Outcome, worst
from cortex_tools.evidence.layout import HEALTH_LOG, Layout
from cortex_tools.files.durable import replace
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

NOW_VARIABLE = "CORTEX_HEALTH_NOW"
NO_WRITE_VARIABLE = "CORTEX_HEALTH_NO_WRITE"
REPORT_VARIABLE = "CORTEX_HEALTH_REPORT_PATH"
_SHOWN_VALUE = 80


class Report:
    """The outcomes of all checks at one moment, `now_ms` (ms since 1970), and the thresholds in force."""

    __slots__ = ("now_ms", "outcomes", "thresholds")

    def __init__(self, now_ms: int, limits: thresholds.Thresholds, outcomes: list[Outcome]) -> None:
        self.now_ms = now_ms
        self.thresholds = limits
        self.outcomes = outcomes

    @property
    def findings(self) -> list[Finding]:
        return [finding for outcome in self.outcomes for finding in outcome.findings]

    @property
    def overall(self) -> str:
        return worst(self.findings)

    @property
    def status(self) -> int:
        """The exit status that belongs to the report."""
        return EXIT_STATUS[self.overall]

    @property
    def passed(self) -> list[str]:
        """The IDs of the checks without a finding."""
        return [outcome.check for outcome in self.outcomes if not outcome.findings]

    def as_dict(self) -> dict[str, Any]:
        findings = [finding.as_dict() for finding in self.findings]
        counts = {severity: sum(f["severity"] == severity for f in findings) for severity in ("critical", "warn")}
        return {
            "ts": format_ms(self.now_ms),
            "overall": self.overall,
            "counts": counts | {OK: len(self.passed)},
            "thresholds": self.thresholds,
            "evidence": {outcome.check: outcome.evidence for outcome in self.outcomes},
            "findings": findings,
            "ok_summary": self.passed,
        }

    def line(self) -> bytes:
        """The report as one line of JSON."""
        text = json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return without_surrogates(text).encode() + b"\n"


def measure(layout: Layout, environ: Mapping[str, str], *, corpus: bool = False, now_ms: int | None = None) -> Report:
    """Run every check; `now_ms` stands in for the clock, unless the environment says another time.

    `corpus` adds the check that reads all notes.
    """
    limits, invalid = thresholds.effective(environ)
    now, clock = _now(environ, now_ms)
    checks: list[tuple[str, Callable[[], Outcome]]] = [
        (reviewer.CHECK, lambda: reviewer.check(layout, limits, now)),
        (retrieval.CHECK, lambda: retrieval.check(layout, limits, now)),
        (proposals.CHECK, lambda: proposals.check(layout, limits, now)),
        (volume.CHECK, lambda: volume.check(layout, limits, now)),
        (index.CHECK, lambda: index.check(layout, limits, now, environ)),
        (hot.CHECK, lambda: hot.check(layout)),
    ]
    if corpus:
        from cortex_tools.evidence import cut_notes

        checks.append((cut_notes.CHECK, lambda: cut_notes.check(layout)))
    outcomes = [Outcome("thresholds", {}, invalid), clock]
    return Report(now, limits, outcomes + [_guarded(name, check) for name, check in checks])


def _guarded(name: str, check: Callable[[], Outcome]) -> Outcome:
    """What the check says; should it fail itself, that is a finding and the others still measure."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (by its type alone: its words may quote a note)
        fault = {"check": name, "exception": type(error).__name__}
        what = f"the check {name} was stopped by an unexpected {fault['exception']}"
        return Outcome(name, fault, [Finding("check-failed", what, fault)])


def _now(environ: Mapping[str, str], now_ms: int | None) -> tuple[int, Outcome]:
    """The moment to judge by; what cannot be used as one is a finding, and the clock stands in for it."""
    clock = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    text = environ.get(NOW_VARIABLE, "")
    if not text:
        return clock, Outcome("clock", {"source": "clock"}, [])
    given = parse_ms(text)
    if given is not None:
        return given, Outcome("clock", {"source": NOW_VARIABLE}, [])
    evidence = {"source": "clock", "variable": NOW_VARIABLE, "value": shown(text[:_SHOWN_VALUE])}
    what = f"{NOW_VARIABLE} is no ISO time, so the clock was used"
    return clock, Outcome("clock", evidence, [Finding("cortex-now-invalid", what, evidence)])


def keep(report: Report, layout: Layout, environ: Mapping[str, str]) -> None:
    """Append the report to the health log and write it where the environment says.

    What cannot be written becomes a finding of the report; the verdicts of the other checks stay.
    """
    if environ.get(NO_WRITE_VARIABLE, "") in ("", "0"):
        outcome = Outcome("health-log", {"path": HEALTH_LOG}, [])
        report.outcomes.append(outcome)
        try:
            appending.append(layout.root, HEALTH_LOG, report.line())
        except appending.CannotAppend as error:
            what = f"the report was not appended to {HEALTH_LOG}: {error}"
            outcome.findings.append(Finding("health-log-unwritable", what, {"path": HEALTH_LOG}))
    path = environ.get(REPORT_VARIABLE, "")
    if path:
        outcome = Outcome("health-report", {"path": shown(path)}, [])
        report.outcomes.append(outcome)
        try:
            _replace(os.fsencode(path), report.line())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no name of a file"
            what = f"the report was not written to {shown(path)}: {reason}"
            outcome.findings.append(Finding("health-report-unwritable", what, {"path": shown(path)}))


def _replace(path: bytes, data: bytes) -> None:
    folder, name = os.path.split(path)
    if not name:
        raise ValueError("names a folder")
    descriptor = os.open(folder or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace(descriptor, name, data)
    finally:
        os.close(descriptor)
