"""Records and cards: their fields, their JSON, and the rules that every record obeys (sections 6 and 10)."""

from __future__ import annotations

from cortex_tools.contract.errors import Unsound, refuse
from cortex_tools.domain.jsontext import quote, quote_long
from cortex_tools.domain.numbers import js_number
from cortex_tools.domain.text import is_blank, utf16_length
from cortex_tools.domain.timestamps import parse_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cortex_tools.contract.errors import CortexError

    # Takes a problem of the corpus: `refuse` raises it, cortex-check collects it and returns.
    Report = Callable[[CortexError], None]

RECORD_KEYS = (
    "id",
    "type",
    "title",
    "created",
    "updated",
    "provenance",
    "content",
    "related",
    "valid_from",
    "valid_until",
)
CARD_KEYS = ("id", "type", "created", "updated", "provenance", "score", "est_tokens")
PROVENANCE_KEYS = ("source", "session", "path")

# The fields of a card in the order of its constructor: plain values that can cross between processes.
CardFields = tuple[str, str, str, str, str, "str | None", str, int]


class Record:
    """One note or JSONL row, stripped and checked.

    `where` is its file (`path:line` for a row), for messages; `created_ms` and so on are milliseconds
    since 1970; a missing bound of the validity window is None.  `line` holds the stream line that the
    record came from, where it came from one, so that it can be passed on without being written anew.
    """

    kind = "record"
    __slots__ = (
        "content",
        "created",
        "created_ms",
        "from_ms",
        "id",
        "line",
        "path",
        "related",
        "session",
        "source",
        "title",
        "type",
        "until_ms",
        "updated",
        "updated_ms",
        "valid_from",
        "valid_until",
        "where",
    )

    def __init__(
        self,
        id: str,
        type: str,
        title: str,
        created: str,
        updated: str,
        source: str,
        session: str | None,
        path: str,
        content: str,
        related: list[str],
        valid_from: str | None,
        valid_until: str | None,
        where: str,
        report: Report = refuse,
    ) -> None:
        """Raises integrity_error, naming `where`, for a blank ID or times that break section 6.

        A record of which something has been reported is good for its ID alone.
        """
        self.id = id
        self.type = type
        self.title = title
        self.created = created
        self.updated = updated
        self.source = source
        self.session = session
        self.path = path
        self.content = content
        self.related = related
        self.valid_from = valid_from
        self.valid_until = valid_until
        self.where = where
        self.line: bytes | None = None
        if is_blank(id):
            report(Unsound(where, "id is blank", "give the record an ID, or no id field at all", field="id"))
        self.created_ms = _time(created, "created", where, report)
        if updated == created and (updated is created or self.created_ms is not _NO_TIME):
            self.updated_ms = self.created_ms
        else:
            self.updated_ms = _time(updated, "updated", where, report)
        if self.updated_ms < self.created_ms:
            report(Unsound(where, "updated lies before created", "correct one of them", field="updated"))
        self.from_ms = None if valid_from is None else _time(valid_from, "valid_from", where, report)
        self.until_ms = None if valid_until is None else _time(valid_until, "valid_until", where, report)
        if self.from_ms is not None and self.until_ms is not None and self.from_ms >= self.until_ms:
            what = "valid_from does not lie before valid_until"
            report(Unsound(where, what, "correct one of them", field="valid_until"))

    def is_valid_at(self, ms: int) -> bool:
        """Whether the validity window holds `ms`: from inclusive, until exclusive (section 8)."""
        return (self.from_ms is None or self.from_ms <= ms) and (self.until_ms is None or ms < self.until_ms)

    def json(self) -> str:
        """The record as compact JSON, keys in the contract's order: what `get` answers and what the digest is over."""
        related = ",".join([quote(link) for link in self.related])
        return (
            f'{{"id":{quote(self.id)},"type":{quote(self.type)},"title":{quote(self.title)},{_dates(self)},'
            f'"content":{quote_long(self.content)},"related":[{related}],'
            f'"valid_from":{_or_null(self.valid_from)},"valid_until":{_or_null(self.valid_until)}}}'
        )

    def card_fields(self) -> CardFields:
        """What a card takes from the record: all but the score."""
        tokens = est_tokens(self.content)
        return (self.id, self.type, self.created, self.updated, self.source, self.session, self.path, tokens)


class Card:
    """A record without its body: what search and timeline answer (section 10)."""

    kind = "card"
    __slots__ = ("created", "est_tokens", "id", "line", "path", "score", "session", "source", "type", "updated")

    def __init__(
        self,
        id: str,
        type: str,
        created: str,
        updated: str,
        source: str,
        session: str | None,
        path: str,
        est_tokens: int,
        score: float = 0.0,
    ) -> None:
        self.id = id
        self.type = type
        self.created = created
        self.updated = updated
        self.source = source
        self.session = session
        self.path = path
        self.score = score
        self.est_tokens = est_tokens
        self.line: bytes | None = None

    def fields(self) -> CardFields:
        """All but the score."""
        return (
            self.id,
            self.type,
            self.created,
            self.updated,
            self.source,
            self.session,
            self.path,
            self.est_tokens,
        )

    def json(self) -> str:
        """The card as compact JSON."""
        return (
            f'{{"id":{quote(self.id)},"type":{quote(self.type)},{_dates(self)},'
            f'"score":{js_number(self.score)},"est_tokens":{self.est_tokens}}}'
        )


def _dates(item: Record | Card) -> str:
    """The members that records and cards have in common in their middle."""
    return (
        f'"created":{quote(item.created)},"updated":{quote(item.updated)},"provenance":'
        f'{{"source":{quote(item.source)},"session":{_or_null(item.session)},"path":{quote(item.path)}}}'
    )


def _or_null(text: str | None) -> str:
    return "null" if text is None else quote(text)


def est_tokens(content: str) -> int:
    """The content's length in UTF-16 code units divided by 4, rounded up."""
    return (utf16_length(content) + 3) // 4


# Stands in for a time that is none once that has been reported: it compares false with every other, so that
# nothing else seems wrong because of it.
_NO_TIME: int = float("nan")  # type: ignore[assignment]


def _time(text: str, field: str, where: str, report: Report) -> int:
    ms = parse_ms(text)
    if ms is None:
        what = f"{field} is no timestamp" + (" but a template's place for one" if "{{" in text else "")
        mend = "write YYYY-MM-DD, or that with THH:MM:SS and Z or +HH:MM"
        report(Unsound(where, what, mend, field=field))
        return _NO_TIME
    return ms
