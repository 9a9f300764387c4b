"""Where the privacy boundary removed or cut off text of a note: by line, never the text."""

from __future__ import annotations

from cortex_tools.domain.privacy import MALFORMED, REMNANT, Stripped, Tags, may_hold_tag, strip, strip_private
from cortex_tools.evidence import reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SPAN = "private span"
ORPHAN = "closing tag without an opener"


class Removal:
    """Lines `first` to `last` (from 1) of a note; `reason` is SPAN, ORPHAN, or why text was cut off there."""

    __slots__ = ("first", "last", "reason")

    def __init__(self, first: int, last: int, reason: str) -> None:
        self.first = first
        self.last = last
        self.reason = reason

    @property
    def is_cut(self) -> bool:
        return self.reason not in (SPAN, ORPHAN)


def removals(text: str, format: str) -> Iterator[Removal]:
    """What was removed from a note's decoded text, in its order; of a row of JSONL, each reason once."""
    if format == "markdown":
        yield from _in_text(text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        for reason in dict.fromkeys(_in_row(line)):
            yield Removal(number, number, reason)


def _in_text(text: str) -> Iterator[Removal]:
    line, seen = 1, 0
    for start, end, reason in _places(text):
        line += text.count("\n", seen, start)
        last = line + text.count("\n", start, end)
        yield Removal(line, last, reason)
        seen = start


def _places(text: str) -> list[tuple[int, int, str]]:
    """Start, end and reason of all that stripping took out of `text`; a cut ends where it starts."""
    if not may_hold_tag(text):
        return []
    report = strip(text)
    found = [(start, end, _span_or_orphan(text, start)) for start, end in report.spans]
    cut = _cut_at(report)
    if cut is not None and report.reason is not None:
        found.append((cut, cut, report.reason))
    if report.malformed is not None and report.reason != MALFORMED:
        found.append((report.malformed, report.malformed, MALFORMED))
    return sorted(found)


def _span_or_orphan(text: str, start: int) -> str:
    tag = Tags(text).at(start)
    return ORPHAN if tag is not None and tag[1] else SPAN


def _cut_at(report: Stripped) -> int | None:
    if report.cut is None or report.reason != REMNANT:
        return report.cut
    return report.source(report.cut)


def _in_row(line: str) -> Iterator[str]:
    """Why the row lost text: as a line, or in one of its strings, whose escapes may hide a bracket."""
    for _, _, reason in _places(line):
        yield reason
    if "\\" not in line:
        return
    row = reading.parse_object(strip_private(line).encode("utf-8", "replace"))
    for value in row.values() if row is not None else ():
        for text in _texts(value):
            for _, _, reason in _places(text):
                yield reason


def _texts(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else (value,):
        if isinstance(text, str):
            yield text
