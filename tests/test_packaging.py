"""What is built and shipped: the sdist, the wheel, and what an environment holds that only has the wheel."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.manual import share
from tests.support import NO_INDEX, SOURCE, envelope, environment, source_copy


def can_build() -> bool:
    try:
        return bool(metadata.version("build")) and int(metadata.version("setuptools").split(".")[0]) >= 77
    except metadata.PackageNotFoundError:
        return False


pytestmark = [
    pytest.mark.xdist_group("packaging"),  # one process, so that each thing is built once
    pytest.mark.skipif(not can_build(), reason="build, or a setuptools that can, is not installed"),
]
NAME = "cortex_tools"
Content = dict[str, tuple[int, bytes]]


def outside(**changes: str) -> dict[str, str]:
    """An environment in which nothing leads to these sources or to an index of packages that pip is told of."""
    env = environment(PIP_CONFIG_FILE=os.devnull, **changes)
    kept = ("PIP_CONFIG_FILE", *changes)
    return {k: v for k, v in env.items() if k in kept or not k.startswith(("PIP_", "PYTHON", "VIRTUAL_ENV"))}


def succeed(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command, capture_output=True, timeout=250, **options)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build with the setuptools that is here: `make dist` has one of its own, for which it asks an index."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), *kinds, str(source)]
    succeed(*command, env=outside(SOURCE_DATE_EPOCH="1700000000"), cwd=target.parent)


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = source_copy(tmp_path_factory.mktemp("sources") / "tree", tests=True)
    for path in tree(copy).values():
        path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)  # whatever the umask of the checkout was
    return copy


@pytest.fixture(scope="session")
def dist(source: Path) -> Path:
    """The sdist and the wheel that is made from it, as `make dist` leaves them."""
    build(source, source.parent / "dist")
    return source.parent / "dist"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return only(dist, "*.whl")


@pytest.fixture(scope="session")
def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def wheel_content(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: (info.external_attr >> 16, archive.read(info)) for info in archive.infolist()}


def sdist_content(path: Path) -> Content:
    with tarfile.open(path) as archive:
        files = [member for member in archive.getmembers() if not member.isdir()]
        return {m.name.partition("/")[2]: (m.mode, archive.extractfile(m).read()) for m in files}  # type: ignore[union-attr]


def tree(folder: Path) -> dict[str, Path]:
    """The files of a folder by their path below it."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def sources(source: Path) -> dict[str, Path]:
    """What the copy of the sources held before anything was built in it."""
    built = ("build/", f"{NAME}.egg-info/")
    return {
        name: path for name, path in tree(source).items() if not name.startswith(built) and "__pycache__" not in name
    }


def test_the_wheel_holds_exactly_what_it_should(source: Path, wheel: Path, version: str) -> None:
    content = wheel_content(wheel)
    here = sources(source)
    data, info = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info"
    package = {name: path for name, path in here.items() if name.startswith(f"{NAME}/")}
    scripts = {f"{data}/scripts/{name}" for name in EXECUTABLES}
    shared = {f"{data}/data/share/{path}": text for path, text in share.files().items()}
    about = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "top_level.txt", "licenses/LICENSE")}

    assert set(content) == set(package) | scripts | set(shared) | about
    assert {name: body for name, (_, body) in content.items() if name in package} == {
        name: path.read_bytes() for name, path in package.items()
    }
    assert {name: body.decode() for name, (_, body) in content.items() if name in shared} == shared
    for name in EXECUTABLES:
        mode, body = content[f"{data}/scripts/{name}"]
        # The installer puts the interpreter there; the rest is the launcher's own.
        assert body.split(b"\n", 1) == [b"#!python", (source / "bin" / name).read_bytes().split(b"\n", 1)[1]]
        assert mode & 0o111 == 0o111
    for needed in ("py.typed", "CORTEX_INDEX_POLICY.json", "sample/PRINCIPAL_MEMORY.md"):
        assert f"{NAME}/{needed}" in content
    assert sum(name.startswith(f"{NAME}/schemas/") for name in content) == len(
        list((source / NAME / "schemas").iterdir())
    )
    assert content[f"{info}/licenses/LICENSE"][1] == (source / "LICENSE").read_bytes()
    assert b"Root-Is-Purelib: true\nTag: py3-none-any\n" in content[f"{info}/WHEEL"][1]
    assert content[f"{info}/top_level.txt"][1] == f"{NAME}\n".encode()


