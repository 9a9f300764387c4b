"""BM25 as section 9 has it: another implementation as oracle, tokens over all of Unicode, order, ties, recency."""

from __future__ import annotations

import itertools
import math
import random
import re
from pathlib import Path
from typing import Any

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.ranking import Statistics, distinct_terms, measure, query_terms, with_recency
from cortex_tools.library import Runtime, run_cortex
from tests.support import row, write_corpus

NOW = 1_750_000_000_000


def ranked(documents: list[str], query: str) -> list[float]:
    """The score of every document, 0 where no term occurs."""
    terms = distinct_terms(query)
    measured = [measure("", document, terms) for document in documents]
    statistics = Statistics(len(terms))
    for length, frequencies in measured:
        statistics.add(length, frequencies)
    scorer = statistics.scorer()
    return [0.0 if frequencies is None else scorer.score(length, frequencies) for length, frequencies in measured]


def search(root: Path, *arguments: str) -> list[tuple[str, float]]:
    status, envelope = run_cortex(["search", *arguments], Runtime(memory_root=root, now_ms=NOW))
    assert status == 0, envelope
    return [(card["id"], card["score"]) for card in envelope["data"]["items"]]


def corpus(folder: Path, rows: list[dict[str, Any]]) -> Path:
    return write_corpus(folder, {"KNOWLEDGE/a.jsonl": "".join(row(**fields) for fields in rows)})


# The oracle.


@pytest.mark.parametrize("seed", range(12))
def test_against_another_bm25(seed: int) -> None:
    """bm25s in Lucene's variant leaves out the constant factor k1 + 1 = 2.5, which moves no record."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(chance.choice([3, 12, 60]))]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    documents = [chance.choices(words, weights, k=chance.randrange(1, 60)) for _ in range(chance.choice([1, 7, 80]))]
    present = sorted({word for document in documents for word in document})
    oracle = bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64")
    oracle.index(documents, show_progress=False)
    for _ in range(6):
        query = chance.sample(present, min(len(present), chance.randrange(1, 9)))
        expected = [2.5 * float(score) for score in oracle.get_scores(query)]
        mine = ranked([" ".join(document) for document in documents], " ".join([*query, query[0], "nowhere"]))
        assert mine == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert [score == 0 for score in mine] == [not set(query) & set(document) for document in documents]


def test_by_hand() -> None:
    """Two of three records hold `loom`; lengths 2, 4 and 3 make an average of 3."""
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = idf * 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3))
    second = idf * 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 4 / 3))
    assert ranked(["loom vat", "Loom, loom; vat dye", "a b c"], "loom") == pytest.approx([first, second, 0], rel=1e-15)


def test_an_average_below_one_counts_as_one() -> None:
    """Four records, one token between them."""
    idf = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 1 / 1))
    assert ranked(["loom", "…", "!", "— —"], "loom")[0] == pytest.approx(expected, rel=1e-15)


def test_the_sum_runs_in_query_order() -> None:
    """Doubles do not add up the same in every order, so the order of the query is part of the score."""
    chance = random.Random(3)
    depends = 0
    for _ in range(60):
        documents = [" ".join(chance.choices("abcde", [9, 5, 3, 2, 1], k=chance.randrange(3, 30))) for _ in range(9)]
        terms = chance.sample("abcde", 5)
        single = {term: ranked(documents, term) for term in terms}
        for order in (terms, terms[::-1]):
            total = [0.0] * len(documents)
            for term in order:
                total = [score + more for score, more in zip(total, single[term], strict=True)]
            assert ranked(documents, " ".join(order)) == total  # to the last bit
        depends += ranked(documents, " ".join(terms)) != ranked(documents, " ".join(terms[::-1]))
    assert depends > 0


def test_a_repeated_term_counts_once() -> None:
    documents = ["loom vat", "vat", "loom loom"]
    assert ranked(documents, "loom vat LOOM loom") == ranked(documents, "loom vat")
    assert query_terms("loom vat LOOM loom") == ["loom", "vat", "loom", "loom"]


# Tokens.


def counted(text: str, terms: list[str]) -> tuple[int, list[int]]:
    """The contract's words: lower-case, then the runs of [a-z0-9]+."""
    tokens = re.findall("[a-z0-9]+", text.lower())
    return len(tokens), [tokens.count(term) for term in terms]


