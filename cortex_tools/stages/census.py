"""Judging over all records, whichever process read them: duplicate IDs and the record limit (section 5)."""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.errors import Unsound, refuse
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.names import shown
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex_tools.domain.records import Report

Partial = list[tuple[str, str]]


class Census(Stage):
    """Passes records on and remembers their IDs; refuses, at the end, what no corpus may be."""

    def __init__(self) -> None:
        self._seen: Partial = []

    def take(self, item: Item) -> Item:
        if isinstance(item, Record):
            self.count(item.id, item.where)
        elif isinstance(item, Card):
            self.count(item.id, item.path)
        return item

    def count(self, identifier: str, where: str) -> None:
        """Remember one record or card; more than the limit need not be remembered."""
        self._seen.append((identifier, where))
        if len(self._seen) > limits.RECORDS:
            raise _too_many()

    def finish(self) -> Iterator[Item]:
        self.check()
        return iter(())

    def check(self, report: Report = refuse) -> None:
        """Raises integrity_error for too many records, then for an ID that stands twice."""
        if len(self._seen) > limits.RECORDS:
            report(_too_many())
        if len({identifier for identifier, _ in self._seen}) == len(self._seen):
            return
        first: dict[str, str] = {}
        for identifier, where in self._seen:
            if identifier in first:
                what = f"the ID {shown(identifier)} stands in {shown(first[identifier])} already"
                report(Unsound(shown(where), what, "give one of them another ID", field="id"))
            else:
                first[identifier] = where

    def partial(self) -> Partial:
        return self._seen

    def absorb(self, partial: Partial) -> None:
        self._seen += partial


def _too_many() -> Unsound:
    return Unsound("", f"the corpus has more than {limits.RECORDS} records", "move some away")
