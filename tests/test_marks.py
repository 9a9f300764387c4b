"""Marks and decomposition: what privacy and ID order make of a character, whatever Unicode this Python knows."""

from __future__ import annotations

import hashlib
import itertools
import sys
import types
import unicodedata
from collections.abc import Iterator

import pytest

from cortex_tools.domain import marks, privacy
from cortex_tools.domain.collation import id_key

EVERY = [chr(code) for code in range(0x110000)]
UNKNOWN = "\ufdd0"  # no character, in any version
LATER = sorted(marks.LATER)
ALIKE = {9: "\u094d", 220: "\u0331", 230: "\u0310"}  # a mark of each class that composes with no letter


def digest(lines: Iterator[str]) -> str:
    hasher = hashlib.sha256()
    for line in lines:
        hasher.update(line.encode() + b"\n")
    return hasher.hexdigest()


def test_marks_and_decomposition_are_those_of_one_version_of_unicode() -> None:
    """Where a new Python fails here, its Unicode has more of them: they belong into marks.LATER."""

    def told() -> Iterator[str]:
        for char in EVERY:
            begins = "".join(itertools.takewhile(marks.combining, marks.taken_apart(char)))
            if marks.combining(char) or begins or marks.decomposed(char) != char:
                yield ascii((char, marks.combining(char), begins, marks.decomposed(char)))

    assert digest(told()) == "4389a46c87004eeefc0fec641d2fb4f2a99454cf57e729f1d93502de7a086ad0"


def test_what_folds_to_a_part_of_the_word_is_so_on_every_python() -> None:
    """Where a new Python fails here, privacy._fold lacks what its Unicode has added."""

    def matters(folded: str) -> bool:
        rests = ["private"[at:] for at in range(7)]
        return any(rest.startswith(folded) or folded.startswith(rest) for rest in rests)

    folds = ((char, privacy._fold(char)) for char in EVERY)
    assert (
        digest(ascii(pair) for pair in folds if matters(pair[1]))
        == "8ec352fc9b232fe811d60e2b1ca217f2fac6dd90e26384c970f9f98bfe24f9fa"
    )


@pytest.fixture(params=[0, 9, 220, 230])
def newer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A Python whose Unicode gives all later characters one class and takes them apart, or (0) knows none of them."""
    tables = types.ModuleType("unicodedata")
    tables.category = unicodedata.category  # type: ignore[attr-defined]

    def combining(char: str) -> int:
        return int(request.param) if char in marks.LATER else unicodedata.combining(char)

    def normalize(form: str, text: str) -> str:
        if request.param:
            other = "e\u0301" if form == "NFD" else ALIKE[request.param]
            text = "".join(other if char in marks.LATER else char for char in text)
        return unicodedata.normalize(form, text)

    tables.combining = combining  # type: ignore[attr-defined]
    tables.normalize = normalize  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "unicodedata", tables)
    monkeypatch.setattr(marks, "unicodedata", tables)
    return int(request.param)


def test_a_later_mark_is_none_on_any_python(newer: int) -> None:
    for char in LATER:
        for text in ("<private{}\u0301 x>b", "<private{}\u0323>b", "<private\u0338{}\u0301/>b", "<private{}>b"):
            assert privacy.strip_private("a" + text.format(char)) == "a", ascii(char)


def test_a_later_character_sorts_as_one_of_its_own_on_any_python(newer: int) -> None:
    for char in LATER:
        identifiers = [f"a{char}", f"a{char}\u0301", f"b{char}b", f"{char}", "e\u0301", "zz"]
        stood_in = [identifier.replace(char, UNKNOWN) for identifier in identifiers]
        for one, other in itertools.product(range(len(identifiers)), repeat=2):
            before = id_key(identifiers[one]) < id_key(identifiers[other])
            assert before == (id_key(stood_in[one]) < id_key(stood_in[other])), ascii((char, one, other))
