"""Nothing acknowledged is lost: many processes writing at once, some of them killed (sections 4 to 7)."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from cortex_tools.governance import add
from tests.governed import IDEA, KNOWLEDGE, MEMORY, PROPOSAL, Item, ask, debris, rows

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"
HOT = "PRINCIPAL_MEMORY.md"
PROCESSES = 16
ROUNDS = 5
CLEAR = ("Lock held: ", "EAT_CAP")


def item(kind: str, word: str) -> Item:
    return {
        "note": {**IDEA, "content": f"loom {word}"},
        "hot": {**MEMORY, "content": f"RULE: {word}"},
        "queue": {**PROPOSAL, "edit": word},
        "new": {**KNOWLEDGE, "name": f"Name {word}", "content": word},
    }[kind]


def work(root: Path, log: Path, name: str, rounds: int, kinds: tuple[str, ...]) -> None:
    """Write `rounds` items of each kind, and keep what was acknowledged and what was refused."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(rounds):
        for kind in kinds:
            word = f"{kind}x{name}x{number}x"
            os.write(descriptor, f'{{"begun":"{word}"}}\n'.encode())
            result = add(item(kind, word), root)
            told = {"done": word} if result["ok"] else {"refused": f"{result['code']} {result['message']}"}
            os.write(descriptor, json.dumps(told).encode() + b"\n")


def start(root: Path, logs: Path, name: str, rounds: int, kinds: tuple[str, ...], delay: float) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            time.sleep(delay)
            work(root, logs / name, name, rounds, kinds)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def told(logs: Path, what: str) -> list[str]:
    lines = [json.loads(line) for log in logs.iterdir() for line in log.read_text().splitlines()]
    return [line[what] for line in lines if what in line]


def found(root: Path) -> dict[str, str]:
    """The text in which each kind of word is to be found."""
    new = sorted((root / "KNOWLEDGE" / "People").glob("*.md")) if (root / "KNOWLEDGE" / "People").exists() else []
    return {
        "note": "".join((root / NOTE).read_text().splitlines(keepends=True)),
        "hot": (root / HOT).read_text(),
        "queue": "".join(json.dumps(row["edit"]) for row in rows(root, "pending-proposals.jsonl")),
        "new": "".join(path.read_text().partition("\n# ")[2].partition("\n\n")[2] for path in new),
    }


def count(root: Path, word: str, texts: dict[str, str]) -> int:
    return texts[word.partition("x")[0]].count(word)


def check_whole(root: Path) -> None:
    """The corpus is sound, every row of every log is whole, and nothing lies about."""
    ask(root, "status")
    assert ask(root, "rebuild", "--from-canonical")["equivalent"] is True
    for log in (root / "OBSERVABILITY").glob("*.jsonl"):
        for line in log.read_text().splitlines():
            assert isinstance(json.loads(line), dict)
    text = (root / NOTE).read_text()
    assert text.count("\n## Appended ") == text.count("<!-- source_session: none · confidence: 1 -->\n\nloom note")
    assert debris(root) == []


def test_sixteen_processes_at_one_note_one_hot_file_and_one_queue(tmp_path: Path) -> None:
    root, logs = tmp_path / "root", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    kinds = ("note", "hot", "queue", "new")
    chosen = random.Random(7)
    pids = [start(root, logs, str(n), ROUNDS, kinds, chosen.uniform(0, 0.05)) for n in range(PROCESSES)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * PROCESSES
    done, refusals = told(logs, "done"), told(logs, "refused")
    assert len(done) + len(refusals) == PROCESSES * ROUNDS * len(kinds)
    assert all(any(words in refusal for words in CLEAR) for refusal in refusals), refusals
    texts = found(root)
    assert {word: count(root, word, texts) for word in done} == dict.fromkeys(done, 1)
    assert len(done) > PROCESSES * ROUNDS * 2
    everything = len(rows(root, "tier-b-writes.jsonl")), len(rows(root, "pending-proposals.jsonl"))
    kind_of = [word.partition("x")[0] for word in done]
    assert everything == (kind_of.count("note") + kind_of.count("new"), kind_of.count("queue"))
    assert texts["hot"].count("RULE: ") == kind_of.count("hot") <= 48
    check_whole(root)


def test_the_same_while_one_after_another_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any moment: what was acknowledged is there once, what was not at most once, and the rest goes on."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # more writes for the same time; no power is cut here
    root, logs = tmp_path / "root", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    chosen = random.Random(11)
    kinds = ("note", "hot", "queue", "new")
    running = [start(root, logs, str(n), 1_000, kinds, 0) for n in range(8)]
    for n in range(8, 48):
        time.sleep(chosen.uniform(0.01, 0.05))
        victim = running.pop(chosen.randrange(len(running)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        running.append(start(root, logs, str(n), 1_000, kinds, 0))
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    done, refusals, begun = told(logs, "done"), told(logs, "refused"), told(logs, "begun")
    assert all(any(words in refusal for words in CLEAR) for refusal in refusals), refusals
    texts = found(root)
    assert {word: count(root, word, texts) for word in done} == dict.fromkeys(done, 1)
    assert all(count(root, word, texts) <= 1 for word in begun)
    assert len(done) > 50
    # The lock of a dead writer lies there until its file is wanted again.
    left = [path.rpartition("name-")[2].removesuffix(".md.lock") for path in debris(root) if "name-" in path]
    for kind, word in [*((kind, f"{kind}xlast") for kind in kinds), *(("new", word) for word in left)]:
        result = add(item(kind, word), root)
        assert result["ok"] or result["code"] == "EAT_CAP"
    check_whole(root)


def test_two_writers_cannot_both_take_the_last_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cortex_tools.contract import limits

    monkeypatch.setattr(limits, "CORPUS_FILES", 6)
    root, logs = tmp_path / "root", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    pids = [start(root, logs, str(n), 2, ("new", "note", "hot"), 0) for n in range(8)]
    for pid in pids:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ask(root, "status")["canonical"]["records"] == 6
    assert all("6 files" in refusal for refusal in told(logs, "refused"))


def test_readers_beside_writers(tmp_path: Path) -> None:
    """A search beside a remember finds a sound corpus, or says that it changed."""
    from cortex_tools.library import Runtime, run_cortex

    root, logs = tmp_path / "root", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    assert add(IDEA, root)["ok"]
    pid = start(root, logs, "w", 8, ("note", "hot", "new"), 0)
    answers = 0
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        status, envelope = run_cortex(["search", "loom"], Runtime(root))
        assert status == 0 or "changed" in envelope["error"]["message"], envelope
        answers += status == 0
    assert answers > 0
