"""Other implementations as oracles, on inputs made up at random: BM25 (bm25s), time (datetime), ID order (node)."""

from __future__ import annotations

import shutil

from cortex_tools.domain.timestamps import parse_ms
from tests.soak import kit
from tests.test_collation import COMPARE, LETTERS, MARKS, ORDER, by_key
from tests.test_numbers import node
from tests.test_ranking import test_against_another_bm25 as agree_on_a_corpus
from tests.test_timestamps import BAD, GOOD, by_datetime

SHARE = 1
BATCH = 5_000  # pairs of IDs in one call of node


def search(budget: kit.Budget) -> None:
    collates = shutil.which("node") is not None
    if not collates:
        print("oracles: node is not installed; ID order is left out", flush=True)
    while not budget.over():
        ranking(budget)
        for _ in range(20_000):
            timestamp(budget)
        if collates:
            id_order(budget)


def ranking(budget: kit.Budget) -> None:
    seed = budget.random.randrange(1 << 40)
    budget.tried += 1
    try:
        agree_on_a_corpus(seed)
    except AssertionError as error:
        raise kit.Finding(f"another score than bm25s has: {error}", f"test_against_another_bm25({seed})") from None


def timestamp(budget: kit.Budget) -> None:
    chance = budget.random
    text = chance.choice([*GOOD, *BAD]) or "2024-02-29"
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice("0123456789-:TZ+. \nz\u0661") + text[at + chance.randrange(2) :]
    budget.tried += 1
    if parse_ms(text) != by_datetime(text):
        raise kit.Finding(f"{parse_ms(text)} ms, by datetime {by_datetime(text)}", text)


def id_order(budget: kit.Budget) -> None:
    """Pairs that share most of their letters; marks without the cedilla, which ICU has in another place."""
    chance = budget.random
    letters = [*ORDER, *LETTERS.upper()]
    marked = [base + mark for base in "aAeEnN" for name, mark in MARKS.items() if name != "cedilla"]
    pairs = []
    for _ in range(BATCH):
        alphabet = letters if chance.random() < 0.5 else [*"aAeEnN", *marked]
        one = chance.choices(alphabet, k=chance.randrange(1, 4 if alphabet is not letters else 10))
        other = list(one)
        for _ in range(chance.randrange(1, 3)):
            other[chance.randrange(len(other))] = chance.choice(alphabet)
        pairs.append(["".join(one), "".join(other)])
    budget.tried += len(pairs)
    for pair, icu in zip(pairs, node(COMPARE, pairs), strict=True):
        if by_key(pair[0], pair[1]) != icu:
            raise kit.Finding(f"ID order {by_key(pair[0], pair[1])}, by ICU {icu}", pair)


if __name__ == "__main__":
    kit.main(search)
