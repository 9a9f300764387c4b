"""Every finding of health as one table: how bad it is and what to do about it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CRITICAL = "critical"
WARN = "warn"
OK = "ok"
EXIT_STATUS = {OK: 0, WARN: 1, CRITICAL: 2}

_RUN_REVIEWER = "run the reviewer once more, and see to it that it succeeds"
_RETRIEVE = "run cortex-log-retrieval search QUERY"
_REBUILD = "build the index anew, or remove it and run cortex-health affirm no-index"
_ROTATE = "move old logs out of OBSERVABILITY, or compress them"

# ID: severity and remedy.
TABLE: dict[str, tuple[str, str]] = {
    "cortex-threshold-invalid": (CRITICAL, "set the variable to a number above 0, or unset it"),
    "cortex-now-invalid": (CRITICAL, "set CORTEX_HEALTH_NOW to an ISO time, or unset it"),
    "check-failed": (CRITICAL, "report it as a fault of cortex-health; the check has measured nothing"),
    "reviewer-latest-parse-failed": (CRITICAL, f"correct or remove what does not parse, then {_RUN_REVIEWER}"),
    "reviewer-latest-timed-out": (CRITICAL, f"look why it took so long, then {_RUN_REVIEWER}"),
    "reviewer-latest-failed": (CRITICAL, f"look into its log, then {_RUN_REVIEWER}"),
    "reviewer-evidence-invalid": (CRITICAL, "make the evidence readable and whole, or move it away"),
    "reviewer-evidence-missing": (WARN, "run the reviewer, or affirm that none runs: cortex-health affirm no-reviewer"),
    "reviewer-run-unrecognized": (WARN, "move what is no run out of OBSERVABILITY/reviewer-runs"),
    "reviewer-future": (WARN, "set the clock right, then run the reviewer"),
    "reviewer-stale": (WARN, "run the reviewer"),
    "retrieval-missing": (WARN, _RETRIEVE),
    "retrieval-evidence-malformed": (WARN, f"remove the bad lines or move the file away, then {_RETRIEVE}"),
    "retrieval-future": (WARN, f"set the clock right, then {_RETRIEVE}"),
    "retrieval-stale": (WARN, _RETRIEVE),
    "proposal-evidence-missing": (WARN, "queue a proposal with cortex propose; a decided one counts as evidence too"),
    "proposal-evidence-malformed": (WARN, "correct or remove the bad lines, or move what is no queue file away"),
    "proposal-backlog-high": (WARN, "decide some: cortex-proposals list, then approve or reject"),
    "observability-evidence-missing": (WARN, "use the tools that log: cortex-log-retrieval, cortex remember"),
    "observability-evidence-unreadable": (WARN, "make it readable, or move it out of OBSERVABILITY"),
    "observability-bytes-exceeded": (WARN, _ROTATE),
    "observability-age-exceeded": (WARN, _ROTATE),
    "index-evidence-missing": (WARN, "affirm that there is no index: cortex-health affirm no-index"),
    "index-manifest-invalid": (CRITICAL, f"move the broken file away, then {_REBUILD}"),
    "index-integrity-mismatch": (CRITICAL, _REBUILD),
    "index-freshness-invalid": (WARN, "set the clock right, then build the index anew"),
    "index-stale": (WARN, _REBUILD),
    "markers-corrupt": (CRITICAL, "one remembered entry heals the file (cortex remember), or use cortex-restore"),
    "pending-silent-loss": (WARN, "give each entry a known prefix and at most 256 characters"),
    "cap-pressure": (WARN, "forget some entries (cortex remember with op set) before the cap of 48"),
    "hot-memory-unreadable": (WARN, "make it a readable UTF-8 file, or restore it with cortex-restore"),
    "notes-cut-short": (WARN, "close the tag, or write &lt; where a bracket is meant; cortex-check lists the places"),
    "corpus-unsound": (CRITICAL, "correct it; cortex-check lists every such place"),
    "health-log-unwritable": (WARN, "make OBSERVABILITY writable, or set CORTEX_HEALTH_NO_WRITE=1"),
    "health-report-unwritable": (WARN, "set CORTEX_HEALTH_REPORT_PATH to a path in a writable folder"),
}


class Finding:
    """One thing that is wrong: `what` was found, its measured `evidence`; severity and remedy from the table."""

    __slots__ = ("evidence", "id", "what")

    def __init__(self, id: str, what: str, evidence: dict[str, Any]) -> None:
        self.id = id
        self.what = what
        self.evidence = evidence

    @property
    def severity(self) -> str:
        return TABLE[self.id][0]

    @property
    def remedy(self) -> str:
        return TABLE[self.id][1]

    def as_dict(self) -> dict[str, Any]:
        """The finding as a report shows it."""
        message = f"{self.what}; {self.remedy}"
        return {"id": self.id, "severity": self.severity, "message": message, "evidence": self.evidence}


class Outcome:
    """What one check measured: it passed where it has no finding."""

    __slots__ = ("check", "evidence", "findings")

    def __init__(self, check: str, evidence: dict[str, Any], findings: list[Finding]) -> None:
        self.check = check
        self.evidence = evidence
        self.findings = findings


def worst(findings: list[Finding]) -> str:
    """The worst severity among the findings, `ok` where there is none."""
    severities = {finding.severity for finding in findings}
    return CRITICAL if CRITICAL in severities else WARN if WARN in severities else OK
