"""What the tests share: the installed executables, writing corpora, running commands and pipelines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cortex_tools
from cortex_tools.contract.executables import EXECUTABLES

BIN = Path(os.environ.get("CORTEX_TEST_BIN") or Path(sys.executable).parent)  # the installed executables
PACKAGE = Path(cortex_tools.__file__).parent
SAMPLE = PACKAGE / "sample"
SCHEMAS = PACKAGE / "schemas"
SOURCE = Path(__file__).resolve().parent.parent  # the project; the package that is tested may lie elsewhere

NEEDS_DEV_FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")

# What pip says where there is no index to ask.
NO_INDEX = ("No matching distribution", "Connection", "connection", "Temporary failure", "timed out")


def source_copy(target: Path, *, tests: bool) -> Path:
    """The sources by themselves, since building leaves files beside them; without what was built before."""
    skipped = [".*", "build", "dist", "*.egg-info", "__pycache__", *([] if tests else ["tests"])]
    return Path(shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns(*skipped)))


def environment(**changes: str | None) -> dict[str, str]:
    """A clean environment with the installed executables first on the path; None removes a variable."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CORTEX_", "PYTEST_"))}
    env["PATH"] = f"{BIN}{os.pathsep}{env.get('PATH', os.defpath)}"
    for key, value in changes.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env


def run(
    *arguments: str | bytes | os.PathLike[str], input: bytes = b"", env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run an installed executable (its name first) and give its output as bytes."""
    name, *rest = arguments
    return subprocess.run(
        [BIN / os.fsdecode(name), *rest],
        input=input,
        capture_output=True,
        env=env or environment(),
        timeout=120,
        **options,
    )


def shell(
    script: str, *, env: dict[str, str] | None = None, input: bytes = b"", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a POSIX shell script with the installed executables on its path."""
    return subprocess.run(
        ["sh", "-c", script], input=input, capture_output=True, env=env or environment(), timeout=120, **options
    )


def with_options(name: str, arguments: list[Any], *options: Any) -> list[Any]:
    """`options` added to `arguments`: before them where they are a foreign command, which ends the options."""
    return [*options, *arguments] if EXECUTABLES[name].ends_options else [*arguments, *options]


def write_corpus(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write `files` (path below `root` to content) and give `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def note(id: str, body: str = "loom body", **fields: str) -> str:
    """A small Markdown note."""
    head = {"id": id, "title": f"Title {id}", "created": "2024-01-01", **fields}
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in head.items()) + f"---\n{body}\n"


def row(id: str, **fields: Any) -> str:
    """A JSONL row, line feed included."""
    base = {"id": id, "type": "log", "title": f"Row {id}", "created": "2024-01-01", "updated": "2024-01-02"}
    return json.dumps({**base, "content": "loom row", **fields}, ensure_ascii=False) + "\n"


def envelope(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """The envelope on standard output; fails the test where there is not exactly one line of JSON."""
    assert done.stdout.count(b"\n") == 1 and done.stdout.endswith(b"\n"), done
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def failure(done: subprocess.CompletedProcess[bytes], status: int, code: str, *mentions: str) -> str:
    """The message of a failure envelope with this status and code, mentioning all of `mentions`."""
    body = envelope(done)
    assert done.returncode == status, body
    assert body["ok"] is False and body["data"] is None and body["error"]["code"] == code, body
    message: str = body["error"]["message"]
    for word in mentions:
        assert word in message, message
    return message
