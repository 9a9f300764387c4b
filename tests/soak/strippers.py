"""The naive stripper and the real one, whole and in pieces, on every string of tag pieces up to a length, then on
random ones."""

from __future__ import annotations

import itertools

from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.stripping import Stripper
from tests.soak import kit
from tests.test_privacy import PIECES, SUSPICIOUS, disagreement, joined

SHARE = 2

# Where only these follow each other, the strings are longer.
TAGS = ["<private>", "</private>", "<pri", "vate>", "</pri", "x", "\u200b"]
SMALL = ["<", ">", "/", "private", "pri", "vate", " ", "\u200b", "\uff1c", "\uff1e"]
BATCH = 2_000


def search(budget: kit.Budget) -> None:
    everything = itertools.chain.from_iterable(
        joined(pieces, length) for length in range(12) for pieces in (TAGS, SMALL, PIECES)
    )
    exhaustive = budget.share(0.6)
    while not exhaustive.over():
        check(budget, list(itertools.islice(everything, BATCH)))
    words = [*PIECES, *TAGS, *SUSPICIOUS]
    while not budget.over():
        check(budget, ["".join(budget.random.choices(words, k=budget.random.randrange(1, 16))) for _ in range(BATCH)])


def check(budget: kit.Budget, texts: list[str]) -> None:
    budget.tried += len(texts)
    found = disagreement(texts)
    if found is not None:
        raise kit.Finding("the two strippers differ", found)
    for text in texts[:: max(1, len(texts) // 200)]:
        size = budget.random.randrange(1, 6)
        stripper = Stripper()
        out = [stripper.feed(text[at : at + size]) for at in range(0, len(text), size)]
        if "".join([*out, stripper.finish()]) != strip_private(text):
            raise kit.Finding(f"in pieces of {size} characters it is stripped otherwise", text)


if __name__ == "__main__":
    kit.main(search)
