"""Error codes, their exit statuses, and the one exception that carries them (section 3)."""

from __future__ import annotations

SUCCESS = 0
EXIT_STATUS = {
    "internal_error": 1,
    "not_found": 3,
    "invalid_input": 4,
    "integrity_error": 4,
    "write_refused": 5,
    "governance_refused": 5,
}


class CortexError(Exception):
    """A refusal with a name: `code` is a key of EXIT_STATUS, `message` one clear sentence for people.

    `changed` marks a corpus that moved under the reader, the one failure that is worth trying again.
    `stage` names the executable that found it, once a stage has said so on a stream.
    """

    def __init__(self, code: str, message: str, *, changed: bool = False, stage: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.changed = changed
        self.stage = stage

    @property
    def status(self) -> int:
        """The exit status that belongs to the code."""
        return EXIT_STATUS[self.code]


class Unsound(CortexError):
    """What is wrong with the corpus: `where` (`path`, or `path:line` of a row; empty for the corpus as a whole),
    `what` is wrong there, how to `mend` it; `field` and `line` where the place within a note is known."""

    def __init__(
        self, where: str, what: str, mend: str, *, field: str = "", line: int | None = None, changed: bool = False
    ) -> None:
        super().__init__("integrity_error", f"{where}{where and ': '}{what}; {mend}", changed=changed)
        self.where = where
        self.what = what
        self.mend = mend
        self.field = field
        self.line = line


def refuse(error: CortexError) -> None:
    """Stop at the first problem: what every check does that is not told to report problems elsewhere."""
    try:
        raise error
    finally:
        del error  # else its traceback and this frame hold each other, and with them what the callers have open


def invalid_input(message: str) -> CortexError:
    return CortexError("invalid_input", message)


def integrity_error(message: str, *, changed: bool = False) -> CortexError:
    return CortexError("integrity_error", message, changed=changed)


def not_found(message: str) -> CortexError:
    return CortexError("not_found", message)
