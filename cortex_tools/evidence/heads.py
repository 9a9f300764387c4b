"""Where the fields of a note or row stand, and what there is about them to wonder at though no rule forbids it."""

from __future__ import annotations

import json

from cortex_tools.domain.markdown import (
    NAMES,
    front_matter,
    front_matter_bounds,
    front_matter_places,
    opens_front_matter,
)
from cortex_tools.domain.privacy import strip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Head:
    """The front matter of a note, by line; lines are those of the file, whatever stripping took out before them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._report = strip(text)
        content = self._report.text
        self._is_open = opens_front_matter(content) and front_matter_bounds(content) is None
        self._has_end = front_matter_bounds(content) is not None
        self._places = front_matter_places(content)
        self._fields = front_matter(content)

    def line(self, field: str) -> int | None:
        """The line that gives a field its value; None where no line does."""
        name = next((name for name in NAMES.get(field, ()) if self._fields.get(name)), None)
        return self._line(max(at for other, at in self._places if other == name)) if name else None

    def _line(self, offset: int) -> int:
        return self._text.count("\n", 0, self._report.source(offset)) + 1

    def remarks(self) -> Iterator[tuple[int, str, str]]:
        """What no rule forbids and hardly anyone means: line, what, how to mend it."""
        if self._is_open:
            yield 1, "the front matter is never closed, so it counts for nothing", "close it with a line ---"
        if self._has_end and not any(self._fields.get(name) for name in NAMES["created"]):
            yield 1, "the front matter has no created, date or ts: the note counts as of 1970", "give it created"
        known = {name for names in NAMES.values() for name in names}
        seen: set[str] = set()
        for name, at in self._places:
            if name in seen and name in known:
                yield (
                    self._line(at),
                    f"{name} stands in the front matter again; the last one counts",
                    "remove the others",
                )
            seen.add(name)


class _KeyTwice(Exception):
    """Thrown out of the decoder by the first object that has a key twice."""


def _no_key_twice(found: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in found}) != len(found):
        raise _KeyTwice


_decode = json.JSONDecoder(object_pairs_hook=_no_key_twice).decode


def has_key_twice(line: str) -> bool:
    """Whether a row names a field more than once."""
    if line.count(":") < 2:
        return False
    try:
        _decode(line)
    except _KeyTwice:
        return True
    except (ValueError, RecursionError):
        return False  # no row at all, which is a problem and said as one
    return False
