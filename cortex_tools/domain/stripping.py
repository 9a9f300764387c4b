"""The privacy boundary for text that comes in pieces: what `strip_private` gives, in bounded memory (section 7).

Two passes run behind each other, as in `privacy.strip`: spans and malformed openers of the text itself,
then tags that removals have left.  Each keeps back what hangs on text still to come, and that always begins
with a bracket: a tag that may yet close, or a word that may yet be `private`.
"""

from __future__ import annotations

import re

from cortex_tools.contract import limits
from cortex_tools.domain.privacy import (
    MALFORMED,
    REMNANT,
    UNCLOSED,
    WIDE_OPENERS,
    look,
    malformed_opener,
    outside_spans,
    remnant,
)
from cortex_tools.domain.text import BLANK_CLASS

UNDECIDED = "undecided for too long"

# The beginning of a well-formed tag, up to the end of the text (privacy.Tags knows the whole).
_word = f"(?:[{BLANK_CLASS}][^<>]*+)?+"
for _letter in reversed("private"):
    _word = f"(?:[{_letter}{_letter.upper()}]{_word})?+"
_BEGUN = re.compile(rf"<[{BLANK_CLASS}]*+/?+[{BLANK_CLASS}]*+{_word}\Z")
_SETTLING = re.compile("[<>]")
_OPENING = re.compile("[<\uff1c\ufe64]")
_GROWTH = 16


class Cut:
    """Where text was cut off and why: line and byte, both counted in the input, from 1 and from 0."""

    __slots__ = ("byte", "line", "reason")

    def __init__(self, reason: str, line: int, byte: int) -> None:
        self.reason = reason
        self.line = line
        self.byte = byte


