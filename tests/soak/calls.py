"""Every call of every executable fails in turn, in every way: tests/test_fault_seam.py without its choice."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from tests.seam import Seam, applicable
from tests.soak import kit
from tests.test_fault_seam import (
    NAMES,
    WRITES,
    check,
    corpus,
    every,
    health_under_faults,
    jobs,
    write_under_faults,
)

SHARE = 3
FAULTS = ("EIO", "ENOMEM", "EMFILE", "ENOSPC", "ENOENT", "EAGAIN", "EACCES", "MemoryError")
ABSENT = {"proposals": ("ENOENT",), "restore": ("ENOENT",), "benchmark": ("ENOENT", "EACCES")}
BEYOND_MEMORY = ("close", "kill", "waitpid")  # calls that need none


def search(budget: kit.Budget) -> None:
    whos = [
        (name, who) for name in (*NAMES, "benchmark") for who in (("driver", "workers") if "," in name else ("all",))
    ]
    tasks = [(name, who, fault) for (name, who), fault in itertools.product(whos, FAULTS)]
    # What is not there, or not to be read, is nothing wrong to these, but a shorter list, difference or sum.
    tasks = [task for task in tasks if task[2] not in ABSENT.get(task[0].split()[0], ())]
    tasks += [(name, "", fault) for name, fault in itertools.product(WRITES, (*FAULTS, "SIGKILL"))]
    tasks += [("health", "", fault) for fault in FAULTS]
    budget.random.shuffle(tasks)
    with tempfile.TemporaryDirectory() as folder:
        root = corpus(Path(folder, "read"))
        seam = Seam(folder)
        work = jobs(seam, root)
        for name, who, fault in tasks:
            if budget.over():
                break
            kinds = tuple(kind for kind in applicable(fault) if fault != "MemoryError" or kind not in BEYOND_MEMORY)
            try:
                if not who:
                    with tempfile.TemporaryDirectory(dir=folder) as own:
                        if name == "health":
                            budget.tried += health_under_faults(seam, Path(own), fault, kinds)
                        else:
                            budget.tried += write_under_faults(name, seam, Path(own), fault, kinds)
                    continue
                right = seam.run(work[name])
                for outcome in every(seam, work[name], fault, kinds, who):
                    budget.tried += 1
                    check(work[name], outcome, right)
            except (AssertionError, ValueError) as error:
                raise kit.Finding(f"a fault shows: {error}", (name, who, fault)) from None
        seam.close()


if __name__ == "__main__":
    kit.main(search)
