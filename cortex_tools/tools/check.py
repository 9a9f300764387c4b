"""cortex-check: every integrity problem of the corpus, and where private text was removed or cut (docs/checking.md)."""

from __future__ import annotations

import json
import os
import re

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.grammar import count_positionals
from cortex_tools.domain.text import printable
from cortex_tools.evidence.checking import inspect
from cortex_tools.evidence.inspection import Entries, Entry, Inspection
from cortex_tools.files.root import requested_root
from cortex_tools.files.stdio import STDERR, write_all
from cortex_tools.tools import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from cortex_tools.files.walk import NoteFile

NAME = "cortex-check"
SOUND, CANNOT_PRINT, UNSOUND = 0, 1, 4
# In JSON they can stand as escapes: controls beyond ASCII, and what turns the direction of writing.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def main() -> NoReturn:
    """Run cortex-check and exit with its status."""
    program.run(NAME, work, cannot_write=CANNOT_PRINT)


def work(argv: list[str]) -> int:
    """Check the corpus that the arguments name; the answer is the exit status."""
    declared = EXECUTABLES[NAME]
    try:
        arguments = program.arguments(declared, argv)
        count_positionals(declared, arguments.positionals)
    except CortexError as error:
        program.complain(NAME, error)
        return error.status
    inspection = inspect(requested_root(None, arguments.text("--memory-root")), _watched)
    text = _json(inspection) if arguments.flag("--json") else _table(inspection)
    write_all(text.encode("utf-8", "replace"))
    return SOUND if inspection.is_sound else UNSOUND


def _watched(files: list[NoteFile]) -> Iterable[NoteFile]:
    if not os.isatty(STDERR):
        yield from files
        return
    from cortex_tools.files.progress import Progress

    with Progress("checking notes", files, lambda file: file.bytes) as progress:
        yield from progress


def _json(inspection: Inspection) -> str:
    text = json.dumps(inspection.as_dict(), ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda char: f"\\u{ord(char[0]):04x}", text) + "\n"


def _table(inspection: Inspection) -> str:
    problems, notices = len(inspection.problems), len(inspection.notices)
    verdict = "sound" if inspection.is_sound else "NOT SOUND"
    what = f"{_counted(inspection.notes, 'note')}, {_counted(inspection.records, 'record')}"
    text = f"{verdict}: {what}, {_counted(problems, 'problem')}, {_counted(notices, 'notice')}\n"
    text += _listed("problem", inspection.problems)
    return text + _listed("notice", inspection.notices)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(kind: str, entries: Entries) -> str:
    from cortex_tools.tools.showing import table  # rich costs more than the check of a small corpus

    if not entries.listed:
        return ""
    text = "\n" + table(("file", "line", kind, "what to do"), [_cells(entry) for entry in entries.listed])
    if entries.unlisted:
        text += f"and {_counted(entries.unlisted, kind)} more, counted and not listed\n"
    return text


def _cells(entry: Entry) -> tuple[str, ...]:
    lines = "" if entry.line is None else str(entry.line)
    if entry.last_line != entry.line:
        lines += f"-{entry.last_line}"
    return printable(entry.file or "(corpus)"), lines, printable(entry.what), printable(entry.mend)
