"""cortex-unwrap: an envelope, or what export saved, back into a stream (docs/streams.md)."""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.domain import envelope as envelopes
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.names import shown
from cortex_tools.files.stdio import STDIN, say
from cortex_tools.stages.census import Census
from cortex_tools.stages.envelope import EXPORT_FORMAT
from cortex_tools.streams.documents import Document, fault
from cortex_tools.streams.items import Corpus, Item
from cortex_tools.streams.lines import encode, of_fields
from cortex_tools.streams.segments import LINE_BYTES, SegmentWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EXPORT = {"format", "items"}
_PAGE = {"items", "total", "page", "page_size"}
_DATA = {"get": _EXPORT, "export": _EXPORT, "search": _PAGE, "timeline": _PAGE | {"anchor"}}

# No root and no listing are known: such lines cannot be mixed with those of a corpus.
_HEAD = Corpus(None, "0" * 16, 1, 1, 0, 0)


def run(writer: SegmentWriter, descriptor: int = STDIN) -> None:
    """Unwrap what is read from `descriptor`.

    Raises integrity_error for what is no sound envelope, and the error that a failure envelope holds.

    Records are written as they come; that they are all of them is known, and sealed, only at the end.
    """
    document = Document(descriptor, LINE_BYTES)
    unwrapping = _Unwrapping(document, writer)
    unwrapping.read()
    document.end()
    unwrapping.finish()
    writer.seal()


class _Unwrapping:
    """What has been read of an envelope: small things are kept, records are written at once.

    Keys may come in any order, since other tools sort them.
    """

    def __init__(self, document: Document, writer: SegmentWriter) -> None:
        self._document = document
        self._writer = writer
        self._fields: dict[str, Any] = {}
        self._data: dict[str, Any] = {}
        self._bare = False
        self._cards: list[Card] = []
        self._card_bytes = 0
        self._count = 0
        self._written: dict[str, int] = {}
        self._census = Census()

    def read(self) -> None:
        self._document.start()
        for key in self._document.members():
            if not self._fields and not self._data and key == "kind":
                raise fault("is a stream already; cortex-unwrap takes an envelope")
            if key == "data":
                self._fields[key] = self._document.enter("map")
                if self._fields[key]:
                    for inner in self._document.members():
                        self._take_data(inner)
            elif key in _EXPORT:  # an export saved without its envelope
                self._bare = True
                self._take_data(key)
            else:
                self._fields[key] = self._document.value()

    def _take_data(self, key: str) -> None:
        if key != "items":
            self._data[key] = self._document.value()
            return
        self._data[key] = self._document.enter("array")
        if self._data[key]:
            for item in self._document.elements():
                self._count += 1
                self._take_item(item)

    def _take_item(self, fields: Any) -> None:
        where = f"item {self._count} of the envelope"
        if not isinstance(fields, dict):
            raise integrity_error(f"{where} is no object")
        if "score" not in fields:
            self._take_record(of_fields("record", fields, where), where)
            return
        card = of_fields("card", fields, where)
        assert isinstance(card, Card)
        self._card_bytes += len(encode(card))
        if len(self._cards) == limits.PAGE_SIZE or self._card_bytes > LINE_BYTES:
            raise integrity_error(f"the envelope holds more than a page of {limits.PAGE_SIZE} cards")
        self._cards.append(card)

    def _take_record(self, record: Item, where: str) -> None:
        """Write a record the first time that it comes: get repeats what is asked for twice, a stream does not."""
        from xxhash import xxh3_128_intdigest

        assert isinstance(record, Record)
        line = encode(record)
        if len(line) > LINE_BYTES:
            raise integrity_error(f"{where} is longer than a line of {LINE_BYTES} bytes")
        digest = xxh3_128_intdigest(line)
        if self._written.get(record.id, digest) != digest:
            raise integrity_error(
                f"{where} has the ID {shown(record.id)} of an item before it, and says something else"
            )
        if record.id in self._written:
            return
        self._written[record.id] = digest
        self._census.count(record.id, record.path)
        if not self._writer.open:
            self._writer.write(_HEAD)
        self._writer.write_line(line)

    # At the end.

    def finish(self) -> None:
        """Judge the whole, now that all of it has been seen, and write what was kept."""
        command = "export" if self._bare and not self._fields else self._command()
        wanted = _DATA[command]
        optional = {"expansion"} if command == "search" else set()
        if not wanted <= set(self._data) <= wanted | optional or self._data["items"] is not True:
            raise fault(f"has not the data of an envelope of {command}")
        if command in ("get", "export"):
            self._finish_records()
        else:
            self._finish_cards(command)

    def _command(self) -> str:
        """The envelope's command; raises the error of a failure, and integrity_error for what is no envelope."""
        fields = self._fields
        if self._bare or set(fields) != set(envelopes.FIELDS):
            raise fault("is no envelope: it needs exactly the fields " + ", ".join(envelopes.FIELDS))
        try:
            envelopes.check({**fields, "data": True if fields["data"] else None})
        except (ValueError, TypeError):
            raise fault("is no envelope of this schema: its fields do not fit together") from None
        if not fields["ok"]:
            raise CortexError(fields["error"]["code"], fields["error"]["message"])
        command: str = fields["command"]
        if command not in _DATA:
            raise fault(f"holds neither records nor cards; cortex-unwrap takes an envelope of {', '.join(_DATA)}")
        return command

    def _finish_records(self) -> None:
        if self._data["format"] != EXPORT_FORMAT:
            raise fault(f"is no export of the format {EXPORT_FORMAT}")
        if self._cards:
            raise fault("holds cards where an export holds records")
        if not self._written:  # whoever filtered an export may have found nothing
            self._writer.write(_HEAD)

    def _finish_cards(self, command: str) -> None:
        if self._written:
            raise fault(f"holds records where an envelope of {command} holds cards")
        self._check_page()
        for card in self._cards:
            self._census.take(card)
        self._census.check()
        items: list[Item] = [*self._cards]
        for kind, at in (("anchor", 0), ("expansion", len(items))):
            if kind in self._data:
                if not isinstance(self._data[kind], dict):
                    raise fault(f"has no object for its {kind}")
                items.insert(at, of_fields(kind, self._data[kind], f"the {kind} of the envelope"))
        self._writer.write(_HEAD)
        for item in items:
            self._writer.write(item)
        page, held, total = self._data["page"], len(self._cards), self._data["total"]
        if held < total:
            say(f"cortex-unwrap: note: page {page} holds {held} of {total} cards; the others are not in the envelope")

    def _check_page(self) -> None:
        """A page must hold what its numbers say: cards that were taken away must not go unnoticed."""
        total, page, size = (self._data[name] for name in ("total", "page", "page_size"))
        bounds = ((total, 0, limits.RECORDS), (page, 1, limits.PAGE), (size, 1, limits.PAGE_SIZE))
        if any(type(number) is not int or not low <= number <= high for number, low, high in bounds):
            raise fault("has no sound total, page or page_size")
        due = max(0, min(size, total - (page - 1) * size))
        if len(self._cards) != due:
            raise fault(
                f"holds {len(self._cards)} cards, and {due} by its numbers; "
                "filter after cortex-unwrap, with cortex-through, not before"
            )
