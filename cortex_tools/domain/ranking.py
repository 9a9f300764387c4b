"""BM25 in two halves: measuring one record, and scoring over all of them (section 9)."""

from __future__ import annotations

import math

from cortex_tools.contract.errors import invalid_input
from cortex_tools.domain.numbers import round6

K1 = 1.5
B = 0.75
RECENCY_SCALE = 1e13

_WORD_BYTES = b"0123456789abcdefghijklmnopqrstuvwxyz"
_UPPER, _LOWER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
# Lower case with every byte that is part of no token as a space; and tokens as runs of `a` alone.
_TO_TOKENS = bytes.maketrans(
    bytes(code for code in range(256) if code not in _WORD_BYTES + _UPPER) + _UPPER,
    b" " * (256 - len(_WORD_BYTES + _UPPER)) + _LOWER,
)
# Up to so many terms, looking for each costs less than cutting the text into words.
_FEW_TERMS = 3
_TO_RUNS = bytes(0x20 if byte == 0x20 else 0x61 for byte in _TO_TOKENS)


def query_terms(query: str) -> list[str]:
    """All tokens of a query, in order, repeats included."""
    return query.lower().encode("utf-8", "surrogatepass").translate(_TO_TOKENS).decode().split()


def distinct_terms(query: str) -> tuple[bytes, ...]:
    """The terms that count, each once, in the order in which they first appear; ASCII bytes."""
    return tuple(term.encode() for term in dict.fromkeys(query_terms(query)))


def measure(title: str, content: str, terms: tuple[bytes, ...]) -> tuple[int, tuple[int, ...] | None]:
    """The number of tokens of a record, and each term's frequency in it (None: no term occurs).

    Works on bytes: translating and counting them is several times as fast as an expression per word.
    """
    text = f" {title} {content} "
    if text.isascii():
        data = text.encode()
    else:
        # The only two characters outside ASCII whose lower case holds ASCII letters or digits.
        data = text.encode().replace(b"\xe2\x84\xaa", b"k").replace(b"\xc4\xb0", b"i ")
    if len(terms) > _FEW_TERMS:
        return _measure_by_words(data.translate(_TO_TOKENS).split(), terms)
    length = data.translate(_TO_RUNS).count(b" a")
    lower = data.lower()
    for term in terms:
        if term in lower:
            break
    else:
        return length, None
    tokens = data.translate(_TO_TOKENS)
    # Each token gets spaces of its own, since count() does not see overlapping matches.
    spaced = tokens.replace(b" ", b"  ")
    frequencies = tuple(spaced.count(b" %b " % term) for term in terms)
    return length, frequencies if any(frequencies) else None


def _measure_by_words(words: list[bytes], terms: tuple[bytes, ...]) -> tuple[int, tuple[int, ...] | None]:
    """As `measure`, from the tokens: the cost does not grow with the number of terms."""
    counts = dict.fromkeys(terms, 0)
    for word in filter(counts.__contains__, words):
        counts[word] += 1
    return len(words), tuple(counts.values()) if any(counts.values()) else None


class Statistics:
    """What scoring needs to know of all records together.

    `records` is N, `tokens` the sum of their lengths, `document_frequencies` one per term.
    """

    __slots__ = ("document_frequencies", "records", "tokens")

    def __init__(self, terms: int) -> None:
        self.records = 0
        self.tokens = 0
        self.document_frequencies = [0] * terms

    def add(self, length: int, frequencies: tuple[int, ...] | None) -> None:
        """Count one measured record."""
        self.records += 1
        self.tokens += length
        if frequencies is not None:
            for term, frequency in enumerate(frequencies):
                if frequency:
                    self.document_frequencies[term] += 1

    def absorb(self, records: int, tokens: int, document_frequencies: list[int]) -> None:
        """Add the counts of another part of the corpus."""
        self.records += records
        self.tokens += tokens
        pairs = zip(self.document_frequencies, document_frequencies, strict=True)
        self.document_frequencies = [mine + theirs for mine, theirs in pairs]

    def scorer(self) -> Scorer:
        return Scorer(self)


class Scorer:
    """The scoring half, with everything that is the same for all records worked out once."""

    __slots__ = ("_average", "_idf")

    def __init__(self, statistics: Statistics) -> None:
        count = statistics.records
        self._idf = [math.log(1 + (count - df + 0.5) / (df + 0.5)) for df in statistics.document_frequencies]
        self._average = max(1.0, statistics.tokens / count if count else 0.0)

    def score(self, length: int, frequencies: tuple[int, ...]) -> float:
        """The BM25 score of one record: summed over the terms in query order, in doubles."""
        norm = K1 * (1 - B + B * length / self._average)
        total = 0.0
        for idf, frequency in zip(self._idf, frequencies, strict=True):
            if frequency:
                total += idf * (frequency * (K1 + 1)) / (frequency + norm)
        return total

    @property
    def average(self) -> float:
        """The average length of the records in terms, at least 1."""
        return self._average

    @property
    def idf(self) -> list[float]:
        """The inverse document frequency of each term."""
        return self._idf

    def shares(self, length: int, frequencies: tuple[int, ...]) -> list[float]:
        """What each term adds to `score`: added up from the left they are that score, to the last bit."""
        alone = [0] * len(frequencies)
        shares = []
        for term, frequency in enumerate(frequencies):
            alone[term] = frequency
            shares.append(self.score(length, tuple(alone)))
            alone[term] = 0
        return shares


def with_recency(score: float, recency: float, updated_ms: int) -> float:
    """The ordering value of a record: its score plus the weighted time of its last update.

    Raises invalid_input where the arithmetic overflows.
    """
    value = score + recency * updated_ms / RECENCY_SCALE
    if not math.isfinite(value):
        raise invalid_input("--recency is so large that the arithmetic overflows; give a smaller weight")
    return value


shown_score = round6
"""The score as a card shows it."""
