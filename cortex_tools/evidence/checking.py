"""Every problem of a corpus at once: the checks of the commands, told to go on instead of stopping (docs/checking.md).

No rule stands here.  The walk, the reading of notes and rows, records and the census report to a sink that
by default raises; here it collects.
"""

from __future__ import annotations

import codecs
import os

from cortex_tools.contract.errors import CortexError, Unsound
from cortex_tools.domain.privacy import MALFORMED, REMNANT, UNCLOSED
from cortex_tools.domain.text import without_controls
from cortex_tools.driver.run import afresh
from cortex_tools.evidence.heads import Head, has_key_twice
from cortex_tools.evidence.inspection import Entry, Inspection
from cortex_tools.evidence.removals import ORPHAN, SPAN, Removal, removals
from cortex_tools.files.names import shown
from cortex_tools.files.notes import NoteReader
from cortex_tools.files.reading import parse_note
from cortex_tools.files.root import Root, pin_root
from cortex_tools.files.walk import NoteFile, walk
from cortex_tools.stages.census import Census

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # Gives the files one after the other, and may tell somebody how far that has got.
    Watched = Callable[[list[NoteFile]], Iterable[NoteFile]]

_BRACKET = "write &lt; where a bracket is meant, or make it a whole tag"
_REMOVED = {
    SPAN: ("a private span was removed", ""),
    ORPHAN: ("a closing tag that nothing opens was removed", "remove it, or open the span"),
    MALFORMED: ("text is cut off from here: malformed opener", _BRACKET),
    UNCLOSED: ("text is cut off from here: never closed", "close the span with </private>"),
    REMNANT: ("text is cut off from here: a tag forms where a span was removed", _BRACKET),
}


def inspect(requested: bytes, watched: Watched = iter) -> Inspection:
    """Everything that is wrong with the corpus below a root, and what its authors may want to know.

    A corpus that changes under the reading is read afresh, as often as the commands do that; then the
    change is its only problem.
    """
    try:
        root = pin_root(requested)
    except CortexError as error:
        return _failed(None, error)
    try:
        return afresh(lambda: _Checker(root, watched).run())
    except CortexError as error:
        return _failed(root.text, error)
    finally:
        root.close()


def _failed(root: str | None, error: CortexError) -> Inspection:
    failed = Inspection()
    failed.root = root
    failed.problems.add(_entry(error, ""))
    return failed


def _entry(error: CortexError, file: str, line: int | None = None) -> Entry:
    if isinstance(error, Unsound):
        return Entry(file or error.where, error.line or line, error.what, error.mend)
    return Entry(file, line, error.message, "")


class _Checker:
    """One reading of the corpus."""

    def __init__(self, root: Root, watched: Watched) -> None:
        self._root = root
        self._watched = watched
        self._found = Inspection()
        self._found.root = root.text
        self._census = Census()
        self._full = False

    def run(self) -> Inspection:
        """Raises CortexError only where the corpus changed under it."""
        reader = NoteReader(self._root.descriptor)
        try:
            for file in self._watched(self._files()):
                self._notice_name(file)
                self._check(file, reader)
        finally:
            reader.close()
        self._census.check(self._report_doubles)
        return self._found

    def _files(self) -> list[NoteFile]:
        try:
            files = walk(self._root, self._report)
        except CortexError as error:
            self._report(error)
            return []  # which files are the corpus cannot be told
        self._notice_other_folder(files)
        return files

    def _report(self, error: CortexError, file: str = "", line: int | None = None) -> None:
        if error.changed:
            raise error
        self._found.problems.add(_entry(error, file, line))

    def _report_doubles(self, error: CortexError) -> None:
        """A problem of the census, whose places are `path:line`."""
        where, _, line = error.where.rpartition(":") if isinstance(error, Unsound) else ("", "", "")
        if where and line.isdigit():
            self._report(error, where, int(line))
        else:
            self._report(error)

    def _check(self, file: NoteFile, reader: NoteReader) -> None:
        try:
            data = reader.read(file)
        except CortexError as error:
            self._report(error)
            return
        self._found.notes += 1
        text = without_controls(data).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
        check = self._check_markdown if file.format == "markdown" else self._check_rows
        check(file, data, text)
        for removal in removals(text, file.format):
            self._notice(file, removal.first, *_REMOVED[removal.reason], last_line=_last_line(removal))

    def _check_markdown(self, file: NoteFile, data: bytes, text: str) -> None:
        head = Head(text)

        def report(error: CortexError) -> None:
            field = error.field if isinstance(error, Unsound) else ""
            self._report(error, shown(file.path), head.line(field))

        for record in parse_note(file, data, report):
            self._count(record.id, f"{file.path}:{head.line('id') or 1}")
        for line, what, mend in head.remarks():
            self._notice(file, line, what, mend)

    def _check_rows(self, file: NoteFile, data: bytes, text: str) -> None:
        name = shown(file.path)

        def report(error: CortexError) -> None:
            row = error.where.rpartition(":")[2] if isinstance(error, Unsound) else ""
            self._report(error, name, int(row) if row.isdigit() else None)

        for record in parse_note(file, data, report):
            self._count(record.id, record.where)
        for number, line in enumerate(text.split("\n"), 1):
            if has_key_twice(line):
                self._notice(file, number, "a key stands twice in the row; the last one counts", "remove the others")

    def _count(self, identifier: str, where: str) -> None:
        self._found.records += 1
        if not self._full:
            try:
                self._census.count(identifier, where)
            except CortexError:
                self._full = True  # the census says so at the end; more than the limit need not be remembered

    def _notice(self, file: NoteFile, line: int | None, what: str, mend: str, *, last_line: int | None = None) -> None:
        self._found.notices.add(Entry(shown(file.path), line, what, mend, last_line))

    def _notice_name(self, file: NoteFile) -> None:
        if any(char < " " or "\x7f" <= char <= "\x9f" for char in file.path):
            self._notice(file, None, "its name holds a control character", "rename it")

    def _notice_other_folder(self, files: list[NoteFile]) -> None:
        """Notes below MEMORY/KNOWLEDGE are not read where there is KNOWLEDGE, which may surprise."""
        try:
            os.stat("KNOWLEDGE", dir_fd=self._root.descriptor)
            os.stat("MEMORY/KNOWLEDGE", dir_fd=self._root.descriptor)
        except OSError:
            return  # one of them is not there; what is wrong with them is the walk's to say
        what = "nothing below it is read, because there is KNOWLEDGE beside MEMORY"
        self._found.notices.add(Entry("MEMORY/KNOWLEDGE", None, what, "move its notes to KNOWLEDGE"))


def _last_line(removal: Removal) -> int:
    return removal.first if removal.is_cut else removal.last
