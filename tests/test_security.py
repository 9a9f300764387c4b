"""What docs/security.md says of the machine around the notes: modes, variables, what is opened, what is started."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.evidence import reading
from cortex_tools.files import durable, walk
from cortex_tools.governance import add
from cortex_tools.governance.folders import failed
from tests.support import BIN, PACKAGE, SAMPLE, SOURCE, environment, note, run, shell, write_corpus

PAGE = (SOURCE / "docs/security.md").read_text(encoding="utf-8")
WRITE = ["--adapter", "claude", "--allow-write"]


# What is written may be written by its owner alone, and what tells of use is read by its owner alone.

PRIVATE = (
    "OBSERVABILITY/memory-health.jsonl",
    "OBSERVABILITY/memory-retrievals.jsonl",
    "OBSERVABILITY/.retrieval-key",
    "OBSERVABILITY/memory-writes.jsonl",
    "OBSERVABILITY/tier-b-writes.jsonl",
    "OBSERVABILITY/pending-proposals.jsonl",
    "labels.jsonl",
)


def write_one_of_each(root: Path, umask: int) -> None:
    """Call everything that writes, on an empty root."""
    items = [
        ("remember", {"type": "idea", "title": "Pull log", "content": "Loom"}),
        ("remember", {"type": "memory", "actor": "principal", "content": "RULE: oil the loom"}),
        ("remember", {"type": "memory", "actor": "principal", "content": "RULE: and the vat"}),
        ("propose", {"type": "proposal", "target_file": "", "target_kind": "projects", "edit": "- loom",
                     "rationale": "asked", "confidence": 0.5}),
    ]  # fmt: skip
    items[-1][1]["target_file"] = "PROJECTS.md"
    for command, item in items:
        done = run("cortex", command, json.dumps(item), *WRITE, "--memory-root", root, umask=umask)
        assert done.returncode == 0, done
    for line in ("cortex-log-retrieval search loom", "cortex-health", "cortex-health affirm no-index"):
        assert run(*line.split(), "--memory-root", root, umask=umask).returncode < 3, line
    found, *_ = json.loads(run("cortex", "search", "loom", "--memory-root", root).stdout)["data"]["items"]
    done = run(
        "cortex-benchmark", "label", "loom", "--expect", found["id"], "--labels", root / "labels.jsonl",
        "--memory-root", root, umask=umask,
    )  # fmt: skip
    assert done.returncode == 0, done


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_modes_of_what_is_written(umask: int, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir(0o700)
    write_one_of_each(root, umask)
    modes = {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert {name for name in PRIVATE if modes[name] != 0o600} == set()
    others = {name: mode for name, mode in modes.items() if name not in PRIVATE}
    assert len(others) >= 7
    for name, mode in others.items():
        assert mode == (0o755 if (root / name).is_dir() else 0o644) & ~umask, name


# What is acknowledged is on the disk, not only in its cache.


@pytest.mark.parametrize("able", [True, False], ids=["a drive that is told to flush", "a file system that cannot"])
def test_a_sync_asks_for_all_that_the_system_can(able: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, where F_FULLFSYNC is: without it, fsync leaves what was written in the drive's cache."""
    asked: list[str] = []

    def fcntl(descriptor: int, command: int) -> int:
        assert command == 51
        asked.append("full")
        if not able:
            raise OSError(errno.ENOTSUP, "not supported")
        return 0

    monkeypatch.setattr(durable, "_FULL_SYNC", 51)
    monkeypatch.setattr(durable.fcntl, "fcntl", fcntl)
    monkeypatch.setattr(durable.os, "fsync", lambda descriptor: asked.append("plain"))
    add({"type": "idea", "title": "Pull log", "content": "Loom"}, tmp_path)
    assert len(asked) >= 4 and set(asked) == ({"full"} if able else {"full", "plain"})


# Nothing but what the page names is looked at in the environment.

