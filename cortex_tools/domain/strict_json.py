"""Strict JSON (RFC 8259), checked byte by byte before a parser sees it.

Streaming parsers differ: one turns a lone surrogate into `?`, one takes `+1` for a number.  What passes here is the
same to all of them.  How objects and arrays are put together (commas, colons, closing brackets) is left to the parser.
"""

from __future__ import annotations

import codecs
import re

# A whole token outside of strings, after any white space.  Longer numbers than these nothing of ours writes.
_TOKEN = re.compile(
    rb"[ \t\r\n]*+(?:([{\[])|([}\]])|[,:]|(\")"
    rb"|((?:true|false|null|-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,39})?(?:[eE][+-]?[0-9]{1,4})?)(?![A-Za-z0-9.+-])))"
)
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb"[A-Za-z0-9.+-]{1,100}")
# What may stand in a string, up to the quote or whatever else may not; a surrogate only before its other half.
_TEXT = re.compile(
    rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
_LONGEST_ESCAPE = 12  # two halves of a pair


class StrictJson:
    """One JSON object in pieces.

    `check` gives the bytes that a parser may be shown; the first `fault` that was found, a clause about the
    document, is there once they have been given.  Strings of more than `longest` bytes are a fault.
    """

    def __init__(self, longest: int) -> None:
        self.fault: str | None = None
        self.complete = False
        self._longest = longest
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = b""
        self._before = 0
        self._depth = 0
        self._in_string = False
        self._string_bytes = 0
        self._string_at = -1  # where in the piece the string begins that is open at its end
        self._begun: list[bytes] = []

    def check(self, piece: bytes) -> bytes:
        """What of the document so far is sound, and has not been given yet.

        The start of a token waits for its end: parsers go back to the start of a string with each piece of it.
        """
        data = self._rest + piece
        try:
            self._decoder.decode(piece)
        except UnicodeDecodeError:
            self.fault = "is not UTF-8"
            return b""
        at = 0
        while self.fault is None and at < len(data):
            end = self._string(data, at) if self._in_string else self._token(data, at)
            if end == at:
                break  # more must come first
            at = end
        self._rest = data[at:]
        self._before += at
        return self._whole(data[:at])

    def _whole(self, sound: bytes) -> bytes:
        if not self._in_string:
            self._begun.append(sound)
            whole = b"".join(self._begun)
            self._begun.clear()
        elif self._string_at < 0:
            self._begun.append(sound)
            whole = b""
        else:
            whole = b"".join(self._begun) + sound[: self._string_at]
            self._begun = [sound[self._string_at :]]
        self._string_at = -1
        return whole

    def _string(self, data: bytes, start: int) -> int:
        match = _TEXT.match(data, start)
        end = match.end() if match else start
        self._string_bytes += end - start
        if self._string_bytes > self._longest:
            self._refuse(end, f"holds a string of more than {self._longest} bytes")
        elif end == len(data):
            return end
        elif data[end] == 0x22:
            self._in_string = False
            return end + 1
        elif data[end] < 0x20:
            self._refuse(end, "holds a control character in a string")
        elif len(data) - end >= _LONGEST_ESCAPE:
            self._refuse(end, "holds an escape that stands for no character")
        return end

    def _token(self, data: bytes, start: int) -> int:
        if self.complete:
            return self._after_the_end(data, start)
        match = _TOKEN.match(data, start)
        if match is None:
            return self._no_token(data, start)
        if self._depth == 0 and data[match.end() - 1] != 0x7B:
            self._refuse(start, "is no JSON object")
            return start
        if match[4] is not None and match.end() == len(data):
            return match.start(4)  # a number may go on in the next piece
        if match[1] is not None:
            self._depth += 1
        elif match[2] is not None:
            self._depth -= 1
            self.complete = self._depth == 0
        elif match[3] is not None:
            self._in_string = True
            self._string_at = match.end() - 1
            self._string_bytes = 0
        return match.end()

    def _no_token(self, data: bytes, start: int) -> int:
        at = _blanks_end(data, start)
        word = _WORD.match(data, at)
        if at < len(data) and (word is None or word.end() < len(data)):
            what = "is no JSON object" if self._depth == 0 else "holds something that is no JSON value"
            self._refuse(at, what)
        return at

    def _after_the_end(self, data: bytes, start: int) -> int:
        at = _blanks_end(data, start)
        if at < len(data):
            self._refuse(at, "goes on after its end")
        return at

    def _refuse(self, at: int, what: str) -> None:
        self.fault = f"{what} at byte {self._before + at + 1}"

    def finish(self) -> None:
        """Called once all has been given: a document that is not whole is a fault."""
        if self.fault is None and not self.complete:
            if self._in_string and b'"' in self._rest:
                self._refuse(0, "holds an escape that stands for no character")
            elif self._before or self._rest:
                self.fault = "ends before it is complete: it was cut off"
            else:
                self.fault = "is empty"


def _blanks_end(data: bytes, start: int) -> int:
    match = _BLANKS.match(data, start)
    return match.end() if match else start
