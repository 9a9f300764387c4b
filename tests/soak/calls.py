"""Every call of every command fails in turn, in every way: tests/test_fault_seam.py without its choice."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from tests.seam import Seam
from tests.soak import kit
from tests.test_fault_seam import COMMANDS, FAULTS, corpus, try_each

SHARE = 3


def search(budget: kit.Budget) -> None:
    tasks = list(itertools.product(COMMANDS, FAULTS, ("all", "driver", "workers")))
    budget.random.shuffle(tasks)
    with tempfile.TemporaryDirectory() as folder:
        root = corpus(Path(folder, "root"))
        seam = Seam(folder)
        for command, fault, who in tasks:
            if budget.over():
                break
            try:
                budget.tried += try_each(seam, root, command, fault, who)
            except AssertionError as error:
                raise kit.Finding(f"a fault shows: {error}", (command, fault, who)) from None
        seam.close()


if __name__ == "__main__":
    kit.main(search)
