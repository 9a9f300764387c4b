"""Whole records kept aside on disk, for `--bodies`: memory holds their places alone."""

from __future__ import annotations

from cortex_tools.domain.records import Record
from cortex_tools.files.spool import Spool
from cortex_tools.streams.items import Item
from cortex_tools.streams.lines import decode, encode


class Bodies:
    """Records in the order kept, given back by number."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._places: list[tuple[int, int]] = []

    def keep(self, record: Record) -> None:
        self._places.append(self._spool.add(encode(record)))

    def give(self, number: int) -> Item:
        self._spool.flush()
        return decode(self._spool.read(*self._places[number]), "a spooled line")
