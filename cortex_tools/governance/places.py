"""Names and places below a memory root, of what is written and of what is only read (docs/writing.md)."""

from __future__ import annotations

import os

LIFEOS_TAIL = b"/LIFEOS/MEMORY"
KNOWLEDGE = "KNOWLEDGE"
OBSERVABILITY = "OBSERVABILITY"
SNAPSHOTS = "memory-snapshots"
QUEUE = "pending-proposals.jsonl"
NOTE_LOG = "tier-b-writes.jsonl"
MEMORY_LOG = "memory-writes.jsonl"
LOCK_LOG = "memory-locks.jsonl"
HEALTH_LOG = "memory-health.jsonl"
RETRIEVAL_LOG = "memory-retrievals.jsonl"
REVIEWER_LOG = "reviewer-runs.jsonl"
REVIEWER_RUNS = "reviewer-runs"
# What lies in OBSERVABILITY, this suite's and the other program's.
LOGS = (QUEUE, NOTE_LOG, MEMORY_LOG, LOCK_LOG, HEALTH_LOG, RETRIEVAL_LOG, REVIEWER_LOG)

NOTE_FOLDERS = {"idea": "Ideas", "person": "People", "company": "Companies", "research": "Research"}
HOT_FILES = {"principal": ("PRINCIPAL", "PRINCIPAL_MEMORY.md"), "assistant": ("DIGITAL_ASSISTANT", "DA_MEMORY.md")}
# What a proposal of a kind may change, below USER.
TARGETS = {
    "identity": ("PRINCIPAL/PRINCIPAL_IDENTITY.md", "DIGITAL_ASSISTANT/DA_IDENTITY.md"),
    "style": ("PRINCIPAL/WRITINGSTYLE.md",),
    "definition": ("DEFINITIONS.md",),
    "canonical-content": ("CANONICAL_CONTENT.md",),
    "resume": ("PRINCIPAL/RESUME.md",),
    "operational-rule": ("CONFIG/OPERATIONAL_RULES.md",),
    "projects": ("PROJECTS.md",),
    "contacts": ("CONTACTS.md",),
}


def where(requested: bytes) -> tuple[bytes, bytes | None]:
    """The path of a root as asked for, made absolute, and the folder that holds USER where that is not the root.

    So it is where the root ends in LIFEOS/MEMORY: USER, and the policy markers, then lie beside it.
    """
    lexical = os.path.normpath(os.path.join(os.getcwdb(), requested))
    return lexical, os.path.dirname(lexical) if lexical.endswith(LIFEOS_TAIL) else None
