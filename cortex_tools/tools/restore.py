"""cortex-restore: go back to a snapshot (docs/writing.md)."""

from __future__ import annotations

import json
import time

from cortex_tools.contract.grammar import Arguments
from cortex_tools.files.stdio import say, write_all
from cortex_tools.governance import restoring
from cortex_tools.tools import program, showing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NAME = "cortex-restore"
CANNOT_PRINT = 1
_COLUMNS = ("snapshot", "file", "age", "entries", "bytes")


def main() -> NoReturn:
    """Run cortex-restore and exit with its status."""
    program.run(NAME, work, cannot_write=CANNOT_PRINT)


def work(argv: list[str]) -> int:
    """Do what the arguments ask for; the answer is the exit status."""
    return program.act(NAME, argv, _ACTIONS, "snapshot")


def _list(arguments: Arguments) -> None:
    found = showing.looked(arguments.text("--memory-root"), restoring.snapshots)
    now_ms = time.time_ns() // 1_000_000
    if arguments.flag("--json"):
        value = {"snapshots": [snapshot.as_dict(now_ms) for snapshot in found]}
        write_all(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        return
    rows: list[tuple[str, ...]] = [
        (
            one.name,
            one.path,
            showing.age(now_ms - one.taken_ms),
            "" if one.entries is None else str(one.entries),
            str(one.bytes),
        )
        for one in found
    ]
    write_all(showing.table(_COLUMNS, rows).encode("utf-8", "replace") if rows else b"no snapshots\n")


def _show(arguments: Arguments) -> None:
    name = arguments.positionals[1]
    change = showing.looked(arguments.text("--memory-root"), lambda session: restoring.preview(session, name))
    write_all(showing.visible(change.diff or "the file is like this snapshot\n").encode("utf-8", "replace"))


def _restore(arguments: Arguments) -> None:
    name = arguments.positionals[1]
    change, warnings = showing.written(
        arguments.text("--memory-root"), lambda session: restoring.restore(session, name)
    )
    done = f"restored {change.path}\n" if change.diff else "the file is like this snapshot; nothing is changed\n"
    write_all(showing.visible(change.diff + done).encode("utf-8", "replace"))
    for warning in warnings:
        say(f"{NAME}: warning: {warning}")


_ACTIONS: program.Actions = {"list": (_list, ("--json",)), "show": (_show, ()), "restore": (_restore, ())}
