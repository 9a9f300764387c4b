"""What the tests of governed writes share: items, a fixed clock, trees as values, refusals that leave no trace."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.governance import add
from cortex_tools.library import Runtime, run_cortex

Item = dict[str, Any]
Tree = dict[str, tuple[Any, ...]]

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-03T00:00:00.000Z"
STAMP = "2026-01-02T03-04-05-678Z"
OBS = "OBSERVABILITY"
QUEUE = f"{OBS}/pending-proposals.jsonl"

IDEA: Item = {"type": "idea", "title": "Loom tension", "content": "Warp threads want an even pull."}
KNOWLEDGE: Item = {"type": "knowledge", "entity_type": "person", "name": "Ada", "content": "Wrote note G."}
MEMORY: Item = {"type": "memory", "actor": "principal", "content": "RULE: keep the loom oiled"}
PROPOSAL: Item = {
    "type": "proposal",
    "target_file": "PRINCIPAL/WRITINGSTYLE.md",
    "edit": "Short sentences.",
    "rationale": "Said so twice.",
    "confidence": 0.9,
}
ITEMS = {"idea": IDEA, "knowledge": KNOWLEDGE, "memory": MEMORY, "proposal": PROPOSAL}


def ms(text: str) -> int:
    value = parse_ms(text)
    assert value is not None
    return value


def write(root: Path, item: Any, now: str = NOW) -> Item:
    """The result of a write that is to succeed."""
    result = add(item, root, ms(now))
    assert result["ok"] is True, result
    return result


def refused(root: Path, item: Any, code: str, *mentions: str, now: str = NOW) -> str:
    """The words of a refusal with this code, which has left the tree as it was."""
    before = tree(root)
    result = add(item, root, ms(now))
    assert result["ok"] is False and result["code"] == code, result
    assert set(result) == {"ok", "code", "message"}
    for word in mentions:
        assert word in result["message"], result
    assert tree(root) == before
    message: str = result["message"]
    return message


def tree(root: Path) -> Tree:
    """Everything below `root`, links not followed: kind, mode, and bytes or where a link points."""
    found: Tree = {}
    for folder, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            held: Any = None
            if stat.S_ISLNK(status.st_mode):
                held = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                held = Path(path).read_bytes()
            found[os.path.relpath(path, root)] = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), held)
    return found


def files(root: Path) -> dict[str, bytes]:
    """The regular files below `root` and their bytes."""
    return {path: held for path, (kind, _, held) in tree(root).items() if kind == stat.S_IFREG}


def rows(root: Path, log: str) -> list[Item]:
    """The rows of a log below OBSERVABILITY; an absent one has none."""
    path = root / OBS / log
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ask(root: Path, *argv: str) -> Any:
    """The data of a contract command that is to succeed, `now` being a day after the writes."""
    status, envelope = run_cortex([*argv, "--memory-root", str(root)], Runtime(now_ms=ms(LATER)))
    assert status == 0, envelope
    return envelope["data"]


def content_of(root: Path, path: str) -> str:
    """What get answers as the content of the record at `path`."""
    for item in ask(root, "timeline", "--anchor", LATER, "--before", "100", "--page-size", "100")["items"]:
        if item["provenance"]["path"] == path:
            content: str = ask(root, "get", item["id"])["items"][0]["content"]
            return content
    raise AssertionError(f"no record at {path}")


def debris(root: Path) -> list[str]:
    """Temporary and lock files that lie about."""
    return [path for path in tree(root) if path.endswith((".tmp", ".lock"))]
