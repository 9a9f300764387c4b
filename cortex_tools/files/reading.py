"""From the bytes of listed notes to records: the one place where notes are read (sections 5-7)."""

from __future__ import annotations

import codecs

from cortex_tools.contract.errors import integrity_error
from cortex_tools.domain.jsonl import parse_row
from cortex_tools.domain.markdown import parse_markdown
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import has_control, is_blank
from cortex_tools.files.names import shown
from cortex_tools.files.notes import NoteReader
from cortex_tools.files.walk import NoteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def read_records(root_descriptor: int, files: Iterable[NoteFile]) -> Iterator[Record]:
    """The stripped records of `files`, in order; raises integrity_error at the first that is not sound."""
    reader = NoteReader(root_descriptor)
    try:
        for file in files:
            yield from parse_note(file, reader.read(file))
    finally:
        reader.close()


def parse_note(file: NoteFile, data: bytes) -> Iterator[Record]:
    """The records of one note from its bytes."""
    # Controls are refused also inside private spans, so they are looked for before anything is stripped.
    if has_control(data):
        raise integrity_error(f"{_first_control(file, data)} holds a control character; remove it")
    data = data.removeprefix(codecs.BOM_UTF8)
    if file.format == "markdown":
        yield parse_markdown(_text(data, file.path), file.path)
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        text = _text(line, f"{file.path}:{number}")
        if not is_blank(text):
            yield parse_row(text, file.path, number)


def _first_control(file: NoteFile, data: bytes) -> str:
    """Where the first control character stands: the file, and for JSONL its line."""
    if file.format == "markdown":
        return shown(file.path)
    lines = enumerate(data.split(b"\n"), 1)
    return shown(f"{file.path}:{next(number for number, line in lines if has_control(line))}")


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise integrity_error(f"{shown(where)} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
