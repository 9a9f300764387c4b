"""Where evidence lies: the pinned memory root, and what stands beside it (governance.md, section 1)."""

from __future__ import annotations

import os

from cortex_tools.files.root import Root, pin_root, requested_root
from cortex_tools.governance import places
from cortex_tools.governance.places import LIFEOS_TAIL, OBSERVABILITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REVIEWER_LOG = f"{OBSERVABILITY}/{places.REVIEWER_LOG}"
REVIEWER_RUNS = f"{OBSERVABILITY}/{places.REVIEWER_RUNS}"
RETRIEVAL_LOG = f"{OBSERVABILITY}/{places.RETRIEVAL_LOG}"
PROPOSAL_QUEUE = f"{OBSERVABILITY}/{places.QUEUE}"
HEALTH_LOG = f"{OBSERVABILITY}/{places.HEALTH_LOG}"
INDEX_MANIFEST = "INDEX/index-manifest.json"
BENCHMARKS = "BENCHMARKS"

HEALTH_ROOT_VARIABLE = "CORTEX_HEALTH_ROOT"


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
        return os.fsencode(holder) + LIFEOS_TAIL
    return requested_root(None, option)


def find(asked: bytes) -> Layout:
    """Pin the root `asked` for; raises integrity_error where it is missing or no folder."""
    root = pin_root(asked)
    _, beside = places.where(asked)
    if beside is None:
        return Layout(root, root.path, [(root.path, name) for _, name in places.HOT_FILES.values()])
    user = os.path.join(beside, b"USER")
    return Layout(root, beside, [(user, f"{folder}/{name}") for folder, name in places.HOT_FILES.values()])
