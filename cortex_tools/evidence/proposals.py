"""Proposals: how many wait for a person's decision."""

from __future__ import annotations

from cortex_tools.evidence import reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.layout import PROPOSAL_QUEUE, Layout
from cortex_tools.evidence.reading import Log, Missing, Unreadable
from cortex_tools.evidence.thresholds import Thresholds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK = "proposals"


def check(layout: Layout, thresholds: Thresholds, now_ms: int) -> Outcome:
    """Count the rows whose status is exactly `pending`.

    A queue without any row proves nothing: it may have been cut off.
    """
    evidence: dict[str, Any] = {"path": PROPOSAL_QUEUE}
    log = Log()
    pending = 0
    try:
        for row in reading.each_row(layout.root.descriptor, PROPOSAL_QUEUE, log):
            pending += row.get("status") == "pending"
    except Missing:
        return Outcome(CHECK, evidence, [Finding("proposal-evidence-missing", "there is no proposal queue", evidence)])
    except Unreadable as error:
        what = f"{PROPOSAL_QUEUE} {error}"
        return Outcome(CHECK, evidence, [Finding("proposal-evidence-malformed", what, evidence)])
    evidence |= log.evidence() | {"pending": pending, "threshold": thresholds["proposalBacklog"]}
    findings = []
    if log.is_empty:
        findings.append(Finding("proposal-evidence-missing", f"{PROPOSAL_QUEUE} holds no row", evidence))
    if log.malformed:
        lines = ", ".join(map(str, log.malformed_lines))
        what = f"{PROPOSAL_QUEUE} has malformed lines: {lines}"
        findings.append(Finding("proposal-evidence-malformed", what, evidence))
    if pending > thresholds["proposalBacklog"]:
        what = f"{pending} proposals are pending, more than {thresholds['proposalBacklog']}"
        findings.append(Finding("proposal-backlog-high", what, evidence))
    return Outcome(CHECK, evidence, findings)
