"""Cut notes: where the privacy boundary cut a note's text off at an opener that is malformed or never closed."""

from __future__ import annotations

import codecs

from cortex_tools.contract.errors import CortexError
from cortex_tools.driver.run import afresh
from cortex_tools.evidence import reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.layout import Layout
from cortex_tools.evidence.removals import removals
from cortex_tools.files.names import shown
from cortex_tools.files.notes import NoteReader
from cortex_tools.files.reading import parse_note
from cortex_tools.files.walk import NoteFile, walk
from cortex_tools.stages.census import Census

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CHECK = "cut-notes"


def check(layout: Layout) -> Outcome:
    """Read the whole corpus, one note at a time, and count what was cut."""
    evidence: dict[str, Any] = {}
    try:
        cut, notes = afresh(lambda: _cut_places(layout))
    except CortexError as error:
        return Outcome(CHECK, evidence, [Finding("corpus-unsound", error.message, evidence)])
    evidence |= {"notes": notes, "count": len(cut), "paths": [shown(path) for path in cut[: reading.SHOWN_LINES]]}
    if not cut:
        return Outcome(CHECK, evidence, [])
    what = f"{len(cut)} notes lost their end to a private opener, first: {evidence['paths'][0]}"
    return Outcome(CHECK, evidence, [Finding("notes-cut-short", what, evidence)])


def _cut_places(layout: Layout) -> tuple[list[str], int]:
    """Where text was cut off, and how many notes were read; raises CortexError where the corpus is not sound."""
    cut: list[str] = []
    files = walk(layout.root)
    census = Census()
    reader = NoteReader(layout.root.descriptor)
    try:
        for file in files:
            data = reader.read(file)
            for record in parse_note(file, data):
                census.take(record)
            cut += _cut_in(file, data)
    finally:
        reader.close()
    census.check()
    return cut, len(files)


def _cut_in(file: NoteFile, data: bytes) -> Iterator[str]:
    """The note's path, or that with the line of each row, where the text was cut."""
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    lines = dict.fromkeys(removal.first for removal in removals(text, file.format) if removal.is_cut)
    if file.format != "markdown":
        yield from (f"{file.path}:{line}" for line in lines)
    elif lines:
        yield file.path
