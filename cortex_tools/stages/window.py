"""cortex-window: the neighbourhood of an anchor in time (section 10, timeline)."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input, not_found
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import filters, values
from cortex_tools.domain.collation import id_key
from cortex_tools.domain.records import Card, CardFields, Record
from cortex_tools.domain.timestamps import format_ms, parse_ms
from cortex_tools.files.names import shown
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Anchor, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DECLARED = STAGES["cortex-window"]

# Of what passes the filters: created in ms, and the fields of its card.
Seen = tuple[int, CardFields]
Partial = tuple[list[Seen], "tuple[int, str] | None"]


def build(arguments: Arguments, now_ms: int) -> Window:
    """Raises invalid_input for a missing anchor and for values outside their grammar or bounds."""
    anchor = values.required(_DECLARED.options["--anchor"], arguments.text("--anchor"))
    selection = filters.build(_DECLARED, arguments)
    before = values.count(_DECLARED.options["--before"], arguments.text("--before")) or 0
    after = values.count(_DECLARED.options["--after"], arguments.text("--after")) or 0
    return Window(anchor, before, after, selection, bodies=arguments.flag("--bodies"))


class Window(Stage):
    """Measures when each record or card was created; at the end gives the anchor and the cards around it."""

    gathers = True

    def __init__(self, anchor: str, before: int, after: int, selection: filters.Filters, *, bodies: bool) -> None:
        self._anchor = anchor
        self._before = before
        self._after = after
        self._filters = selection
        self._seen: list[Seen] = []
        self._found: tuple[int, str] | None = None
        self._bodies = None
        if bodies:
            from cortex_tools.stages.bodies import Bodies  # not on the path of the contract's commands

            self._bodies = Bodies()
        self._cards: dict[int, Card] = {}

    def take(self, item: Item) -> Item | None:
        if not isinstance(item, Record):
            if not isinstance(item, Card):
                return item
            self._take_card(item)
            return None
        if item.id == self._anchor:
            self._found = (item.created_ms, item.created)
        if self._filters.keep(item, item.created_ms):
            self._seen.append((item.created_ms, item.card_fields()))
            if self._bodies is not None:
                self._bodies.keep(item)
        return None

    def _take_card(self, card: Card) -> None:
        """A card keeps its place in time and its score: it is given back as it came."""
        if self._bodies is not None:
            raise invalid_input("cards carry no bodies; put cortex-window --bodies before cortex-rank or cortex-card")
        created_ms = parse_ms(card.created) or 0
        if card.id == self._anchor:
            self._found = (created_ms, card.created)
        if self._filters.keep(card, created_ms):
            self._cards[len(self._seen)] = card
            self._seen.append((created_ms, card.fields()))

    def partial(self) -> Partial:
        return self._seen, self._found

    def absorb(self, partial: Partial) -> None:
        seen, found = partial
        self._seen += seen
        self._found = self._found or found

    def finish(self) -> Iterator[Item]:
        if self._found is not None:
            at, date = self._found
            yield Anchor(self._anchor, date)
        else:
            ms = parse_ms(self._anchor)
            if ms is None:
                raise not_found(f"the anchor {shown(self._anchor)} is neither the ID of a valid record nor a timestamp")
            at = ms
            yield Anchor(None, format_ms(at))
        for number in self._around(at):
            if self._bodies is not None:
                yield self._bodies.give(number)
            else:
                yield self._cards.get(number) or Card(*self._seen[number][1])

    def _around(self, at: int) -> list[int]:
        """Numbers of the records of the window, in order of created, then ID."""
        earlier = [number for number, (ms, _) in enumerate(self._seen) if ms < at]
        later = [number for number, (ms, _) in enumerate(self._seen) if ms > at]
        centre = [number for number, (_, card) in enumerate(self._seen) if self._found and card[0] == self._anchor]
        last = self._in_order(earlier, self._before, newest=True)
        return last + centre + self._in_order(later, self._after, newest=False)

    def _in_order(self, numbers: list[int], count: int, *, newest: bool) -> list[int]:
        """The `count` newest or oldest of `numbers`, ordered; keys for IDs are made only near the edge."""
        if count == 0 or not numbers:
            return []
        times = sorted((self._seen[number][0] for number in numbers), reverse=newest)
        edge = times[min(count, len(times)) - 1]
        near = [
            number for number in numbers if (self._seen[number][0] >= edge if newest else self._seen[number][0] <= edge)
        ]
        near.sort(key=lambda number: (self._seen[number][0], id_key(self._seen[number][1][0])))
        return near[-count:] if newest else near[:count]
