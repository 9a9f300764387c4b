"""Which module builds which stage; each is imported only when it is used."""

from __future__ import annotations

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
    # Not importlib.import_module: half a millisecond, for importing importlib.
    stage: Stage = __import__(f"cortex_tools.stages.{MODULES[name]}", fromlist=["build"]).build(arguments, now_ms)
    return stage
