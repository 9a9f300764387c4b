"""Capture envelopes: the privacy boundary as a library call for whoever takes text in (sections 7 and 8)."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.timestamps import parse_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    Result = TypeVar("Result")

FIELDS = ("source", "channel", "timestamps", "valid_from", "valid_until", "session_id", "content")
TIMES = ("captured_at", "source_at")
_REQUIRED = ("source", "channel", "timestamps", "content")


def create_capture_envelope(given: Mapping[str, Any]) -> dict[str, Any]:
    """A stripped copy of `given` with exactly the fields of FIELDS; what is not given is None.

    `timestamps` holds `captured_at` and, where it is known, `source_at`.  Raises invalid_input for an
    unknown or missing field, text that is no string, and a time that is no timestamp of section 6.
    """
    _only(given, FIELDS, "a capture envelope")
    for name in _REQUIRED:
        if given.get(name) is None:
            raise invalid_input(f"a capture envelope needs {name}")
    texts = {name: _stripped(given.get(name), name) for name in FIELDS if name != "timestamps"}
    for name in ("valid_from", "valid_until"):
        _check_time(texts[name], name)
    envelope = {name: texts.get(name) for name in FIELDS}
    return envelope | {"timestamps": _timestamps(given["timestamps"])}


def ingest_capture_envelope(given: Mapping[str, Any], consumer: Callable[[dict[str, Any]], Result]) -> Result:
    """What `consumer` gives for the stripped copy of `given`: it never sees anything else.

    Raises what create_capture_envelope raises, before the consumer is called, and what the consumer raises.
    """
    return consumer(create_capture_envelope(given))


def is_capture_valid_at(envelope: Mapping[str, Any], ms: int) -> bool:
    """Whether the envelope's validity window holds `ms` (since 1970); a bound that is no timestamp fails closed."""
    start, end = envelope.get("valid_from"), envelope.get("valid_until")
    start_ms, end_ms = _ms(start), _ms(end)
    if (start is not None and start_ms is None) or (end is not None and end_ms is None):
        return False
    return (start_ms is None or start_ms <= ms) and (end_ms is None or ms < end_ms)


def _timestamps(given: Any) -> dict[str, str]:
    if not hasattr(given, "keys"):
        raise invalid_input("timestamps is an object with captured_at and, where known, source_at")
    _only(given, TIMES, "timestamps")
    if given.get("captured_at") is None:
        raise invalid_input("timestamps needs captured_at")
    times = {name: _stripped(given[name], name) for name in TIMES if given.get(name) is not None}
    for name, text in times.items():
        _check_time(text, name)
    return {name: text for name, text in times.items() if text is not None}


def _only(given: Mapping[str, Any], allowed: tuple[str, ...], what: str) -> None:
    if not hasattr(given, "keys") or not set(given) <= set(allowed):
        raise invalid_input(f"{what} has only the fields {', '.join(allowed)}")


def _stripped(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid_input(f"{name} of a capture envelope is a string")
    return strip_private(value)


def _check_time(text: str | None, name: str) -> None:
    if text is not None and parse_ms(text) is None:
        raise invalid_input(f"{name} of a capture envelope is no timestamp")


def _ms(value: Any) -> int | None:
    return parse_ms(value) if isinstance(value, str) else None
