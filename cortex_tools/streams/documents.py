"""One JSON document from a descriptor, as events and values: strict, in constant memory, whatever parser ijson has."""

from __future__ import annotations

import os
from contextlib import suppress

from cortex_tools.contract.errors import CortexError, integrity_error
from cortex_tools.domain.numbers import js_number
from cortex_tools.domain.strict_json import StrictJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Event = tuple[str, Any]

_PIECE = 1 << 16
# An expansion in an envelope is four deep; what is far deeper is none of ours.
_DEEPEST = 16
_SCALARS = ("string", "number", "boolean", "null")


def fault(what: str) -> CortexError:
    return integrity_error(f"the document on standard input {what}")


class Document:
    """The one document on `descriptor`.  Every method raises integrity_error where it is not sound.

    Memory stays bounded: each element of an array that was entered may have `longest` bytes, and all else together.
    """

    def __init__(self, descriptor: int, longest: int) -> None:
        self._events = _events(descriptor, longest)
        self._longest = longest
        self._left = longest

    def start(self) -> None:
        """Enter the object that the document is."""
        next(self._events)  # StrictJson lets nothing but an object begin

    def end(self) -> None:
        """Read to the end of the document; there is nothing after its object."""
        for _ in self._events:
            raise AssertionError("StrictJson lets nothing follow the object")

    def members(self) -> Iterator[str]:
        """The keys of the object that was entered, each once; its value must be taken before the next."""
        seen: set[str] = set()
        for kind, key in self._events:
            if kind == "end_map":
                return
            if key in seen:
                raise fault("holds an object with the same key twice")
            seen.add(key)
            self._spend(len(key))
            yield key

    def value(self) -> Any:
        """The next value, whole."""
        return self._value(next(self._events), 1)

    def enter(self, kind: str) -> bool:
        """Enter the next value, a `map` or an `array`; False where it is null."""
        event, _ = next(self._events)
        if event not in (f"start_{kind}", "null"):
            raise fault("does not hold what an envelope does")
        return event != "null"

    def elements(self) -> Iterator[Any]:
        """The elements of the array that was entered, one whole value after another."""
        rest = self._left
        for event in self._events:
            if event[0] == "end_array":
                break
            self._left = self._longest
            yield self._value(event, 1)
        self._left = rest

    def _value(self, event: Event, depth: int) -> Any:
        kind, value = event
        if kind in _SCALARS:
            self._spend(len(value) if kind == "string" else 1)
            return _number(value) if kind == "number" else value
        if depth == _DEEPEST:
            raise fault("nests more deeply than an envelope does")
        if kind == "start_map":
            return {key: self._value(next(self._events), depth + 1) for key in self.members()}
        found = []
        for inner in self._events:
            if inner[0] == "end_array":
                break
            found.append(self._value(inner, depth + 1))
        return found

    def _spend(self, size: int) -> None:
        self._left -= size + 1
        if self._left < 0:
            raise fault(f"holds a value of more than {self._longest} bytes")


def _number(value: Any) -> int | float:
    """The number as an int or a double; one that a double would change is refused."""
    if isinstance(value, int):
        return value
    double = float(value)
    if double - double != 0 or type(value)(js_number(double)) != value:
        raise fault("holds a number with more digits than a number can keep")
    return double


def _events(descriptor: int, longest: int) -> Iterator[Event]:
    import ijson  # type: ignore[import-untyped]

    found = ijson.sendable_list()
    parser = ijson.basic_parse_coro(found)
    strict = StrictJson(longest)
    try:
        while strict.fault is None and (piece := _read(descriptor)):
            sound = strict.check(piece)
            if sound:
                yield from _parsed(ijson, parser.send, sound, found)
        if strict.fault is None:
            strict.finish()
        if strict.fault is not None:
            raise fault(strict.fault)
        yield from _parsed(ijson, parser.close, None, found)
    finally:
        # Whoever gives up a document has said why; that it is not whole either would be said on standard error.
        with suppress(ijson.JSONError):
            parser.close()


def _parsed(ijson: Any, step: Any, data: bytes | None, found: list[Event]) -> list[Event]:
    try:
        step() if data is None else step(data)
    except (ijson.JSONError, ValueError):
        raise fault("is no sound JSON: its brackets, commas or colons do not fit") from None
    events = list(found)
    del found[:]
    return events


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError as error:
        raise integrity_error(f"standard input cannot be read: {error.strerror}") from None
