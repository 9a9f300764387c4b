"""Cut notes: where the privacy boundary cut a note's text off at an opener that is malformed or never closed."""

from __future__ import annotations

import codecs

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.privacy import may_hold_tag, strip, strip_private
from cortex_tools.evidence import reading
from cortex_tools.evidence.corpus import afresh
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.layout import Layout
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
    if file.format == "markdown":
        if _is_cut(text):
            yield file.path
        return
    for number, line in enumerate(text.split("\n"), 1):
        if _row_is_cut(line):
            yield f"{file.path}:{number}"


def _row_is_cut(line: str) -> bool:
    """Whether the row lost text: as a line, or in one of its strings, whose escapes may hide a bracket."""
    if "\\" not in line and not may_hold_tag(line):
        return False
    if _is_cut(line):
        return True
    row = reading.parse_object(strip_private(line).encode())
    return row is not None and any(_is_cut(text) for value in row.values() for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else (value,):
        if isinstance(text, str):
            yield text


def _is_cut(text: str) -> bool:
    return may_hold_tag(text) and strip(text).cut is not None
