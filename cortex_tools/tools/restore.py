"""cortex-restore: go back to a snapshot (docs/writing.md)."""

from __future__ import annotations

from cortex_tools.evidence import program  # isort: skip (first, so that Ctrl-C is quiet from here on)

import json
import time

from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.contract.grammar import Arguments, count_positionals
from cortex_tools.contract.options import EXECUTABLES
from cortex_tools.files.stdio import say, write_all
from cortex_tools.governance import restoring, showing

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
    try:
        arguments = program.arguments(EXECUTABLES[NAME], argv)
        _ACTIONS[_action(arguments)](arguments)
    except CortexError as error:
        program.complain(NAME, error)
        return error.status
    return 0


def _action(arguments: Arguments) -> str:
    count_positionals(EXECUTABLES[NAME], arguments.positionals)
    action, *rest = arguments.positionals
    if action not in _ACTIONS:
        raise invalid_input(f"{NAME} does one of {', '.join(_ACTIONS)}")
    if len(rest) != (action != "list"):
        raise invalid_input(f"{NAME} {action} takes {'no snapshot' if action == 'list' else 'one snapshot'}")
    if arguments.flag("--json") and action != "list":
        raise invalid_input(f"--json has no meaning beside {action}")
    return action


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


_ACTIONS = {"list": _list, "show": _show, "restore": _restore}