def test_nothing_in_the_package_is_a_stray(source: Path) -> None:
    """The wheel is compared with the sources; so those must hold nothing that should not ship."""
    wanted = re.compile(
        r"([a-z_]+/)*[a-z_]+\.py|py\.typed|CORTEX_INDEX_POLICY\.json|schemas/[\w.-]+\.schema\.json|sample/.+\.(md|jsonl)"
    )
    strays = [
        name for name in sources(source) if name.startswith(f"{NAME}/") and not wanted.fullmatch(name, len(NAME) + 1)
    ]
    assert strays == []


def test_the_sdist_holds_all_that_is_needed_to_build_and_test(source: Path, dist: Path) -> None:
    content = sdist_content(only(dist, "*.tar.gz"))
    made = {"PKG-INFO", "setup.cfg"}
    assert {name for name in content if not name.startswith(f"{NAME}.egg-info/")} - made == set(sources(source))
    for name, path in sources(source).items():
        assert content[name][1] == path.read_bytes(), name
    assert all(content[f"bin/{name}"][0] & 0o111 for name in EXECUTABLES)


def test_the_wheel_from_the_sdist_is_the_one_from_the_tree(source: Path, wheel: Path) -> None:
    """Bytes, modes and order: the same sources give the same wheel, also twice."""
    target = source.parent / "from the tree"
    build(source, target, "--wheel")
    assert wheel_content(only(target, "*.whl")) == wheel_content(wheel)
    assert only(target, "*.whl").read_bytes() == wheel.read_bytes()


def test_the_metadata_says_what_is_needed(wheel: Path, version: str) -> None:
    told = BytesParser().parsebytes(wheel_content(wheel)[f"{NAME}-{version}.dist-info/METADATA"][1])
    assert (told["Name"], told["Requires-Python"]) == ("cortex-tools", ">=3.11")
    assert (told["License-Expression"], told["License-File"]) == ("MIT", "LICENSE")
    needs = [need for need in told.get_all("Requires-Dist") if "extra ==" not in need]
    assert sorted(re.match(r"[\w-]+", need)[0] for need in needs) == ["ijson", "typer", "xxhash"]  # type: ignore[index]


def test_the_version_stands_in_one_place(source: Path, version: str) -> None:
    news = re.search(r"^## (\S+)", (source / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert news is not None and news[1] == version
    names = [
        name for name in sources(source) if name.startswith((f"{NAME}/", "bin/")) and name.endswith((".py", ".json"))
    ]
    names += ["pyproject.toml", "setup.py", "install.py", "Makefile", *(f"bin/{name}" for name in EXECUTABLES)]
    literal = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.])")
    holding = [name for name in names if literal.search((source / name).read_text(encoding="utf-8"))]
    assert holding == [f"{NAME}/__init__.py"]


# What is installed, with no index, no sources and none of this environment's packages in reach.


@pytest.fixture(scope="session")
def downloads(source: Path, wheel: Path) -> Path:
    """The wheel, what it depends on, and what building it needs: as carried to a machine without a network."""
    folder = source.parent / "downloads"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    needs = re.search(r'^requires = \["([^"]+)"\]', (source / "pyproject.toml").read_text(), re.MULTILINE)
    assert needs is not None
    done = subprocess.run(
        [*command, str(wheel), needs[1]], env=environment(), capture_output=True, text=True, timeout=250
    )
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip("there is no package index to download from")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def installed(source: Path, downloads: Path) -> Path:
    """A fresh environment with the wheel and what it depends on, installed offline."""
    folder = source.parent / "fresh"
    succeed(sys.executable, "-m", "venv", "--without-pip", folder, env=outside())
    pip(folder, "install", "--quiet", "--no-index", "--find-links", downloads, "cortex-tools", cwd=downloads)
    return folder


def pip(folder: Path, *words: str | Path, cwd: Path) -> None:
    """This environment's pip, working in another: making one that has its own takes longer than all the rest."""
    succeed(sys.executable, "-m", "pip", "--python", folder / "bin/python", *words, env=outside(), cwd=cwd)


def test_only_the_wheel_and_what_it_needs(installed: Path, version: str, tmp_path: Path) -> None:
    ask = "import cortex_tools, sys; print(cortex_tools.__file__, cortex_tools.__version__)"
    told = succeed(installed / "bin/python", "-c", ask, env=outside(), cwd=tmp_path).stdout.decode().split()
    assert Path(told[0]).resolve().is_relative_to(installed.resolve()) and told[1] == version
    pip(installed, "check", cwd=tmp_path)
    said = succeed(installed / "bin/cortex", "--version", env=outside(), cwd=tmp_path).stdout.decode()
    assert version in said.split()


