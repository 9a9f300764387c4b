"""cortex-rank: BM25 for a query, best first (section 9)."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import EXECUTABLES
from cortex_tools.domain import values
from cortex_tools.domain.collation import id_key
from cortex_tools.domain.ranking import Statistics, distinct_terms, measure, shown_score, with_recency
from cortex_tools.domain.records import Card, CardFields, Record
from cortex_tools.stages.base import Stage
from cortex_tools.stages.bodies import Bodies
from cortex_tools.streams.lines import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DECLARED = EXECUTABLES["cortex-rank"]

# Of a record in which a term occurs: length, frequencies, updated in ms, and the fields of its card.
Match = tuple[int, tuple[int, ...], int, CardFields]
Partial = tuple[int, int, list[int], list[Match]]


def build(arguments: Arguments, now_ms: int) -> Rank:
    """Raises invalid_input for a query or a weight outside its bounds."""
    query = values.query(arguments.positionals[0])
    return Rank(query, values.recency(arguments.text("--recency")), bodies=arguments.flag("--bodies"))


class Rank(Stage):
    """Measures each record; at the end scores those in which a term occurs and gives their cards."""

    gathers = True

    def __init__(self, query: str, recency: float, *, bodies: bool) -> None:
        self._terms = distinct_terms(query)
        self._recency = recency
        self._statistics = Statistics(len(self._terms))
        self._matches: list[Match] = []
        self._bodies = Bodies() if bodies else None

    def take(self, item: Item) -> Item | None:
        if not isinstance(item, Record):
            return item
        length, frequencies = measure(item.title, item.content, self._terms)
        self._statistics.add(length, frequencies)
        if frequencies is not None:
            self._matches.append((length, frequencies, item.updated_ms, item.card_fields()))
            if self._bodies is not None:
                self._bodies.keep(item)
        return None

    def partial(self) -> Partial:
        statistics = self._statistics
        return statistics.records, statistics.tokens, statistics.document_frequencies, self._matches

    def absorb(self, partial: Partial) -> None:
        records, tokens, document_frequencies, matches = partial
        self._statistics.absorb(records, tokens, document_frequencies)
        self._matches += matches

    def finish(self) -> Iterator[Item]:
        scorer = self._statistics.scorer()
        ordered: list[tuple[float, int, float]] = []
        for number, (length, frequencies, updated_ms, _) in enumerate(self._matches):
            score = scorer.score(length, frequencies)
            if score > 0:
                value = with_recency(score, self._recency, updated_ms)
                ordered.append((-value, number, value))
        ordered.sort()
        for _, number, value in self._ties_by_id(ordered):
            if self._bodies is not None:
                yield self._bodies.give(number)
            else:
                yield Card(*self._matches[number][3], shown_score(value))

    def _ties_by_id(self, ordered: list[tuple[float, int, float]]) -> Iterator[tuple[float, int, float]]:
        """Records of equal value in ID order; the costly keys are made for those alone."""
        start = 0
        for end in range(1, len(ordered) + 1):
            if end < len(ordered) and ordered[end][0] == ordered[start][0]:
                continue
            if end - start == 1:
                yield ordered[start]
            else:
                yield from sorted(ordered[start:end], key=lambda entry: id_key(self._matches[entry[1]][3][0]))
            start = end
