"""What the benchmark's numbers mean: pure functions over a ranking, best first, and a label."""

from __future__ import annotations

from cortex_tools.contract.limits import DISCLOSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def recall(ranking: Sequence[str], expected: Sequence[str]) -> float:
    """The share of the expected IDs that are among the top five."""
    return len(set(ranking[:DISCLOSED]).intersection(expected)) / len(expected)


def reciprocal_rank(ranking: Sequence[str], expected: Sequence[str]) -> float:
    """1 over the place, from 1, of the first expected ID in the whole ranking; 0 where there is none."""
    wanted = set(expected)
    return next((1 / place for place, id in enumerate(ranking, 1) if id in wanted), 0.0)


def temporal_accuracy(ranking: Sequence[str], order: Sequence[str]) -> float:
    """The share of ordered pairs of `order` that the whole ranking holds in that order.

    A pair of which one is not there is wrong.  A single ID counts if it is there.
    """
    place = {id: number for number, id in enumerate(ranking)}
    if len(order) == 1:
        return 1.0 if order[0] in place else 0.0
    pairs = [(one, other) for at, one in enumerate(order) for other in order[at + 1 :]]
    return sum(one in place and other in place and place[one] < place[other] for one, other in pairs) / len(pairs)


def false_recall(ranking: Sequence[str], false: Sequence[str]) -> float | None:
    """The share of the false IDs that are among the top five; None where the label has none."""
    return recall(ranking, false) if false else None


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; `values` is not empty."""
    return sum(values) / len(values)


def tokens(payload_bytes: int) -> int:
    """Estimated tokens of a payload: its UTF-8 bytes divided by 4, rounded up."""
    return (payload_bytes + 3) // 4


def percentile95(samples: Sequence[float]) -> float:
    """The nearest-rank 95th percentile: the smallest sample that at least 95 % of all do not exceed."""
    ordered = sorted(samples)
    return ordered[(len(ordered) * 95 + 99) // 100 - 1]
