"""ID order: the root collation of Unicode for ASCII and decomposable letters (section 9)."""

from __future__ import annotations

_BEFORE_LETTERS = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_MARKS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0328\u0327\u0304"

_PRIMARY = {ord(char): rank for rank, char in enumerate(_BEFORE_LETTERS, 1)}
_PRIMARY |= {code: len(_PRIMARY) + 1 + code - 0x61 for code in range(0x61, 0x7B)}
_PRIMARY |= {code - 0x20: _PRIMARY[code] for code in range(0x61, 0x7B)}
_PRIMARY_BYTES = bytes(_PRIMARY.get(code, 0x7F) for code in range(256))
_CASE_BYTES = bytes(1 if 0x41 <= code <= 0x5A else 0 for code in range(256))
_MARK_WEIGHT = {mark: weight for weight, mark in enumerate(_MARKS, 1)}

Key = tuple[str, tuple[int, ...], str]


def id_key(identifier: str) -> Key:
    """A sort key for IDs: base letters first, then marks, then case.

    IDs with equal keys keep the order they came in (Python's sorts are stable).
    """
    if identifier.isascii():
        data = identifier.encode()
        return data.translate(_PRIMARY_BYTES).decode(), (), data.translate(_CASE_BYTES).decode()
    return _general_key(identifier)


def _general_key(identifier: str) -> Key:
    from cortex_tools.domain.marks import combining  # IDs are nearly always ASCII

    primary: list[str] = []
    marks: list[int] = []
    case: list[str] = []
    for letter, following in _letters(identifier):
        primary.append(chr(_PRIMARY.get(ord(letter), ord(letter))))
        case.append("\x01" if letter.isupper() else "\0")
        # Marks in canonical order (by class, else as they stand), so that every spelling has one key.
        following.sort(key=combining)
        marks += [0, *(_MARK_WEIGHT.get(mark, 0x100 + ord(mark)) for mark in following)]
    while marks and marks[-1] == 0:
        marks.pop()  # so that an ID without marks has the same key, (), whichever way it was made
    return "".join(primary), tuple(marks), "".join(case)


def _letters(identifier: str) -> list[tuple[str, list[str]]]:
    """Each base character with the marks that follow it (NFD); marks before any base stand for themselves."""
    from cortex_tools.domain.marks import combining, decomposed

    letters: list[tuple[str, list[str]]] = []
    for char in identifier:
        # A Hangul syllable comes apart into letters, not into a letter and marks: it stays whole.
        for part in char if "\uac00" <= char <= "\ud7a3" else decomposed(char):
            if letters and combining(part):
                letters[-1][1].append(part)
            else:
                letters.append((part, []))
    return letters
