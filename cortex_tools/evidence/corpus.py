"""The corpus as the commands read it, for what measures it: records, and the canonical digest."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.driver.run import measure_here, push
from cortex_tools.files.root import Root
from cortex_tools.files.walk import walk
from cortex_tools.stages import digest
from cortex_tools.stages.base import Stage
from cortex_tools.stages.census import Census
from cortex_tools.streams.items import Digest, Item


class Collect(Stage):
    """Keeps every item that reaches it, and passes it on."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def take(self, item: Item) -> Item:
        self.items.append(item)
        return item


def canonical_digest(root: Root, before: list[Stage] | None = None) -> Digest:
    """The digest of `rebuild` over one reading of the corpus; raises CortexError where it is not sound.

    Every record goes through the stages `before` on its way.
    """
    files = walk(root)
    chain: list[Stage] = [Census(), *(before or []), digest.build(Arguments({}, []), 0)]
    measure_here(root, files, chain)
    last: Item | None = None
    for number, stage in enumerate(chain):
        for item in stage.finish():
            push(chain[number + 1 :], item)
            last = item
    assert isinstance(last, Digest)
    return last