def measured(title: str, content: str, terms: list[str]) -> tuple[int, list[int]]:
    length, frequencies = measure(title, content, tuple(term.encode() for term in terms))
    return length, [0] * len(terms) if frequencies is None else list(frequencies)


def test_tokens_over_all_of_unicode() -> None:
    """Each code point between two letters: does it part them, join them, or turn into letters itself?"""
    terms = ["x", "y", "xy", "xk", "ky", "xky", "xi", "iy", "xiy", "k", "i", "x1y", "xay"]
    points = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    for start in range(0, len(points), 1024):
        block = points[start : start + 1024]
        text = " ".join(f"x{char}y" for char in block)
        if measured("", text, terms) != counted(" " + text, terms):
            wrong = [f"U+{ord(c):04X}" for c in block if measured("", f"x{c}y", terms) != counted(f"x{c}y", terms)]
            pytest.fail(f"tokens differ around {wrong or 'a neighbour of ' + hex(ord(block[0]))}")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("\u212aelvin 300\u212a", ["kelvin", "300k"]),  # the Kelvin sign
        ("\u0130stanbul D\u0130YAR", ["i", "stanbul", "di", "yar"]),  # lower case of U+0130 is i and U+0307
        ("na\u00efve cafe\u0301", ["na", "ve", "cafe"]),
        ("Stra\u00dfe \ufb01n \uff41 \u00b2 \u2460", ["stra", "e", "n"]),
        ("snake_case kebab-case don't 3.14", ["snake", "case", "kebab", "case", "don", "t", "3", "14"]),
        ("Ärger ÄRGER", ["rger", "rger"]),
        ("ſ ı µ Å", []),
        ("", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert query_terms(text) == tokens
    distinct = list(dict.fromkeys(tokens))
    assert distinct_terms(text) == tuple(term.encode() for term in distinct)
    assert measured("", text, distinct) == (len(tokens), [tokens.count(term) for term in distinct])


def test_title_and_content_are_parted() -> None:
    assert measured("loom", "vat", ["loom", "vat", "loomvat"]) == (2, [1, 1, 0])


def test_frequencies_of_neighbours_and_of_parts_of_words() -> None:
    terms = ["a", "aa", "loom", "oom"]
    text = "a a a aa aaa loom loom-loom heirloom loomx a"
    assert measured("a", text, terms) == counted("a " + text, terms)


def test_random_texts_are_measured_as_the_contract_says() -> None:
    chance = random.Random(5)
    alphabet = [*"abAB01", *"  -_.\n", "\u212a", "\u0130", "é", "ß", "Σ", "日", "\U0001f600", "\u0307"]
    for _ in range(1500):
        title, content = ("".join(chance.choices(alphabet, k=chance.randrange(25))) for _ in range(2))
        terms = query_terms("".join(chance.choices(alphabet, k=12))) or ["a"]
        terms = list(dict.fromkeys(terms))
        assert measured(title, content, terms) == counted(f"{title} {content}", terms)


def test_parts_of_a_corpus_add_up() -> None:
    """Measured in two halves and gathered, the statistics are those of the whole."""
    terms = distinct_terms("loom vat dye")
    documents = ["loom vat", "loom", "dye dye dye", "none of them", "vat loom vat"]
    whole, first, second = Statistics(3), Statistics(3), Statistics(3)
    for number, document in enumerate(documents):
        whole.add(*measure("t", document, terms))
        (first if number < 2 else second).add(*measure("t", document, terms))
    first.absorb(second.records, second.tokens, second.document_frequencies)
    assert (first.records, first.tokens) == (whole.records, whole.tokens) == (5, 17)
    assert first.document_frequencies == whole.document_frequencies == [3, 2, 1]


# Searching: what is left out, order, ties, recency.


def test_search_scores_over_the_filtered_records(tmp_path: Path) -> None:
    """N, df and the average are those of the records that validity and filters leave."""
    rows: list[dict[str, Any]] = [
        {"id": "a", "title": "x", "content": "loom", "type": "idea"},
        {"id": "b", "title": "x", "content": "vat vat vat", "type": "idea"},
        {"id": "c", "title": "x", "content": "loom loom", "type": "log"},
        {"id": "d", "title": "x", "content": "loom", "type": "idea", "valid_until": "2025-01-01"},
    ]
    root = corpus(tmp_path, rows)
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    score = idf * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3))
    assert search(root, "loom", "--type", "idea") == [("a", pytest.approx(score, abs=5.1e-7))]
    assert [found for found, _ in search(root, "loom")] == ["c", "a"]
    assert search(root, "nowhere") == []


