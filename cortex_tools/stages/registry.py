"""Which module builds which stage; each is imported only when it is used."""

from __future__ import annotations

from importlib import import_module

from cortex_tools.contract.grammar import Arguments
from cortex_tools.stages.base import Stage

# Those that take records or cards one at a time.  cortex-scan and cortex-strip, which make them, stand apart.
MODULES = {
    "cortex-select": "select",
    "cortex-rank": "rank",
    "cortex-window": "window",
    "cortex-expand": "expand",
    "cortex-digest": "digest",
    "cortex-card": "card",
    "cortex-envelope": "envelope",
}


def build(name: str, arguments: Arguments, now_ms: int) -> Stage:
    """The stage `name` with its arguments judged; raises invalid_input for a bad one."""
    stage: Stage = import_module(f"cortex_tools.stages.{MODULES[name]}").build(arguments, now_ms)
    return stage
