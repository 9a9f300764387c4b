"""Locks: live, dead, foreign, unreadable; waiting, breaking, logging (section 7)."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract import limits
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.governance import add, locks, store
from tests.governed import (
    IDEA,
    ITEMS,
    KNOWLEDGE,
    LATER,
    MEMORY,
    NOW,
    OBS,
    PROPOSAL,
    QUEUE,
    Item,
    debris,
    ms,
    refused,
    rows,
    tree,
    write,
)

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"
TARGETS = {"idea": NOTE, "memory": "PRINCIPAL_MEMORY.md", "proposal": QUEUE, "knowledge": "KNOWLEDGE/People/ada.md"}
HOST = socket.gethostname()
LOG = "memory-locks.jsonl"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.15)


@pytest.fixture(scope="module")
def gone() -> int:
    """The pid of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def other() -> Iterator[int]:
    """The pid of another live process."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process.pid
    process.kill()
    process.wait()


def ago(seconds: float) -> str:
    return format_ms(int((time.time() - seconds) * 1000))


def plant(root: Path, target: str, content: str | bytes | None, age: float = 0) -> Path:
    """A lock file as another program would have left it; None makes a folder of it."""
    path = root / f"{target}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    if age:
        os.utime(path, (time.time() - age, time.time() - age))
    return path


def lock(pid: Any, host: Any = HOST, ts: Any = None) -> str:
    return json.dumps({"pid": pid, "host": host, "ts": ago(1) if ts is None else ts})


def held(root: Path, item: Item, target: str, pid: Any = "unknown") -> str:
    """The words of the refusal, which leaves all but the log of locks as it was."""
    before = tree(root)
    result = add(item, root, ms(NOW))
    assert result["ok"] is False and result["code"] == "EWRITE_FAILED", result
    assert result["message"].startswith(f"Lock held: {target} by pid {pid}"), result
    after = tree(root)
    allowed = {OBS, f"{OBS}/{LOG}", "KNOWLEDGE"}
    assert {path: now for path, now in after.items() if path not in allowed} == {
        path: was for path, was in before.items() if path not in allowed
    }
    assert rows(root, LOG)[-1]["event"] == "refused" and rows(root, LOG)[-1]["path"] == target
    message: str = result["message"]
    return message


@pytest.mark.parametrize("kind", ITEMS)
def test_a_live_holder_is_waited_for_and_never_broken(kind: str, other: int, tmp_path: Path) -> None:
    target = TARGETS[kind]
    path = plant(tmp_path, target, lock(other, ts="2000-01-01T00:00:00.000Z"), age=10**6)
    held(tmp_path, ITEMS[kind], target, other)
    assert path.exists()
    assert rows(tmp_path, LOG) == [{"ts": NOW, "event": "refused", "path": target, "pid": other, "host": HOST}]
    path.unlink()
    write(tmp_path, ITEMS[kind])
    assert debris(tmp_path) == []


def test_the_holder_may_be_this_very_process(tmp_path: Path) -> None:
    plant(tmp_path, NOTE, lock(os.getpid()))
    held(tmp_path, IDEA, NOTE, os.getpid())


def test_a_lock_that_is_given_up_in_time(tmp_path: Path, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_SECONDS", 20)
    path = plant(tmp_path, NOTE, lock(other))
    timer = threading.Timer(0.2, path.unlink)
    timer.start()
    write(tmp_path, IDEA)
    timer.join()
    assert rows(tmp_path, LOG) == []


def test_while_one_note_is_locked_others_in_its_folder_are_not(
    tmp_path: Path, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, NOTE, lock(other))
    monkeypatch.setattr(limits, "LOCK_SECONDS", 2)
    results: list[Item] = []
    waiting = threading.Thread(target=lambda: results.append(add(IDEA, tmp_path)))
    waiting.start()
    for number in range(5):
        assert add({**IDEA, "title": f"other {number}"}, tmp_path)["ok"]
    assert results == []
    waiting.join()
    assert results[0]["message"].startswith(f"Lock held: {NOTE} by pid {other}")


@pytest.mark.parametrize("kind", ITEMS)
def test_a_dead_holder_s_lock_is_broken_at_once(kind: str, gone: int, tmp_path: Path) -> None:
    plant(tmp_path, TARGETS[kind], lock(gone))
    write(tmp_path, ITEMS[kind])
    row = {"ts": NOW, "event": "broken", "path": TARGETS[kind], "pid": gone, "host": HOST, "reason": "gone"}
    assert rows(tmp_path, LOG) == [row]
    assert debris(tmp_path) == []


def test_a_holder_that_has_ended_but_was_not_waited_for_is_dead(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    while not locks._is_zombie(process.pid):
        time.sleep(0.01)
    plant(tmp_path, NOTE, lock(process.pid))
    write(tmp_path, IDEA)
    process.wait()


UNKNOWN: dict[str, str | bytes | None] = {
    "foreign host": json.dumps({"pid": 1, "host": "elsewhere.example", "ts": ""}),
    "empty": "",
    "garbage": b"\xff\x00{",
    "null": "null",
    "list": "[1]",
    "deep": "[" * 5_000,
    "no pid": json.dumps({"host": HOST}),
    "pid of no kind": json.dumps({"pid": True, "host": HOST}),
    "pid zero": json.dumps({"pid": 0, "host": HOST}),
    "negative pid": json.dumps({"pid": -1, "host": HOST}),
    "huge pid": json.dumps({"pid": 10**30, "host": HOST}),
    "text pid": json.dumps({"pid": "1", "host": HOST}),
    "no host": json.dumps({"pid": 1}),
    "folder": None,
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_judged_is_broken_only_after_five_minutes(case: str, tmp_path: Path) -> None:
    content = UNKNOWN[case]
    path = plant(tmp_path, NOTE, content, age=290)
    pid = 1 if case in ("foreign host", "no host") else "unknown"
    assert str(path.name) in held(tmp_path, IDEA, NOTE, pid)
    assert path.exists()
    os.utime(path, (time.time() - 310, time.time() - 310))
    write(tmp_path, IDEA)
    assert rows(tmp_path, LOG)[-1]["reason"] == "stale" and debris(tmp_path) == []


def test_the_age_of_a_foreign_lock_is_what_it_says(tmp_path: Path) -> None:
    path = plant(tmp_path, NOTE, lock(7, "elsewhere", ago(290)), age=1_000)
    assert "on elsewhere" in held(tmp_path, IDEA, NOTE, 7)
    path.write_text(lock(7, "elsewhere", ago(310)))
    write(tmp_path, IDEA)


@pytest.mark.parametrize("ts", ["2999-01-01T00:00:00.000Z", "", "yesterday", 5, None])
def test_a_time_in_the_future_or_none_at_all_leaves_the_file_s_own(ts: Any, tmp_path: Path) -> None:
    content = json.dumps({"pid": 7, "host": "elsewhere", "ts": ts})
    path = plant(tmp_path, NOTE, content)
    held(tmp_path, IDEA, NOTE, 7)
    os.utime(path, (time.time() - 310, time.time() - 310))
    write(tmp_path, IDEA)


def test_a_file_from_the_future_is_not_broken(tmp_path: Path) -> None:
    plant(tmp_path, NOTE, "", age=-(10**6))
    held(tmp_path, IDEA, NOTE)


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    path = plant(tmp_path, NOTE, None)
    (path / "x").write_text("")
    os.utime(path, (0, 0))
    refused(tmp_path, IDEA, "EWRITE_FAILED", NOTE)


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "hard link"])
def test_what_can_be_no_lock_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE" / "Ideas").mkdir(parents=True)
    path, outside = tmp_path / f"{NOTE}.lock", tmp_path / "outside"
    outside.write_text(lock(1))
    actions: dict[str, Callable[[], Any]] = {
        "link": lambda: path.symlink_to(outside),
        "dangling": lambda: path.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(path),
        "hard link": lambda: os.link(outside, path),
    }
    actions[kind]()
    refused(tmp_path, IDEA, "EWRITE_FAILED", f"{NOTE}.lock", "remove")


def test_the_lock_file_holds_who_and_when_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Item] = []

    def look(kind: str, path: str) -> None:
        for lock_file in tmp_path.rglob("*.lock"):
            seen.append(json.loads(lock_file.read_bytes()))

    monkeypatch.setattr(store, "before", look)
    write(tmp_path, IDEA)
    assert len(seen) > 10
    assert all(one == {"pid": os.getpid(), "host": HOST, "ts": NOW} for one in seen)
    assert debris(tmp_path) == []


def test_every_write_holds_the_folder_and_the_lock_file_when_it_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for item in (*ITEMS.values(), {**MEMORY, "content": "RULE: second"}):
        held_then: list[bool] = []

        def look(kind: str, path: str, held_then: list[bool] = held_then) -> None:
            if (
                kind in ("rename", "link")
                and not path.endswith(".lock")
                and not path.endswith(("writes.jsonl", "Z.md"))
            ):
                descriptor = os.open((tmp_path / path).parent, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    held_then.append(False)
                except BlockingIOError:
                    held_then.append((tmp_path / f"{path}.lock").exists())
                finally:
                    os.close(descriptor)

        monkeypatch.setattr(store, "before", look)
        write(tmp_path, item)
        assert all(held_then) and (held_then or item is PROPOSAL)


@pytest.mark.parametrize(
    ("item", "folder"),
    [
        (IDEA, "KNOWLEDGE/Ideas"),
        (KNOWLEDGE, "KNOWLEDGE/People"),
        (IDEA, "KNOWLEDGE"),
        (MEMORY, "."),
        (MEMORY, OBS),
        (IDEA, OBS),
        (PROPOSAL, OBS),
        ({**MEMORY, "content": "RULE: 2"}, f"{OBS}/memory-snapshots"),
    ],
)
def test_the_folder_s_lock_of_another_process_of_ours(item: Item, folder: str, tmp_path: Path) -> None:
    for each in ITEMS.values():
        write(tmp_path, each)
    (tmp_path / OBS / "memory-snapshots").mkdir()
    before = tree(tmp_path)
    descriptor = os.open(tmp_path / folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    result = add(item, tmp_path, ms(NOW))
    assert result["code"] == "EWRITE_FAILED" and result["message"].startswith("Lock held: "), result
    os.close(descriptor)
    after = tree(tmp_path)
    assert after.pop(f"{OBS}/{LOG}") and after == before
    assert [one["event"] for one in rows(tmp_path, LOG)] == ["refused"]
    write(tmp_path, item)


def test_a_lock_refusal_in_an_empty_root_leaves_it_sound(tmp_path: Path, other: int) -> None:
    """Its row is a log, so KNOWLEDGE stays, too."""
    plant(tmp_path, "PRINCIPAL_MEMORY.md", lock(other))
    held(tmp_path, MEMORY, "PRINCIPAL_MEMORY.md", other)
    assert set(tree(tmp_path)) == {"KNOWLEDGE", OBS, f"{OBS}/{LOG}", "PRINCIPAL_MEMORY.md.lock"}


def test_a_lock_that_changes_hands_while_it_is_broken_is_given_back(
    gone: int, other: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other program takes the dead lock between our judgement and our breaking it."""
    path = plant(tmp_path, NOTE, lock(gone))

    def intrude(kind: str, where: str) -> None:
        if kind == "rename" and where.endswith(".tmp"):
            store.before = None
            path.unlink()
            path.write_text(lock(other))

    monkeypatch.setattr(store, "before", intrude)
    result = add(IDEA, tmp_path)
    assert result["message"].startswith(f"Lock held: {NOTE} by pid {other}"), result
    assert json.loads(path.read_text())["pid"] == other and debris(tmp_path) == [f"{NOTE}.lock"]