NAMES = re.compile(r"CORTEX_[A-Z_]+|NO_COLOR|TERM|TMPDIR|COLUMNS|HOME|PATH|LANG|LC_\w+|SHELL|EDITOR|PAGER|USER")


def environment_reads() -> set[str]:
    """The constants in modules that touch the environment which are names of variables, and those in `contract`."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMES.fullmatch(node.value):
                found.add(node.value)
    return found


def test_every_variable_that_is_read_is_on_the_page() -> None:
    section = PAGE.split("## Environment", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
    read = environment_reads() - {"USER", "CORTEX_INDEX_POLICY", "CORTEX_REVIEWER_POLICY"}  # a folder and two files
    indirectly = {"HOME", "PATH"}  # by the library, not by name
    assert read - {"SHELL"} | indirectly == told


# What a command opens, starts and connects to, told by the interpreter itself.

HOOK = """
import os, sys
_log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
_writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_kinds = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.startfile", "os.rename",
          "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
          "os.utime", "os.putenv", "urllib.", "http.", "ctypes.", "pty.", "shutil.")
def _hook(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not flags & _writes:
            return
        if hasattr(os, "O_TMPFILE") and flags & os.O_TMPFILE == os.O_TMPFILE:
            event, arguments = "nameless", (path,)
        else:
            arguments = (path, flags & _writes)
    elif not event.startswith(_kinds):
        return
    os.write(_log, ascii((event, [str(one) for one in arguments])).encode() + b"\\n")
sys.addaudithook(_hook)
"""


@pytest.fixture
def audited(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which every Python says what it does to the world, and the file that it says it in."""
    log = tmp_path / "events"
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook/sitecustomize.py").write_text(HOOK.format(log=str(log)))
    path = os.pathsep.join(filter(None, [str(tmp_path / "hook"), os.environ.get("PYTHONPATH")]))
    return environment(PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", CORTEX_MEMORY_ROOT=str(SAMPLE)), log


READS = [
    "cortex search loom --expand idea-vat-monitor",
    "cortex timeline --anchor 2025-03-08",
    "cortex get idea-tension-logger",
    "cortex rebuild --from-canonical",
    "cortex status",
    "cortex search",
    "cortex-scan --parts 2 | cortex-strip --jobs 2 | cortex-select --valid | cortex-rank loom --bodies | cortex-card |"
    " cortex-envelope search",
    "cortex-scan | cortex-strip | cortex-window --anchor 2025-03-08 | cortex-envelope timeline",
    "cortex-scan | cortex-strip | cortex-digest",
    "cortex-check",
    "cortex-proposals list",
    "cortex-restore list",
    "CORTEX_HEALTH_NO_WRITE=1 cortex-health --corpus",
    "cortex-plan search loom",
]


@pytest.mark.parametrize("script", READS)
def test_what_reads_writes_nothing_starts_nothing_and_talks_to_nobody(
    script: str, audited: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    env, log = audited
    env["TMPDIR"] = str(tmp_path)
    assert shell(script, env=env, cwd="/").stdout
    events = [ast.literal_eval(line) for line in log.read_text().splitlines()]
    assert [event for event in events if not _is_temporary(event, tmp_path)] == []


def _is_temporary(event: tuple[str, list[str]], folder: Path) -> bool:
    """A file without a name, or the making and unlinking of one where the system has no such files."""
    kind, arguments = event
    where = arguments[0] if arguments else ""
    return (kind == "nameless" and where == str(folder)) or (
        kind in ("open", "os.remove") and where.startswith(f"{folder}/.cortex-")
    )


def test_the_audit_would_show_it(audited: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    env, log = audited
    item = json.dumps({"type": "idea", "title": "Pull log", "content": "Loom"})
    assert run("cortex", "remember", item, *WRITE, "--memory-root", tmp_path, env=env).returncode == 0
    assert shell("cortex-scan | cortex-strip | cortex-through cat", env=env).returncode == 0
    code = "import socket; socket.socket(socket.AF_UNIX).close()"
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)
    kinds = {ast.literal_eval(line)[0] for line in log.read_text().splitlines()}
    assert {"open", "os.mkdir", "os.link", "os.posix_spawn", "socket.__new__"} <= kinds


def test_no_module_can_talk_to_anybody() -> None:
    talking = {"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "asyncio", "socketserver", "xmlrpc", "requests"}
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    assert "os" in imported and imported & talking == set()


def test_a_search_imports_no_package_of_others_and_a_stage_but_one() -> None:
    def packages(*command: str | Path) -> set[str]:
        env = environment(PYTHONPROFILEIMPORTTIME="1", CORTEX_MEMORY_ROOT=str(SAMPLE))
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0, done
        names = re.findall(r"^import time: .*\| +(\w+)", done.stderr, re.MULTILINE)
        return set(names) - sys.stdlib_module_names

    always = packages("-c", "")
    assert packages(BIN / "cortex", "search", "loom") - always == {"cortex_tools"}
    assert packages(BIN / "cortex-scan") - always == {"cortex_tools", "xxhash"}


# Where the command is called from decides nothing about what is run.


def test_modules_in_the_working_directory_are_not_taken(tmp_path: Path) -> None:
    for name in ("cortex_tools", "xxhash", "ijson", "typer", "json", "os", "signal", "marshal", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'a').write({name!r})\n")
    env = environment(CORTEX_MEMORY_ROOT=str(SAMPLE))
    for script in ("cortex search loom", "cortex --help", "cortex-scan | cortex-strip | cortex-digest"):
        assert shell(script, env=env, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "taken").exists()


@pytest.mark.parametrize("name", sorted(EXECUTABLES))
def test_a_launcher_never_looks_where_it_is_called(name: str) -> None:
    """A launcher in /bin has the root folder above it, not the empty path, which is the working directory."""
    line = (BIN / name).read_text(encoding="utf-8").splitlines()[1]
    for folder, above in (("/usr/local/bin", "/usr/local"), ("/bin", "/")):
        code = f"import sys; sys.path[0] = {folder!r}; exec({line!r}); print(sys.path[0])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.stdout == f"{above}\n", done


# What somebody who may write the root cannot do.


@pytest.mark.parametrize("where", ["KNOWLEDGE/note.md", "KNOWLEDGE/Ideas", "X_MEMORY.md"])
def test_a_link_in_the_root_reads_nothing_outside(where: str, tmp_path: Path) -> None:
    outside = write_corpus(tmp_path / "outside", {"secret.md": note("secret", "outside words")})
    root = write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": note("a")})
    (root / where).symlink_to(outside if "." not in where else outside / "secret.md")
    for command in (["search", "outside"], ["get", "secret"], ["rebuild", "--from-canonical"]):
        done = run("cortex", *command, "--memory-root", root)
        assert done.returncode == 4 and b"symbolic link" in done.stdout and b"outside words" not in done.stdout


@pytest.mark.parametrize("code", [errno.ELOOP, errno.ENOTDIR, errno.EMLINK], ids=errno.errorcode.get)
def test_a_link_is_one_by_whatever_number_a_system_says_it(code: int, tmp_path: Path) -> None:
    """FreeBSD has EMLINK where the others have ELOOP."""
    error = OSError(code, "words")
    assert walk.unreadable("KNOWLEDGE/a.md", error).changed
    assert "writes follow no link" in failed("KNOWLEDGE/a.md", error).message
    (tmp_path / "a").symlink_to("b")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert str(reading._fault(error, folder, "a")) == "is a symbolic link"
    finally:
        os.close(folder)


# The page itself.


def test_every_claim_names_tests_that_are_there() -> None:
    section = PAGE.split("## Claims", 1)[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        files = re.findall(r"`(tests/test_\w+\.py)`", row)
        assert files, row
        for file in files:
            assert (SOURCE / file).is_file(), file
