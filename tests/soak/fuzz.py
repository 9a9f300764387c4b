"""Whatever reads damaged or hostile input, fuzzed: by coverage where atheris is installed, else with hypothesis.

The targets are those of tests/fuzz_targets.py.  Each runs in a process of its own, for the fuzzer never returns.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.soak import kit

SHARE = 5
TARGET = "CORTEX_FUZZ_TARGET"  # in the environment of the process that is to fuzz this one
GRACE = 60  # seconds after its time in which a target's process may end
LONGEST = 4096  # bytes of an input


def search(budget: kit.Budget) -> None:
    """Every target, in a process each, for an equal part of the time."""
    from tests.fuzz_targets import TARGETS

    guided = importlib.util.find_spec("atheris") is not None
    print("fuzz: guided by coverage (atheris)" if guided else "fuzz: atheris is not installed; hypothesis instead")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:  # the fuzzer leaves without tidying up
        failed = [name for number, name in enumerate(TARGETS) if not holds(name, len(TARGETS) - number, budget, folder)]
    if failed:
        raise kit.Finding("inputs that a target of tests/fuzz_targets.py does not hold for, shown above", failed)


def holds(name: str, left: int, budget: kit.Budget, folder: str) -> bool:
    """Fuzz one target for its share of the time, `left` targets being left with it; false on a finding."""
    seconds = budget.left() / left
    command = [sys.executable, "-m", "tests.soak.fuzz", "--seconds", f"{seconds:.1f}", "--seed", str(budget.seed)]
    env = {**os.environ, TARGET: name, "TMPDIR": folder}
    try:
        done = subprocess.run(command, env=env, timeout=seconds + GRACE, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        print(f"fuzz: {name}: FINDING: did not end")
        return False
    if done.returncode:
        sys.stdout.buffer.write(done.stdout + done.stderr[-10_000:])
    executed = re.search(rb"number_of_executed_units: ([0-9]+)|: ([0-9,]+) cases", done.stderr + done.stdout)
    cases = int(next(filter(None, executed.groups())).replace(b",", b"")) if executed else 0
    print(f"fuzz: {name}: {cases:,} inputs", flush=True)
    budget.tried += cases
    return done.returncode == 0


def fuzz(budget: kit.Budget) -> None:
    """The one target that the environment names."""
    if importlib.util.find_spec("atheris") is not None:
        by_coverage(os.environ[TARGET], budget)
    else:
        by_chance(os.environ[TARGET], budget)


def by_coverage(name: str, budget: kit.Budget) -> None:
    import atheris

    with atheris.instrument_imports(include=["cortex_tools"]):
        from tests.fuzz_targets import TARGETS, WORDS
    target = TARGETS[name]
    tried = 0

    def once(data: bytes) -> None:
        nonlocal tried
        tried += 1
        try:
            target.run(data)
        except BaseException as error:
            print(f"fuzz: {name}: FINDING {type(error).__name__}: {ascii(str(error))[:2000]}")
            print(f"  case: TARGETS[{name!r}].run({data!r})", flush=True)
            raise

    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder, "seeds")
        seeds.mkdir()
        for number, seed in enumerate(target.seeds):
            (seeds / str(number)).write_bytes(seed)
        words = Path(folder, "words")
        words.write_text("".join(f'"{quoted(word)}"\n' for word in WORDS if len(word) < 60), encoding="ascii")
        options = [f"-max_total_time={max(1, int(budget.left()))}", f"-seed={budget.seed}", f"-max_len={LONGEST}"]
        options += [
            f"-dict={words}",
            f"-artifact_prefix={folder}/",
            "-verbosity=0",
            "-print_final_stats=1",
            "-rss_limit_mb=0",
            "-timeout=60",
        ]
        atheris.Setup([sys.argv[0], *options, str(seeds)], once, enable_python_coverage=True)
        atheris.Fuzz()


def quoted(word: str) -> str:
    """A word as a fuzzer's dictionary has it."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def by_chance(name: str, budget: kit.Budget) -> None:
    from hypothesis import Phase, given, seed, settings

    from tests.fuzz_targets import TARGETS, inputs

    target = TARGETS[name]
    round_ = 0
    while not budget.over():
        round_ += 1

        @seed(budget.seed * 1_000_000 + round_)
        @settings(max_examples=400, deadline=None, database=None, phases=[Phase.generate, Phase.shrink])
        @given(inputs(target))
        def once(data: bytes) -> None:
            budget.tried += 1
            target.run(data)

        try:
            once()
        except Exception as error:
            raise kit.Finding(f"{name}: {type(error).__name__}: {error}", getattr(error, "__notes__", "")) from error


if __name__ == "__main__":
    kit.main(fuzz if TARGET in os.environ else search)
