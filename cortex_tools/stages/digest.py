"""cortex-digest: the canonical SHA-256 over all records in ID order (section 10, rebuild)."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain.collation import id_key
from cortex_tools.domain.records import Record
from cortex_tools.files.spool import Spool
from cortex_tools.stages.base import Stage
from cortex_tools.streams import items
from cortex_tools.streams.items import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# ID, number of the spool, offset and length in bytes of the record's JSON.
Place = tuple[str, int, int, int]


def build(arguments: Arguments, now_ms: int) -> Digest:
    return Digest()


class Digest(Stage):
    """Spools each record's canonical JSON; at the end hashes them in ID order.

    The hash is over the compact JSON array of all records, keys in the order of section 6.
    """

    gathers = True

    def __init__(self) -> None:
        self._spools = [Spool()]
        self._number = 0
        self._places: list[Place] = []

    def take(self, item: Item) -> Item | None:
        if not isinstance(item, Record):
            return item
        offset, length = self._spools[self._number].add(item.json().encode())
        self._places.append((item.id, self._number, offset, length))
        return None

    def prepare(self, parts: int) -> None:
        self._spools += [Spool() for _ in range(parts - 1)]

    def enter(self, part: int) -> None:
        self._number = part

    def partial(self) -> list[Place]:
        self._spools[self._number].flush()
        return self._places

    def absorb(self, partial: list[Place]) -> None:
        self._places += partial

    def finish(self) -> Iterator[Item]:
        import hashlib

        self._spools[self._number].flush()
        self._places.sort(key=lambda place: id_key(place[0]))
        hasher = hashlib.sha256(b"[")
        for number, (_, spool, offset, length) in enumerate(self._places):
            if number:
                hasher.update(b",")
            hasher.update(self._spools[spool].read(offset, length))
        hasher.update(b"]")
        for spool_file in self._spools:
            spool_file.close()
        yield items.Digest(hasher.hexdigest(), len(self._places))
