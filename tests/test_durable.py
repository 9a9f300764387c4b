"""Whole files: a reader finds the old one or the new one, and what a killed writer left goes with the next write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_tools.files import durable
from tests.support import environment, run

# Dies by the signal in the very moment in which the file would get its name.
KILLED = """
import os, signal, sys
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
os.link = os.rename = die
from cortex_tools.files import durable
folder = os.open(sys.argv[1], os.O_RDONLY)
durable.write_new(folder, "new", b"x") if sys.argv[2] == "new" else durable.replace(folder, b"new", b"x")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed(folder: Path, how: str) -> Path:
    """What a writer leaves that was killed in `folder`."""
    before = names(folder)
    env = environment(PYTHONPATH=os.pathsep.join(sys.path))
    assert subprocess.run([sys.executable, "-c", KILLED, folder, how], env=env).returncode == -signal.SIGKILL
    (left,) = names(folder) - before
    assert left.startswith(".")
    return folder / left


@pytest.mark.parametrize("next_write", ["new", "replace"])
@pytest.mark.parametrize("how", ["new", "replace"])
def test_what_a_killed_writer_left_goes_with_the_next_write(
    how: str, next_write: str, tmp_path: Path, folder: int
) -> None:
    long_ago = time.time() - 2 * durable.ABANDONED_SECONDS
    old, young = killed(tmp_path, how), killed(tmp_path, how)
    os.utime(old, (long_ago, long_ago))
    kept = {".cortex", ".x.cortex-0.tmp", f"x.cortex-{'0' * 16}.tmp"}
    for name in kept:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago, long_ago))
    inside = tmp_path / f".folder.cortex-{'0' * 16}.tmp"
    inside.mkdir()
    os.utime(inside, (long_ago, long_ago))
    if next_write == "new":
        durable.write_new(folder, "file", b"data")
    else:
        durable.replace(folder, b"file", b"data")
    assert (tmp_path / "file").read_bytes() == b"data"
    assert names(tmp_path) == {"file", young.name, inside.name, *kept}, "another writer may be at work on a young one"


def test_where_it_cannot_be_removed_the_write_takes_place(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = killed(tmp_path, "new")
    os.utime(left, (0, 0))
    unlink = os.unlink

    def refused(path: str, **options: int) -> None:
        if path == left.name:
            raise PermissionError(1, "not yours")
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", refused)
    durable.write_new(folder, "file", b"data")
    assert (tmp_path / "file").read_bytes() == b"data" and left.exists()


def test_the_longest_name_can_be_replaced(tmp_path: Path, folder: int) -> None:
    name = b"n" * 255
    durable.replace(folder, name, b"data")
    assert names(tmp_path) == {name.decode()}


def test_an_affirmation_sweeps_too(tmp_path: Path) -> None:
    left = killed(tmp_path, "new")
    os.utime(left, (0, 0))
    assert run("cortex-health", "affirm", "no-index", "--memory-root", tmp_path).returncode == 0
    assert names(tmp_path) == {"CORTEX_INDEX_POLICY.json"}
