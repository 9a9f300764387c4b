"""From the bytes of listed notes to records: the one place where notes are read (sections 5-7)."""

from __future__ import annotations

import codecs

from cortex_tools.contract.errors import Unsound, refuse
from cortex_tools.domain.jsonl import CONTROL, REMOVE_CONTROL, parse_row
from cortex_tools.domain.markdown import parse_markdown
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import has_control, is_blank, without_controls
from cortex_tools.files.names import shown
from cortex_tools.files.notes import NoteReader
from cortex_tools.files.walk import NoteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cortex_tools.domain.records import Report


def read_records(root_descriptor: int, files: Iterable[NoteFile]) -> Iterator[Record]:
    """The stripped records of `files`, in order; raises integrity_error at the first that is not sound."""
    reader = NoteReader(root_descriptor)
    try:
        for file in files:
            yield from parse_note(file, reader.read(file))
    finally:
        reader.close()


def parse_note(file: NoteFile, data: bytes, report: Report = refuse) -> Iterator[Record]:
    """The records of one note from its bytes.

    Where `report` returns, what was reported is left out or stood in for, so that the rest can be judged.
    """
    # Controls are refused also inside private spans, so they are looked for before anything is stripped.
    if file.format == "markdown":
        if has_control(data):
            for at in _control_lines(data):
                report(Unsound(shown(file.path), CONTROL, REMOVE_CONTROL, line=at))
            data = without_controls(data)
        yield parse_markdown(_text(data.removeprefix(codecs.BOM_UTF8), file.path, None, report), file.path, report)
        return
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        text = _text(line, file.path, number, report)
        # The parser of JSON refuses a control by itself, but for DEL, C1, and what it does not get to see:
        # spans, which are stripped before, and blank lines.
        if (not text.isascii() or "<" in text or "\x7f" in text or text.isspace()) and has_control(line):
            report(Unsound(shown(f"{file.path}:{number}"), CONTROL, REMOVE_CONTROL, line=number))
            text = without_controls(text.encode()).decode()
        if not is_blank(text):
            row = parse_row(text, file.path, number, report)
            if row is not None:
                yield row


def _control_lines(data: bytes) -> Iterator[int]:
    """The lines of a note that hold a control character.

    Of what is no text at all, such as a picture or UTF-16, the first is enough.
    """
    is_text = _is_utf8(data)
    for number, line in enumerate(data.split(b"\n"), 1):
        if has_control(line):
            yield number
            if not is_text:
                return


def _text(data: bytes, path: str, row: int | None, report: Report) -> str:
    """`data` decoded, the whole of a note or one row of it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = path if row is None else f"{path}:{row}"
        line = data.count(b"\n", 0, error.start) + 1 if row is None else row
        report(Unsound(shown(where), f"not UTF-8 at byte {error.start}", "save it as UTF-8", line=line))
        return data.decode("utf-8", "replace")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
