"""cortex-expand: a bounded breadth-first walk from one record (section 10, search)."""

from __future__ import annotations

from cortex_tools.contract.errors import not_found
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import expansion, values
from cortex_tools.domain.records import Card, CardFields, Record
from cortex_tools.files.names import shown
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DECLARED = STAGES["cortex-expand"]

# The fields of a card, and the IDs it links to.
Node = tuple[CardFields, list[str]]


def build(arguments: Arguments, now_ms: int) -> Expand:
    """Raises invalid_input for budgets outside their bounds."""
    max_nodes = values.count(_DECLARED.options["--max-nodes"], arguments.text("--max-nodes")) or 0
    max_tokens = values.count(_DECLARED.options["--max-tokens"], arguments.text("--max-tokens")) or 0
    return Expand(arguments.positionals[0], max_nodes, max_tokens, dot=arguments.flag("--dot"))


class Expand(Stage):
    """Passes records on, remembering their cards and links; at the end gives the expansion.

    With `dot` the answer is the walk as a graph, and no stream.
    """

    def __init__(self, root: str, max_nodes: int, max_tokens: int, *, dot: bool = False) -> None:
        self._root = root
        self._max_nodes = max_nodes
        self._max_tokens = max_tokens
        self._nodes: list[Node] = []
        self._dot = dot
        self._titles: dict[str, str] = {}

    def take(self, item: Item) -> Item:
        if isinstance(item, Record):
            self._nodes.append((item.card_fields(), item.related))
            if self._dot:
                self._titles[item.id] = item.title
        return item

    def partial(self) -> list[Node]:
        return self._nodes

    def absorb(self, partial: list[Node]) -> None:
        self._nodes += partial

    def finish(self) -> Iterator[Item]:
        yield self._expand()

    def _expand(self) -> expansion.Expansion:
        nodes = {node[0][0]: (Card(*node[0]), node[1]) for node in self._nodes}
        if self._root not in nodes:
            raise not_found(f"the expansion root {shown(self._root)} is no valid record's ID")
        return expansion.expand(self._root, nodes, self._max_nodes, self._max_tokens)

    def prints(self, *, terminal: bool) -> bool:
        return self._dot

    def text(self) -> str:
        from cortex_tools.stages.graph import render  # not on the path of a stream

        links = {node[0][0]: node[1] for node in self._nodes}
        return render(self._root, [card.id for card in self._expand().items], links, self._titles)
