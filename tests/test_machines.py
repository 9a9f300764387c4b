"""Odd names, locales, permissions, closed descriptors, deep nesting, large notes (sections 2, 3, 5, 14.11, 14.16)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS
from cortex_tools.library import Runtime, create_cortex_adapter, run_cortex
from tests.support import BIN, envelope, environment, failure, note, row, run, shell, write_corpus

STRANGE = "a b\n\t'q' \"d\" $x `y` ; \\ – é 織機 \U0001d400 e\u0301"


def records(root: Path | str) -> int:
    """How many records the library finds below `root`; fails the test where it finds fault."""
    status, body = run_cortex(["status"], Runtime(memory_root=root))
    assert status == 0, body
    found: int = body["data"]["canonical"]["records"]
    return found


def refusal(root: Path, *mentions: str) -> str:
    """The message of the integrity_error that the library answers."""
    status, body = run_cortex(["status"], Runtime(memory_root=root))
    assert status == 4 and body["error"]["code"] == "integrity_error", body
    message: str = body["error"]["message"]
    for word in mentions:
        assert word in message, message
    return message


# Names and locales


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root, folders, files and an ID with blanks, line feeds, quotes and non-ASCII in their names."""
    root = tmp_path_factory.mktemp("strange").resolve() / STRANGE
    files = {f"KNOWLEDGE/{STRANGE}/{STRANGE}.md": "loom without an ID", f"KNOWLEDGE/{STRANGE}.jsonl": row("織機")}
    return write_corpus(root, {**files, f"{STRANGE}_MEMORY.md": note("hot")})


