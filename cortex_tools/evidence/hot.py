"""Hot memory: the two small files whose entries every session reads."""

from __future__ import annotations

import os

from cortex_tools.contract import limits
from cortex_tools.domain.text import trim, utf16_length
from cortex_tools.evidence import reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.layout import Layout
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.names import shown
from cortex_tools.governance.hot import BEGIN, END, parse
from cortex_tools.governance.items import ENTRY_PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK = "hot-memory"
PRESSURE = 46
"""From this many entries on the cap is announced."""


class Inspection:
    """A hot file's markers by line number, how many entries it holds, and the lines a writer would drop."""

    __slots__ = ("begins", "ends", "entries", "lost")

    def __init__(self, begins: list[int], ends: list[int], entries: int, lost: list[int]) -> None:
        self.begins = begins
        self.ends = ends
        self.entries = entries
        self.lost = lost

    @property
    def is_marked(self) -> bool:
        """Exactly one BEGIN and one END, in order."""
        return len(self.begins) == len(self.ends) == 1 and self.begins[0] < self.ends[0]


def inspect(text: str) -> Inspection:
    """Look at a hot file without changing it.

    What is an entry is our writer's to say, and it keeps what it does not know.  A writer that makes the
    block anew from its entries leaves out, between the markers, each line without a known prefix or with
    more after it than an entry may have.
    """
    begins: list[int] = []
    ends: list[int] = []
    odd: list[int] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = trim(raw)
        if line == BEGIN:
            begins.append(number)
        elif line == END:
            ends.append(number)
        elif line and not _is_kept(raw.removesuffix("\r")):
            odd.append(number)
    inside = range(begins[0], ends[-1]) if begins and ends else range(0)
    return Inspection(begins, ends, len(parse(text).entries), [number for number in odd if number in inside])


def _is_kept(line: str) -> bool:
    """Whether the line is an entry of a length that any writer takes."""
    prefix = next((prefix for prefix in ENTRY_PREFIXES if line.startswith(prefix)), None)
    return prefix is not None and utf16_length(line[len(prefix) :]) <= limits.ENTRY_UNITS


def check(layout: Layout) -> Outcome:
    """Judge the hot files that exist."""
    evidence: dict[str, Any] = {"files": []}
    findings: list[Finding] = []
    for folder, path in layout.hot:
        shown_path = shown(os.path.join(os.fsdecode(folder), path))
        try:
            data = _read(folder, path)
            text = data.decode("utf-8")
        except Missing:
            continue
        except UnicodeDecodeError as error:
            findings.append(_unreadable(shown_path, f"is not UTF-8 at byte {error.start}"))
            continue
        except Unreadable as error:
            findings.append(_unreadable(shown_path, str(error)))
            continue
        inspection = inspect(text)
        measured = {"path": shown_path, "entries": inspection.entries, "cap": limits.HOT_ENTRIES}
        evidence["files"].append(measured)
        findings += _judge(inspection, shown_path, measured)
    return Outcome(CHECK, evidence, findings)


def _read(folder: bytes, path: str) -> bytes:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing(path) from None
    except OSError as error:
        raise Unreadable(f"cannot be reached: {error.strerror}") from None
    try:
        return reading.read_file(descriptor, path, limits.FILE_BYTES)
    finally:
        os.close(descriptor)


def _unreadable(path: str, reason: str) -> Finding:
    return Finding("hot-memory-unreadable", f"{path} {reason}", {"path": path, "reason": reason})


def _judge(inspection: Inspection, path: str, measured: dict[str, Any]) -> list[Finding]:
    findings = []
    if not inspection.is_marked:
        marks = {"begin_lines": inspection.begins[:5], "end_lines": inspection.ends[:5]}
        what = f"{path} does not have one BEGIN and one END marker, in order"
        findings.append(Finding("markers-corrupt", what, measured | marks))
    if inspection.lost:
        lost = {"lines": inspection.lost[: reading.SHOWN_LINES], "count": len(inspection.lost)}
        what = f"{path} has {len(inspection.lost)} lines among its entries that a writer may drop silently"
        findings.append(Finding("pending-silent-loss", what, measured | lost))
    if inspection.entries >= PRESSURE:
        what = f"{path} holds {inspection.entries} entries"
        findings.append(Finding("cap-pressure", what, measured | {"threshold": PRESSURE}))
    return findings
