"""A corpus that changes while it is read (14.8, 14.10, docs/streams.md "A corpus that moves").

Nothing here depends on timing but the last test, which runs a writer beside a loop of searches.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.driver import respond, workers
from cortex_tools.driver import run as driver
from cortex_tools.driver.run import Layout
from cortex_tools.library import Runtime, run_cortex
from tests import moving
from tests.support import envelope, environment, failure, note, run, shell, write_corpus

B = "KNOWLEDGE/sub/b.md"
TEXT = note("b", "loom before")
OUTSIDE = note("b", "loom OUTSIDE")  # as long as what it replaces is not; never to be seen in any output

Change = Callable[[Path], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {"KNOWLEDGE/a.md": note("a"), B: TEXT, "KNOWLEDGE/sub/c.md": note("c")}
    write_corpus(tmp_path, {"outside/sub/b.md": TEXT, "outside/sub/c.md": note("c"), "outside/other.md": OUTSIDE})
    return write_corpus(tmp_path / "root", files)


# Between scan and strip


def _keep_time(path: Path, work: Callable[[], object]) -> None:
    """Do `work` and give `path` the modification time it had before."""
    before = path.stat()
    work()
    while True:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        if path.stat().st_ctime_ns != before.st_ctime_ns:  # the clock's grain may be coarse
            return


def _link_to_moved_original(root: Path) -> None:
    # The note behind the link is the very file that was listed: same device, inode, size and time.
    (root / B).rename(root.parent / "outside/moved.md")
    (root / B).symlink_to(root.parent / "outside/moved.md")


def _link_to_copy(root: Path) -> None:
    shutil.copy2(root / B, root.parent / "outside/copy.md")
    (root / B).unlink()
    (root / B).symlink_to(root.parent / "outside/copy.md")


def _link_elsewhere(root: Path) -> None:
    (root / B).unlink()
    (root / B).symlink_to(root.parent / "outside/other.md")


def _replace_with(make: Callable[[Path], object]) -> Change:
    def change(root: Path) -> None:
        (root / B).unlink()
        make(root / B)

    return change


def _replaced_by_an_equal_file(root: Path) -> None:
    other = root / "KNOWLEDGE/.new"
    shutil.copy2(root / B, other)
    other.replace(root / B)


def _grown_beyond_the_limit(root: Path) -> None:
    _keep_time(root / B, lambda: os.truncate(root / B, 9 << 20))


def _folder_link_to_moved_original(root: Path) -> None:
    (root / "KNOWLEDGE/sub").rename(root.parent / "outside/moved")
    (root / "KNOWLEDGE/sub").symlink_to(root.parent / "outside/moved")


def _folder_link_to_copy(root: Path) -> None:
    shutil.rmtree(root / "KNOWLEDGE/sub")
    (root / "KNOWLEDGE/sub").symlink_to(root.parent / "outside/sub")


def _top_link_to_moved_original(root: Path) -> None:
    (root / "KNOWLEDGE").rename(root.parent / "outside/knowledge")
    (root / "KNOWLEDGE").symlink_to(root.parent / "outside/knowledge")


def _folder_a_file(root: Path) -> None:
    shutil.rmtree(root / "KNOWLEDGE/sub")
    (root / "KNOWLEDGE/sub").write_text("x")


CHANGES: dict[str, Change] = {
    "link to the moved original": _link_to_moved_original,
    "link to a copy": _link_to_copy,
    "link elsewhere": _link_elsewhere,
    "dangling link": _replace_with(lambda path: path.symlink_to("nowhere")),
    "FIFO": _replace_with(os.mkfifo),
    "folder": _replace_with(Path.mkdir),
    "removed": lambda root: (root / B).unlink(),
    "longer": lambda root: _keep_time(root / B, lambda: (root / B).write_text(TEXT + "more\n")),
    "shorter": lambda root: _keep_time(root / B, lambda: (root / B).write_text(TEXT[:-1])),
    "emptied": lambda root: _keep_time(root / B, lambda: os.truncate(root / B, 0)),
    "beyond the limit": _grown_beyond_the_limit,
    "as long, rewritten": lambda root: _rewrite(root, "loom behind"),
    "as long, another file": _replaced_by_an_equal_file,
    "touched": lambda root: os.utime(root / B, ns=(0, 1)),
    "folder a link to the moved original": _folder_link_to_moved_original,
    "folder a link to a copy": _folder_link_to_copy,
    "KNOWLEDGE a link to the moved original": _top_link_to_moved_original,
    "folder removed": lambda root: shutil.rmtree(root / "KNOWLEDGE/sub"),
    "folder a file": _folder_a_file,
}
_TICK = iter(range(1, 1_000_000))


def _rewrite(root: Path, body: str, name: str = B) -> None:
    """Give a note another body; its time of change is set, since the clock's grain may hide a fast change."""
    (root / name).write_text(note(Path(name).stem, body))
    os.utime(root / name, ns=(0, 1_700_000_000_000_000_000 + next(_TICK)))


