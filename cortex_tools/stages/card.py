"""cortex-card: records without their bodies (section 10)."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain.records import Card, Record
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Item


def build(arguments: Arguments, now_ms: int) -> Cards:
    return Cards()


class Cards(Stage):
    """Turns records into cards of score 0; cards and all other lines pass through."""

    def take(self, item: Item) -> Item:
        return Card(*item.card_fields()) if isinstance(item, Record) else item
