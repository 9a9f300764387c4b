"""Run every kind of soak, one after the other, within one budget of time.

Each runs in a process of its own: some replace imports or never return.  A kind that does not end some time
after its budget is a finding, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import tests.soak
from tests.soak import kit

HELPERS = {"kit", "__main__"}
GRACE = 120  # seconds after its budget in which a kind may finish what it has begun


def kinds() -> dict[str, float]:
    """The names of the kinds and their shares of the time, read from the source: nothing is imported."""
    found = {}
    for module in pkgutil.iter_modules(tests.soak.__path__):
        if module.name in HELPERS:
            continue
        spec = importlib.util.find_spec(f"tests.soak.{module.name}")
        assert spec is not None and spec.origin is not None
        share = re.search(r"^SHARE = ([0-9.]+)$", Path(spec.origin).read_text(encoding="utf-8"), re.MULTILINE)
        if share is not None:
            found[module.name] = float(share[1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1500, help="wall time for all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="what determines every choice")
    parser.add_argument("kind", nargs="*", help=f"only these; of {', '.join(kinds())}")
    options = parser.parse_args()
    unknown = [kind for kind in options.kind if kind not in kinds()]
    if unknown:
        parser.error(f"unknown kind: {', '.join(unknown)}")
    chosen = {kind: share for kind, share in kinds().items() if not options.kind or kind in options.kind}
    whole = sum(chosen.values())
    budget = kit.Budget(options.seconds, options.seed)
    failed = []
    for kind, share in chosen.items():
        seconds = budget.left() * share / whole  # what one kind overran, the ones after it lack
        whole -= share
        print(f"-- {kind}: {seconds:.0f} s, seed {options.seed}", flush=True)
        command = [sys.executable, "-m", f"tests.soak.{kind}", "--seconds", f"{seconds:.1f}"]
        command += ["--seed", str(options.seed)]
        try:
            status = subprocess.run(command, timeout=seconds + GRACE, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"{kind}: FINDING: did not end within {GRACE} s after its budget", flush=True)
            status = 1
        if status:
            failed.append(kind)
            print(f"{kind}: exit status {status}; to repeat: {' '.join(['python', *command[1:]])}", flush=True)
    print(f"soak: {', '.join(failed) or 'nothing'} failed of {', '.join(chosen)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
