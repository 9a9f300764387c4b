"""Words of any script, for `cortex-rank --tokens unicode`; the contract's own terms are ASCII (domain.ranking).

Text is folded first (NFKC, then case, then NFKC again): full-width letters, ligatures, composed and decomposed
accents, upper and lower case and the German eszett meet in one spelling.  Then a word is a run of
letters, digits and underscores (`\\w`) with the marks upon them.  Dropped before that is what
does not change a word: invisible characters (soft hyphens, joiners, variation selectors), Arabic vowel signs
and tatweel, Hebrew points.  All other marks count: u and u with diaeresis differ, as do their words.

Scripts written without spaces give each two neighbouring characters as a term (a character takes the
marks upon it along).  A lone character of theirs in a query is a term, too, and is found in longer runs.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

# Characters that stand in a line without spaces between words: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar.
_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029),
    (0x3031, 0x3035), (0x3038, 0x303C), (0x3041, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0x16FF0, 0x16FFF), (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFD),
)  # fmt: skip
# From here on those are letters, whether the Unicode tables of this Python know them or not yet.
_IDEOGRAPHS = 0x20000

# Left out: soft hyphen, joiners and directions, variation selectors, tatweel; vowel signs and points that
# ordinary writing leaves out.
_DROPPED = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x180B, 0x180F), (0x200C, 0x200F), (0x202A, 0x202E),
    (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0000, 0xE0FFF),
    (0x0640, 0x0640), (0x0610, 0x061A), (0x064B, 0x0652), (0x0656, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC),
    (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x08D3, 0x08E1), (0x08E3, 0x08FF),
    (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
)  # fmt: skip

_WORD, _MARK, _SPACELESS, _OTHER, _GONE = "w", "m", "s", " ", "-"
# Marks upon one character beyond this number say nothing; sorting them (which NFKC does) would take quadratic time.
_MARKS_UPON_ONE = 30
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_WORDS = re.compile("w[wm]*|(?:sm*)+")
_CHARACTER = re.compile("sm*")
_CROWD = re.compile(f"(m{{{_MARKS_UPON_ONE}}})m+")


class _Classes(dict[int, str]):
    """What each character is, found out when it is met first; as str.translate wants it."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(code)
        return found


def _class_of(code: int) -> str:
    if any(first <= code <= last for first, last in _DROPPED):
        return _GONE
    char = chr(code)
    category = unicodedata.category(char)
    if category in ("Mn", "Mc"):
        return _MARK
    if category == "Me":
        return _GONE
    without_spaces = any(first <= code <= last for first, last in _WITHOUT_SPACES)
    if code >= _IDEOGRAPHS and without_spaces:
        return _SPACELESS
    if not char.isalnum() and char != "_":
        return _OTHER
    return _SPACELESS if without_spaces and category != "Nd" else _WORD


_classes = _Classes()


def fold(text: str) -> str:
    """`text` in the one spelling that words are compared in."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _without_gone(text)).casefold())
    return _without_gone(folded)  # presentation forms come apart into letters and points


def _without_gone(text: str) -> str:
    """`text` without what is dropped, and without the marks that crowd upon one character."""
    classes = text.translate(_classes)
    if _CROWD.search(classes) is not None:
        classes = _CROWD.sub(lambda match: match[1] + _GONE * (len(match[0]) - len(match[1])), classes)
    if _GONE not in classes:
        return text
    return "".join(char for char, found in zip(text, classes, strict=True) if found != _GONE)


def query_words(query: str) -> list[str]:
    """All terms of a query, in order, repeats included."""
    folded = fold(query)
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    terms: list[str] = []
    for word, characters in _words(folded):
        if characters is None:
            terms.append(word)
        elif len(characters) == 1:
            terms += characters
        else:
            terms += map("".join, pairwise(characters))
    return terms


def measure(title: str, content: str, terms: tuple[str, ...]) -> tuple[int, tuple[int, ...] | None]:
    """The number of words of a record, and each term's frequency in it (None: no term occurs).

    A run without spaces counts as many words as it has pairs, a lone character as one.
    """
    folded = fold(f"{title} {content}")
    counts = dict.fromkeys(terms, 0)
    length = 0
    if folded.isascii():
        for word in _ASCII_WORD.findall(folded):
            length += 1
            if word in counts:
                counts[word] += 1
    else:
        for word, characters in _words(folded):
            if characters is None:
                length += 1
                if word in counts:
                    counts[word] += 1
                continue
            length += max(1, len(characters) - 1)
            for term in (*characters, *map("".join, pairwise(characters))):
                if term in counts:
                    counts[term] += 1
    frequencies = tuple(counts[term] for term in terms)
    return length, frequencies if any(frequencies) else None


def _words(folded: str) -> list[tuple[str, list[str] | None]]:
    """Each word; for a run of a script without spaces its characters as well, with their marks."""
    classes = folded.translate(_classes)
    found: list[tuple[str, list[str] | None]] = []
    for match in _WORDS.finditer(classes):
        start, end = match.span()
        characters = None
        if classes[start] == _SPACELESS:
            characters = [folded[one.start() : one.end()] for one in _CHARACTER.finditer(classes, start, end)]
        found.append((folded[start:end], characters))
    return found
