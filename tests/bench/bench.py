#!/usr/bin/env python3
"""Measure the product against a fixed piece of plain work, in turn, and print the ratios beside the goals.

usage: bench.py [--sizes s,m,l,xl] [--runs N] [--folder DIR]

Absolute times mean little on a shared machine; the ratio of wall times, taken in pairs, holds better.
Memory is the peak of the largest process.  This is no test: nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = os.path.realpath(sys.executable)  # not a version manager's shim
PRODUCT = Path(sys.executable).parent / "cortex"

COMMANDS = {
    "search": ["search", "zubrapla bacedi loom"],
    "status": ["status"],
    "timeline": ["timeline", "--anchor", "2024-06-01"],
    "rebuild": ["rebuild", "--from-canonical"],
    "get": ["get"],
    "export": ["export"],
}
# Wall time divided by the yardstick's, and MiB at xl where a goal is set.
GOALS = {
    "search": {"s": 0.65, "m": 0.38, "l": 0.40, "xl": 0.30, "MiB": 100},
    "status": {"s": 0.50, "m": 0.30, "l": 0.22, "xl": 0.20, "MiB": 80},
    "timeline": {"s": 0.50, "m": 0.30, "l": 0.22, "xl": 0.20, "MiB": 80},
    "rebuild": {"s": 0.75, "m": 0.50, "l": 0.50, "xl": 0.45, "MiB": 120},
}


def measure(command: list[str]) -> tuple[float, float]:
    """Wall seconds of one run, and the peak memory of its largest process in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=clean_environment())
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} ended with status {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def clean_environment() -> dict[str, str]:
    """Without what would keep byte code from being used, or move the root."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CORTEX_"))}


def corpus_of(folder: Path, size: str) -> Path:
    """The corpus of that size below `folder`, made where it is missing."""
    corpus = folder / size
    if not corpus.exists():
        subprocess.run([PYTHON, "-I", HERE / "make_corpus.py", corpus, size], check=True)
    return corpus


def first_id(corpus: Path) -> str:
    """Some ID that is valid whenever this runs: the first note without a validity window."""
    for path in sorted(corpus.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "valid_from" not in text:
            return text.split("id: ", 1)[1].split("\n", 1)[0]
    raise SystemExit("the corpus has no note without a window")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="s,m,l,xl")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "cortex-bench")
    arguments = parser.parse_args()
    print(f"{'':10}{'size':>5}{'product s':>11}{'ratio':>8}{'goal':>7}{'MiB':>7}{'goal':>6}")
    for size in arguments.sizes.split(","):
        corpus = corpus_of(arguments.folder, size)
        yardstick = [PYTHON, "-I", "-S", str(HERE / "yardstick.py"), str(corpus)]
        for name, words in COMMANDS.items():
            ids = [first_id(corpus)] if name in ("get", "export") else []
            product = [str(PRODUCT), *words, *ids, "--memory-root", str(corpus)]
            row(name, size, product, yardstick, arguments.runs)


def row(name: str, size: str, product: list[str], yardstick: list[str], runs: int) -> None:
    """Run both in turn and print the medians; a missed goal is marked."""
    measure(product)
    pairs = [(measure(product), measure(yardstick)[0]) for _ in range(runs)]
    ratio = statistics.median(mine / other for (mine, _), other in pairs)
    seconds = statistics.median(mine for (mine, _), _ in pairs)
    memory = max(peak for (_, peak), _ in pairs)
    goal = GOALS.get(name, {})
    memory_goal = goal.get("MiB") if size == "xl" else None
    missed = (size in goal and ratio > goal[size]) or (memory_goal is not None and memory > memory_goal)
    print(
        f"{name:10}{size:>5}{seconds:11.3f}{ratio:8.2f}{goal.get(size, ''):>7}{memory:7.0f}{memory_goal or '':>6}"
        f"{'  missed' if missed else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
