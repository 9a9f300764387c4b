"""cortex-select: keep the records that are valid and match the filters (sections 4 and 8)."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import filters, values
from cortex_tools.domain.records import Card, Record
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Explanation, Item

_DECLARED = STAGES["cortex-select"]


def build(arguments: Arguments, now_ms: int) -> Select:
    """Raises invalid_input for values outside their grammar, and for --valid beside --at."""
    at_ms = values.time(_DECLARED.options["--at"], arguments.text("--at"))
    if arguments.flag("--valid"):
        if at_ms is not None:
            raise invalid_input("--valid and --at exclude each other: --valid means now")
        at_ms = now_ms
    limit = values.count(_DECLARED.options["--limit"], arguments.text("--limit"))
    ids = frozenset(arguments.texts("--id")) if "--id" in arguments.options else None
    return Select(filters.build(_DECLARED, arguments), at_ms, ids, limit)


class Select(Stage):
    """Passes on what matches; `at_ms` None means whatever its validity, `ids` None whatever its ID."""

    def __init__(
        self, selection: filters.Filters, at_ms: int | None, ids: frozenset[str] | None, limit: int | None
    ) -> None:
        self._filters = selection
        self._at = at_ms
        self._ids = ids
        self._left = limit
        self._kept: str | None = None

    def take(self, item: Item) -> Item | None:
        if isinstance(item, Explanation):  # it stands behind its card, and goes with it
            return item if item.id == self._kept else None
        self._kept = None
        if isinstance(item, Record):
            if self._at is not None and not item.is_valid_at(self._at):
                return None
            created_ms = item.created_ms
        elif isinstance(item, Card):
            if self._at is not None:
                raise invalid_input(
                    "cards carry no validity; put cortex-select --valid before cortex-rank or cortex-card"
                )
            created_ms = parse_ms(item.created) or 0
        else:
            return item
        if self._ids is not None and item.id not in self._ids:
            return None
        if not self._filters.keep(item, created_ms):
            return None
        if self._left is not None:
            if self._left == 0:
                return None
            self._left -= 1
        self._kept = item.id
        return item
