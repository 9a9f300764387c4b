"""Segments and seals: a truncated stream must never look like a small one (docs/streams.md)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.domain.expansion import Expansion
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.names import shown
from cortex_tools.files.stdio import write_all
from cortex_tools.streams.items import Corpus, Failure, Item, Seal
from cortex_tools.streams.lines import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The longest line: a note of 8 MiB whose every character is escaped, and then some.
LINE_BYTES = 64 * 1024 * 1024
_FLUSH = 1 << 16
_ERROR_KIND = b'"error"'


class SegmentReader:
    """The items of a stream, its seals checked.

    Iterating gives every line's value in order, seals included, and raises CortexError: what an
    upstream stage refused, where an error line stands anywhere in the stream, else integrity_error for
    a broken stream.  `complete` demands each part of one listing exactly once at the end; without it
    (strip) any different parts of one listing will do.  `passes` is how many listings may follow one
    another, each whole (two for rebuild).  `unsealed` is true once an unsealed stream
    has been accepted, here or upstream.
    """

    def __init__(self, descriptor: int, *, unsealed: bool = False, complete: bool = True, passes: int = 1) -> None:
        self._file = os.fdopen(descriptor, "rb", buffering=1 << 18, closefd=False)
        self._sealed = not unsealed
        self._complete = complete
        self._passes = passes
        self._number = 0
        self._lines = 0
        self._parts: dict[int, Corpus] = {}
        self.unsealed = unsealed

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._sealed_items() if self._sealed else self._unsealed_items()
        except CortexError as error:
            raise error if error.stage else self.upstream_error() or error from None

    def _next_line(self) -> bytes:
        try:
            line = self._file.readline(LINE_BYTES + 1)
        except OSError as error:
            raise integrity_error(f"standard input cannot be read: {error.strerror}") from None
        if len(line) > LINE_BYTES:
            raise integrity_error(f"line {self._number + 1} of the stream is longer than {LINE_BYTES} bytes")
        self._number += bool(line)
        return line

    def _decode(self, line: bytes) -> Item:
        item = decode(line, f"line {self._number} of the stream")
        if isinstance(item, Failure):
            raise CortexError(item.code, item.message, stage=item.stage)
        return item

    def _sealed_items(self) -> Iterator[Item]:
        from xxhash import xxh3_64

        hasher, lines, headed = xxh3_64(), 0, False
        while line := self._next_line():
            item = self._decode(line)
            if isinstance(item, Seal):
                self._check_seal(item, lines, hasher.hexdigest(), headed)
                hasher, lines = xxh3_64(), 0
            else:
                if isinstance(item, Corpus):
                    self._check_head(item, lines)
                headed = isinstance(item, Corpus) or (headed and lines > 0)
                hasher.update(line)
                lines += 1
            yield item
        if lines:
            raise integrity_error(
                "the stream ends before its seal: the stage before was cut off; run the pipeline again"
            )
        if self._number == 0:
            raise integrity_error("standard input holds no stream; feed the stage from cortex-scan | cortex-strip")
        self._check_parts()

    def _check_head(self, corpus: Corpus, lines: int) -> None:
        if lines:
            raise integrity_error(
                f"line {self._number} of the stream begins a segment before the last one was sealed; "
                "the stage before was cut off, run the pipeline again"
            )
        self._count_part(corpus)

    def _check_seal(self, seal: Seal, lines: int, digest: str, headed: bool) -> None:
        if lines == 0:
            raise integrity_error(f"line {self._number} of the stream seals nothing; a seal stands there once")
        if seal.lines != lines or seal.xxh3 != digest:
            raise integrity_error(
                f"the seal of {shown(seal.stage)} does not match the {lines} lines before it: "
                "the stream was altered on its way; run the pipeline again, or use --unsealed after a foreign filter"
            )
        if not headed and not seal.unsealed:
            raise integrity_error(f"the segment that ends at line {self._number} of the stream has no corpus line")
        self.unsealed = self.unsealed or seal.unsealed

    def _count_part(self, corpus: Corpus) -> None:
        first = next(iter(self._parts.values()), corpus)
        if len(self._parts) == first.parts and self._passes > 1:
            self._passes -= 1
            self._parts = {}
            first = corpus
        if (corpus.listing, corpus.parts, corpus.root) != (first.listing, first.parts, first.root):
            raise integrity_error("the stream holds parts of different listings; gather the parts of one cortex-scan")
        if corpus.part in self._parts:
            raise integrity_error(f"part {corpus.part} of {corpus.parts} is in the stream twice; give each part once")
        self._parts[corpus.part] = corpus

    def _check_parts(self) -> None:
        if not self._parts:
            return  # an unsealed stage took what had no corpus line, and its seal says so
        parts = next(iter(self._parts.values())).parts
        missing = [str(part) for part in range(1, parts + 1) if part not in self._parts]
        if self._complete and (missing or len(self._parts) != parts):
            raise integrity_error(f"part {missing[0]} of {parts} is missing from the stream; give each part once")

    def _unsealed_items(self) -> Iterator[Item]:
        while line := self._next_line():
            if line.strip():
                item = self._decode(line)
                if isinstance(item, (Record, Card, Expansion)):
                    item.line = None  # written anew: what a foreign filter wrote may say more than its value
                yield item
        if self._number == 0:
            raise integrity_error("standard input holds nothing: the filter before failed, or let no line through")

    def upstream_error(self) -> CortexError | None:
        """The first error line in what is left: the furthest upstream failure wins over a finding of ours."""
        try:
            while line := self._file.readline(LINE_BYTES):
                error = _error_in(line) if _ERROR_KIND in line else None
                if error is not None:
                    return error
        except OSError:
            return None  # our own finding stands
        return None


def merged(heads: list[Corpus]) -> Corpus:
    """The head of the one segment that comes of several."""
    files, size = sum(head.files for head in heads), sum(head.bytes for head in heads)
    return Corpus(heads[0].root, heads[0].listing, 1, 1, files, size)


def _error_in(line: bytes) -> CortexError | None:
    try:
        item = decode(line, "a line")
    except CortexError:
        return None
    return CortexError(item.code, item.message, stage=item.stage) if isinstance(item, Failure) else None


class SegmentWriter:
    """Writes segments and their seals to a descriptor.  Raises OutputError where it cannot."""

    def __init__(self, stage: str, descriptor: int = 1) -> None:
        self._stage = stage
        self._descriptor = descriptor
        self._pending: list[bytes] = []
        self._size = 0
        self._lines = 0
        self._restart()
        self.unsealed = False

    def _restart(self) -> None:
        from xxhash import xxh3_64

        self._hasher = xxh3_64()
        self._lines = 0

    @property
    def open(self) -> bool:
        """Whether lines have been written since the last seal."""
        return self._lines > 0

    def write(self, item: Item) -> None:
        self.write_line(encode(item))

    def write_line(self, line: bytes) -> None:
        """Write a line that is encoded already, line feed included."""
        self._hasher.update(line)
        self._lines += 1
        self._push(line)

    def seal(self) -> None:
        """End the segment, if one is open, and send everything on its way."""
        if self._lines:
            self._push(encode(Seal(self._stage, self._lines, self._hasher.hexdigest(), self.unsealed)))
            self._restart()
        self.flush()

    def _push(self, line: bytes) -> None:
        self._pending.append(line)
        self._size += len(line)
        if self._size >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        write_all(data, self._descriptor)
