"""ID order: the table of section 9 pair by pair, marks, case, what is equal, and ICU for ASCII."""

from __future__ import annotations

import itertools
import random
import unicodedata
from functools import cmp_to_key

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.domain.collation import id_key
from tests.test_numbers import needs_node, node

# From the contract, space and line characters first.
PUNCTUATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ORDER = [*"\t\n\r", " ", *PUNCTUATION, *"0123456789", *LETTERS]
MARKS = {
    "acute": "\u0301",
    "grave": "\u0300",
    "breve": "\u0306",
    "circumflex": "\u0302",
    "caron": "\u030c",
    "ring": "\u030a",
    "diaeresis": "\u0308",
    "double acute": "\u030b",
    "tilde": "\u0303",
    "dot above": "\u0307",
    "ogonek": "\u0328",
    "cedilla": "\u0327",
    "macron": "\u0304",
}


def before(smaller: str, larger: str) -> bool:
    return id_key(smaller) < id_key(larger)


def test_the_table_is_all_of_ascii() -> None:
    printable = {chr(code) for code in range(0x20, 0x7F)}
    assert set(ORDER) | set(LETTERS.upper()) == printable | set("\t\n\r")


def test_every_pair() -> None:
    for smaller, larger in itertools.combinations(ORDER, 2):
        assert before(smaller, larger)
        assert before(f"x{smaller}~~", f"x{larger}")  # what follows does not matter
        assert before(f"x{smaller}", f"X{larger}") and before(f"X{smaller}", f"x{larger}")  # nor does case before it
        assert before(f"é{smaller}", f"e{larger}") and before(f"e{smaller}", f"é{larger}")  # nor do marks
        assert before(smaller, f"{smaller}{larger}")  # a beginning comes first


def test_case_decides_last_at_the_first_difference() -> None:
    assert sorted(["B", "b", "A", "a", "aB", "Ab", "AB", "ab"], key=id_key) == [
        "a", "A", "ab", "aB", "Ab", "AB", "b", "B",
    ]  # fmt: skip
    assert before("Aa", "aB")


@pytest.mark.parametrize(("one", "other"), [*itertools.pairwise(MARKS)])
def test_marks_in_order(one: str, other: str) -> None:
    for base in ("a", "Z"):
        assert before(base, base + MARKS[one])
        assert before(base + MARKS[one], base + MARKS[other])


def test_marks_decide_before_case_and_after_letters() -> None:
    assert sorted(["É", "é", "E", "e", "f", "éa", "ea", "eá"], key=id_key) == [
        "e",
        "E",
        "é",
        "É",
        "ea",
        "eá",
        "éa",
        "f",
    ]
    assert before("Eb", "éb")
    assert before("ez", "éz") and before("éz", "f")


def test_the_first_difference_of_marks_decides() -> None:
    assert before("aé", "áe")
    assert before("áe", "áé")
    assert before("áè", "àé")  # acute before grave at the first letter, whatever the second says
    assert before("e\u0301", "e\u0301\u0300")  # fewer marks first


@pytest.mark.parametrize("char", ["é", "Å", "ñ", "ç", "ů", "ő", "ē", "ą", "ğ", "ź", "Ǻ", "ṩ", "ǖ", "й"])
def test_decomposed_is_composed(char: str) -> None:
    apart = unicodedata.normalize("NFD", char)
    assert apart != char
    assert id_key(f"x{char}y") == id_key(f"x{apart}y")


def test_an_id_without_marks_has_one_key_in_every_company() -> None:
    """Keys of ASCII IDs are made another way: they must compare with the others all the same."""
    assert sorted(["nob", "ñob", "noa", "ñoa", "NOA"], key=id_key) == ["noa", "NOA", "ñoa", "nob", "ñob"]
    assert before("zz", "ß") and before("~", "é") and before("d", "é") and before("é", "f")


