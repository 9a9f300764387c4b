#!/usr/bin/env python3
"""How the work of a search grows: with records and bytes, beyond the limits, with query terms, cores, and company.

usage: growth.py [--folder DIR] [--runs N] [--tenfold] [--plot FILE.svg]

Prints medians of wall seconds; `--tenfold` also reads copies of the largest corpus, up to ten of them, with the
contract's limits lifted inside the measured process alone.  `--plot` wants matplotlib.  Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench import PRODUCT, PYTHON, clean_environment, corpus_of, measure

SIZES = ("s", "m", "l", "xl")
RECORDS = {"s": 300, "m": 1_500, "l": 10_000, "xl": 50_000}
TERMS = (1, 2, 4, 8, 16, 32, 64)
COPIES = (1, 3, 10)
QUERY = "zubrapla bacedi loom"
TOGETHER = 50

# The product with its limits lifted: the measured process alone, by the constants that all of it reads.
UNLIMITED = """
import sys; sys.path[0] = {package!r}
from cortex_tools.contract import limits
limits.RECORDS = limits.CORPUS_FILES = limits.CORPUS_BYTES = 1 << 62
from cortex_tools.driver.main import cortex; cortex()
"""


WHERE = "import cortex_tools, pathlib; print(pathlib.Path(cortex_tools.__file__).parents[1])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "cortex-bench")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tenfold", action="store_true")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    corpora = {size: corpus_of(arguments.folder, size) for size in SIZES}
    runs = arguments.runs
    print("records and bytes")
    by_bytes = []
    for size, corpus in corpora.items():
        total = volume(corpus)
        seconds = median(search(corpus), runs)
        by_bytes.append((RECORDS[size], total / 1e6, seconds))
        print(f"  {size:3}{RECORDS[size]:8} records{total / 1e6:9.1f} MB{seconds:9.3f} s", flush=True)
    print("query terms, at l")
    words = vocabulary(corpora["l"])
    by_terms = [(terms, median(search(corpora["l"], " ".join(words[:terms])), runs)) for terms in TERMS]
    for terms, seconds in by_terms:
        print(f"  {terms:3}{seconds:9.3f} s", flush=True)
    cores(corpora["xl"], runs)
    cold(corpora["xl"], runs)
    together(corpora["s"])
    copies = tenfold(arguments.folder, corpora["xl"]) if arguments.tenfold else []
    if arguments.plot:
        draw(arguments.plot, by_bytes, by_terms, copies)


def search(corpus: Path, query: str = QUERY) -> list[str]:
    return [str(PRODUCT), "search", query, "--memory-root", str(corpus)]


def median(command: list[str], runs: int) -> float:
    measure(command)
    return statistics.median(measure(command)[0] for _ in range(runs))


def notes(corpus: Path) -> list[Path]:
    return [path for path in corpus.rglob("*") if path.is_file()]


def volume(corpus: Path) -> int:
    return sum(path.stat().st_size for path in notes(corpus))


def vocabulary(corpus: Path) -> list[str]:
    """Different words of one note, in order."""
    text = max((path.read_text("utf-8") for path in sorted(corpus.rglob("*.md"))[:50]), key=len)
    return list(dict.fromkeys(word for word in text.lower().split() if word.isascii() and word.isalpha()))


def cores(corpus: Path, runs: int) -> None:
    """One core against all of them."""
    every = os.sched_getaffinity(0)
    all_cores = median(search(corpus), runs)
    os.sched_setaffinity(0, {min(every)})
    try:
        one = median(search(corpus), runs)
    finally:
        os.sched_setaffinity(0, every)
    print(f"cores, at xl: one {one:.3f} s, all {len(every)} {all_cores:.3f} s", flush=True)


def cold(corpus: Path, runs: int) -> None:
    """With the notes in the page cache, and dropped from it before each run."""
    warm = median(search(corpus), runs)
    seconds = []
    for _ in range(runs):
        for path in notes(corpus):
            descriptor = os.open(path, os.O_RDONLY)
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        seconds.append(measure(search(corpus))[0])
    print(f"page cache, at xl: warm {warm:.3f} s, cold {statistics.median(seconds):.3f} s", flush=True)


def together(corpus: Path) -> None:
    """Many searches at the same time against one after the other."""
    measure(search(corpus))
    start = time.perf_counter()
    for _ in range(TOGETHER):
        measure(search(corpus))
    apart = time.perf_counter() - start
    start = time.perf_counter()
    running = [
        subprocess.Popen(search(corpus), stdout=subprocess.DEVNULL, env=clean_environment()) for _ in range(TOGETHER)
    ]
    failed = sum(process.wait() != 0 for process in running)
    beside = time.perf_counter() - start
    print(f"{TOGETHER} searches of s: one by one {apart:.2f} s, at once {beside:.2f} s, {failed} failed", flush=True)


def tenfold(folder: Path, corpus: Path) -> list[tuple[int, float]]:
    """Copies of the largest corpus under one root, each with IDs of its own."""
    print("beyond the limits, copies of xl")
    package = subprocess.run(
        [
            PRODUCT.parent / "python",
            "-c",
            "import cortex_tools, pathlib; print(pathlib.Path(cortex_tools.__file__).parents[1])",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(),
        cwd="/",
    ).stdout.strip()
    measured = []
    root = folder / "copies"
    shutil.rmtree(root, ignore_errors=True)
    made = 0
    for copies in COPIES:
        while made < copies:
            copy(corpus, root / "KNOWLEDGE" / f"copy{made}", made)
            made += 1
        program = UNLIMITED.format(package=package)
        command = [str(PRODUCT.parent / "python"), "-c", program, "search", QUERY, "--memory-root", str(root)]
        seconds, peak = min(measure(command) for _ in range(3))
        measured.append((copies, seconds))
        print(f"  {copies:3}{seconds:9.3f} s{seconds / copies:9.3f} s a copy{peak:7.0f} MiB", flush=True)
    shutil.rmtree(root)
    return measured


def copy(corpus: Path, target: Path, number: int) -> None:
    for path in notes(corpus):
        data = path.read_bytes()
        mark = b"\nid: " if path.suffix == ".md" else b'{"id": "'
        data = data.replace(mark, mark + b"copy%d-" % number)
        place = target / path.relative_to(corpus)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def draw(
    file: Path,
    by_bytes: list[tuple[int, float, float]],
    by_terms: list[tuple[int, float]],
    copies: list[tuple[int, float]],
) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4 if copies else 3, figsize=(12, 3), layout="constrained")
    plots = [
        ("records", [row[0] for row in by_bytes], [row[2] for row in by_bytes]),
        ("MB", [row[1] for row in by_bytes], [row[2] for row in by_bytes]),
        ("query terms, at l", [row[0] for row in by_terms], [row[1] for row in by_terms]),
        *([("copies of xl", [row[0] for row in copies], [row[1] for row in copies])] if copies else []),
    ]
    for axis, (label, across, up) in zip(axes, plots, strict=True):
        axis.plot(across, up, marker="o")
        axis.set(xlabel=label, ylim=(0, None), xlim=(0, None))
    axes[0].set_ylabel("seconds")
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    print(f"measured with {PYTHON}")
    main()
