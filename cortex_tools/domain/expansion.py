"""Bounded breadth-first walk along `related` (section 10, search)."""

from __future__ import annotations

from cortex_tools.domain.records import Card


class Expansion:
    """The cards reached from a root, root first, their estimated tokens, and whether any was left out."""

    kind = "expansion"
    __slots__ = ("est_tokens", "items", "line", "truncated")

    def __init__(self, items: list[Card], est_tokens: int, truncated: bool) -> None:
        self.items = items
        self.est_tokens = est_tokens
        self.truncated = truncated
        self.line: bytes | None = None

    def json(self) -> str:
        items = ",".join(card.json() for card in self.items)
        truncated = "true" if self.truncated else "false"
        return f'{{"items":[{items}],"est_tokens":{self.est_tokens},"truncated":{truncated}}}'


def expand(root: str, nodes: dict[str, tuple[Card, list[str]]], max_nodes: int, max_tokens: int) -> Expansion:
    """Walk from `root`, a key of `nodes` (ID to card and links), until a budget is reached.

    Unknown IDs are ignored and each node is taken once; a card that would overrun the token budget
    ends the walk.  `truncated` is true exactly when a reachable record was left out (section 14.6).
    """
    queue = [root]
    reached = {root}
    items: list[Card] = []
    tokens = 0
    for identifier in queue:  # grows while it is walked
        card, links = nodes[identifier]
        if len(items) == max_nodes or tokens + card.est_tokens > max_tokens:
            return Expansion(items, tokens, True)
        items.append(card)
        tokens += card.est_tokens
        for link in links:
            if link in nodes and link not in reached:
                reached.add(link)
                queue.append(link)
    return Expansion(items, tokens, False)