class Stripper:
    """Feed it the pieces of a text; what it gives, put together, is `strip_private` of the whole.

    What stays undecided over `limit` characters, from its bracket on, is cut off there, wherever the
    pieces begin and end; so memory is bounded by the limit and the largest piece.  `cuts` says, once
    `finish` has been called, where and why text was cut off: empty where it was not.
    """

    def __init__(self, limit: int = limits.UNDECIDED) -> None:
        self.cuts: list[Cut] = []
        self._limit = limit
        self._raw = _Held(limit)
        self._kept = _Held(limit)
        self._depth = 0
        self._opened = _Place(1, 0)
        self._place = _Place(1, 0)  # of the first character held
        self._raw_ended = self._kept_ended = False
        self._origins: dict[int, _Place] = {}  # of the brackets that the second pass holds
        self._out: list[str] = []

    def feed(self, piece: str) -> str:
        """What is settled of the stripped text now that `piece` is known."""
        at = 0
        while at < len(piece) and not self._raw_ended and not self._kept_ended:
            room = self._limit - self._raw.size
            self._raw.add(piece[at : at + room])
            at += room
            self._settle_raw(final=False)
        return self._taken()

    def finish(self) -> str:
        """The rest, now that nothing follows."""
        self._settle_raw(final=True)
        return self._taken()

    def _taken(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out

    def _settle_raw(self, *, final: bool) -> None:
        """The first pass over what is held, as far as it is decided."""
        if self._raw_ended or self._kept_ended or not (final or self._raw.is_due()):
            return
        text, end = self._raw.decided(final=final)
        reason, cut = MALFORMED, malformed_opener(text, end)
        if cut is None and not final and end == 0 and len(text) >= self._limit:
            reason, cut = UNDECIDED, 0
        self._take_spans(text[: end if cut is None else cut])
        if cut is not None or final:
            self._raw_ended = True
            self._settle_kept()
            if not self._kept_ended:
                self._note_ends(reason, None if cut is None else self._place.after(text, 0, cut))
        self._place = self._place.after(text, 0, end)

    def _take_spans(self, text: str) -> None:
        """Hand on what stands outside spans in the next decided stretch of the text."""
        was_open = self._depth > 0
        kept, spans, self._depth, open_at = outside_spans(text, self._depth)
        if self._depth and not (was_open and open_at == 0):
            self._opened = self._place.after(text, 0, open_at)
        starts = [end for _, end in spans] if was_open else [0, *(end for _, end in spans)]
        origin = _Origin(self._place, text, starts, kept)
        rest = "".join(kept)
        while rest and not self._kept_ended:
            part = rest[: self._limit - self._kept.size]
            rest = rest[len(part) :]
            self._kept.add(part)
            self._settle_kept(origin, len(rest))

    def _settle_kept(self, origin: _Origin | None = None, after: int = 0) -> None:
        """The second pass: give out what is decided, up to the first tag that a removal has left.

        `origin` is that of the part added last, `after` characters before its end; without one, nothing follows.
        """
        final = origin is None
        if self._kept_ended:
            return
        if origin is not None and not self._kept.is_due():
            self._wait(origin, after)
            return
        text, end = self._kept.decided(final=final)
        reason, cut = REMNANT, remnant(text, end)
        if cut is None and not final and end == 0 and len(text) >= self._limit:
            reason, cut = UNDECIDED, 0
        self._out.append(text[: end if cut is None else cut])
        if cut is not None:
            self._kept_ended = True
            self._note(reason, self._places(text, [cut], origin, after)[0])
            return
        held = [bracket.start() for bracket in _OPENING.finditer(text, end)]
        places = self._places(text, held, origin, after)
        self._origins = {at - end: place for at, place in zip(held, places, strict=True)}

    def _wait(self, origin: _Origin, after: int) -> None:
        """Remember where the brackets of the part added last stand in the input."""
        part = self._kept.last
        held = [bracket.start() for bracket in _OPENING.finditer(part)]
        places = origin.places([at + origin.size - after - len(part) for at in held])
        before = self._kept.size - len(part)
        self._origins |= {before + at: place for at, place in zip(held, places, strict=True)}

    def _places(self, text: str, brackets: list[int], origin: _Origin | None, after: int) -> list[_Place]:
        """Where these brackets of what the second pass held stand in the input.

        Those not known from before came with the last part.
        """
        known = [self._origins[at] for at in brackets if at in self._origins]
        if origin is None:
            return known
        shift = origin.size - after - len(text)
        return known + origin.places([at + shift for at in brackets[len(known) :]])

    def _note_ends(self, reason: str, cut: _Place | None) -> None:
        if self._depth:
            self._note(UNCLOSED, self._opened)
        if cut is not None:
            self._note(reason, cut)

    def _note(self, reason: str, place: _Place) -> None:
        self.cuts.append(Cut(reason, place.line, place.byte))


class _Place:
    """A place in the input: line from 1, byte from 0."""

    __slots__ = ("byte", "line")

    def __init__(self, line: int, byte: int) -> None:
        self.line = line
        self.byte = byte

    def after(self, text: str, start: int, end: int) -> _Place:
        """The place of the character at `end` of `text`, if this one is that of the character at `start`."""
        if start == end:
            return self
        size = end - start if text.isascii() else len(text[start:end].encode("utf-8", "surrogatepass"))
        return _Place(self.line + text.count("\n", start, end), self.byte + size)


class _Origin:
    """Where the pieces come from that the first pass took out of a stretch of the text."""

    __slots__ = ("_kept", "_place", "_starts", "_text", "size")

    def __init__(self, place: _Place, text: str, starts: list[int], kept: list[str]) -> None:
        self._place = place
        self._text = text
        self._starts = starts
        self._kept = kept
        self.size = sum(map(len, kept))

    def places(self, offsets: list[int]) -> list[_Place]:
        """The places of the characters at these offsets, in rising order, of all pieces joined."""
        found: list[_Place] = []
        place, seen, before = self._place, 0, 0
        for start, piece in zip(self._starts, self._kept, strict=True):
            while len(found) < len(offsets) and offsets[len(found)] < before + len(piece):
                at = start + offsets[len(found)] - before
                place, seen = place.after(self._text, seen, at), at
                found.append(place)
            before += len(piece)
        return found


class _Held:
    """Text of which some may hang on what follows it."""

    __slots__ = ("_head", "_limit", "_parts", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = ""  # looked at before, and found undecided from its first character on
        self._parts: list[str] = []
        self.size = 0

    def add(self, part: str) -> None:
        self._parts.append(part)
        self.size += len(part)

    @property
    def last(self) -> str:
        """The part added last."""
        return self._parts[-1]

    def is_due(self) -> bool:
        """Whether it is time to look again.

        After each small piece that would be quadratic.  Only `<` and `>` settle for certain what is
        undecided; for all else it is soon enough when the text has grown by a part of itself.
        """
        grown = self.size - len(self._head)
        return (
            grown * _GROWTH >= len(self._head)
            or self.size >= self._limit
            or _SETTLING.search(self._parts[-1]) is not None
        )

    def decided(self, *, final: bool) -> tuple[str, int]:
        """All that was held, and how much of it is decided; only the rest is held from now on."""
        text = "".join((self._head, *self._parts))
        end = len(text) if final else undecided(text)
        self._parts.clear()
        self._head = text[end:]
        self.size = len(self._head)
        return text, end


def undecided(text: str) -> int:
    """The offset of the first bracket whose meaning hangs on what follows `text`; its length where there is none.

    No bracket before the last one is undecided, but for the beginning of a tag, in which wide brackets may stand.
    """
    narrow = text.rfind("<")
    if narrow >= 0 and (_BEGUN.match(text, narrow) or look(text, narrow + 1)[1]):
        return narrow
    wide = max(text.rfind(bracket) for bracket in WIDE_OPENERS)
    if wide > narrow and look(text, wide + 1)[1]:
        return wide
    return len(text)
