"""Combining marks and canonical decomposition, the same on every Python.

Each Python knows one version of Unicode: the oldest supported one 14.  What later versions added counts as
nothing is known of it, on every Python: it is no mark and does not come apart.  For the privacy boundary
that is never less private, since a mark can only keep a word from being `private`.
"""

from __future__ import annotations

import unicodedata

# Marks, and characters that come apart, of Unicode 15 to 18.
_LATER = (
    (0x05C8, 0x05C9), (0x0897, 0x0897), (0x1ACF, 0x1AF0), (0x105C9, 0x105C9), (0x105E4, 0x105E4), (0x10D69, 0x10D6D),
    (0x10ECB, 0x10ECF), (0x10EF0, 0x10EFB), (0x10EFD, 0x10EFF), (0x11383, 0x11383), (0x11385, 0x11385),
    (0x1138E, 0x1138E), (0x11391, 0x11391), (0x113C5, 0x113C5), (0x113C7, 0x113C8), (0x113CE, 0x113D0),
    (0x11F41, 0x11F42), (0x16121, 0x16128), (0x1612F, 0x1612F), (0x16D68, 0x16D6A), (0x1D127, 0x1D128),
    (0x1D250, 0x1D252), (0x1D25B, 0x1D25C), (0x1D25F, 0x1D25F), (0x1D280, 0x1D281), (0x1E08F, 0x1E08F),
    (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF), (0x1E6E3, 0x1E6E3), (0x1E6E6, 0x1E6E6), (0x1E6EE, 0x1E6EF),
    (0x1E6F5, 0x1E6F5),
)  # fmt: skip
LATER = frozenset(chr(code) for first, last in _LATER for code in range(first, last + 1))


def combining(char: str) -> int:
    """The canonical combining class of a character; 0 where it is no mark."""
    return 0 if char in LATER else unicodedata.combining(char)


def decomposed(char: str) -> str:
    """NFD of one character."""
    return char if char in LATER else unicodedata.normalize("NFD", char)


def taken_apart(char: str) -> str:
    """NFKD of one character."""
    return char if char in LATER else unicodedata.normalize("NFKD", char)
