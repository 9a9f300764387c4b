"""Retrieval: the last row of the retrieval log, and what a row of it is."""

from __future__ import annotations

import re

from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.kinds import is_duration, is_finite, is_whole, time_ms
from cortex_tools.evidence.layout import RETRIEVAL_LOG, Layout
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.evidence.thresholds import Thresholds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK = "retrieval"

_REQUIRED = {"ts", "query_hash", "returned_count", "duration_ms"}
_OPTIONAL = {"top_score"}
# A hash, with or without the name of its kind before it; never words of a query.
_HASH = re.compile(r"(?:[a-z0-9-]{1,20}:)?[0-9a-f]{8,128}")


def check(layout: Layout, thresholds: Thresholds, now_ms: int) -> Outcome:
    """Judge the last row of the retrieval log."""
    evidence: dict[str, Any] = {"path": RETRIEVAL_LOG}

    def outcome(id: str | None, what: str = "") -> Outcome:
        return Outcome(CHECK, evidence, [] if id is None else [Finding(id, what, evidence)])

    try:
        log = reading.read_log(layout.root.descriptor, RETRIEVAL_LOG)
    except Missing:
        return outcome("retrieval-missing", "no retrieval is recorded")
    except Unreadable as error:
        return outcome("retrieval-evidence-malformed", f"{RETRIEVAL_LOG} {error}")
    evidence |= log.evidence()
    if log.malformed:
        lines = ", ".join(map(str, log.malformed_lines))
        return outcome("retrieval-evidence-malformed", f"{RETRIEVAL_LOG} has malformed lines: {lines}")
    if log.last is None:
        return outcome("retrieval-missing", f"{RETRIEVAL_LOG} holds no row")
    at = row_ms(log.last)
    if at is None:
        return outcome("retrieval-evidence-malformed", f"the last row of {RETRIEVAL_LOG} is no retrieval row")
    age = now_ms - at
    evidence |= {"last_ts": format_ms(at), "age_ms": age, "threshold_ms": thresholds["retrievalStaleMs"]}
    if age < 0:
        return outcome("retrieval-future", f"the last retrieval is of {format_ms(at)}")
    if age > thresholds["retrievalStaleMs"]:
        return outcome("retrieval-stale", f"the last recorded retrieval is of {format_ms(at)}")
    return outcome(None)


def row_ms(row: dict[str, Any]) -> int | None:
    """When the retrieval took place, in ms since 1970; None where the row is not exactly a retrieval row."""
    if not set(row) >= _REQUIRED or not set(row) <= _REQUIRED | _OPTIONAL:
        return None
    sound = (
        isinstance(row["query_hash"], str)
        and _HASH.fullmatch(row["query_hash"])
        and is_whole(row["returned_count"])
        and is_duration(row["duration_ms"])
        and is_finite(row.get("top_score", 0))
    )
    return time_ms(row["ts"]) if sound else None
