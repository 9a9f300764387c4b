"""A corpus that a second process changes all the time: what is answered held at one moment, or is integrity_error.

Asked are the library, alone and over several processes, the driver, its plan as a pipeline of the shell, and
cortex-check.  The courses of changes and what may be answered come from tests/moving.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from cortex_tools.driver import respond, workers
from cortex_tools.library import Runtime, run_cortex
from tests import moving
from tests.soak import kit
from tests.support import SOURCE, environment, run, shell

SHARE = 3
STEPS = 400
QUICK = 30  # answers of the library, which take milliseconds, to one of a process
READERS_A_COURSE = 40  # processes that read, until another course is made


def search(budget: kit.Budget) -> None:
    workers.BYTES_WORTH_A_WORKER = 1
    os.sched_getaffinity = lambda pid: {0, 1, 2}  # type: ignore[assignment,misc]
    kept: Counter[str] = Counter()
    while not budget.over():
        with tempfile.TemporaryDirectory() as folder:
            one_course(budget, Path(folder), kept)
    if not all(kept[f"{way}, answered"] for way in WAYS):
        raise kit.Finding("a way of asking that was never answered shows nothing", dict(kept))
    print("moving:", ", ".join(f"{number:,} by {way}" for way, number in sorted(kept.items())), flush=True)


def one_course(budget: kit.Budget, folder: Path, kept: Counter[str]) -> None:
    seed = budget.random.randrange(1 << 30)
    course = moving.Course(folder / "quiet", seed, STEPS)
    base = folder / "base"
    moving.prepare(base)
    (base / "steps").write_text(json.dumps(course.steps))
    clock = moving.Clock(base / "clock")
    plans = {name: plan_of(words, base) for name, words in moving.COMMANDS.items()}
    environ = environment(PYTHONPATH=str(SOURCE))
    writer = subprocess.Popen([sys.executable, "-m", "tests.moving", base, str(seed)], env=environ, cwd=SOURCE)
    try:
        for number in range(QUICK * READERS_A_COURSE):
            if budget.over():
                return
            name = budget.random.choice(list(moving.COMMANDS))
            way = WAYS[number % QUICK] if number % QUICK < len(WAYS) else "library"
            first = clock.surely()
            found = ask(way, name, base, plans)
            last = clock.perhaps()
            budget.tried += 1
            if writer.poll() is not None:
                raise RuntimeError("the writer has ended")
            if way == "check":
                wrong = check(course, first, last, found)
            else:
                wrong = course.wrong(name, first, last, found)
            if wrong:
                steps = [course.steps[number % len(course.steps)][:2] for number in range(first, last)]
                raise kit.Finding(f"{wrong}: {found[1][:2_000]}", (seed, way, name, steps))
            kept[f"{way}, {'refused' if found[0] == 4 else 'answered'}"] += 1
    finally:
        writer.kill()
        writer.wait()


WAYS = ("driver", "pipeline", "check", "workers", "library")


def plan_of(words: tuple[str, ...], base: Path) -> str:
    """The pipeline of a command, without a look at the corpus."""
    done = run("cortex-plan", *words, "--memory-root", base / moving.ALIAS)
    assert done.returncode == 0, done
    return done.stdout.decode()


def ask(way: str, name: str, base: Path, plans: dict[str, str]) -> moving.Answer:
    words, alias = list(moving.COMMANDS[name]), base / moving.ALIAS
    if way == "library":
        return moving.told(base, *run_cortex(words, Runtime(memory_root=alias)))
    if way == "workers":
        answer = respond.respond(words, Runtime(memory_root=alias), workers.Spread())
        return moving.told(base, answer.status, answer.envelope)
    if way == "pipeline":
        done = shell(plans[name])
    elif way == "check":
        done = run("cortex-check", "--json", "--memory-root", alias)
    else:
        done = run("cortex", *words, "--memory-root", alias)
    if b"Traceback" in done.stderr or done.stdout.count(b"\n") != 1:
        raise kit.Finding("no envelope", (way, name, done))
    return moving.told(base, done.returncode, json.loads(done.stdout))


def check(course: moving.Course, first: int, last: int, found: moving.Answer) -> str:
    """A corpus that cortex-check finds sound has the records of a state; one that it does not may be any."""
    status, text = found
    told: dict[str, Any] = json.loads(text)
    if moving.CANARY in text or status not in (0, 4) or told["sound"] != (status == 0):
        return "no verdict"
    if status:
        return ""
    rights = [right for answers in course.allowed("status", first, last) for code, right in answers if code == 0]
    counts = [json.loads(right)["data"]["canonical"]["records"] for right in rights]
    return "" if told["records"] in counts else "a number of records of no state"


if __name__ == "__main__":
    kit.main(search)
