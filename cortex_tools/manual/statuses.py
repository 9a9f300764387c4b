"""Exit statuses with their meanings, for help and manual pages."""

from __future__ import annotations

from cortex_tools.contract.errors import EXIT_STATUS, SUCCESS
from cortex_tools.contract.options import Command

_MEANINGS = {
    1: "unexpected, or standard output cannot be written",
    3: "an ID, anchor or expansion root is not there",
    4: "bad arguments; an unsound corpus or stream",
    5: "no permission, or refused by governance",
}


def statuses(declared: Command) -> dict[int, str]:
    """The executable's own exit statuses, else the contract's."""
    if declared.statuses is not None:
        return declared.statuses
    codes: dict[int, list[str]] = {}
    for code, status in EXIT_STATUS.items():
        codes.setdefault(status, []).append(code)
    return {SUCCESS: "success"} | {s: f"{', '.join(names)}: {_MEANINGS[s]}" for s, names in sorted(codes.items())}