def test_two_recoverers_at_once(gone: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One breaks the dead lock, the other waits for it: both writes are there."""
    monkeypatch.setattr(limits, "LOCK_SECONDS", 20)
    for attempt in range(5):
        root = tmp_path / str(attempt)
        root.mkdir()
        plant(root, NOTE, lock(gone))
        both = threading.Barrier(2)
        results: list[Item] = []

        def recover(word: str, root: Path = root, both: threading.Barrier = both, got: list[Item] = results) -> None:
            both.wait()
            got.append(add({**IDEA, "content": word}, root))

        threads = [threading.Thread(target=recover, args=(word,)) for word in ("first", "second")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one["ok"] for one in results] == [True, True], results
        text = (root / NOTE).read_text()
        assert text.count("first") == text.count("second") == 1 and debris(root) == []
        assert [one["event"] for one in rows(root, LOG)] == ["broken"]


def test_a_lock_file_that_could_not_be_removed_is_no_obstacle_to_its_own_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(kind: str, path: str) -> None:
        if kind == "unlink" and path.endswith(".lock"):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(store, "before", fail)
    result = write(tmp_path, IDEA)
    assert "Input/output error" in result["detail"]["warnings"][0] and debris(tmp_path) == [f"{NOTE}.lock"]
    monkeypatch.setattr(store, "before", None)
    write(tmp_path, IDEA, LATER)
    assert debris(tmp_path) == []
