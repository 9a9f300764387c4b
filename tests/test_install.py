"""make install and make uninstall, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.manual import share
from tests.support import NO_INDEX, SAMPLE, envelope, environment, shell, source_copy

LIBRARY = Path("lib/cortex-tools")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_copy(tmp_path / "source", tests=False)


def make(source: Path, goal: str, umask: int = -1, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    words = [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(
        ["make", goal, f"PYTHON={sys.executable}", *words],
        cwd=source, env=environment(PYTHONPATH=None), capture_output=True, text=True, timeout=280, umask=umask,
    )  # fmt: skip


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def traps(folder: Path) -> dict[str, str]:
    """Variables of Python's that would change what is run, and modules to be found by them."""
    version = ".".join(map(str, sys.version_info[:2]))
    users = folder / f"lib/python{version}/site-packages"  # where PYTHONUSERBASE leads
    users.mkdir(parents=True)
    for name in ("sitecustomize", "usercustomize", "xxhash", "typer", "cortex_tools"):
        for place in (folder, users):
            (place / f"{name}.py").write_text(f"open({str(folder / 'taken')!r}, 'a').write({name!r})\n")
    return {
        "PYTHONPATH": str(folder), "PYTHONUSERBASE": str(folder), "PYTHONSTARTUP": str(folder / "sitecustomize.py"),
        "PYTHONHOME": "/nowhere", "PYTHONSAFEPATH": "1", "PYTHONINSPECT": "1", "PYTHONVERBOSE": "1",
    }  # fmt: skip


def test_what_is_installed_runs_anywhere_and_goes_without_a_trace(source: Path, tmp_path: Path) -> None:
    """Staged below DESTDIR as a packager does, moved to where it is used, found through links to links."""
    stage = tmp_path / "a stage"
    done = make(source, "install", umask=0o077, PREFIX="/opt/cortex", DESTDIR=stage)
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip("there is no package index to install from")
    assert done.returncode == 0, done.stderr
    assert not list(source.glob("build")) and not list(source.glob("*.egg-info"))
    prefix = (stage / "opt/cortex").rename(tmp_path / "elsewhere")
    for path in (prefix, *prefix.rglob("*")):
        # For everyone to read and nobody else to write, whatever the umask.
        assert path.is_symlink() or path.stat().st_mode & 0o066 == 0o044, path

    assert {path.name for path in (prefix / "bin").iterdir()} == set(EXECUTABLES)
    for path, text in share.files().items():
        assert (prefix / "share" / path).read_text(encoding="utf-8") == text
    (tmp_path / "links").mkdir()
    (tmp_path / "links/cortex").symlink_to(prefix / "bin/cortex")
    for path in (tmp_path / "links", prefix / "bin"):
        # Nothing but this folder on the path: no shell, no env, no python.
        found = subprocess.run(
            ["cortex", "search", "loom", "--page-size", "1", "--memory-root", str(SAMPLE)],
            executable=path / "cortex", cwd="/", env={"PATH": str(path)}, capture_output=True, timeout=60,
        )  # fmt: skip
        assert found.stderr == b"" and envelope(found)["data"]["items"][0]["id"]
    for name in EXECUTABLES:
        first = (prefix / "bin" / name).read_bytes().split(b"\n")[0]
        assert os.access(first[2:].split(b" ")[0], os.X_OK) and str(prefix).encode() not in first
    env = environment(
        PATH=f"{prefix}/bin{os.pathsep}{os.defpath}", CORTEX_MEMORY_ROOT=str(SAMPLE), **traps(tmp_path / "traps")
    )
    for script in ("cortex-scan | cortex-strip | cortex-rank loom | cortex-envelope search", "cortex --help"):
        ran = shell(script, env=env, cwd="/")
        assert (ran.returncode, ran.stderr) == (0, b""), script
    assert not (tmp_path / "traps/taken").exists()

    (prefix / "bin/cortex-scan").unlink()
    (prefix / "bin/cortex-scan").write_text("somebody else's\n")
    assert make(source, "uninstall", PREFIX=prefix).returncode == 0
    assert everything(prefix) == {"bin/cortex-scan"}


def test_an_installation_that_fails_leaves_the_one_before(source: Path, tmp_path: Path) -> None:
    launcher = tmp_path / "prefix" / LIBRARY / "bin/cortex"
    launcher.parent.mkdir(parents=True)
    launcher.write_text("the one before")
    (source / "pyproject.toml").write_text("not toml")
    done = make(source, "install", PREFIX=tmp_path / "prefix")
    assert done.returncode != 0 and "nothing was installed" in done.stderr
    assert everything(tmp_path / "prefix") == {str(LIBRARY / "bin/cortex")}


def test_what_somebody_else_installed_is_not_replaced(source: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cortex").write_text("somebody else's")
    done = make(source, "install", PREFIX=tmp_path)
    assert done.returncode != 0 and f"{tmp_path}/bin/cortex is there" in done.stderr
    assert (tmp_path / "bin/cortex").read_text() == "somebody else's" and not (tmp_path / "lib").exists()


@pytest.mark.parametrize("goal", ["install", "uninstall"])
def test_a_relative_prefix_is_refused(goal: str, source: Path) -> None:
    done = make(source, goal, PREFIX="here")
    assert done.returncode != 0 and "PREFIX must be an absolute path" in done.stderr
    assert not (source / "here").exists()


def test_uninstalling_nothing_is_no_error(source: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cortex").touch()
    assert make(source, "uninstall", PREFIX=tmp_path).returncode == 0
    assert (tmp_path / "bin/cortex").exists()
