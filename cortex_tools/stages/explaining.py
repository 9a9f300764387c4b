"""What scores are made of, as a table for people (cortex-rank --explain on a terminal)."""

from __future__ import annotations

import unicodedata

from cortex_tools.domain.ranking import shown_score
from cortex_tools.domain.text import printable
from cortex_tools.streams.items import Explanation


def table(explanations: list[Explanation]) -> str:
    """The query's terms over all records, then each card with its shares, best first."""
    if not explanations:
        return "No record holds a term of the query.\n"
    first = explanations[0]
    width = max(_width(term[0]) for term in first.terms)
    width = max(width, len("recency"))
    lines = [f"{first.records} records of {first.average:.1f} terms on average", ""]
    lines.append(f"{_padded('term', width)}  {'records':>7}  {'idf':>8}")
    lines += [f"{_padded(term, width)}  {df:>7}  {idf:>8.4f}" for term, df, idf, _, _ in first.terms]
    for explanation in explanations:
        lines += ["", f"{shown_score(explanation.score):.6f}  {printable(explanation.id)} ({explanation.length} terms)"]
        shares = [(term, f"{tf} x", share) for term, _, _, tf, share in explanation.terms if tf]
        if explanation.recency:
            shares.append(("recency", "", explanation.recency))
        lines += [
            f"  {share:>12.6f}  {_percent(share, explanation.score):>5}  {_padded(name, width)}  {times}".rstrip()
            for name, times, share in shares
        ]
    return "\n".join(lines) + "\n"


def _percent(share: float, score: float) -> str:
    return f"{100 * share / score:.0f} %" if score > 0 else ""


def _width(text: str) -> int:
    """Columns on a terminal: two for a wide character, none for a mark."""
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
