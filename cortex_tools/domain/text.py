"""Characters as the contract counts and classes them (section 3, "Meanings").

JavaScript's notion of white space and length differs from Python's: these are the contract's.
"""

from __future__ import annotations

# Exactly U+0009-000D, 0020, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000, FEFF.
BLANKS = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
BLANK_SET = frozenset(BLANKS)
ASCII_BLANKS = "\t\n\v\f\r "
# The same as the inside of a character class of a regular expression.
BLANK_CLASS = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# What ends a line where the contract follows JavaScript's `^`, `$` and `.`.
LINE_ENDS = "\n\r\u2028\u2029"

_CONTROL_BYTES = bytes(code for code in range(0x20) if code not in b"\t\n\r") + b"\x7f"

_CONTROLS_CHANGED = bytes(0x21 if code in _CONTROL_BYTES else code for code in range(256))


def trim(text: str) -> str:
    """`text` without blanks at either end."""
    return text.strip(BLANKS)


def is_blank(text: str) -> bool:
    """True of the empty string and of one that holds blanks alone."""
    return not text or (text[0] in BLANK_SET and not text.strip(BLANKS))


def utf16_length(text: str) -> int:
    """The length of `text` in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_order(text: str) -> bytes:
    """A sort key that orders strings by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def has_control(data: bytes) -> bool:
    """True where UTF-8 `data` holds a C0 or C1 control other than tab, LF and CR, or DEL."""
    # Changing them and looking whether anything changed is five times as fast as searching with an expression.
    if data.translate(_CONTROLS_CHANGED) != data:
        return True
    if data.isascii() or b"\xc2" not in data:
        return False
    # C1 is 0xC2 and a byte from 0x80 to 0x9F; in UTF-8 0xC2 begins a character wherever it stands.
    return any(b"\x80" <= after[:1] <= b"\x9f" for after in data.split(b"\xc2")[1:])


def without_controls(data: bytes) -> bytes:
    """`data` without what `has_control` looks for."""
    import re  # only where a control has been found

    return re.sub(rb"\xc2[\x80-\x9f]", b"", data.translate(None, _CONTROL_BYTES))


def text_fault(text: str) -> str | None:
    """What is wrong with a string of a record: a control, a lone surrogate, or nothing (section 5)."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    return "a control character" if has_control(data) else None


def printable(text: str) -> str:
    """`text` with what a terminal would act on, or not show, as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def without_surrogates(text: str) -> str:
    """`text` with U+FFFD for what cannot be UTF-8."""
    if text.isascii():
        return text
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "replace")
