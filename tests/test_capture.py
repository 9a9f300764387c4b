"""Capture envelopes (contract, sections 7 and 8)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.library import create_capture_envelope, ingest_capture_envelope, is_capture_valid_at, strip_private

GIVEN: dict[str, Any] = {
    "source": "conversation <private>canary-a</private>",
    "channel": "telegram",
    "timestamps": {"captured_at": "2026-01-02T03:04:05Z", "source_at": "2026-01-01"},
    "valid_from": None,
    "valid_until": "2027-01-01",
    "session_id": "s-1<private>canary-b</private>",
    "content": "public <private>canary-c</private> text <privateer> canary-d",
}


def test_the_consumer_gets_a_stripped_copy_and_nothing_else() -> None:
    given = copy.deepcopy(GIVEN)
    seen: list[dict[str, Any]] = []
    assert ingest_capture_envelope(given, lambda envelope: seen.append(envelope) or len(seen)) == 1
    assert given == GIVEN
    assert "canary" not in repr(seen)
    assert seen[0] == {
        **GIVEN,
        "source": "conversation ",
        "session_id": "s-1",
        "content": "public  text ",
    }
    seen[0]["timestamps"]["captured_at"] = "changed"
    assert given == GIVEN


def test_optional_fields_default_to_none() -> None:
    minimal = {name: GIVEN[name] for name in ("source", "channel", "content")}
    envelope = create_capture_envelope({**minimal, "timestamps": {"captured_at": "2026-01-02"}})
    assert envelope["valid_from"] is None and envelope["session_id"] is None
    assert envelope["timestamps"] == {"captured_at": "2026-01-02"}


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"content": None},
        {"content": 3},
        {"source": None},
        {"timestamps": None},
        {"timestamps": "2026-01-02"},
        {"timestamps": {}},
        {"timestamps": {"captured_at": "yesterday"}},
        {"timestamps": {"captured_at": "2026-01-02", "read_at": "2026-01-02"}},
        {"valid_until": "soon <private>canary-e</private>"},
        {"valid_from": 5},
    ],
)
def test_what_is_not_an_envelope_never_reaches_the_consumer(change: dict[str, Any]) -> None:
    called: list[object] = []
    with pytest.raises(CortexError) as refusal:
        ingest_capture_envelope({**GIVEN, **change}, called.append)
    assert refusal.value.code == "invalid_input" and "canary" not in refusal.value.message
    assert called == []


def test_the_consumers_exceptions_are_its_own() -> None:
    def consumer(envelope: dict[str, Any]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ingest_capture_envelope(GIVEN, consumer)


def test_validity_of_an_envelope() -> None:
    assert is_capture_valid_at({"valid_from": "1970-01-01", "valid_until": "1970-01-02"}, 0)
    assert not is_capture_valid_at({"valid_until": "1970-01-01"}, 0)
    assert is_capture_valid_at({}, 0)
    assert not is_capture_valid_at({"valid_from": "soon"}, 0)
    assert not is_capture_valid_at({"valid_until": 7}, 0)
    assert strip_private("a <private>b</private> c") == "a  c"