def test_the_launchers_name_the_interpreter_and_may_be_run(installed: Path, source: Path) -> None:
    assert {path.name for path in (installed / "bin").glob("cortex*")} == set(EXECUTABLES)
    for name in EXECUTABLES:
        path = installed / "bin" / name
        first, rest = path.read_bytes().split(b"\n", 1)
        assert os.path.samefile(first[2:], installed / "bin/python") and first.startswith(b"#!" + bytes(installed))
        assert rest == (source / "bin" / name).read_bytes().split(b"\n", 1)[1]
        # For everyone to run, for nobody else to change.
        assert stat.S_IMODE(path.stat().st_mode) & 0o133 == 0o111


def test_the_generated_files_lie_where_a_system_looks(installed: Path) -> None:
    for path, text in share.files().items():
        assert (installed / "share" / path).read_text(encoding="utf-8") == text


def test_it_runs_from_anywhere_with_every_warning_an_error(installed: Path, tmp_path: Path) -> None:
    corpus = str(only(installed, f"lib/python3*/site-packages/{NAME}/sample"))
    env = outside(
        PATH=f"{installed}/bin{os.pathsep}{os.defpath}", CORTEX_MEMORY_ROOT=corpus, PYTHONWARNINGS="error",
        PYTHONDEVMODE="1",
    )  # fmt: skip
    found = succeed("cortex", "search", "loom tension", env=env, cwd=tmp_path, executable=installed / "bin/cortex")
    assert found.stderr == b"" and envelope(found)["data"]["items"][0]["id"] == "idea-tension-logger"
    for script in (
        "cortex-scan --parts 2 | cortex-strip --jobs 2 | cortex-select --valid | cortex-rank 'loom tension' |"
        " cortex-card | cortex-envelope search",
        "cortex rebuild --from-canonical",
        "cortex get idea-tension-logger",
        "cortex-health --json >health; test $? -lt 3 && cat health",
        "cortex --help && cortex --help search",
    ):
        done = succeed("sh", "-c", script, env={**env, "CORTEX_HEALTH_NO_WRITE": "1"}, cwd=tmp_path)
        assert done.stdout and done.stderr == b"", script
    for name in EXECUTABLES:
        env["PYTHONSAFEPATH"] = "1"  # the folder above the launcher is not needed here
        assert succeed(installed / "bin" / name, "--version", env=env, cwd=tmp_path).stderr == b""


def test_pip_install_of_the_sources_works_offline(source: Path, downloads: Path, wheel: Path, tmp_path: Path) -> None:
    """`pip install .` with nothing but a folder of downloads: pip builds with what it finds there."""
    target = tmp_path / "target"
    succeed(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--no-index",
        "--find-links", downloads, "--target", target, ".", cwd=source, env=outside(),
    )  # fmt: skip
    expected = {name: body for name, (_, body) in wheel_content(wheel).items() if name.startswith(f"{NAME}/")}
    found = {
        name: path for name, path in tree(target).items() if name.startswith(f"{NAME}/") and "__pycache__" not in name
    }
    assert {name: path.read_bytes() for name, path in found.items()} == expected
    assert {path.name for path in (target / "bin").iterdir()} == set(EXECUTABLES)


# The interface for people.


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_test_all_tests_each_python_that_is_there_and_fails_with_none(tmp_path: Path) -> None:
    """With pythons that only tell their version, and a make that only says with what it was called."""

    def program(name: str, line: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
        return path

    there = program("python98", "echo 3.98")
    failing = program("python99", "echo 3.99")
    called = program("called", 'echo called "$@"; case "$*" in *3.99*) exit 1;; esac')

    def test_all(*pythons: Path) -> subprocess.CompletedProcess[str]:
        words = ["test-all", f"MAKE={called}", f"PYTHONS={' '.join(map(str, pythons))}"]
        return subprocess.run(
            ["make", "-C", SOURCE, *words], env=environment(), capture_output=True, text=True, timeout=60
        )

    done = test_all(tmp_path / "python97", there)
    assert done.returncode == 0, done.stderr
    assert "python97 is not there" in done.stdout
    assert f"called test PYTHON={there} VENV=.venv-3.98\n" in done.stdout
    assert "passed on Python 3.98\n" in done.stdout
    assert test_all(there, failing).returncode != 0
    none = test_all(tmp_path / "python97")
    assert none.returncode != 0 and "none of PYTHONS is there" in none.stderr
