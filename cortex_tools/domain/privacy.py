"""The privacy boundary: private spans removed, anything doubtful cut off (sections 7 and 14.1-14.4).

Every step looks at a character a bounded number of times, so the time is linear in the text.
"""

from __future__ import annotations

from cortex_tools.domain.text import BLANK_SET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = "private"
WIDE_OPENERS = ("\uff1c", "\ufe64")
_WIDE_CLOSERS = ("\uff1e", "\ufe65")

MALFORMED = "malformed opener"
UNCLOSED = "never closed"
REMNANT = "tag left by a removal"


class Stripped:
    """What stripping did.

    `text` is what is left; `spans` the (start, end) character offsets removed from the input, openers
    and closers included; `cut` the offset from which the input was cut off, None where it was not
    (for REMNANT an offset into the text after removal); `reason` is MALFORMED, UNCLOSED, REMNANT or None;
    `malformed` the offset of a malformed opener, also where it is not what cuts the text because a span
    before it is left open by it.
    """

    __slots__ = ("cut", "malformed", "reason", "spans", "text")

    def __init__(
        self, text: str, spans: list[tuple[int, int]], cut: int | None, reason: str | None, malformed: int | None
    ) -> None:
        self.text = text
        self.spans = spans
        self.cut = cut
        self.reason = reason
        self.malformed = malformed

    def source(self, offset: int) -> int:
        """Where in the input the character stands that is at `offset` of what is left."""
        for start, end in self.spans:
            if offset < start:
                break
            offset += end - start
        return offset


def strip_private(text: str) -> str:
    """`text` without its private spans; stripping the result again changes nothing."""
    return strip(text).text if may_hold_tag(text) else text


def may_hold_tag(text: str) -> bool:
    """False where `text` holds no bracket at all, so that stripping cannot change it."""
    if "<" in text:
        return True
    return not text.isascii() and (WIDE_OPENERS[0] in text or WIDE_OPENERS[1] in text)


def strip(text: str) -> Stripped:
    """Strip `text` and say what was removed and why."""
    cut = malformed = malformed_opener(text, len(text))
    reason = None if cut is None else MALFORMED
    kept, spans, depth, open_at = outside_spans(text if cut is None else text[:cut])
    if depth:
        cut, reason = open_at, UNCLOSED
    result = "".join(kept)
    if spans or cut is not None:
        # Removing a span can join a new tag, and a cut can leave the head of one: nothing like a tag may stay.
        left = remnant(result, len(result))
        if left is not None:
            result, cut, reason = result[:left], left, REMNANT
    return Stripped(result, spans, cut, reason, malformed)


