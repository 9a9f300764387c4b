"""Where evidence lies: the pinned memory root, and what stands beside it (governance.md, section 1)."""

from __future__ import annotations

import os

from cortex_tools.files.root import Root, pin_root, requested_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OBSERVABILITY = "OBSERVABILITY"
REVIEWER_LOG = "OBSERVABILITY/reviewer-runs.jsonl"
REVIEWER_RUNS = "OBSERVABILITY/reviewer-runs"
RETRIEVAL_LOG = "OBSERVABILITY/memory-retrievals.jsonl"
PROPOSAL_QUEUE = "OBSERVABILITY/pending-proposals.jsonl"
HEALTH_LOG = "OBSERVABILITY/memory-health.jsonl"
INDEX_MANIFEST = "INDEX/index-manifest.json"
BENCHMARKS = "BENCHMARKS"

HEALTH_ROOT_VARIABLE = "CORTEX_HEALTH_ROOT"
_LIFEOS_TAIL = b"/LIFEOS/MEMORY"
# Below USER in the existing store, in the root itself in a self-contained one.
_HOT_FILES = (b"PRINCIPAL/PRINCIPAL_MEMORY.md", b"DIGITAL_ASSISTANT/DA_MEMORY.md")


class Layout:
    """The pinned `root`, and `beside`: the folder that holds the policy markers, as a path.

    `hot` are (folder, path below it) of the hot memory files, whether they exist or not.
    """

    __slots__ = ("beside", "hot", "root")

    def __init__(self, root: Root, beside: bytes, hot: list[tuple[bytes, str]]) -> None:
        self.root = root
        self.beside = beside
        self.hot = hot

    def close(self) -> None:
        self.root.close()


def requested(option: str | None, environ: Mapping[str, str]) -> bytes:
    """The memory root as asked for: by option, by CORTEX_HEALTH_ROOT, else as every command takes it."""
    holder = environ.get(HEALTH_ROOT_VARIABLE)
    if option is None and holder:
        return os.fsencode(holder) + _LIFEOS_TAIL
    return requested_root(None, option)


def find(asked: bytes) -> Layout:
    """Pin the root `asked` for; raises integrity_error where it is missing or no folder."""
    root = pin_root(asked)
    lexical = os.path.normpath(os.path.join(os.getcwdb(), asked))
    if lexical.endswith(_LIFEOS_TAIL):
        beside = os.path.dirname(lexical)
        user = os.path.join(beside, b"USER")
        return Layout(root, beside, [(user, path.decode()) for path in _HOT_FILES])
    return Layout(root, root.path, [(root.path, os.path.basename(path).decode()) for path in _HOT_FILES])
