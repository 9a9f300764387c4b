"""The golden cases: corpora, command lines, and what the contract's reference answered.

Each cases/NAME.json is {"corpus": {...}, "cases": [...]}.  A case has `args` ($ROOT stands for the
corpus), perhaps `env`, the `exit` status, and either `stdout` (a whole successful envelope, to the
byte) or the failure's `code` with words that its message must mention (`mentions`).
Expectations are the reference's: they are not edited to fit the code.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return golden


def materialise(corpus: dict[str, Any], root: Path) -> None:
    """Write the corpus below the new folder `root`."""
    root.mkdir(parents=True)
    for name in corpus["dirs"]:
        (root / name).mkdir(parents=True, exist_ok=True)
    contents = {name: text.encode() for name, text in corpus["files"].items()}
    contents |= {name: base64.b64decode(text) for name, text in corpus["base64"].items()}
    for name, data in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    for name, target in corpus["symlinks"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    for name in corpus["fifos"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)


def difference(case: dict[str, Any], status: int, line: str, root: str) -> str:
    """What differs from the expectation of `case`; the empty string where it holds."""
    line = line.replace(root, "$ROOT")
    if status != case["exit"]:
        return f"status {status}, expected {case['exit']}: {line[:300]}"
    if "stdout" in case:
        return "" if line == case["stdout"] else f"got      {line}\nexpected {case['stdout']}"
    envelope = json.loads(line)
    if set(envelope) != {"schema", "ok", "command", "data", "error"} or envelope["ok"] or envelope["data"] is not None:
        return f"no failure envelope: {line[:300]}"
    if envelope["error"]["code"] != case["code"]:
        return f"code {envelope['error']['code']}, expected {case['code']}"
    message = envelope["error"]["message"]
    missing = [word for word in case.get("mentions", []) if word not in message]
    return f"message {message!r} does not mention {missing}" if missing else ""
