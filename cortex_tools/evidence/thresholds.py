"""The thresholds of health and their overrides, as one table."""

from __future__ import annotations

from cortex_tools.domain import values
from cortex_tools.evidence.findings import Finding
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

# Name in the report, default, and the environment variable that overrides it ("" for none).
TABLE: tuple[tuple[str, int, str], ...] = (
    ("reviewerStaleMs", 7 * DAY_MS, ""),
    ("reviewerRunGraceMs", 10 * MINUTE_MS, ""),
    ("retrievalStaleMs", DAY_MS, "CORTEX_RETRIEVAL_STALE_MS"),
    ("proposalBacklog", 10, "CORTEX_PROPOSAL_BACKLOG"),
    ("observabilityMaxBytes", 256 * 1024 * 1024, "CORTEX_OBSERVABILITY_MAX_BYTES"),
    ("observabilityMaxAgeMs", 30 * DAY_MS, "CORTEX_OBSERVABILITY_MAX_AGE_MS"),
    ("indexStaleMs", 7 * DAY_MS, ""),
)

_SHOWN_VALUE = 80

Thresholds = dict[str, "int | float"]


def effective(environ: Mapping[str, str]) -> tuple[Thresholds, list[Finding]]:
    """The thresholds in force, and a finding for each override that is no finite number above 0.

    An empty string counts as unset.
    """
    thresholds: Thresholds = {}
    findings = []
    for name, default, variable in TABLE:
        thresholds[name] = default
        text = environ.get(variable, "") if variable else ""
        if not text:
            continue
        value = _positive(text)
        if value is None:
            findings.append(_invalid(variable, name, text, default))
        else:
            thresholds[name] = value
    return thresholds, findings


def _positive(text: str) -> int | float | None:
    value = values.decimal(text)
    if not value:
        return None
    return int(value) if value.is_integer() else value


def _invalid(variable: str, name: str, text: str, default: int) -> Finding:
    value = shown(text[:_SHOWN_VALUE])
    return Finding(
        "cortex-threshold-invalid",
        f"{variable} is no finite number above 0, so {name} stays at {default}",
        {"variable": variable, "threshold": name, "value": value, "default": default},
    )