@pytest.fixture(scope="module")
def latin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str] | None:
    """What makes a process run in a Latin-1 locale; None where this machine cannot make one."""
    folder = tmp_path_factory.mktemp("locale")
    if shutil.which("localedef") is None:
        return None
    command = ["localedef", "-c", "-i", "en_US", "-f", "ISO-8859-1", folder / "en_US.ISO-8859-1"]
    subprocess.run(command, capture_output=True, check=False)
    if not (folder / "en_US.ISO-8859-1").exists():
        return None
    return {"LOCPATH": str(folder), "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}


LOCALES = {
    "C": {"LC_ALL": "C"},
    "POSIX": {"LC_ALL": "POSIX"},
    "C, UTF-8 mode off": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "unknown": {"LC_ALL": "xx_XX.nowhere", "PYTHONUTF8": "0"},
    "ASCII streams": {"PYTHONIOENCODING": "ascii:strict"},
    "Latin-1": {},
}


@pytest.fixture(params=LOCALES)
def locale(request: pytest.FixtureRequest, latin: dict[str, str] | None) -> dict[str, str]:
    if request.param != "Latin-1":
        return environment(**LOCALES[request.param])
    if latin is None:
        pytest.skip("localedef is missing or has no ISO-8859-1")
    env = environment(**latin)
    script = "import sys, locale; print(sys.getfilesystemencoding())"
    seen = subprocess.run(["python3", "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    assert "8859" in seen, seen
    return env


def test_names_are_the_same_in_every_locale(strange: Path, locale: dict[str, str]) -> None:
    plain = environment(LC_ALL="C.UTF-8")
    root = ("--memory-root", strange)
    for command in (["search", "loom", "--source", "canonical"], ["get", "織機", "hot"], ["get", "é"], ["é"]):
        expected = run("cortex", *command, *root, env=plain)
        done = run("cortex", *command, *root, env=locale)
        assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout)
        assert done.stderr == b"" and envelope(done)["command"] == command[0]
    by_variable = run("cortex", "status", env={**locale, "CORTEX_MEMORY_ROOT": str(strange)})
    assert envelope(by_variable)["data"]["canonical"] == {"root": str(strange), "records": 3}


def test_pipelines_are_the_same_in_every_locale(strange: Path, locale: dict[str, str]) -> None:
    plan = run("cortex-plan", "search", "loom", "--session", "é", "--memory-root", strange, env=locale)
    assert plan.stdout == run("cortex-plan", "search", "loom", "--session", "é", "--memory-root", strange).stdout
    expected = run("cortex", "search", "loom", "--session", "é", "--memory-root", strange)
    assert shell(plan.stdout.decode(), env=locale).stdout == expected.stdout
    get = run("cortex-plan", "get", "織機", "--memory-root", strange, env=locale).stdout.decode()
    item = envelope(shell(get, env=locale))["data"]["items"][0]
    assert item["provenance"]["path"] == f"KNOWLEDGE/{STRANGE}.jsonl"


def test_failures_are_the_same_in_every_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    root = write_corpus(tmp_path / "é", {"織\n機.md": b"\xff"})
    expected = run("cortex", "status", "--memory-root", root)
    assert run("cortex", "status", "--memory-root", root, env=locale).stdout == expected.stdout
    failure(expected, 4, "integrity_error", "織\n機.md")
    done = shell(f"cortex-scan --memory-root '{root}' | cortex-strip", env=locale)
    assert done.returncode == 4 and done.stderr.count(b"\n") == 1, done.stderr
    assert "織" in done.stderr.decode()


def test_help_in_every_locale(locale: dict[str, str]) -> None:
    for command in (["cortex", "--help"], ["cortex", "--help", "search"], ["cortex-window", "--help"]):
        done = run(*command, env=locale)
        assert done.returncode == 0 and done.stderr == b"" and b"cortex" in done.stdout


def test_the_library_takes_paths_of_every_kind(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (strange, str(strange), os.fsencode(strange)):
        assert records(given) == 3  # type: ignore[arg-type]
    monkeypatch.chdir(strange)
    assert records("") == records(".") == 3


BYTES = os.fsdecode(b"n\xff\xfe")


@pytest.mark.parametrize("name", [f"{BYTES}.md", f"{BYTES}.jsonl", f"{BYTES}.txt", f"{BYTES}/a.md", f"x/{BYTES}/a.md"])
def test_names_that_are_not_utf8(tmp_path: Path, name: str) -> None:
    write_corpus(tmp_path, {"sound.md": "x", name: "x"})
    message = refusal(tmp_path, "n\ufffd\ufffd", "UTF-8")
    assert failure(run("cortex", "search", "x", "--memory-root", tmp_path), 4, "integrity_error") == message
    done = run("cortex-scan", "--memory-root", tmp_path)
    assert json.loads(done.stdout.splitlines()[0])["message"] == message and b"Traceback" not in done.stderr
    hidden = tmp_path / name.partition("/")[0]
    hidden.rename(tmp_path / f"_{hidden.name}")
    assert records(tmp_path) == 1


def test_a_root_that_is_not_utf8(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / BYTES, {"a.md": "x"})
    (tmp_path / "alias").symlink_to(root)
    for env in (environment(CORTEX_MEMORY_ROOT=str(root)), environment(CORTEX_MEMORY_ROOT=str(tmp_path / "alias"))):
        failure(run("cortex", "status", env=env), 4, "integrity_error", "UTF-8")
        assert run("cortex-scan", env=env).returncode == 4
    refusal(root, "n\ufffd\ufffd")
    failure(run("cortex", "status", "--memory-root", root), 4, "integrity_error", "n\ufffd\ufffd")
    # An alias may have any name: what counts is where it leads.
    sound = write_corpus(tmp_path / "sound", {"a.md": "x"})
    (tmp_path / os.fsdecode(b"\xe9")).symlink_to(sound)
    alias = tmp_path / os.fsdecode(b"\xe9")
    for done in (
        run("cortex", "status", env=environment(CORTEX_MEMORY_ROOT=str(alias))),
        run("cortex", "status", "--memory-root", alias),
    ):
        assert envelope(done)["data"]["canonical"]["root"] == str(sound.resolve())


def test_a_root_with_private_markup_in_its_name(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "r<private>secret", {"a.md": "x"})
    assert "secret" not in refusal(root)


def test_arguments_that_are_not_utf8(tmp_path: Path) -> None:
    """Refused by name, never taken for what they resemble: U+FFFD in an ID or a type is a character of its own."""
    root = write_corpus(tmp_path, {"a.md": note("a\ufffdb", "loom", type="t\ufffd")})
    done = run("cortex", b"sta\xfftus\xc3")
    assert envelope(done)["command"] == "sta\ufffdtus\ufffd"
    failure(done, 4, "invalid_input", "sta\ufffdtus\ufffd")
    refused: dict[str, list[str | bytes]] = {
        "argument 1": ["search", b"loom \xff"],
        "argument 2": ["get", "a\ufffdb", b"a\xffb"],
        "--type": ["search", "loom", "--type", b"t\xff"],
        "--anchor": ["timeline", "--anchor", b"a\xffb"],
        "--adapter": ["search", "x", "--adapter", b"\xff"],
        "status": ["status", b"--\xff"],
        "UTF-8": ["remember", b'{"x":"\xff"}', "--adapter", "claude", "--allow-write"],
    }
    for mention, command in refused.items():
        failure(run("cortex", *command, "--memory-root", root), 4, "invalid_input", mention)
    assert envelope(run("cortex", "get", "a\ufffdb", "--memory-root", root))["data"]["items"][0]["type"] == "t\ufffd"
    for command in (["cortex-rank", b"\xff"], ["cortex-select", "--type", b"\xff"]):
        done = run(*command, input=b"")
        assert done.returncode == 4 and done.stderr.count(b"\n") == 1
        assert json.loads(done.stdout.splitlines()[0])["code"] == "invalid_input"


# Permissions


@pytest.fixture(scope="module")
def unprivileged(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What to put before a command so that permissions bind it, also when the tests run as root.

    The user stays the same, so that the command can still reach the tests' own folders; what goes is
    root's power to read everything.
    """
    powers = "-dac_override,-dac_read_search"
    prefix = [] if os.geteuid() else ["setpriv", "--bounding-set", powers, "--inh-caps", powers, "--"]
    probe = tmp_path_factory.mktemp("probe") / "unreadable"
    probe.touch(mode=0)
    if prefix and shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing: root cannot give up its power to read everything")
    if subprocess.run([*prefix, "cat", probe], capture_output=True, check=False).returncode == 0:
        pytest.skip("permissions do not bind on this machine")
    return prefix


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A corpus whose permissions a test may take away; they are given back for the cleaning up."""
    made = write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": note("a"), "KNOWLEDGE/sub/b.md": note("b")})
    yield made
    subprocess.run(["chmod", "-R", "u+rwX", made.parent], check=True)


def as_anybody(
    prefix: list[str], *command: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    line = [*prefix, BIN / command[0], *command[1:]]
    return subprocess.run(line, capture_output=True, env=env or environment(), timeout=120, check=False)


def test_what_is_read_only_is_read(root: Path, unprivileged: list[str]) -> None:
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            os.chmod(Path(folder, name), 0o400)
        os.chmod(folder, 0o500)
    touched = subprocess.run([*unprivileged, "touch", root / "KNOWLEDGE/new.md"], capture_output=True, check=False)
    assert touched.returncode != 0, "the permissions that this test is about do not bind"
    for command in (["status"], ["search", "loom"], ["rebuild", "--from-canonical"], ["get", "a", "b"]):
        done = as_anybody(unprivileged, "cortex", *command, "--memory-root", root)
        assert done.returncode == 0 and done.stderr == b"", done


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("KNOWLEDGE/sub/b.md", 0o200),
        ("KNOWLEDGE/sub", 0o000),
        ("KNOWLEDGE/sub", 0o300),  # may be entered but not listed
        ("KNOWLEDGE/sub", 0o400),  # may be listed but not entered
        ("KNOWLEDGE", 0o000),
    ],
)
def test_what_cannot_be_read_is_refused(root: Path, unprivileged: list[str], name: str, mode: int) -> None:
    os.chmod(root / name, mode)
    done = as_anybody(unprivileged, "cortex", "search", "loom", "--memory-root", root)
    message = failure(done, 4, "integrity_error", name, "Permission denied")
    assert "changed" not in message and done.stderr == b""
    pipeline = ["sh", "-c", f"cortex-scan --memory-root {root} | cortex-strip"]
    done = subprocess.run([*unprivileged, *pipeline], capture_output=True, env=environment(), timeout=120, check=False)
    assert done.returncode == 4 and done.stderr.count(b"\n") == 1 and name in done.stderr.decode()


def test_an_unreadable_folder_without_notes_is_refused_too(root: Path, unprivileged: list[str]) -> None:
    (root / "KNOWLEDGE/empty").mkdir(mode=0)
    done = as_anybody(unprivileged, "cortex", "status", "--memory-root", root)
    failure(done, 4, "integrity_error", "KNOWLEDGE/empty")


def test_what_is_no_note_or_hidden_need_not_be_readable(root: Path, unprivileged: list[str]) -> None:
    for name in ("KNOWLEDGE/x.txt", "KNOWLEDGE/_x.md", "flat.md"):
        (root / name).touch(mode=0)
    for name in ("KNOWLEDGE/.git", "other"):
        (root / name).mkdir(mode=0)
    done = as_anybody(unprivileged, "cortex", "status", "--memory-root", root)
    assert envelope(done)["data"]["canonical"]["records"] == 2


@pytest.mark.parametrize("mode", [0o000, 0o300])
def test_an_unreadable_root(root: Path, unprivileged: list[str], mode: int) -> None:
    os.chmod(root, mode)
    done = as_anybody(unprivileged, "cortex", "status", "--memory-root", root)
    failure(done, 4, "integrity_error", "memory root", "Permission denied")


# Temporary files


def test_no_place_for_temporary_files(root: Path, unprivileged: list[str], tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    rebuild = ("cortex", "rebuild", "--from-canonical", "--memory-root", root)
    for folder in (tmp_path / "missing", tmp_path / "locked", root / "KNOWLEDGE/a.md"):
        env = environment(TMPDIR=str(folder))
        failure(as_anybody(unprivileged, *rebuild, env=env), 1, "internal_error", str(folder), "TMPDIR")
        for command in (["status"], ["search", "loom"], ["get", "a"]):  # these need none
            assert as_anybody(unprivileged, "cortex", *command, "--memory-root", root, env=env).returncode == 0
    for stage in ("cortex-digest", "cortex-rank loom --bodies"):
        done = shell(f"cortex-scan --memory-root {root} | cortex-strip | {stage}", env=environment(TMPDIR="/nowhere"))
        assert done.returncode == 1 and json.loads(done.stdout.splitlines()[-2])["code"] == "internal_error"
        assert b"/nowhere" in done.stderr and b"Traceback" not in done.stderr
    assert envelope(run(*rebuild, env=environment(TMPDIR=None)))["data"]["equivalent"] is True
    (tmp_path / "own").mkdir()
    assert envelope(run(*rebuild, env=environment(TMPDIR=str(tmp_path / "own"))))["data"]["equivalent"] is True
    assert os.listdir(tmp_path / "own") == []


def test_a_temporary_folder_whose_name_is_not_utf8(root: Path) -> None:
    env = environment(TMPDIR="/nowhere/" + BYTES)
    done = run("cortex", "rebuild", "--from-canonical", "--memory-root", root, env=env)
    assert b"Traceback" not in done.stderr
    failure(done, 1, "internal_error", "TMPDIR")


# Where and how a process is started


def test_a_working_directory_that_is_gone(root: Path, tmp_path: Path) -> None:
    script = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && cortex status --memory-root {{}}"
    assert envelope(shell(script.format(root)))["data"]["canonical"]["records"] == 2
    failure(shell(script.format("relative")), 4, "integrity_error", "relative")


def test_no_home(root: Path) -> None:
    done = run("cortex", "status", env=environment(HOME=None, CORTEX_MEMORY_ROOT=str(root)))
    assert envelope(done)["data"]["canonical"]["records"] == 2
    failure(run("cortex", "status", env=environment(HOME="/nowhere")), 4, "integrity_error", "/nowhere/.claude")


def test_closed_descriptors(root: Path) -> None:
    status = f"cortex status --memory-root {root}"
    expected = run("cortex", "status", "--memory-root", root).stdout
    for closed in ("<&-", "2>&-", "<&- 2>&-"):
        done = shell(f"{status} {closed}")
        assert (done.returncode, done.stdout) == (0, expected), closed
    done = shell(f"cortex-scan --memory-root {root} <&- | cortex-strip 2>&- | cortex-envelope status")
    assert (done.returncode, done.stdout) == (0, expected)
    for closed in (">&-", "<&- >&-", *([">/dev/full"] if os.path.exists("/dev/full") else [])):
        done = shell(f"{status} {closed}")
        assert done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"standard output" in done.stderr
    assert shell(f"{status} >&- 2>&-").returncode == 1
    write = "cortex remember - --adapter claude --allow-write"
    failure(shell(f"{write} --memory-root {root} <&-"), 4, "invalid_input")
    assert all(path.read_text().startswith("---\n") for path in root.rglob("*.md"))  # nothing landed in a note


@pytest.mark.parametrize("stdin", ["<&-", "< /dev/null"])
def test_a_stage_whose_input_is_closed_or_empty(stdin: str) -> None:
    """No stream at all is a broken one: the stage before may have died before its first line."""
    for name in ("cortex-strip", "cortex-select", "cortex-rank loom", "cortex-digest", "cortex-card"):
        done = shell(f"{name} {stdin}")
        assert done.returncode == 4 and done.stderr.count(b"\n") == 1, (name, done)
        assert json.loads(done.stdout.splitlines()[0])["code"] == "integrity_error"
    for command in ("status", "search", "timeline", "get x", "rebuild"):
        failure(shell(f"cortex-envelope {command} {stdin}"), 4, "integrity_error")


def test_few_descriptors_are_enough(tmp_path: Path) -> None:
    write_corpus(tmp_path, {f"{folder}/{name}.md": "x" for folder in range(60) for name in range(4)})
    done = shell(f"ulimit -n 24; cortex rebuild --from-canonical --memory-root {tmp_path}")
    assert envelope(done)["data"]["records"] == 240


@pytest.mark.parametrize("command", [["status"], ["search", "x"], ["rebuild", "--from-canonical"], ["get", "ghost"]])
def test_the_library_leaves_no_descriptor_open(root: Path, command: list[str]) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not show a process its open descriptors")
    before = set(os.listdir("/proc/self/fd"))
    run_cortex(command, Runtime(memory_root=root))
    assert set(os.listdir("/proc/self/fd")) == before
    (root / "KNOWLEDGE/sub/b.md").write_bytes(b"\xff")
    for _ in range(3):
        status, _ = run_cortex(command, Runtime(memory_root=root))
        assert status == 4
    (root / "KNOWLEDGE/z.md").symlink_to("nowhere")
    run_cortex(command, Runtime(memory_root=root))
    assert set(os.listdir("/proc/self/fd")) == before, "what a failure leaves open adds up"


@pytest.mark.parametrize("columns", ["20", "1", "0", "x", "-5", "100000"])
def test_help_on_a_terminal_of_any_width(columns: str) -> None:
    for command in (["cortex", "--help", "search"], ["cortex-window", "--help"]):
        done = run(*command, env=environment(COLUMNS=columns))
        assert done.returncode == 0 and done.stderr == b"" and b"Exit status:" in done.stdout, done


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_help_names_every_option_whole(columns: str) -> None:
    for command, options in (
        (["cortex", "--help", "search"], COMMANDS["search"].options),
        (["cortex-window", "--help"], EXECUTABLES["cortex-window"].options),
    ):
        text = run(*command, env=environment(COLUMNS=columns)).stdout.decode()
        assert [name for name in options if name not in text] == []


def test_nothing_else_depends_on_the_width(root: Path) -> None:
    expected = run("cortex", "search", "loom", "--memory-root", root).stdout
    for changes in ({"COLUMNS": "20"}, {"TERM": "dumb"}, {"TERM": None}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}):
        assert run("cortex", "search", "loom", "--memory-root", root, env=environment(**changes)).stdout == expected


# Depth


@pytest.fixture
def pit(tmp_path: Path) -> Iterator[Path]:
    """Where deep folders go; what is dug there is removed by a program that gets to the bottom."""
    yield tmp_path / "pit"
    subprocess.run(["rm", "-rf", tmp_path / "pit"], check=True)


def deep(root: Path, levels: int, name: str) -> Path:
    """A note below `levels` folders called `name`, made step by step since no path may be that long."""
    root.mkdir(parents=True)
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    with open(os.open("deep.md", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor), "w") as file:
        file.write(note("deep"))
    os.close(descriptor)
    return root


def test_folders_four_hundred_deep(pit: Path) -> None:
    root = deep(pit, 400, "d")
    assert records(root) == 1
    expected = run("cortex", "get", "deep", "--memory-root", root)
    assert envelope(expected)["data"]["items"][0]["provenance"]["path"] == "d/" * 400 + "deep.md"
    plan = run("cortex-plan", "get", "deep", "--memory-root", root).stdout.decode()
    assert shell(plan).stdout == expected.stdout


def test_folders_so_deep_that_no_path_reaches_them(pit: Path) -> None:
    """Beyond 4,096 bytes the system takes no path; that is not a corpus that changes."""
    root = deep(pit, 25, "d" * 200)
    status, body = run_cortex(["get", "deep"], Runtime(memory_root=root))
    if status == 0:
        assert body["data"]["items"][0]["provenance"]["path"].endswith("d/deep.md")
    else:
        assert body["error"]["code"] == "integrity_error" and "d" * 200 in body["error"]["message"]
        assert "changed" not in body["error"]["message"] and "try again" not in body["error"]["message"]


def test_folders_deeper_than_any_recursion(pit: Path) -> None:
    root = deep(pit, 3_000, "d")
    done = run("cortex", "status", "--memory-root", root)
    message = failure(done, 4, "integrity_error", "d/d/d")
    assert "changed" not in message and done.stderr == b"" and len(message) < 1_000
    assert run("cortex-scan", "--memory-root", root).returncode == 4


DEPTH = 100_000
ROW = row("a")
NESTED = {
    "list": "[" * DEPTH,
    "closed list": "[" * DEPTH + "]" * DEPTH,
    "object": '{"a":' * DEPTH,
    "closed object": '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "within a field": ROW.replace('"loom row"', "[" * DEPTH + "]" * DEPTH).rstrip(),
    "within a link": ROW.rstrip()[:-1] + ',"related":' + "[" * DEPTH + "]" * DEPTH + "}",
    "huge integer": "9" * DEPTH,
    "huge integer in a field": ROW.replace('"loom row"', "9" * DEPTH).rstrip(),
    "negative": ROW.replace('"loom row"', "-" + "9" * DEPTH).rstrip(),
    "huge exponent": ROW.replace('"loom row"', "1e999999999").rstrip(),
    "long fraction": ROW.replace('"loom row"', "0." + "9" * DEPTH).rstrip(),
    "NaN": ROW.replace('"loom row"', "NaN").rstrip(),
    "nothing but a quote": '"',
}


@pytest.mark.parametrize("case", NESTED)
def test_rows_that_no_reader_takes(tmp_path: Path, case: str) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/r.jsonl": row("b") + NESTED[case] + "\n"})
    message = refusal(root, "KNOWLEDGE/r.jsonl:2")
    assert len(message) < 300 and "[[[" not in message and "999" not in message
    done = shell(f"cortex-scan --memory-root {root} | cortex-strip | cortex-envelope status")
    assert failure(done, 4, "integrity_error") == message
    assert b"Traceback" not in done.stderr and len(done.stderr) < 1_000


@pytest.mark.parametrize("case", NESTED)
def test_payloads_that_no_reader_takes(tmp_path: Path, case: str) -> None:
    granted = ["--adapter", "claude", "--allow-write"]
    calls: list[Any] = []
    runtime = Runtime(memory_root=tmp_path, memory_add=lambda *given: calls.append(given) or {"ok": True})
    status, body = run_cortex(["remember", NESTED[case], *granted], runtime)
    # What is JSON to a reader, but no idea, may be refused for its type instead; never anything else.
    assert (status, body["error"]["code"]) in ((4, "invalid_input"), (5, "write_refused")), body
    assert calls == [] and len(body["error"]["message"]) < 300
    if "closed" in case or case in ("list", "object"):
        assert body["error"]["code"] == "invalid_input"


def test_such_a_payload_on_standard_input(tmp_path: Path) -> None:
    command = ("cortex", "remember", "-", "--adapter", "claude", "--allow-write", "--memory-root", tmp_path)
    for text in ("[" * 262_144, '{"type":' * 30_000, '{"type":"idea","title":' + "9" * 200_000 + "}"):
        done = run(*command, input=text.encode())
        failure(done, 4, "invalid_input")
        assert done.stderr == b"" and list(tmp_path.iterdir()) == []


def test_such_an_item_in_the_library(tmp_path: Path) -> None:
    adapter = create_cortex_adapter("claude", Runtime(memory_root=tmp_path, memory_add=lambda *_: {"ok": True}))
    nested: list[Any] = []
    for _ in range(DEPTH):
        nested = [nested]
    circle: dict[str, Any] = {"type": "idea"}
    circle["self"] = circle
    for item in (nested, circle, {"type": "idea", "n": 10**5_000}, {"type": "idea", "n": float("inf")}):
        status, body = adapter.remember(item, {"allow_write": True})
        assert (status, body["error"]["code"]) == (4, "invalid_input")


def test_such_a_line_in_a_stream() -> None:
    for text in ("[" * DEPTH, '{"kind":' * DEPTH, '{"kind":"digest","sha256":"","records":' + "9" * DEPTH + "}"):
        done = run("cortex-select", input=text.encode() + b"\n")
        assert done.returncode == 4 and b"Traceback" not in done.stderr and len(done.stderr) < 1_000
        assert json.loads(done.stdout.splitlines()[0])["code"] == "integrity_error"


# Large notes, line ends, byte order marks


def sized(text: str, size: int = 8_388_608) -> str:
    """`text` repeated and padded to exactly `size` bytes."""
    body = text * (size // len(text.encode()))
    return body + "." * (size - len(body.encode()))


# The last of them doubles on its way through a pipeline, since JSON escapes all of it.
@pytest.mark.parametrize("text", ["loom 織機と糸\n", "\U0001d400", '"\\\n\t'])
def test_a_note_of_eight_mebibytes(tmp_path: Path, text: str) -> None:
    body = sized(text)
    root = write_corpus(tmp_path, {"a.md": body, "b.md": note("small")})
    tokens = (len(body.encode("utf-16-le")) // 2 + 3) // 4
    script = f"cortex-scan --memory-root {root} | cortex-strip | cortex-select --to 1970-01-01 | cortex-window --anchor"
    done = shell(f"{script} 1960-01-01 | cortex-card | cortex-envelope timeline")
    card = envelope(done)["data"]["items"][0]
    assert card["est_tokens"] == tokens
    item = envelope(run("cortex", "get", card["id"], "--memory-root", root))["data"]["items"][0]
    assert item["content"] == body


@pytest.mark.parametrize("head", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks(tmp_path: Path, head: str) -> None:
    text = note("crlf", "loom\n\nslug: one\n - slug: two # rest\n", session="x", source_session="s").replace(
        "\n", "\r\n"
    )
    rows = (row("r1") + "\n" + row("r2", content="a\r\nb")).replace("\n", "\r\n")
    root = write_corpus(tmp_path, {"a.md": head + text, "b.jsonl": head + rows, "c.md": head})
    status, body = run_cortex(["get", "crlf", "r1", "r2"], Runtime(memory_root=root))
    assert status == 0, body
    first, _, last = body["data"]["items"]
    assert first["content"] == text and first["related"] == ["one", "two"] and first["title"] == "Title crlf"
    assert first["provenance"]["session"] == "s" and last["content"] == "a\r\nb"
    assert records(root) == 4
    write_corpus(root, {"b.jsonl": head + rows + "{}\r\n"})
    refusal(root, "b.jsonl:4")


def test_an_empty_corpus_and_empty_files(tmp_path: Path) -> None:
    assert records(tmp_path) == 0
    write_corpus(
        tmp_path, {"a.jsonl": "", "b.jsonl": "\n \r\n\u3000\n", "c.jsonl": "\ufeff", "d.md": "", "e.md": "\ufeff"}
    )
    assert records(tmp_path) == 2
    done = shell(f"cortex-scan --memory-root {tmp_path} | cortex-strip | cortex-envelope status")
    assert envelope(done)["data"]["canonical"]["records"] == 2
