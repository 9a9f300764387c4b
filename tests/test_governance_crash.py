"""Crash safety: the N-th file operation fails, or the process is killed there, for every N (section 7)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.files.root import pin_root
from cortex_tools.governance import add, proposals, restoring, store
from cortex_tools.governance.refusal import Refusal
from cortex_tools.governance.session import governed
from tests.governed import (
    IDEA,
    LATER,
    MEMORY,
    NOW,
    OBS,
    PROPOSAL,
    QUEUE,
    Item,
    ask,
    debris,
    files,
    ms,
    rows,
    tree,
    write,
)
from tests.support import BIN, NEEDS_DEV_FULL, environment, run, write_corpus

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"
HOT = "PRINCIPAL_MEMORY.md"
STYLE = "USER/PRINCIPAL/WRITINGSTYLE.md"
SNAPSHOT = "PRINCIPAL_MEMORY__2026-01-03T00-00-00-000Z.md"


def nothing(root: Path) -> None:
    pass


def one_of_each(root: Path) -> None:
    write(root, IDEA)
    write(root, MEMORY)
    write(root, {**MEMORY, "content": "RULE: second"}, LATER)
    (root / STYLE).parent.mkdir(parents=True)
    (root / STYLE).write_text("Style.\n")
    write(root, PROPOSAL)


def item(item: Item) -> Callable[[Path], Any]:
    return lambda root: add(item, root, ms(LATER))


def person(work: Callable[[Any], Any]) -> Callable[[Path], Any]:
    """A person's side of a write, answered as add answers."""

    def act(root: Path) -> Item:
        pinned = pin_root(os.fsencode(root))
        try:
            governed(pinned, os.fsencode(root), ms(LATER), work)
        except Refusal as refusal:
            return {"ok": False, "code": refusal.code, "message": refusal.message}
        finally:
            pinned.close()
        return {"ok": True}

    return act


def queued_id(root_session: Any) -> str:
    identifier = proposals.rows_of(root_session)[0].id
    assert identifier is not None
    return identifier


def decide_another(root: Path) -> None:
    """A decision that stands looks at no lock any more; this does."""
    if (root / STYLE).exists():
        identifier = write(root, {**PROPOSAL, "edit": "Another."})["detail"]["id"]
        assert person(lambda session: proposals.approve(session, identifier))(root)["ok"]


# Name: what is there before, the write, and the file it is about.
Scenario = tuple[Callable[[Path], None], Callable[[Path], Any], str]
SCENARIOS: dict[str, Scenario] = {
    "first idea": (nothing, item(IDEA), NOTE),
    "idea appended": (one_of_each, item({**IDEA, "content": "more"}), NOTE),
    "first memory": (nothing, item(MEMORY), HOT),
    "memory added": (one_of_each, item({**MEMORY, "content": "RULE: third"}), HOT),
    "first proposal": (nothing, item(PROPOSAL), QUEUE),
    "proposal queued": (one_of_each, item({**PROPOSAL, "edit": "other"}), QUEUE),
    "approve": (one_of_each, person(lambda session: proposals.approve(session, queued_id(session))), STYLE),
    "reject": (one_of_each, person(lambda session: proposals.reject(session, queued_id(session), "no")), QUEUE),
    "restore": (one_of_each, person(lambda session: restoring.restore(session, SNAPSHOT)), HOT),
}
LOGS = ("memory-writes.jsonl", "tier-b-writes.jsonl")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a sync does is not seen here; that it is asked for is: it is an operation like any other."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


class Injector:
    """Counts operations and acts at the N-th."""

    def __init__(self, number: int, act: Callable[[], None], *, onwards: bool = False) -> None:
        self.seen = 0
        self.number = number
        self.act = act
        self.onwards = onwards
        self.hit: str | None = None

    def __call__(self, kind: str, path: str) -> None:
        self.seen += 1
        if self.seen == self.number or (self.onwards and self.seen > self.number):
            self.hit = self.hit or f"{kind} {path}"
            self.act()


