"""Cortex Tools: the LifeOS Cortex local-memory contract as composable Unix filters.

Packages, each importing only those before it: `contract` (the rules as data), `domain` (pure
functions), `files` (the memory root on disk), `streams` (lines, segments, seals), `stages` (one
module per filter) and `driver` (the eight contract commands as plans over the stages).
"""

__version__ = "0.1.0"
