"""cortex-proposals: a person decides on what was proposed (docs/writing.md)."""

from __future__ import annotations

import json
import time

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.files.stdio import say, write_all
from cortex_tools.governance import proposals
from cortex_tools.governance.items import clean_reason
from cortex_tools.governance.refusal import Refusal
from cortex_tools.tools import program, showing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

NAME = "cortex-proposals"
CANNOT_PRINT = 1
_COLUMNS = ("ID", "age", "status", "kind", "conf.", "sessions", "edit")
_EDIT_SHOWN = 120


def main() -> NoReturn:
    """Run cortex-proposals and exit with its status."""
    program.run(NAME, work, cannot_write=CANNOT_PRINT)


def work(argv: list[str]) -> int:
    """Do what the arguments ask for; the answer is the exit status."""
    return program.act(NAME, argv, _ACTIONS, "ID")


def _list(arguments: Arguments) -> None:
    rows = showing.looked(arguments.text("--memory-root"), proposals.rows_of)
    torn = [row.number for row in rows if row.value is None]
    known = [showing.stripped(row.value) for row in rows if row.value is not None]
    if not arguments.flag("--all"):
        known = [proposal for proposal in known if proposal.get("status") == proposals.PENDING]
    if arguments.flag("--json"):
        write_all(_json({"proposals": known, "unreadable_lines": torn}))
    elif known:
        write_all(showing.table(_COLUMNS, [_cells(proposal) for proposal in known]).encode("utf-8", "replace"))
    else:
        write_all(b"no proposal waits for a decision\n" if not arguments.flag("--all") else b"no proposals\n")
    if torn:
        lines = ", ".join(map(str, torn[:10]))
        say(f"{NAME}: warning: {len(torn)} lines of the queue cannot be read and are kept as they are: {lines}")


def _cells(proposal: dict[str, Any]) -> tuple[str, ...]:
    ts = proposal.get("ts")
    queued = parse_ms(ts) if isinstance(ts, str) else None
    age = "?" if queued is None else showing.age(time.time_ns() // 1_000_000 - queued)
    edit = " ".join(str(proposal.get("edit", "")).split())
    shown = edit if len(edit) <= _EDIT_SHOWN else edit[:_EDIT_SHOWN] + "…"
    keys = ("status", "target_kind", "confidence", "observed_across_sessions")
    return (str(proposal.get("id", "")), age, *(str(proposal.get(key, "")) for key in keys), shown)


def _show(arguments: Arguments) -> None:
    identifier = arguments.positionals[1]
    root = arguments.text("--memory-root")
    proposal = showing.stripped(showing.looked(root, lambda session: proposals.queued(session, identifier)))
    diff = ""
    if proposal.get("status") == proposals.PENDING:
        _, change = showing.looked(root, lambda session: proposals.preview(session, identifier))
        diff = change.diff
    if arguments.flag("--json"):
        write_all(_json({"proposal": proposal, "diff": diff}))
        return
    keys = [key for key in proposal if key != "edit"]
    head = "".join(f"{key}: {_inline(proposal[key])}\n" for key in keys)
    if proposal.get("status") == proposals.PENDING:
        rest = diff or "the file holds this text already; approving only marks the proposal\n"
    else:
        rest = f"{proposal.get('edit', '')}\n"
    write_all(showing.visible(f"{head}\n{rest}").encode("utf-8", "replace"))


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _approve(arguments: Arguments) -> None:
    identifier = arguments.positionals[1]
    change, warnings = showing.written(
        arguments.text("--memory-root"), lambda session: proposals.approve(session, identifier)
    )
    what = change.diff or "the file held this text already; only the proposal is marked\n"
    write_all(showing.visible(f"{what}approved {identifier}\n").encode("utf-8", "replace"))
    _warn(warnings)


def _reject(arguments: Arguments) -> None:
    identifier = arguments.positionals[1]
    try:
        reason = clean_reason(arguments.text("--reason"))
    except Refusal as refusal:
        raise invalid_input(f"--reason: {refusal.message}") from None
    _, warnings = showing.written(
        arguments.text("--memory-root"), lambda session: proposals.reject(session, identifier, reason)
    )
    write_all(showing.visible(f"rejected {identifier}\n").encode("utf-8", "replace"))
    _warn(warnings)


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        say(f"{NAME}: warning: {warning}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


_ACTIONS: program.Actions = {
    "list": (_list, ("--json", "--all")),
    "show": (_show, ("--json",)),
    "approve": (_approve, ()),
    "reject": (_reject, ("--reason",)),
}
