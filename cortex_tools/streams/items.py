"""What travels on a stream, as values; `streams.lines` has their lines (docs/streams.md)."""

from __future__ import annotations

from cortex_tools.domain.expansion import Expansion
from cortex_tools.domain.jsontext import json_text
from cortex_tools.domain.numbers import js_number
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.walk import NoteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Corpus:
    """The head of a segment: pinned root, listing, which part of how many, its files and their bytes.

    `root` is None where the lines come from no corpus but from an envelope.
    """

    kind = "corpus"
    __slots__ = ("root", "listing", "part", "parts", "files", "bytes")

    def __init__(self, root: str | None, listing: str, part: int, parts: int, files: int, bytes: int) -> None:
        self.root = root
        self.listing = listing
        self.part = part
        self.parts = parts
        self.files = files
        self.bytes = bytes


class Anchor:
    """The centre of a timeline: a record's ID or None, and its date as the envelope shows it."""

    kind = "anchor"
    __slots__ = ("id", "date")

    def __init__(self, id: str | None, date: str) -> None:
        self.id = id
        self.date = date


class Digest:
    """The canonical digest: 64 lower-case hex digits, and the number of records."""

    kind = "digest"
    __slots__ = ("sha256", "records")

    def __init__(self, sha256: str, records: int) -> None:
        self.sha256 = sha256
        self.records = records


class Result:
    """What a write answered: the adapter's name and the result of governance, which is a success."""

    kind = "result"
    __slots__ = ("adapter", "result")

    def __init__(self, adapter: str, result: dict[str, Any]) -> None:
        self.adapter = adapter
        self.result = result


class Seal:
    """The end of a segment: who wrote it, how many lines, XXH3-64 of their bytes in hex."""

    kind = "seal"
    __slots__ = ("stage", "lines", "xxh3", "unsealed")

    def __init__(self, stage: str, lines: int, xxh3: str, unsealed: bool) -> None:
        self.stage = stage
        self.lines = lines
        self.xxh3 = xxh3
        self.unsealed = unsealed


class Failure:
    """An error on a stream: what an upstream stage refused, and with which exit status."""

    kind = "error"
    __slots__ = ("code", "message", "stage")

    def __init__(self, code: str, message: str, stage: str) -> None:
        self.code = code
        self.message = message
        self.stage = stage


class Explanation:
    """What the score of the card before it is made of (cortex-rank --explain).

    `terms` holds (term, document frequency, idf, frequency in the record, share) in the order of the
    query; `length` is the record's and `average` that of all `records`, in terms, the latter at least 1.
    The shares and `recency`, added up in this order, are `score`, unrounded.
    """

    kind = "explanation"
    __slots__ = ("id", "records", "length", "average", "terms", "recency", "score")

    def __init__(
        self,
        id: str,
        records: int,
        length: int,
        average: float,
        terms: list[tuple[str, int, float, int, float]],
        recency: float,
        score: float,
    ) -> None:
        self.id = id
        self.records = records
        self.length = length
        self.average = average
        self.terms = terms
        self.recency = recency
        self.score = score

    def json(self) -> str:
        """The explanation as compact JSON."""
        terms = ",".join(
            f'{{"term":{json_text(term)},"df":{df},"idf":{js_number(idf)},"tf":{tf},"share":{js_number(share)}}}'
            for term, df, idf, tf, share in self.terms
        )
        return (
            f'{{"id":{json_text(self.id)},"records":{self.records},"length":{self.length},'
            f'"average":{js_number(self.average)},"terms":[{terms}],'
            f'"recency":{js_number(self.recency)},"score":{js_number(self.score)}}}'
        )


Item = Corpus | NoteFile | Record | Card | Explanation | Anchor | Expansion | Digest | Result | Failure | Seal