class Tags:
    """The well-formed tags of one text: `<`, blanks, `/` in a closing one, blanks, `private`, and `>` or a blank
    and whatever holds no bracket up to `>`.

    Asked at rising offsets alone, it remembers where the next brackets stand, so that a text of a million
    openers and no closer is still looked through once.  No expressions: importing and compiling them would
    cost a fifth of a whole search of 300 notes.
    """

    __slots__ = ("_close", "_open", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._open = self._close = -1

    def at(self, start: int) -> tuple[int, bool] | None:
        """The end of the tag whose `<` stands at `start`, and whether it closes; None where there is none."""
        text = self._text
        if text[start] != "<":
            return None
        at = self._after_blanks(start + 1)
        closing = text.startswith("/", at)
        if closing:
            at = self._after_blanks(at + 1)
        end = at + len(_WORD)
        if text[at:end].lower() != _WORD:  # only ASCII letters become these letters
            return None
        if text.startswith(">", end):
            return end + 1, closing
        if text[end : end + 1] not in BLANK_SET:
            return None
        if self._close < end:
            found = text.find(">", end)
            self._close = len(text) if found < 0 else found
        if self._open < end:
            found = text.find("<", end)
            self._open = len(text) if found < 0 else found
        return (self._close + 1, closing) if self._close < self._open else None

    def __iter__(self) -> Iterator[tuple[int, int, bool]]:
        """Start, end and closing of each tag, in order."""
        start = self._text.find("<")
        while start >= 0:
            tag = self.at(start)
            if tag is not None:
                yield start, *tag
            start = self._text.find("<", start + 1 if tag is None else tag[0])

    def _after_blanks(self, at: int) -> int:
        text = self._text
        while text[at : at + 1] in BLANK_SET:
            at += 1
        return at


def _candidates(text: str, end: int) -> Iterator[int]:
    """The offsets before `end` of brackets worth a look: behind controls and spaces a slash, a p or no ASCII."""
    brackets = text
    if not text.isascii():
        for wide in WIDE_OPENERS:
            brackets = brackets.replace(wide, "<")
    start = brackets.find("<")
    while 0 <= start < end:
        at = start + 1
        char = text[at : at + 1]
        while char and (char <= " " or char == "\x7f"):
            at += 1
            char = text[at : at + 1]
        if char and (char in "/pP" or char >= "\x80"):
            yield start
        start = brackets.find("<", start + 1)


def malformed_opener(text: str, end: int) -> int | None:
    """The offset of the first `<…` before `end` that looks like an opener and is no well-formed tag."""
    tags = Tags(text)
    for at in _candidates(text, end):
        tag = tags.at(at)
        if tag is not None and (tag[1] or not any(text.find(wide, at, tag[0]) >= 0 for wide in _WIDE_CLOSERS)):
            continue
        if look(text, at + 1)[0]:
            return at
    return None


def outside_spans(text: str, depth: int = 0) -> tuple[list[str], list[tuple[int, int]], int, int]:
    """The pieces of `text` at depth 0, the spans between them, the depth at its end, and where that span opens.

    `depth` is that at its start.  Each piece begins where a span ends, the first one, if depth is 0, at 0.
    """
    kept: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for start, end, closing in Tags(text):
        if closing:
            if depth <= 1:
                if depth == 0:
                    kept.append(text[at:start])
                    at = start
                spans.append((at, end))
                at = end
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                kept.append(text[at:start])
                at = start
            depth += 1
    if not depth:
        kept.append(text[at:])
    return kept, spans, depth, at


def remnant(text: str, end: int) -> int | None:
    """The offset of the first tag or suspicious opener before `end` in text that has been stripped once."""
    tags = Tags(text)
    for at in _candidates(text, end):
        if tags.at(at) is not None or look(text, at + 1)[0]:
            return at
    return None


def look(text: str, start: int) -> tuple[bool, bool]:
    """Whether the inside of a bracket, from `start`, begins with `private` once it is normalized.

    The second value is True where text after the end of `text` could change that.

    The contract normalizes the whole inside (NFKC, then controls, formats and spaces dropped, then
    lower case).  Going character by character gives the same answer: within a Latin word NFKC acts
    across characters only where a combining mark follows, and a mark that does not vanish spoils the
    word either way, except after its last letter, where it must be seen whether it changes that letter.
    """
    rest = "private"
    for at in range(start, len(text)):
        char = text[at]
        if char <= "\x20" or char == "\x7f":
            continue
        piece = char.lower() if char < "\x80" else _folded(char)
        if not rest.startswith(piece):
            return piece.startswith(rest), False  # one character may end the word and go on, such as U+32CD, "erg"
        rest = rest[len(piece) :]
        if not rest:
            follows, is_open = _mark_follows(text, at + 1)
            return not follows, is_open
    return False, True


_FOLDED: dict[str, str] = {}  # characters seen before a word that may be private: few, but again and again


def _folded(char: str) -> str:
    """NFKC of one character without controls, formats and spaces, lower-cased; the same on every Python."""
    folded = _FOLDED.get(char)
    if folded is None:
        if len(_FOLDED) >= 1024:
            _FOLDED.clear()
        folded = _FOLDED[char] = _fold(char)
    return folded


def _fold(char: str) -> str:
    import unicodedata  # only text with a bracket before a non-ASCII character pays for it

    code = ord(char)
    if 0x1CCD6 <= code <= 0x1CCEF:
        return chr(code - 0x1CCD6 + 0x61)
    if 0x13439 <= code <= 0x1343F:
        return ""
    kept = (part for part in unicodedata.normalize("NFKC", char) if unicodedata.category(part) not in _IGNORED)
    return "".join(kept).lower()


_IGNORED = ("Cc", "Cf", "Zs", "Zl", "Zp")


def _mark_follows(text: str, at: int) -> tuple[bool, bool]:
    """Whether combining marks from `at` on would compose with an `e` before them, so that it is no `e`.

    Only the first mark of each combining class can reach the letter; taking just those keeps a run of
    millions of marks linear, which unicodedata's own reordering is not.  The second value as of `look`.
    """
    if at >= len(text) or text[at] < "\u0300":
        return False, at >= len(text)
    import unicodedata

    from cortex_tools.domain.marks import combining, taken_apart

    first_of_class: dict[int, str] = {}
    is_open = True
    # Each is taken apart: some are marks only then (U+0F73).
    for part in (part for index in range(at, len(text)) for part in taken_apart(text[index])):
        if not combining(part):
            is_open = False
            break
        first_of_class.setdefault(combining(part), part)
    return unicodedata.normalize("NFKC", "e" + "".join(first_of_class.values()))[0] != "e", is_open
