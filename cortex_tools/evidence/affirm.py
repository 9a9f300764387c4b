"""Writing a policy marker: the one act by which missing evidence becomes a decision."""

from __future__ import annotations

import json
import os

from cortex_tools.contract.errors import integrity_error, invalid_input
from cortex_tools.evidence import index, policy, reviewer
from cortex_tools.evidence.layout import REVIEWER_LOG, REVIEWER_RUNS, Layout
from cortex_tools.evidence.policy import Policy
from cortex_tools.files.durable import write_new
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def affirm(layout: Layout, name: str, environ: Mapping[str, str]) -> str:
    """Write the marker that affirms `name` (no-index, no-reviewer); the answer is a sentence that says where.

    Raises invalid_input for another name and where evidence contradicts, integrity_error where something
    else stands in the marker's place or it cannot be written.
    """
    wanted = policy.POLICIES.get(name)
    if wanted is None:
        raise invalid_input(f"affirm takes one of {', '.join(policy.POLICIES)}")
    marker = policy.read(layout.beside, wanted)
    path = shown(marker.path)
    if marker.state == policy.VALID:
        return f"{path} already affirms {wanted.content['policy']}"
    if marker.state == policy.INVALID:
        raise integrity_error(f"{path} {marker.fault}; move it away first")
    _refuse_contradiction(layout, wanted, environ)
    data = json.dumps(wanted.content, separators=(",", ":")).encode() + b"\n"
    try:
        folder = os.open(layout.beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            write_new(folder, wanted.file, data)
        finally:
            os.close(folder)
    except OSError as error:
        raise integrity_error(f"{path} cannot be written: {error.strerror}") from None
    return f"{path} affirms {wanted.content['policy']}"


def _refuse_contradiction(layout: Layout, wanted: Policy, environ: Mapping[str, str]) -> None:
    if wanted is policy.NO_INDEX and index.manifest_exists(layout, environ):
        raise invalid_input("there is an index manifest; remove the index before you affirm that there is none")
    if wanted is policy.NO_REVIEWER and reviewer.has_evidence(layout):
        raise invalid_input(
            f"there is evidence of a reviewer in {REVIEWER_LOG} or {REVIEWER_RUNS}; "
            "move it away before you affirm that none runs"
        )
