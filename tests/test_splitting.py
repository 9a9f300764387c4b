"""One listing read by several processes: the answer of the single pipeline, or none (docs/streams.md)."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import SAMPLE, environment, failure, note, row, run, shell, write_corpus

# What may follow scan and strip.  All answers over parts in all orders are in test_streams.py.
ANSWERS = {
    "status": "cortex-envelope status",
    "search": "cortex-select --valid | cortex-expand idea-tension-logger | cortex-rank 'loom tension' --recency 0.5 | "
    "cortex-card | cortex-envelope search --page-size 100",
    "timeline": "cortex-select --valid | cortex-window --anchor 2024-06-01 --type idea | cortex-envelope timeline",
    "bodies": "cortex-rank 'the loom' --bodies --explain",
    "select": "cortex-select --type idea | cortex-card | cortex-envelope search --page-size 100",
}


def is_gnu_parallel() -> bool:
    if shutil.which("parallel") is None:
        return False
    done = subprocess.run(["parallel", "--version"], capture_output=True, timeout=60)
    return b"GNU parallel" in done.stdout


HAS_PARALLEL = is_gnu_parallel()
needs_parallel = pytest.mark.skipif(not HAS_PARALLEL, reason="GNU parallel is not installed")


def spread(job: str = "cortex-strip", *options: str) -> str:
    """GNU parallel with a process for each part of what it reads; -k keeps the parts in order."""
    return shlex.join(["parallel", "-k", *options, "--pipe", "-N1", "--recstart", '{"kind":"corpus"', job])


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """GNU parallel keeps its own files in the home folder."""
    (tmp_path / "home").mkdir()
    return environment(CORTEX_MEMORY_ROOT=str(SAMPLE), HOME=str(tmp_path / "home"))


def listed(root: Path, folder: Path, parts: int) -> list[Path]:
    """The parts of a listing, each in a file of its own."""
    listing = run("cortex-scan", "--memory-root", root, "--parts", str(parts)).stdout
    found: list[bytes] = []
    for line in listing.splitlines(keepends=True):
        if line.startswith(b'{"kind":"corpus"'):
            found.append(b"")
        found[-1] += line
    assert len(found) == parts
    files = [folder / f"part{number}" for number in range(1, parts + 1)]
    for file, data in zip(files, found, strict=True):
        file.write_bytes(data)
    return files


# GNU parallel.


@needs_parallel
@pytest.mark.parametrize("name", ["search", "bodies"])
def test_parallel_answers_as_one_pipeline(name: str, env: dict[str, str]) -> None:
    whole = shell(f"cortex-scan | cortex-strip | {ANSWERS[name]}", env=env)
    done = shell(f"cortex-scan --parts 5 | {spread()} | {ANSWERS[name]}", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, whole.stderr)
    assert whole.returncode == 0


@needs_parallel
def test_parallel_in_any_order_and_with_jobs(env: dict[str, str]) -> None:
    """Without -k the parts arrive as they get ready; what is ordered at the end does not show it."""
    whole = shell(f"cortex-scan | cortex-strip | {ANSWERS['search']}", env=env)
    late = "if [ {#} = 1 ]; then sleep 0.3; fi; cortex-strip --jobs 2"
    unordered = spread(late, "-j4").replace("-k ", "")
    done = shell(f"cortex-scan --parts 4 | {unordered} | {ANSWERS['search']}", env=env)
    assert (done.returncode, done.stdout) == (0, whole.stdout)


@needs_parallel
@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("if [ {#} = 2 ]; then cat > /dev/null; else cortex-strip; fi", "part 2 of 3 is missing"),
        (
            "cortex-strip > out{#}; cat out{#}; if [ {#} = 2 ]; then cat out{#}; fi",
            "part 2 of 3 is in the stream twice",
        ),
        ("cortex-strip | if [ {#} = 3 ]; then head -n 2; else cat; fi", "cut off"),
        ("if [ {#} = 3 ]; then kill $$; else cortex-strip; fi", "part 3 of 3 is missing"),
        ("cortex-strip | if [ {#} = 2 ]; then sed 1d; else cat; fi", "altered"),
    ],
)
def test_a_part_that_parallel_loses_or_repeats(job: str, says: str, env: dict[str, str], tmp_path: Path) -> None:
    split = f"cortex-scan --parts 3 | {spread(job)} 2>/dev/null"
    done = shell(f"{split} | {ANSWERS['status']}", env=env, cwd=tmp_path)
    failure(done, 4, "integrity_error", says)


@needs_parallel
def test_parts_that_parallel_cuts_elsewhere(env: dict[str, str]) -> None:
    """By lines, as parallel does unless it is told where a part begins: no job takes a broken part."""
    done = shell(f"cortex-scan --parts 2 | parallel --pipe -N7 cortex-strip 2>/dev/null | {ANSWERS['status']}", env=env)
    failure(done, 4, "integrity_error")


@needs_parallel
def test_parallel_on_duplicates_and_bad_notes(env: dict[str, str], tmp_path: Path) -> None:
    """The same envelope as that of one process, which names both files, or the first bad one."""
    many = {f"n{number}.md": note(f"n{number}") for number in range(6)}
    bad = {"b.md": note("b", created="never"), "y.md": note("y", created="never")}
    for name, files, says in (
        ("duplicates", {"a.md": note("same"), "z.jsonl": row("same")}, ("a.md", "z.jsonl")),
        ("bad", bad, ("b.md",)),
    ):
        root = write_corpus(tmp_path / name, {**many, **files})
        env["CORTEX_MEMORY_ROOT"] = str(root)
        whole = shell("cortex-scan | cortex-strip | cortex-envelope status", env=env)
        failure(whole, 4, "integrity_error", *says)
        done = shell(f"cortex-scan --parts 4 | {spread()} 2>/dev/null | cortex-envelope status", env=env)
        assert done.returncode == 4
        if name == "bad":  # each part says where its own first fault is, the first of them wins
            assert done.stdout == whole.stdout
        else:  # rows are known by their line in one process, by their file in a stream
            failure(done, 4, "integrity_error", *says)


# By hand, over two FIFOs.


@pytest.fixture
def by_hand(tmp_path: Path) -> tuple[Path, Path]:
    """Two parts of the sample's listing; their records go through the FIFOs `one` and `two`."""
    first, second = listed(SAMPLE, tmp_path, 2)
    os.mkfifo(tmp_path / "one")
    os.mkfifo(tmp_path / "two")
    return first, second


