"""cortex-rank: BM25 for a query, best first (section 9)."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain import values
from cortex_tools.domain.collation import id_key
from cortex_tools.domain.ranking import Scorer, Statistics, distinct_terms, measure, shown_score, with_recency
from cortex_tools.domain.records import Card, CardFields, Record
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Explanation, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    # Title, content and terms to the length and the frequencies of the terms (None: no term occurs).
    Measure = Callable[[str, str, Any], "tuple[int, tuple[int, ...] | None]"]

# Of a record in which a term occurs: length, frequencies, updated in ms, and the fields of its card.
Match = tuple[int, tuple[int, ...], int, CardFields]
Partial = tuple[int, int, list[int], list[Match]]


def build(arguments: Arguments, now_ms: int) -> Rank:
    """Raises invalid_input for a query or a weight outside its bounds."""
    query, tokens = arguments.positionals[0], arguments.text("--tokens")
    terms: tuple[bytes, ...] | tuple[str, ...]
    how: Measure
    if tokens in (None, "ascii"):
        terms, how = distinct_terms(values.query(query)), measure
    elif tokens == "unicode":
        from cortex_tools.domain import words  # not on the path of the contract's search

        terms, how = tuple(dict.fromkeys(values.query_in_words(query))), words.measure
    else:
        raise invalid_input("--tokens must be ascii (the contract's terms) or unicode (words of any script)")
    recency = values.recency(arguments.text("--recency"))
    return Rank(terms, how, recency, bodies=arguments.flag("--bodies"), explain=arguments.flag("--explain"))


class Rank(Stage):
    """Measures each record; at the end scores those in which a term occurs and gives their cards."""

    gathers = True

    def __init__(
        self,
        terms: tuple[bytes, ...] | tuple[str, ...],
        measure: Measure,
        recency: float,
        *,
        bodies: bool = False,
        explain: bool = False,
    ) -> None:
        self._terms = terms
        self._measure = measure
        self._recency = recency
        self._statistics = Statistics(len(self._terms))
        self._matches: list[Match] = []
        self._bodies = None
        if bodies:
            from cortex_tools.stages.bodies import Bodies  # not on the path of the contract's commands

            self._bodies = Bodies()
        self._explain = explain

    def take(self, item: Item) -> Item | None:
        if not isinstance(item, Record):
            return item
        length, frequencies = self._measure(item.title, item.content, self._terms)
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
            if self._explain:
                yield self._explanation(scorer, number)

    def _explanation(self, scorer: Scorer, number: int) -> Explanation:
        length, frequencies, updated_ms, card = self._matches[number]
        shares = scorer.shares(length, frequencies)
        names = [term.decode() if isinstance(term, bytes) else term for term in self._terms]
        df = self._statistics.document_frequencies
        return Explanation(
            card[0],
            self._statistics.records,
            length,
            scorer.average,
            list(zip(names, df, scorer.idf, frequencies, shares, strict=True)),
            with_recency(0.0, self._recency, updated_ms),
            with_recency(scorer.score(length, frequencies), self._recency, updated_ms),
        )

    def prints(self, *, terminal: bool) -> bool:
        return terminal and self._explain

    def text(self) -> str:
        from cortex_tools.stages.explaining import table  # for people: not on the path of a stream

        return table([item for item in self.finish() if isinstance(item, Explanation)])

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
