"""What the kinds of soak share: a budget of time and chance, and how a finding is told."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

DEFAULT_SECONDS = 60.0


class Finding(Exception):
    """A counterexample: `what` is wrong, and the `case` that shows it, in ASCII so that it can be copied."""

    def __init__(self, what: str, case: object) -> None:
        super().__init__(f"{what}\n  case: {case!a}")


class Budget:
    """`seconds` of wall time from now on, and the one source of chance, which `seed` determines."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.seconds = seconds
        self.seed = seed
        self.random = random.Random(seed)
        self.tried = 0  # cases so far, for the report
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        return self.left() == 0.0

    def share(self, part: float) -> Budget:
        """A budget of its own over `part` (0 to 1) of the time that is left, with the same chance."""
        other = Budget(self.left() * part, self.seed)
        other.random = self.random
        return other


def main(search: Callable[[Budget], None], arguments: list[str] | None = None) -> None:
    """Run one kind of soak from the command line; exit status 1 on a finding."""
    parser = argparse.ArgumentParser(description=sys.modules[search.__module__].__doc__)
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="how long to search (wall time)")
    parser.add_argument("--seed", type=int, default=1, help="what determines every choice")
    options = parser.parse_args(arguments)
    budget = Budget(options.seconds, options.seed)
    name = sys.argv[0].rsplit("/", 1)[-1].removesuffix(".py")
    try:
        search(budget)
    except Finding as finding:
        print(f"{name}: FINDING (seed {options.seed}, after {budget.tried} cases): {finding}", flush=True)
        sys.exit(1)
    spent = options.seconds - budget.left()
    print(f"{name}: {budget.tried:,} cases in {spent:.0f} s, seed {options.seed}: nothing found", flush=True)