@pytest.mark.parametrize("change", CHANGES)
def test_a_note_that_changed_between_scan_and_strip(root: Path, change: str) -> None:
    listing = run("cortex-scan", "--memory-root", root)
    assert listing.returncode == 0
    CHANGES[change](root)
    stripped = run("cortex-strip", input=listing.stdout)
    lines = [json.loads(line) for line in stripped.stdout.splitlines()]
    assert stripped.returncode == 4 and b"Traceback" not in stripped.stderr
    assert [line["kind"] for line in lines[-2:]] == ["error", "seal"]
    assert "b" not in [line["id"] for line in lines if line["kind"] == "record"]
    assert b"OUTSIDE" not in stripped.stdout + stripped.stderr
    named = "KNOWLEDGE/a.md" if change.startswith("KNOWLEDGE") else B
    assert lines[-2]["code"] == "integrity_error" and named in lines[-2]["message"]
    done = run("cortex-envelope", "status", input=stripped.stdout)
    assert failure(done, 4, "integrity_error", named) == lines[-2]["message"]


def test_what_was_not_listed_is_not_read(root: Path) -> None:
    """A listing is what held when it was made: what is added later, or is no note, changes nothing."""
    listing = run("cortex-scan", "--memory-root", root)
    before = run("cortex-strip", input=listing.stdout)
    write_corpus(root, {"KNOWLEDGE/sub/added.md": note("added"), "KNOWLEDGE/x.txt": "x", "KNOWLEDGE/_h.md": "\0"})
    os.chmod(root / B, 0o600)
    after = run("cortex-strip", input=listing.stdout)
    assert before.returncode == after.returncode == 0 and before.stdout == after.stdout


def test_a_root_that_became_a_link_between_scan_and_strip(root: Path) -> None:
    listing = run("cortex-scan", "--memory-root", root)
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "moved")
    done = run("cortex-envelope", "status", input=run("cortex-strip", input=listing.stdout).stdout)
    failure(done, 4, "integrity_error", str(root))
    root.unlink()
    done = run("cortex-envelope", "status", input=run("cortex-strip", input=listing.stdout).stdout)
    failure(done, 4, "integrity_error", str(root))


def test_a_pipeline_with_a_change_in_its_middle(root: Path) -> None:
    """The same in one pipeline: the change happens after scan's seal and before strip starts."""
    script = f"""
        cortex-scan --memory-root {root} | {{ cat > listing; echo more >> {root}/{B}; cat listing; }} |
        cortex-strip | cortex-select --valid | cortex-rank loom | cortex-card | cortex-envelope search
    """
    failure(shell(script, cwd=root.parent), 4, "integrity_error", B)


# While the driver walks and reads


class Walks:
    """Counts the walks of the driver, and does something after each."""

    def __init__(self) -> None:
        self.count = 0
        self.after: Callable[[int], None] = lambda number: None


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Walks:
    watched, real = Walks(), driver.walk

    def walk(*arguments: Any) -> Any:
        files = real(*arguments)
        watched.count += 1
        watched.after(watched.count)
        return files

    monkeypatch.setattr(driver, "walk", walk)
    return watched


