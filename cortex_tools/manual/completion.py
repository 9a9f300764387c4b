"""Completion scripts by shell: what `cortex --completion SHELL` prints and what an installation holds."""

from __future__ import annotations

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import SHELLS
from cortex_tools.manual import bash, fish, zsh


def script(arguments: list[str]) -> str:
    """The script of the one shell named, for all executables; raises invalid_input for anything else."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise invalid_input(f"--completion takes one shell after it: {', '.join(SHELLS)}")
    return {"bash": bash.all_scripts, "zsh": zsh.script, "fish": fish.all_scripts}[arguments[0]]()


def files() -> dict[str, str]:
    """The scripts by path below a `share` folder, where each shell looks for the name that is completed."""
    found = {f"bash-completion/completions/{name}": bash.script(name) for name in EXECUTABLES}
    found |= {f"fish/vendor_completions.d/{name}.fish": fish.script(name) for name in EXECUTABLES}
    found["zsh/site-functions/_cortex"] = zsh.script()
    return found
