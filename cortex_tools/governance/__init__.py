"""Governed writes: typed items, tiers, locks, audit, snapshots (docs/writing.md).

`add(item)` persists one item below the memory root, or refuses and leaves everything as it was.
"""

from cortex_tools.governance.add import add

__all__ = ["add"]