def test_the_unrounded_value_orders(tmp_path: Path) -> None:
    """Weights that differ by less than the score shows, against the order of the IDs."""
    rows = [
        {"id": "a", "updated": "2024-01-02T00:00:00.000Z"},
        {"id": "b", "updated": "2024-01-02T00:00:00.001Z"},
        {"id": "c", "updated": "2024-01-02T00:00:00.002Z"},
    ]
    found = search(corpus(tmp_path, rows), "loom", "--recency", "1")
    assert [identifier for identifier, _ in found] == ["c", "b", "a"]
    assert len({score for _, score in found}) == 1


def test_ties_go_by_id(tmp_path: Path) -> None:
    identifiers = ["b", "B", "a", "_x", "é", "e", "10", "9", "ß", "A"]
    found = search(corpus(tmp_path, [{"id": one, "title": "t"} for one in identifiers]), "loom")
    assert [identifier for identifier, _ in found] == ["_x", "10", "9", "a", "A", "b", "B", "e", "é", "ß"]


def test_recency_adds_the_weighted_time(tmp_path: Path) -> None:
    rows = [{"id": "old", "created": "1960-01-01", "updated": "1960-01-01"}, {"id": "new", "updated": "2024-05-06"}]
    root = corpus(tmp_path, rows)
    plain = dict(search(root, "loom"))
    assert plain["old"] == plain["new"]
    base = ranked(["Row old loom row", "Row new loom row"], "loom")[0]
    found = search(root, "loom", "--recency", "2.5")
    old_ms, new_ms = -315_619_200_000, 1_714_953_600_000
    assert found == [
        ("new", pytest.approx(base + 2.5 * new_ms / 1e13, abs=5.1e-7)),
        ("old", pytest.approx(base + 2.5 * old_ms / 1e13, abs=5.1e-7)),
    ]
    # A value below zero is still an answer; only a score of 0, without recency, leaves a record out.
    assert search(root, "loom", "--recency", "1000")[1][1] < 0
    assert search(root, "nowhere", "--recency", "1000") == []


def test_recency_can_turn_the_order(tmp_path: Path) -> None:
    rows = [
        {"id": "relevant", "content": "loom loom loom", "updated": "2024-01-02"},
        {"id": "fresh", "content": "loom vat dye", "updated": "2024-12-31"},
    ]
    root = corpus(tmp_path, rows)
    assert [one for one, _ in search(root, "loom", "--recency", "0")] == ["relevant", "fresh"]
    assert [one for one, _ in search(root, "loom", "--recency", "1e3")] == ["fresh", "relevant"]


def test_with_recency() -> None:
    assert with_recency(1.5, 0.0, NOW) == 1.5
    assert with_recency(1.5, 2.0, NOW) == 1.5 + 2.0 * NOW / 1e13
    for weight, ms in itertools.product((1e300, 1.7e308), (NOW, -NOW)):
        with pytest.raises(CortexError, match="--recency") as caught:
            with_recency(1.0, weight, ms)
        assert caught.value.code == "invalid_input"


@pytest.mark.parametrize("weight", ["1e300", "1.7e308"])
def test_a_recency_that_overflows_is_bad_input(weight: str, tmp_path: Path) -> None:
    root = corpus(tmp_path, [{"id": "a"}])
    status, envelope = run_cortex(["search", "loom", "--recency", weight], Runtime(memory_root=root, now_ms=NOW))
    assert (status, envelope["error"]["code"]) == (4, "invalid_input")
    assert "--recency" in envelope["error"]["message"]
    assert search(root, "nowhere", "--recency", weight) == []  # no arithmetic, nothing to overflow


@given(
    st.text(alphabet="ab1 .-\nAKİé", max_size=40),
    st.text(alphabet="ab1 .-\nAKİé", max_size=40),
    st.lists(st.text(alphabet="abk1i", min_size=1, max_size=2), min_size=4, max_size=12, unique=True),
)
def test_many_terms_are_measured_as_each_of_them_alone(title: str, content: str, words: list[str]) -> None:
    terms = tuple(word.encode() for word in words)
    alone = [measure(title, content, (term,)) for term in terms]
    length, frequencies = measure(title, content, terms)
    assert {length} == {one for one, _ in alone}
    assert (frequencies or (0,) * len(terms)) == tuple((found or (0,))[0] for _, found in alone)