def test_the_rest_sorts_after_ascii_by_code_point() -> None:
    others = ["ß", "æ", "ø", "đ", "ı", "Ω", "я", "א", "ก", "一", "丁", "\uff5e", "\U0001f600", "\U00020000"]
    random.Random(12).shuffle(others)
    assert sorted(others, key=id_key) == sorted(others)
    for char in others:
        assert before("zz", char) and before("$", char)
    assert before("\uff5e", "\U0001f600")  # by code point, where UTF-16 has it the other way round
    assert before("각", "갂") and before("一", "각")  # a Hangul syllable counts whole


def test_equal_ids_keep_their_order() -> None:
    first, second = "caf\u00e9", "cafe\u0301"
    assert sorted([first, second], key=id_key) == [first, second]
    assert sorted([second, first], key=id_key) == [second, first]


@pytest.mark.parametrize("identifier", ["e\u0301\u0327", "\u00e9\u0327", "\u0229\u0301", "x\u1e69y", "\u1e09"])
def test_every_spelling_of_a_letter_is_the_same(identifier: str) -> None:
    """Canonically equivalent IDs have one key, whatever order their marks come in (NFD)."""
    for form in ("NFC", "NFD"):
        assert id_key(identifier) == id_key(unicodedata.normalize(form, identifier))


ALPHABET = st.text(st.sampled_from([*"aAbBeE01-_ .~", "é", "É", "\u0301", "ñ", "ß", "ø", "日", "\U0001f600"]))


@given(st.lists(ALPHABET, max_size=8))
@settings(max_examples=200, deadline=None, database=None)
def test_sorting_does_not_depend_on_spelling_or_start(identifiers: list[str]) -> None:
    composed = [unicodedata.normalize("NFC", identifier) for identifier in identifiers]
    assert sorted(map(id_key, identifiers)) == sorted(map(id_key, reversed(composed)))


def by_key(one: str, other: str) -> int:
    return (id_key(one) > id_key(other)) - (id_key(one) < id_key(other))


COMPARE = "const c = new Intl.Collator('en-US-u-co-standard'); return data.map(([a, b]) => Math.sign(c.compare(a, b)))"


@needs_node
def test_ascii_against_icu() -> None:
    """All pairs of one character, and random pairs of longer ones that share most of their letters."""
    alphabet = [*ORDER, *LETTERS.upper()]
    pairs = [list(pair) for pair in itertools.product(alphabet, repeat=2)]
    chance = random.Random(9)
    for _ in range(12_000):
        one = [chance.choice(alphabet) for _ in range(chance.randrange(1, 9))]
        other = list(one)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(other))
            other[at : at + chance.randrange(2)] = [chance.choice([other[at].swapcase(), *alphabet])]
        pairs.append(["".join(one), "".join(other)])
    differing = [pair for pair, icu in zip(pairs, node(COMPARE, pairs), strict=True) if by_key(*pair) != icu]
    assert differing == []


@needs_node
def test_marked_letters_against_icu() -> None:
    # Without the cedilla: the contract has it after the ogonek, the ICU of node before it.
    marks = [mark for name, mark in MARKS.items() if name != "cedilla"]
    chance = random.Random(10)
    letters = [*"aAeEnN", *(base + mark for base in "aAeEnN" for mark in marks)]
    pairs = [["".join(chance.choices(letters, k=2)), "".join(chance.choices(letters, k=2))] for _ in range(8000)]
    differing = [pair for pair, icu in zip(pairs, node(COMPARE, pairs), strict=True) if by_key(*pair) != icu]
    assert differing == []


@needs_node
def test_sorting_a_whole_list_as_icu_does() -> None:
    chance = random.Random(11)
    identifiers = ["".join(chance.choices([*"aAbB-_. 09", "é", "ñ"], k=chance.randrange(1, 6))) for _ in range(1500)]
    expected = node("return data.sort(new Intl.Collator('en-US').compare)", identifiers)
    assert sorted(identifiers, key=id_key) == expected
    assert sorted(identifiers, key=cmp_to_key(by_key)) == expected