def fail(number: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(number, os.strerror(number))

    return act


def copies(tmp_path: Path, setup: Callable[[Path], None]) -> Callable[[], Path]:
    """A maker of fresh copies of what `setup` builds."""
    base = tmp_path / "base"
    base.mkdir()
    setup(base)
    root = tmp_path / "root"

    def fresh() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(base, root)
        return root

    return fresh


def attempt(root: Path, act: Callable[[Path], Any], injector: Injector, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(store, "before", injector)
    try:
        return act(root)
    except CortexError as error:
        assert error.code == "internal_error", error.message
        return {"ok": None, "message": error.message}
    finally:
        monkeypatch.setattr(store, "before", None)


def check_audit(root: Path, target: str, before: bytes | None) -> None:
    """A changed file has its row, and the row is whole; a row more than changes is one that was interrupted."""
    data = files(root).get(target)
    if data is None or data == before or target == QUEUE:
        return
    written = [row for log in LOGS for row in rows(root, log) if not row.get("rejected")]
    assert hashlib.sha256(data).hexdigest() in [row["sha256"] for row in written]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES], ids=errno.errorcode.get)
def test_the_nth_operation_fails(
    number: int, scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup, act, target = scenario
    fresh = copies(tmp_path, setup)
    refusals = 0
    for nth in range(1, 1_000):
        root = fresh()
        before = tree(root)
        injector = Injector(nth, fail(number))
        result = attempt(root, act, injector, monkeypatch)
        if injector.hit is None:
            assert result["ok"] is True
            break
        if result["ok"] is False:
            refusals += 1
            assert result["code"] == "EWRITE_FAILED" and os.strerror(number) in result["message"], (
                injector.hit,
                result,
            )
            assert tree(root) == before, injector.hit
        else:  # after the rename: it is there, though not confirmed, or not tidied up
            assert tree(root)[target] != before.get(target), injector.hit
            held = before.get(target)
            check_audit(root, target, held[2] if held else None)
            assert result["ok"] is True or "confirm" in result["message"] or "again" in result["message"]
        again = act(root)
        assert again["ok"] or "already" in again["message"], (injector.hit, again)
        decide_another(root)
        assert debris(root) == [], injector.hit
        if nth % 10 == 0:
            ask(root, "status")
    assert refusals > 15


def test_from_the_nth_operation_on_all_fail(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is gone for good, so nothing can be tidied up: the file is old or new, and the next write heals."""
    setup, act, target = scenario
    fresh = copies(tmp_path, setup)
    for nth in range(1, 1_000):
        root = fresh()
        before = tree(root).get(target)
        injector = Injector(nth, fail(errno.EIO), onwards=True)
        result = attempt(root, act, injector, monkeypatch)
        if injector.hit is None:
            break
        if result["ok"] is False:
            assert tree(root).get(target) == before or target == QUEUE
        again = act(root)
        assert again["ok"] or "already" in again["message"], (injector.hit, again)
        decide_another(root)
        assert debris(root) == [], injector.hit
        ask(root, "status")
    assert nth > 20


def test_the_process_is_killed_at_the_nth_operation(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup, act, target = scenario
    fresh = copies(tmp_path, setup)
    first = fresh()
    assert act(first)["ok"]
    new = files(first)[target]
    for nth in range(1, 1_000):
        root = fresh()
        before = files(root).get(target)
        pid = os.fork()
        if pid == 0:
            store.before = Injector(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
            os._exit(0 if act(root)["ok"] else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0:
            break
        assert status == -signal.SIGKILL, nth
        assert files(root).get(target) in (before, new), nth
        check_audit(root, target, before)
        ask(root, "status")  # readers are not disturbed by what lies about
        again = act(root)
        assert again["ok"] or "already" in again["message"], (nth, again)
        decide_another(root)
        assert debris(root) == [], nth
        for log in (*LOGS, "memory-locks.jsonl"):
            rows(root, log)  # every line whole
    assert nth > 20


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
def test_a_writer_that_is_stopped_ends_its_write_when_it_goes_on(
    then: signal.Signals, scenario: Scenario, tmp_path: Path
) -> None:
    """Or, killed where it stands, leaves the old file or the new one; the next write waits for nobody."""
    setup, act, target = scenario
    fresh = copies(tmp_path, setup)
    for nth in range(1, 1_000, 6):
        root = fresh()
        before = files(root).get(target)
        pid = os.fork()
        if pid == 0:
            store.before = Injector(nth, lambda: os.kill(os.getpid(), signal.SIGSTOP))
            os._exit(0 if act(root)["ok"] else 1)
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            break
        ask(root, "status")  # readers are not held up
        os.kill(pid, then)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        held = files(root).get(target)
        if then == signal.SIGCONT:
            assert code == 0 and held != before and debris(root) == [], nth
        check_audit(root, target, before)
        again = act(root)
        assert again["ok"] or "already" in again["message"], (nth, again)
        decide_another(root)
        assert debris(root) == [], nth
    assert nth > 6


def test_an_approval_that_was_interrupted_is_applied_once(tmp_path: Path) -> None:
    """Killed between the two renames: taken again, the text is not added twice."""
    setup, act, _ = SCENARIOS["approve"]
    fresh = copies(tmp_path, setup)
    applied = 0
    for nth in range(1, 1_000):
        root = fresh()
        pid = os.fork()
        if pid == 0:
            store.before = Injector(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
            os._exit(0 if act(root)["ok"] else 1)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            break
        between = (
            b"Short" in (root / STYLE).read_bytes() and rows(root, "pending-proposals.jsonl")[0]["status"] == "pending"
        )
        applied += between
        act(root)
        assert (root / STYLE).read_text() == "Style.\n\nShort sentences.\n"
        assert rows(root, "pending-proposals.jsonl")[0]["status"] == "approved"
    assert applied > 0


@pytest.mark.parametrize("size", [0, 10, 60, 200, 250, 2_000])
def test_a_write_cut_short_by_the_system(size: int, tmp_path: Path) -> None:
    """A real limit on the size of files: part of a write goes through, and is taken back."""
    root = tmp_path / "root"
    root.mkdir()
    script = (
        "import json, resource, signal, sys; from pathlib import Path; from cortex_tools.governance import add\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))\n"
        f"print(json.dumps(add({IDEA!r}, {str(root)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    if result["ok"]:
        assert size == 2_000 and set(files(root)) == {NOTE, f"{OBS}/tier-b-writes.jsonl"}
    else:
        assert result["code"] == "EWRITE_FAILED" and tree(root) == {}


@NEEDS_DEV_FULL
def test_an_answer_that_cannot_be_printed_is_no_refusal(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [
                BIN / "cortex",
                "remember",
                json.dumps(IDEA),
                "--adapter",
                "claude",
                "--allow-write",
                "--memory-root",
                tmp_path,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1 and b"cannot be written" in done.stderr
    assert (tmp_path / NOTE).exists()


def test_an_interrupt_undoes_what_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    write(tmp_path, IDEA, NOW)
    before = tree(tmp_path)
    for nth in range(1, 40, 3):
        monkeypatch.setattr(store, "before", Injector(nth, interrupt))
        with pytest.raises(KeyboardInterrupt):
            add({**IDEA, "content": "x"}, tmp_path)
        monkeypatch.setattr(store, "before", None)
        assert tree(tmp_path) == before, nth


INTERRUPTED = """
import os, signal, sys
real, interrupted = getattr(os, sys.argv[1]), []
def and_then_interrupted(*arguments, **keywords):
    real(*arguments, **keywords)
    if os.fsdecode(arguments[1]).endswith("_MEMORY.md") and not interrupted.append(1) and len(interrupted) == 1:
        os.kill(os.getpid(), signal.SIGINT)
setattr(os, sys.argv[1], and_then_interrupted)
sys.argv[:] = ["cortex", *sys.argv[2:]]
from cortex_tools.driver.main import cortex
cortex()
"""


@pytest.mark.parametrize(("call", "content"), [("link", "first"), ("rename", "second")])
def test_an_interrupt_within_the_commit_leaves_the_change_with_its_row(tmp_path: Path, call: str, content: str) -> None:
    """The kernel has done it, and Ctrl-C comes before the call returns: the change stands, so must its audit row."""
    root = write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": "a"})
    memory = {"type": "memory", "actor": "principal"}
    writing = ["remember", "-", "--adapter", "claude", "--allow-write", "--memory-root", str(root)]
    if call == "rename":  # there is a file to be replaced
        assert run("cortex", *writing, input=json.dumps(memory | {"content": "RULE: first"}).encode()).returncode == 0
    rows_before = sum(len(path.read_bytes().splitlines()) for path in root.rglob("*writes*.jsonl"))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, call, *writing],
        input=json.dumps(memory | {"content": f"RULE: {content}"}).encode(),
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert any(f"RULE: {content}" in path.read_text() for path in root.rglob("*_MEMORY.md")), done
    rows = sum(len(path.read_bytes().splitlines()) for path in root.rglob("*writes*.jsonl"))
    assert rows == rows_before + 1, done
