"""What a stage is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cortex_tools.streams.items import Item


class Stage:
    """One filter over the items of a stream.

    Items go through `take` one at a time; `finish` gives what the stage has to say once all of them
    have gone by.  A stage that must see everything first (rank, window, digest, the envelope) works in
    two halves: `take` measures, `finish` works over all measurements.  So that the measuring can be
    spread over processes, `partial` gives the measurements as plain values and `absorb` adds those of
    another part; parts are absorbed in the order of the corpus.
    """

    gathers = False
    """True where `finish` gives the stage's answer and `take` passes on no record."""

    def take(self, item: Item) -> Item | None:
        """The item to pass on, or None where the stage keeps or drops it.  Raises CortexError."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What follows the last item.  Raises CortexError."""
        return iter(())

    def prints(self, *, terminal: bool) -> bool:
        """Whether the answer is `text`, for people or another program, and not a stream.

        `terminal` tells whether it goes to one.
        """
        return False

    def text(self) -> str:
        """What is printed in place of a stream once the last item has been taken.  Raises CortexError."""
        raise NotImplementedError

    def prepare(self, parts: int) -> None:
        """Called once before the corpus is split over `parts` processes."""

    def enter(self, part: int) -> None:
        """Called in the process that measures part number `part`, from 0."""

    def partial(self) -> Any:
        """The measurements so far, as values that marshal can carry."""
        return None

    def absorb(self, partial: Any) -> None:
        """Add the measurements of the next part of the corpus."""