TWO = "cortex-strip < part1 > one & cortex-strip < part2 > two & "


@pytest.mark.parametrize(
    ("name", "order"),
    [("search", "one two"), ("timeline", "two one"), ("select", "one two"), ("select", "two one")],
)
def test_two_fifos_answer_as_one_pipeline(name: str, order: str, by_hand: tuple[Path, Path], tmp_path: Path) -> None:
    whole = shell(f"cortex-scan | cortex-strip | {ANSWERS[name]}", env=environment(CORTEX_MEMORY_ROOT=str(SAMPLE)))
    done = shell(f"{TWO} cat {order} | {ANSWERS[name]}", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    if name == "select" and order == "two one":  # line by line: in the order that it is given
        lines = [sorted(card["id"] for card in json.loads(out.stdout)["data"]["items"]) for out in (whole, done)]
        assert lines[0] == lines[1]
    else:
        assert done.stdout == whole.stdout


@pytest.mark.parametrize(
    ("gather", "says"),
    [
        ("cat one; cat two > /dev/null", "part 2 of 2 is missing"),
        ("cat two; cat one > /dev/null", "part 1 of 2 is missing"),
        ("cat one two; cortex-strip < part1", "part 1 of 2 is in the stream twice"),
        ("cat one; cat two > /dev/null; cortex-strip < part1", "part 1 of 2 is in the stream twice"),
        ("cat one; cat two > /dev/null; cortex-strip < other2", "different listings"),
        ("cat one two; cortex-strip < other1", "different listings"),
        ("cat one; head -n 3 two", "cut off"),
        ("head -n 3 one; cat two", "cut off"),
        ("cat one two | grep -v idea-open-dobby", "altered"),
    ],
)
def test_parts_by_hand_that_do_not_fit(gather: str, says: str, by_hand: tuple[Path, Path], tmp_path: Path) -> None:
    """A part lost, repeated, cut or of another listing: refused at the end, whatever stands between."""
    other = write_corpus(tmp_path / "other", {"a.md": note("a"), "b.md": note("b")})
    (tmp_path / "foreign").mkdir()
    for file in listed(other, tmp_path / "foreign", 2):
        file.rename(tmp_path / file.name.replace("part", "other"))
    between = "cortex-card | "
    done = shell(f"{TWO} {{ {gather}; }} 2>/dev/null | {between} cortex-envelope search 2>/dev/null", cwd=tmp_path)
    failure(done, 4, "integrity_error", says)


def test_duplicates_over_two_fifos(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "root", {"a.md": note("same"), "b.md": note("b"), "c.md": note("same")})
    listed(root, tmp_path, 2)
    os.mkfifo(tmp_path / "one")
    os.mkfifo(tmp_path / "two")
    whole = shell(
        "cortex-scan | cortex-strip 2>/dev/null | cortex-envelope status", env=environment(CORTEX_MEMORY_ROOT=str(root))
    )
    done = shell(f"{TWO} cat one two | cortex-envelope status", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (whole.returncode, whole.stdout)
    failure(done, 4, "integrity_error", "same", "a.md", "c.md")


# cortex-strip --jobs.


def outcome(listing: bytes, *arguments: str) -> tuple[int, bytes, bytes]:
    done = run("cortex-strip", *arguments, input=listing)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("parts", ["1", "3"])
def test_jobs_write_the_same_lines(parts: str) -> None:
    listing = run("cortex-scan", "--memory-root", SAMPLE, "--parts", parts).stdout
    expected = outcome(listing)
    assert expected[0] == 0 and expected[1].count(b'"kind":"record"') == 45
    for jobs in ("1", "2", "3", "8", "64") if parts == "1" else ("8",):  # the sample has 35 files
        assert outcome(listing, "--jobs", jobs) == expected, jobs


@pytest.mark.parametrize("number", [0, 1, 3])
def test_more_jobs_than_files(number: int, tmp_path: Path) -> None:
    files = {f"n{one}.jsonl": row(f"a{one}") + row(f"b{one}") for one in range(number)}
    listing = run("cortex-scan", "--memory-root", write_corpus(tmp_path, files)).stdout
    expected = outcome(listing)
    assert expected[0] == 0 and expected[1].count(b'"kind":"record"') == 2 * number
    for jobs in ("2", "8"):
        assert outcome(listing, "--jobs", jobs) == expected, jobs


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"c.md": note("c", created="never"), "y.md": note("y", created="never")}, b"c.md"),
        ({"c.md": note("same"), "y.md": note("same")}, b"stands in c.md already"),
        ({"y.jsonl": row("y") + "{\n"}, b"y.jsonl:2"),
    ],
    ids=["bad notes", "duplicates", "bad row"],
)
def test_jobs_fail_alike(files: dict[str, str], says: bytes, tmp_path: Path) -> None:
    """The same error, status and complaint; of several faults the first in the order of the listing."""
    many = {f"m{number}.md": note(f"m{number}") for number in range(9)}
    listing = run("cortex-scan", "--memory-root", write_corpus(tmp_path, {**many, **files})).stdout
    status, out, complaint = outcome(listing)
    assert status == 4 and says in complaint
    error = next(line for line in out.splitlines() if b'"kind":"error"' in line)
    for jobs in ("2", "40"):
        again = outcome(listing, "--jobs", jobs)
        assert (again[0], again[2]) == (4, complaint), jobs
        assert error in again[1].splitlines()


@pytest.mark.parametrize("jobs", ["0", "65"])
def test_numbers_of_jobs_that_are_none(jobs: str) -> None:
    listing = run("cortex-scan", "--memory-root", SAMPLE).stdout
    status, out, complaint = outcome(listing, "--jobs", jobs)
    assert status == 4 and b"--jobs must be a whole number from 1 to 64" in complaint and b'"kind":"record"' not in out
