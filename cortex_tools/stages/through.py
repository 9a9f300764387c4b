"""cortex-through: a foreign filter between two stages, with the seal kept (docs/streams.md)."""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import values
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.foreign import ForeignFilter, find
from cortex_tools.files.names import shown
from cortex_tools.files.spool import Spool
from cortex_tools.stages.census import Census
from cortex_tools.streams.items import Corpus, Item, Seal
from cortex_tools.streams.lines import decode, encode
from cortex_tools.streams.segments import LINE_BYTES, SegmentReader, SegmentWriter, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DECLARED = STAGES["cortex-through"]
_ADVICE = "the filter must give back one whole JSON object a line (jq: -c), and nothing else"
_PIECE = 1 << 16
_PATIENCE = 1 << 20


def build(arguments: Arguments) -> Through:
    """Raises invalid_input for a status outside its bounds, and for a command that is not there."""
    accepted = {values.count(_DECLARED.options["--accept"], text) for text in arguments.texts("--accept")}
    return Through(find(arguments.positionals[0]), arguments.positionals, {0, *accepted})


class Through:
    """Holds the stream back until its seals have been checked, runs the filter, and seals what is sound of it.

    Nothing runs on a stream that may be broken, since the filter may do what cannot be undone; and nothing is
    written before the filter has ended well.  Both waits are spent in temporary files, not in memory.
    """

    def __init__(self, path: str, words: list[str], accepted: set[int | None]) -> None:
        self._path = path
        self._words = words
        self._name = shown(words[0])
        self._accepted = accepted
        self._heads: list[Corpus] = []
        self._others: list[Item] = []
        self._kinds: set[str] = set()
        self._given = Spool()
        self._given_bytes = 0
        self._taken = Spool()
        self._places: list[tuple[int, int]] = []

    def run(self, reader: SegmentReader, writer: SegmentWriter) -> None:
        """Raises integrity_error for a broken stream and for a filter that failed or wrote what it must not."""
        self._read(reader)
        self._filter()
        writer.unsealed = reader.unsealed
        if self._heads:
            writer.write(merged(self._heads))
        for item in self._others:
            writer.write(item)
        for place in self._places:
            writer.write_line(self._taken.read(*place))
        writer.seal()

    def _read(self, reader: SegmentReader) -> None:
        census = Census()
        for item in reader:
            census.take(item)
            if isinstance(item, Corpus):
                self._heads.append(item)
            elif isinstance(item, (Record, Card)):
                self._kinds.add(item.kind)
                self._given_bytes += self._given.add(encode(item))[1]
            elif not isinstance(item, Seal):
                self._others.append(item)
        census.check()
        self._given.flush()

    def _filter(self) -> None:
        """Run the filter over all segments at once: what sorts or counts must see everything."""
        running = ForeignFilter(self._path, self._words)
        try:
            fault = self._fault(running.exchange(self._pieces()))
            status = running.wait()
        finally:
            running.end()
        if status not in self._accepted:
            raise self._failed(status)
        if fault is not None:
            raise fault
        if running.stopped_early:
            raise integrity_error(
                f"{self._name} ended before it had read every line, which a filter that fails may do, too; "
                "use cortex-select --limit N in place of head"
            )
        self._taken.flush()

    def _fault(self, pieces: Iterator[bytes]) -> CortexError | None:
        """Take what the filter writes; what is wrong with it, unless it fails by itself, which says more.

        So after a fault it is let run to its end, but not for ever.
        """
        try:
            self._take(_lines(pieces, self._name))
        except CortexError as fault:
            left = _PATIENCE
            for piece in pieces:
                left -= len(piece)
                if left < 0:
                    raise
            return fault
        return None

    def _pieces(self) -> Iterator[bytes]:
        for at in range(0, self._given_bytes, _PIECE):
            yield self._given.read(at, min(_PIECE, self._given_bytes - at))

    def _take(self, lines: Iterable[bytes]) -> None:
        """Check every line as a reading stage would, and that it is one that the filter could have been given."""
        seen: set[str] = set()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"line {number} of what {self._name} wrote"
            item = decode(line, where, _ADVICE)
            if not isinstance(item, (Record, Card)) or item.kind not in self._kinds:
                given = " and ".join(sorted(self._kinds)) or "no"
                raise integrity_error(f"{where} is of kind {item.kind}, but it was given {given} lines")
            if item.id in seen:
                raise integrity_error(
                    f"{where} repeats the ID {shown(item.id)}; a filter may drop lines, not repeat them"
                )
            seen.add(item.id)
            if len(seen) > limits.RECORDS:
                raise integrity_error(f"{self._name} wrote more than {limits.RECORDS} lines; no stream has so many")
            item.line = None  # written anew: a line of its own may say more than its value
            self._places.append(self._taken.add(encode(item)))

    def _failed(self, status: int) -> CortexError:
        if status < 0:
            return integrity_error(f"{self._name} was killed by signal {-status}; what it wrote is thrown away")
        advice = ""
        if status == 1:
            advice = "; where 1 only means that no line was left, as with grep, put --accept 1 before the command"
        return integrity_error(f"{self._name} failed with exit status {status}; what it wrote is thrown away{advice}")


def _lines(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The lines of what comes in pieces, line feeds included; raises integrity_error for one that has no end."""
    begun: list[bytes] = []  # parts end in LF, in a CR that ends no line, or where the piece ends
    size = 0
    for piece in pieces:
        for part in piece.splitlines(keepends=True):
            begun.append(part)
            size += len(part)
            if size > LINE_BYTES:
                raise integrity_error(f"{name} wrote a line of more than {LINE_BYTES} bytes")
            if part.endswith(b"\n"):
                yield b"".join(begun)
                begun.clear()
                size = 0
    if begun:
        yield b"".join(begun)