def ask(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    return run_cortex(list(arguments), Runtime(memory_root=root))


def content(root: Path, identifier: str = "b") -> str:
    status, body = ask(root, "get", identifier)
    assert status == 0, body
    found: str = body["data"]["items"][0]["content"]
    return found


@pytest.mark.parametrize("changes", [0, 1, 2])
def test_a_changed_corpus_is_tried_afresh_twice(root: Path, walks: Walks, changes: int) -> None:
    walks.after = lambda number: _rewrite(root, f"loom after {number}") if number <= changes else None
    assert content(root) == (note("b", f"loom after {changes}") if changes else TEXT)
    assert walks.count == changes + 1


COMMANDS = (
    ["status"],
    ["search", "loom"],
    ["timeline", "--anchor", "b"],
    ["get", "b"],
    ["rebuild", "--from-canonical"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_corpus_that_changes_every_time_is_refused(root: Path, walks: Walks, command: list[str]) -> None:
    walks.after = lambda number: _rewrite(root, f"loom after {number}")
    status, body = ask(root, *command)
    assert status == 4 and body["error"]["code"] == "integrity_error" and B in body["error"]["message"]
    assert walks.count == 3


@pytest.mark.parametrize(
    "name",
    ["removed", "link to a copy", "FIFO", "folder", "as long, another file", "folder a link to the moved original"],
)
def test_a_fresh_try_sees_what_is_there_then(root: Path, walks: Walks, name: str) -> None:
    """What a first try found changed is judged by the second as it stands: gone, sound or refused."""
    walks.after = lambda number: CHANGES[name](root) if number == 1 else None
    status, body = ask(root, "status")
    assert walks.count in (1, 2)  # a link is refused by the second walk itself, which then does not end
    if name in ("removed", "folder"):
        assert body["data"]["canonical"]["records"] == 2
    elif name == "as long, another file":
        assert body["data"]["canonical"]["records"] == 3
    else:
        assert status == 4 and body["error"]["code"] == "integrity_error"
        assert (B if "folder" not in name else "KNOWLEDGE/sub") in body["error"]["message"]


def test_what_did_not_change_is_not_tried_again(root: Path, walks: Walks) -> None:
    (root / B).write_bytes(b"\xff")
    status, body = ask(root, "status")
    assert status == 4 and B in body["error"]["message"] and walks.count == 1


def test_a_failure_that_is_no_change_stays_the_answer(root: Path, walks: Walks) -> None:
    """An unknown ID is no reason for another walk."""
    status, _ = ask(root, "get", "ghost")
    assert status == 3 and walks.count == 1


def test_a_note_that_changes_under_the_reader(root: Path, walks: Walks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed after it was opened, in the middle of being read."""
    real, times = os.read, iter((1, 2))

    def read(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        if data == TEXT.encode() and next(times, None):
            with (root / B).open("a") as file:  # its first bytes stay what has been read already
                file.write("grown\n")
            os.utime(root / B, ns=(0, 1_600_000_000_000_000_000))
        return data

    monkeypatch.setattr(os, "read", read)
    assert content(root) == TEXT + "grown\n"
    assert walks.count == 2


def test_a_note_that_changed_is_not_read_at_all(root: Path, walks: Walks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared once it is open, not only once it is read: what took its place may be no note of ours."""
    real, seen = os.read, []

    def read(descriptor: int, size: int) -> bytes:
        seen.append(real(descriptor, size))
        return seen[-1]

    monkeypatch.setattr(os, "read", read)
    walks.after = lambda number: _rewrite(root, f"loom after {number}")
    assert ask(root, "status")[0] == 4
    assert note("a").encode() in seen and not any(b"loom after" in data for data in seen)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """Changes to be made, one each time that KNOWLEDGE/sub has just been listed; its parent is by then."""
    pending: list[Callable[[], object]] = []
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        inside = isinstance(path, int) and "b.md" in os.listdir(path)
        found = real(path)
        if inside and pending:
            pending.pop(0)()
        return found

    monkeypatch.setattr(os, "scandir", scandir)
    yield pending
    monkeypatch.undo()
    assert pending == []


def _add(root: Path, name: str) -> Callable[[], None]:
    def add() -> None:
        (root / name).write_text(note(Path(name).stem))
        os.utime((root / name).parent, ns=(0, 1_700_000_000_000_000_000 + next(_TICK)))

    return add


def test_a_folder_that_changes_during_the_walk(root: Path, listed: list[Callable[[], object]]) -> None:
    listed += [_add(root, "KNOWLEDGE/late.md"), _add(root, "KNOWLEDGE/later.md")]
    status, body = ask(root, "status")
    assert status == 0 and body["data"]["canonical"]["records"] == 5


def test_a_folder_that_changes_during_every_walk(root: Path, listed: list[Callable[[], object]]) -> None:
    listed += [_add(root, f"KNOWLEDGE/late{number}.md") for number in range(3)]
    status, body = ask(root, "status")
    assert status == 4 and body["error"]["code"] == "integrity_error", body
    assert "KNOWLEDGE" in body["error"]["message"]


def test_a_note_whose_time_was_set_back_has_changed_all_the_same(root: Path, walks: Walks) -> None:
    """Same device, inode, length and time of modification; the time of the last change of status cannot be set."""

    def change(number: int) -> None:
        if number == 1:
            _keep_time(root / B, lambda: (root / B).write_text(TEXT.replace("before", "behind")))

    walks.after = change
    assert "loom behind" in content(root) and walks.count == 2


def test_a_folder_whose_time_was_set_back_has_changed_all_the_same(
    root: Path, listed: list[Callable[[], object]]
) -> None:
    late = root / "KNOWLEDGE/late.md"
    listed.append(lambda: _keep_time(root / "KNOWLEDGE", lambda: late.write_text(note("late"))))
    status, body = ask(root, "status")
    assert status == 0 and body["data"]["canonical"]["records"] == 4


@pytest.mark.parametrize("place", ["KNOWLEDGE", "MEMORY"])
def test_a_link_that_appears_at_the_root_during_the_walk(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What is added to the root after it never stood beside a sound corpus, even where no note lies behind the link."""
    for path in (root / B, root / "KNOWLEDGE/sub/c.md", root / "KNOWLEDGE/a.md"):
        path.unlink()
    real, late = os.scandir, iter((True,))

    def scandir(path: Any = ".") -> Any:
        if next(late, False):  # KNOWLEDGE is about to be listed, the root is not yet
            if place == "KNOWLEDGE":
                _top_link_to_moved_original(root)
            else:
                (root / "MEMORY").symlink_to("nowhere")
            (root / "LATE_MEMORY.md").write_text(note("late"))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    status, body = ask(root, "status")
    assert status == 4 and body["error"]["code"] == "integrity_error" and place in body["error"]["message"], body


@pytest.mark.parametrize("comes", ["KNOWLEDGE", "MEMORY", "MEMORY/KNOWLEDGE"])
def test_a_corpus_folder_that_appears_as_soon_as_it_was_looked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    """The notes beside it are no corpus any more: together with those in it they never were one."""
    (root / "KNOWLEDGE").rename(root.parent / "aside")
    write_corpus(root, {"beside.md": note("beside")})
    if comes == "MEMORY/KNOWLEDGE":
        (root / "MEMORY").mkdir()
    real, late = os.stat, iter((True,))

    def stat(path: Any, **options: Any) -> os.stat_result:
        try:
            return real(path, **options)
        except FileNotFoundError:
            if path == comes and next(late, False):
                (root.parent / "aside").rename(root / comes)
            raise

    monkeypatch.setattr(os, "stat", stat)
    status, body = ask(root, "status")
    assert next(late, None) is None, "it was never looked for"
    # In MEMORY it is no folder of the corpus, but one that lies in it.
    assert status == 0 and body["data"]["canonical"]["records"] == (4 if comes == "MEMORY" else 3)


def test_a_folder_that_becomes_a_link_during_the_walk(root: Path, listed: list[Callable[[], object]]) -> None:
    listed.append(lambda: _top_link_to_moved_original(root))
    status, body = ask(root, "status")
    assert status == 4 and body["error"]["code"] == "integrity_error" and "KNOWLEDGE" in body["error"]["message"]


def test_a_change_that_another_process_finds(root: Path, walks: Walks, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the corpus spread over processes a worker's finding is tried afresh like our own."""
    monkeypatch.setattr(workers, "BYTES_WORTH_A_WORKER", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    walks.after = lambda number: _rewrite(root, f"loom after {number}") if number <= 2 else None
    answer = respond.respond(["get", "b"], Runtime(memory_root=root), workers.Spread())
    assert answer.envelope["data"]["items"][0]["content"] == note("b", "loom after 2") and walks.count == 3
    walks.after = lambda number: _rewrite(root, f"loom again {number}")
    answer = respond.respond(["get", "b"], Runtime(memory_root=root), workers.Spread())
    assert answer.status == 4 and B in answer.envelope["error"]["message"] and walks.count == 6


# Rebuild: two passes


def test_rebuild_says_that_the_corpus_changed_between_its_passes(root: Path, walks: Walks) -> None:
    still = ask(root, "rebuild", "--from-canonical")[1]["data"]
    assert still["equivalent"] is True and still["canonical_digest"] == still["rebuilt_digest"] and walks.count == 2
    real, seen = driver.pin_root, iter((False, True))

    def pin_root(requested: bytes) -> Any:
        if next(seen, False):  # the second pass begins
            _rewrite(root, "loom between")
        return real(requested)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "pin_root", pin_root)
        status, body = ask(root, "rebuild", "--from-canonical")
    moved = body["data"]
    assert status == 0 and moved["equivalent"] is False and walks.count == 4
    assert moved["canonical_digest"] == still["canonical_digest"] and moved["records"] == 3
    settled = ask(root, "rebuild", "--from-canonical")[1]["data"]
    assert settled["equivalent"] is True and settled["canonical_digest"] == moved["rebuilt_digest"]


@pytest.mark.parametrize("layout", [Layout, workers.Spread])
def test_rebuild_over_two_roots_is_tried_afresh(
    root: Path, walks: Walks, monkeypatch: pytest.MonkeyPatch, layout: type[Layout]
) -> None:
    """An alias that leads elsewhere from one pass to the next: a digest of each would compare what never was one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    other = write_corpus(root.parent / "other", {"x.md": note("x")})
    alias, real = root.parent / "alias", driver.pin_root
    turns = iter((root, other, root, other, root, other))

    def pin_root(requested: bytes) -> Any:
        return real(os.fsencode(next(turns)))

    monkeypatch.setattr(driver, "pin_root", pin_root)
    command = ["rebuild", "--from-canonical"]
    answer = respond.respond(command, Runtime(memory_root=alias), layout())
    if layout is Layout:
        assert answer.status == 4 and "root" in answer.envelope["error"]["message"], answer.envelope
        turns = iter((root, other, other, other))
        answer = respond.respond(command, Runtime(memory_root=alias), layout())
    assert answer.status == 0 and answer.envelope["data"]["equivalent"] is True


def test_rebuild_tries_again_what_changes_within_a_pass(root: Path, walks: Walks) -> None:
    walks.after = lambda number: _rewrite(root, "loom within") if number == 2 else None
    status, body = ask(root, "rebuild", "--from-canonical")
    assert status == 0 and body["data"]["equivalent"] is True
    assert walks.count == 4  # both passes are made anew, so that neither saw the old text


@pytest.mark.parametrize(
    "change",
    [f"echo more >> {B}", f"rm {B}", f"cp {B} KNOWLEDGE/new.md; sed -i s/^id:.*/id:\\ new/ KNOWLEDGE/new.md"],
)
def test_the_pipeline_of_rebuild_says_it_too(root: Path, change: str) -> None:
    one = f"cortex-scan --memory-root {root} | cortex-strip | cortex-digest"
    done = shell(f"{{ {one}; {one}; }} | cortex-envelope rebuild", cwd=root)
    before = envelope(done)["data"]
    assert before["equivalent"] is True
    done = shell(f"{{ {one}; {change}; {one}; }} | cortex-envelope rebuild", cwd=root)
    after = envelope(done)["data"]
    assert done.returncode == 0 and after["equivalent"] is False and after["records"] == 3
    assert after["canonical_digest"] == before["canonical_digest"] != after["rebuilt_digest"]


# A course of changes, at every call of the reader


class Between:
    """Does something just before given calls of the system, counted from 1 while a reader runs."""

    CALLS = ("open", "stat", "fstat", "read", "scandir", "close", "dup", "readlink", "lstat")

    def __init__(self, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
        self.calls = 0
        self.times: dict[int, int] = {}  # how often, by the number of the call
        self.act = act
        self.reading = False
        for name in self.CALLS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if self.reading:
                self.calls += 1
                self.reading = False
                for _ in range(self.times.get(self.calls, 0)):
                    self.act()
                self.reading = True
            return real(*arguments, **keywords)

        return call


def test_every_answer_is_one_of_a_state_that_was_there(tmp_path: Path) -> None:
    """Changes by the hundred, of every sort that tests/moving.py knows, between the calls of the reader."""
    seed = 1
    course = moving.Course(tmp_path / "quiet", seed, 300)
    moving.prepare(tmp_path / "base")
    state = 0

    def act() -> None:
        nonlocal state
        step = course.steps[state % len(course.steps)]
        moving.take(tmp_path / "base", step)
        moving.stamp(tmp_path / "base", step, state)
        state += 1

    chance, answered, met = random.Random(seed), 0, set()
    with pytest.MonkeyPatch.context() as patch:
        between = Between(patch, act)
        for _ in range(1_000):
            name = chance.choice(list(moving.COMMANDS))
            between.times = {}
            for _ in range(chance.choice((1, 1, 2, 2, 3, 5))):
                call = int(chance.triangular(1, 150, 20))
                between.times[call] = between.times.get(call, 0) + chance.choice((1, 1, 1, 2, 3))
            first, between.calls, between.reading = state, 0, True
            status, body = ask(tmp_path / "base/alias", *moving.COMMANDS[name])
            between.reading = False
            found = moving.told(tmp_path / "base", status, body)
            steps = [course.steps[number % len(course.steps)][:2] for number in range(first, state)]
            assert course.wrong(name, first, state, found) == "", (name, between.times, steps, found)
            answered += not moving.refused(found)
            met |= {kind for kind, _ in steps}
            if chance.random() < 0.5:
                act()
    assert answered > 400 and len(met) > 9, (answered, met)  # else it shows nothing


def test_what_the_course_would_find(tmp_path: Path) -> None:
    """An answer mixed from two states, a text from outside, another failure: all are wrong."""
    course = moving.Course(tmp_path / "quiet", 1, 60)
    number = next(number for number, answer in enumerate(course.answers) if answer["get"][0] == 0)
    right = course.answers[number]["get"]
    assert course.wrong("get", number, number, right) == ""
    later = next(n for n in range(number, 60) if course.answers[n]["get"] not in (right, course.answers[0]["get"]))
    assert course.wrong("get", later, later, right) and not course.wrong("get", number, later, right)
    assert course.wrong("get", number, number, (0, right[1].replace("loom t", "loom u")))
    assert course.wrong("get", number, number, (0, right[1].replace("loom t", moving.CANARY)))
    assert course.wrong("get", number, number, (1, '{"error":{"code":"internal_error"}}'))
    assert course.wrong("get", number, number, (4, '{"error":{"code":"integrity_error"}}')) == ""
    digest = course.answers[number]["rebuild"][1]
    assert course.wrong("rebuild", number, number, (0, digest)) == ""
    assert course.wrong("rebuild", number, number, (0, digest.replace('"records": ', '"records": 1')))


# A writer beside readers

WRITER = """
import os, sys, time
folder = sys.argv[1]
for number in range(25):
    # As a governed write does: a dot-prefixed file beside the note, renamed into place.
    for name in (f"new{number}", "kept"):
        text = f"---\\nid: {name}\\ncreated: 2024-01-01\\n---\\nloom {number}\\n"
        with open(f"{folder}/.{name}", "w") as file:
            file.write(text)
        os.replace(f"{folder}/.{name}", f"{folder}/{name}.md")
        time.sleep(0.03)
"""


def test_a_writer_beside_searches_makes_none_fail(root: Path) -> None:
    """Each answer is one that held between its beginning and its end."""
    folder = root / "KNOWLEDGE/sub"
    (folder / "kept.md").write_text(note("kept"))

    def there() -> int:
        return sum(not name.startswith(".") for name in os.listdir(folder)) + 1  # and KNOWLEDGE/a.md

    writer = subprocess.Popen([sys.executable, "-c", WRITER, folder], env=environment())
    answers = 0
    try:
        while writer.poll() is None:
            before = there()
            if answers % 4:
                status, body = ask(root, "search", "loom", "--page-size", "1")
            else:
                done = run("cortex", "search", "loom", "--memory-root", root)
                status, body = done.returncode, envelope(done)
            assert status == 0, body
            assert before <= body["data"]["total"] <= there()
            answers += 1
    finally:
        writer.wait()
    assert writer.returncode == 0 and answers > 5
    assert ask(root, "search", "loom")[1]["data"]["total"] == there() == 29
