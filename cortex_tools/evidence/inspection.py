"""What a check of the corpus found: problems and notices, each with its place."""

from __future__ import annotations

from cortex_tools.contract import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Entry:
    """A problem or a notice: the file below the root (empty for the corpus as a whole), its lines where known,
    what there is, and how to mend it (empty where nothing need be done)."""

    __slots__ = ("file", "last_line", "line", "mend", "what")

    def __init__(self, file: str, line: int | None, what: str, mend: str, last_line: int | None = None) -> None:
        self.file = file
        self.line = line
        self.last_line = line if last_line is None else last_line
        self.what = what
        self.mend = mend

    def as_dict(self) -> dict[str, Any]:
        """The entry as --json shows it."""
        return {
            "file": self.file or None,
            "line": self.line,
            "last_line": self.last_line,
            "what": self.what,
            "mend": self.mend or None,
        }


class Entries:
    """At most CHECK_ENTRIES of them and CHECK_ENTRIES_OF_FILE a file; what goes beyond is counted."""

    def __init__(self) -> None:
        self.listed: list[Entry] = []
        self.unlisted = 0
        self._file = ""
        self._of_file = 0

    def add(self, entry: Entry) -> None:
        if entry.file != self._file:
            self._file, self._of_file = entry.file, 0
        self._of_file += 1
        # What concerns the corpus as a whole is said once each, and never crowded out.
        if entry.file and (self._of_file > limits.CHECK_ENTRIES_OF_FILE or len(self.listed) >= limits.CHECK_ENTRIES):
            self.unlisted += 1
        else:
            self.listed.append(entry)

    def __len__(self) -> int:
        return len(self.listed) + self.unlisted


class Inspection:
    """What is known of a corpus: its pinned root (None where there is none), how much was read, what was found."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.notes = 0
        self.records = 0
        self.problems = Entries()
        self.notices = Entries()

    @property
    def is_sound(self) -> bool:
        return len(self.problems) == 0

    def as_dict(self) -> dict[str, Any]:
        """The inspection as --json shows it."""
        return {
            "root": self.root,
            "sound": self.is_sound,
            "notes": self.notes,
            "records": self.records,
            "problems": [entry.as_dict() for entry in self.problems.listed],
            "notices": [entry.as_dict() for entry in self.notices.listed],
            "unlisted": {"problems": self.problems.unlisted, "notices": self.notices.unlisted},
        }
