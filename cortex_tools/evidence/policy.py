"""Policy markers: an operator's affirmation that something is deliberately not there (contract, section 12)."""

from __future__ import annotations

import os

from cortex_tools.evidence import reading
from cortex_tools.evidence.reading import Missing, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ABSENT, VALID, INVALID = "absent", "valid", "invalid"


class Policy:
    """What `cortex-health affirm NAME` affirms: the marker's file name and its exact content."""

    __slots__ = ("content", "file", "name")

    def __init__(self, name: str, file: str, schema: str, policy: str) -> None:
        self.name = name
        self.file = file
        self.content: dict[str, Any] = {"schema": schema, "policy": policy}


NO_INDEX = Policy("no-index", "CORTEX_INDEX_POLICY.json", "lifeos-cortex-index-policy/v1", "no-index-v1")
NO_REVIEWER = Policy("no-reviewer", "CORTEX_REVIEWER_POLICY.json", "lifeos-cortex-reviewer-policy/v1", "no-reviewer-v1")
POLICIES = {policy.name: policy for policy in (NO_INDEX, NO_REVIEWER)}


class Marker:
    """A marker as found: its `state` (absent, valid, invalid), its path, and what is wrong with it."""

    __slots__ = ("fault", "path", "state")

    def __init__(self, state: str, path: str, fault: str | None) -> None:
        self.state = state
        self.path = path
        self.fault = fault

    def evidence(self) -> dict[str, Any]:
        return {"path": self.path, "state": self.state}


def read(folder: bytes, policy: Policy) -> Marker:
    """The marker of `policy` in `folder`."""
    path = os.path.join(os.fsdecode(folder), policy.file)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Marker(ABSENT, path, None)
    except OSError as error:
        return Marker(INVALID, path, f"its folder cannot be read: {error.strerror}")
    try:
        data = reading.read_file(descriptor, policy.file)
    except Missing:
        return Marker(ABSENT, path, None)
    except Unreadable as error:
        return Marker(INVALID, path, str(error))
    finally:
        os.close(descriptor)
    if reading.parse_object(data) != policy.content:
        return Marker(INVALID, path, "is not exactly the marker that cortex-health affirm writes")
    return Marker(VALID, path, None)
