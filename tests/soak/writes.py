"""Governed writes that are struck (tests/soak/strikes.py): nothing that was written is lost, and the next write works.

Each write carries a word of its own.  After each, every file is what it was before, or new and whole: with the word,
with every word that it held, and with its audit row.  A write that answered success is there from then on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cortex_tools.governance import add
from tests.governed import IDEA, KNOWLEDGE, MEMORY, OBS, PROPOSAL, QUEUE, Item, debris, files
from tests.soak import kit
from tests.soak.strikes import Ended, end, signalled, start, strike
from tests.support import run
from tests.test_governance_crash import HOT, STYLE, one_of_each

SHARE = 4
STRIKES_A_STORE = 40  # then it has grown enough
WORD = re.compile(rb"word[0-9]+x")
AUDIT = ("memory-writes.jsonl", "tier-b-writes.jsonl")
ENTRIES = 40  # of hot memory, beyond which a write replaces them
WRITING = "--adapter claude --allow-write"


class Write(NamedTuple):
    """A write: its command line, the word that it carries, and the files that it may change."""

    line: str
    word: bytes
    targets: tuple[str, ...]
    replaces: bool = False  # what was there is meant to go


def search(budget: kit.Budget) -> None:
    while not budget.over():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            root.mkdir()
            one_of_each(root)
            for _ in range(STRIKES_A_STORE):
                if budget.over():
                    return
                budget.tried += 1
                if budget.random.random() < 0.25:
                    together(budget, root)
                else:
                    alone(budget, root)


def alone(budget: kit.Budget, root: Path) -> None:
    write = budget.random.choice(WRITES)(budget, root)
    before = files(root)
    judge(root, before, [(write, strike(budget, write.line))])


def together(budget: kit.Budget, root: Path) -> None:
    """Two writers at once, one of them struck by a signal."""
    writes = [budget.random.choice(ADDING)(budget, root) for _ in range(2)]
    before = files(root)
    processes = [start(["sh", "-c", write.line]) for write in writes]
    number = signalled(budget, processes[0].pid)
    case = ([write.line for write in writes], number.name)
    judge(root, before, [(write, end(process, case)) for write, process in zip(writes, processes, strict=True)])


# --- what is written -----------------------------------------------------------------------------------------------


def word(budget: kit.Budget) -> str:
    return f"word{budget.tried}{budget.random.randrange(1_000, 10_000)}x"


def there(root: Path) -> str:
    return f"--memory-root {shlex.quote(str(root))}"


def remember(root: Path, item: Item, text: str, *targets: str, replaces: bool = False) -> Write:
    command = "propose" if item["type"] == "proposal" else "remember"
    line = f"cortex {command} {shlex.quote(json.dumps(item))} {WRITING} {there(root)}"
    return Write(line, text.encode(), targets, replaces)


def idea(budget: kit.Budget, root: Path) -> Write:
    text, number = word(budget), budget.random.randrange(3)
    item = {**IDEA, "title": f"Idea {number}", "content": text}
    return remember(root, item, text, f"KNOWLEDGE/Ideas/idea-{number}.md")


def person(budget: kit.Budget, root: Path) -> Write:
    text, number = word(budget), budget.random.randrange(3)
    return remember(
        root, {**KNOWLEDGE, "name": f"P {number}", "content": text}, text, f"KNOWLEDGE/People/p-{number}.md"
    )


def memory(budget: kit.Budget, root: Path) -> Write:
    text = word(budget)
    entries = re.findall(r"^RULE: .+$", (root / HOT).read_text(), re.MULTILINE)
    if len(entries) < ENTRIES:
        return remember(root, {**MEMORY, "content": f"RULE: {text}"}, text, HOT)
    kept = [*entries[len(entries) // 2 :], f"RULE: {text}"]
    item = {"type": "memory", "actor": "principal", "op": "set", "entries": kept}
    return remember(root, item, text, HOT, replaces=True)


def proposal(budget: kit.Budget, root: Path) -> Write:
    text = word(budget)
    return remember(root, {**PROPOSAL, "edit": text}, text, QUEUE)


def stage(budget: kit.Budget, root: Path) -> Write:
    """An idea through the stage that writes."""
    write = idea(budget, root)
    options = f"{WRITING} {there(root)}"
    payload = write.line.removeprefix("cortex remember ").removesuffix(options)
    return write._replace(line=f"printf %s {payload} | cortex-write remember {options} | cortex-envelope remember")


def decision(budget: kit.Budget, root: Path) -> Write:
    pending = [row for row in queue(root).values() if row["status"] == "pending"]
    if not pending:
        return proposal(budget, root)
    row, act = budget.random.choice(pending), budget.random.choice(("approve", "approve", "reject"))
    line = f"cortex-proposals {act} {row['id']} {there(root)}"
    return Write(line, row["edit"].encode(), (QUEUE, STYLE) if act == "approve" else (QUEUE,))


def restoration(budget: kit.Budget, root: Path) -> Write:
    names = sorted(os.listdir(root / OBS / "memory-snapshots"))
    name = budget.random.choice([name for name in names if name.startswith("PRINCIPAL_MEMORY")])
    return Write(f"cortex-restore restore {name} {there(root)}", b"", (HOT,), replaces=True)


ADDING: tuple[Callable[[kit.Budget, Path], Write], ...] = (idea, person, memory, proposal)
WRITES = (*ADDING, stage, decision, decision, restoration)


# --- what must hold ------------------------------------------------------------------------------------------------


def queue(root: Path) -> dict[str, Any]:
    return {row["id"]: row for row in map(json.loads, (root / QUEUE).read_text().splitlines())}


def judge(root: Path, before: dict[str, bytes], ended: list[tuple[Write, Ended]]) -> None:
    after, case = files(root), ended[0][1].case
    wrong = problem(before, after, ended) or (heal(root) if any(done.status for _, done in ended) else "")
    if wrong:
        said = [(done.status, done.stdout[:300], done.stderr[:300]) for _, done in ended]
        raise kit.Finding(f"{wrong}: {said}", case)


def governed(path: str) -> bool:
    """Whether a file is no log, no snapshot and nothing that a struck writer left for the next to clear away."""
    return path == QUEUE or (not path.startswith(f"{OBS}/") and not path.endswith((".tmp", ".lock")))


def problem(before: dict[str, bytes], after: dict[str, bytes], ended: list[tuple[Write, Ended]]) -> str:
    rows = [row for log in AUDIT for row in after.get(f"{OBS}/{log}", b"").splitlines()]
    hashes = set(re.findall(rb'"sha256":"([0-9a-f]{64})"', b"\n".join(rows)))
    changed = {path for path in {*before, *after} if governed(path) and before.get(path) != after.get(path)}
    allowed = {path for write, _ in ended for path in write.targets}
    words = {write.word for write, _ in ended}
    if changed - allowed:
        return f"another file changed: {changed - allowed}"
    for path in changed:
        old, new = before.get(path, b""), after.get(path)
        if new is None:
            return f"a file is gone: {path}"
        held, now = set(WORD.findall(old)), set(WORD.findall(new))
        if held - now and not any(write.replaces for write, _ in ended):
            return f"what was written is lost from {path}"
        if now - held - words and not any(write.replaces for write, _ in ended):
            return f"words from nowhere in {path}"
        if path == QUEUE:
            try:
                told = [json.loads(line) for line in new.splitlines()]
            except ValueError:
                return "a row of the queue is torn"
            was = {row["id"]: row["edit"] for row in map(json.loads, old.splitlines())}
            if was.items() - {row["id"]: row["edit"] for row in told}.items():
                return "a proposal is lost"
        elif hashlib.sha256(new).hexdigest().encode() not in hashes:
            return f"{path} changed without its audit row, or is not whole"
    for path, held_before in before.items():
        if "memory-snapshots/" in path and after.get(path, held_before) != held_before:
            return f"a snapshot changed: {path}"
    for write, done in ended:
        refused = b"_refused" in done.stdout or b"_refused" in done.stderr
        if refused and len(ended) == 1 and changed:
            return "a refusal that changed something"
        success = done.status == 0 or (b'"ok":true' in done.stdout and done.stdout.endswith(b"}\n"))
        if success and not any(write.word in after.get(path, b"") for path in write.targets):
            return "a success that is not there"
        if done.status == 0 and not done.stdout.endswith(b"\n"):
            return "status 0 without an answer"
    return ""


def heal(root: Path) -> str:
    """The next writes of each kind work, and clear away what is left."""
    for number in range(3):
        for item in (
            {**IDEA, "title": f"Idea {number}", "content": "next"},
            {**KNOWLEDGE, "name": f"P {number}", "content": "next"},
        ):
            result = add(item, root)
            if not result["ok"]:
                return f"the next write does not work: {result}"
    stamp = f"next {time.time_ns()}"
    for item in ({**MEMORY, "content": f"RULE: {stamp}"}, {**PROPOSAL, "edit": stamp}):
        result = add(item, root)
        if not result["ok"] and "EAT_CAP" not in result["message"]:
            return f"the next write does not work: {result}"
    done = run("cortex-proposals", "approve", result["detail"]["id"], "--memory-root", root)
    if done.returncode:
        return f"the next decision does not work: {done}"
    if debris(root):
        return f"debris: {debris(root)}"
    done = run("cortex", "status", "--memory-root", root)
    return f"the corpus is not sound: {done}" if done.returncode else ""


if __name__ == "__main__":
    kit.main(search)
