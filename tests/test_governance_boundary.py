"""The boundary: nothing outside the root and USER is read or written, whatever is planted and when (section 1)."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_tools.contract import limits
from cortex_tools.governance import add, store
from tests.governed import IDEA, ITEMS, MEMORY, NOW, OBS, QUEUE, Item, debris, files, ms, refused, tree, write
from tests.support import note

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"
HOT = "PRINCIPAL_MEMORY.md"
SECOND = {**MEMORY, "content": "RULE: second"}
Plant = Callable[[Path, Path], None]


def link_to_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "file.md")


def link_to_folder(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "folder")


def dangling(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "nowhere")


def inside(path: Path, outside: Path) -> None:
    """A link that stays in the root is followed no more than any other."""
    (path.parent / "real").mkdir(exist_ok=True)
    path.symlink_to("real")


def fifo(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, outside: Path) -> None:
    path.mkdir()


def hard_link(path: Path, outside: Path) -> None:
    os.link(outside / "file.md", path)


LINKS = [link_to_file, link_to_folder, dangling, inside, fifo]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.2)


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    """A root in which everything has been written once, and a folder outside."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    (outside / "folder").mkdir(parents=True)
    (outside / "file.md").write_text(note("x", "secret of another folder"))
    for item in (*ITEMS.values(), SECOND):
        write(root, item)
    return root, outside


# What each item meets on its way: everything but the temporary file, whose name nobody can guess.
MET: list[tuple[Item, str]] = [
    (IDEA, NOTE),
    (IDEA, "KNOWLEDGE/Ideas"),
    (IDEA, "KNOWLEDGE"),
    (IDEA, f"{NOTE}.lock"),
    (IDEA, f"{OBS}/tier-b-writes.jsonl"),
    (IDEA, OBS),
    (MEMORY, HOT),
    (MEMORY, f"{HOT}.lock"),
    (MEMORY, f"{OBS}/memory-writes.jsonl"),
    (MEMORY, f"{OBS}/memory-snapshots"),
    (MEMORY, OBS),
    (ITEMS["proposal"], QUEUE),
    (ITEMS["proposal"], f"{QUEUE}.lock"),
    (ITEMS["proposal"], OBS),
]


@pytest.mark.parametrize("plant", LINKS)
@pytest.mark.parametrize(("item", "path"), MET)
def test_planted_before(item: Item, path: str, plant: Plant, place: tuple[Path, Path]) -> None:
    root, outside = place
    target = root / path
    if target.exists():
        target.rename(outside / "moved")
    plant(target, outside)
    beyond = tree(outside)
    message = refused(root, item, "EWRITE_FAILED")
    assert "secret" not in message
    assert tree(outside) == beyond


@pytest.mark.parametrize(
    "path", [f"{OBS}/tier-b-writes.jsonl", f"{OBS}/memory-writes.jsonl", QUEUE, f"{NOTE}.lock", f"{HOT}.lock"]
)
def test_hard_linked_logs_and_locks(path: str, place: tuple[Path, Path]) -> None:
    root, outside = place
    (root / path).unlink(missing_ok=True)
    os.link(outside / "file.md", root / path)
    beyond = tree(outside)
    item = {"tier": IDEA, "memo": MEMORY, "pend": ITEMS["proposal"], "loom": IDEA, "PRIN": MEMORY}[Path(path).name[:4]]
    refused(root, item, "EWRITE_FAILED", path)
    assert tree(outside) == beyond


@pytest.mark.parametrize("path", [NOTE, HOT, f"{OBS}/memory-writes.jsonl", QUEUE])
def test_folders_in_the_place_of_files(path: str, place: tuple[Path, Path]) -> None:
    root, outside = place
    (root / path).rename(outside / "moved")
    (root / path).mkdir()
    item = {NOTE: IDEA, QUEUE: ITEMS["proposal"]}.get(path, MEMORY)
    refused(root, item, "EWRITE_FAILED", path)


def test_links_in_user(tmp_path: Path) -> None:
    """Below USER no link is followed, though USER itself may be one."""
    root, outside = tmp_path / "LIFEOS" / "MEMORY", tmp_path / "outside"
    root.mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "LIFEOS" / "USER").mkdir()
    (tmp_path / "LIFEOS" / "USER" / "PRINCIPAL").symlink_to(outside)
    refused(root, MEMORY, "EWRITE_FAILED", "PRINCIPAL")
    assert list(outside.iterdir()) == []


# During a write: whatever is put in place of something between two operations.


def swap(path: Path, plant: Plant, outside: Path) -> None:
    """Put something else where `path` was, which goes outside."""
    if path.is_symlink() or not path.exists():
        return
    path.rename(outside / f"moved-{path.name}")
    plant(path, outside)


SWAPPED = [
    (IDEA, "KNOWLEDGE/Ideas"),
    (IDEA, NOTE),
    (IDEA, OBS),
    (IDEA, f"{OBS}/tier-b-writes.jsonl"),
    (MEMORY, HOT),
    (MEMORY, f"{OBS}/memory-snapshots"),
    (ITEMS["proposal"], QUEUE),
    (IDEA, ""),
    (MEMORY, ""),
]


@pytest.mark.parametrize("plant", [link_to_file, link_to_folder, dangling])
@pytest.mark.parametrize(("item", "path"), SWAPPED)
def test_swapped_during_a_write(
    item: Item, path: str, plant: Plant, place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every operation in turn.  Nothing that was outside before changes, and nothing is put beside it."""
    root, outside = place
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    base = root.parent / "base"
    shutil.copytree(root, base, symlinks=True)
    shutil.copytree(outside, base.parent / "beyond")
    last = 1_000
    for nth in range(1, last):
        for folder_, origin in ((root, base), (outside, base.parent / "beyond")):
            if folder_.is_symlink():
                folder_.unlink()
            shutil.rmtree(folder_, ignore_errors=True)
            shutil.copytree(origin, folder_, symlinks=True)
        seen = 0

        def hook(kind: str, where: str, nth: int = nth) -> None:
            nonlocal seen
            seen += 1
            if seen == nth:
                swap(root / path if path else root, plant, outside)

        monkeypatch.setattr(store, "before", hook)
        result = add(item, root, ms(NOW))
        monkeypatch.setattr(store, "before", None)
        assert result["ok"] or result["code"] == "EWRITE_FAILED", result
        assert "secret" not in str(result)
        now = {name: held for name, held in tree(outside).items() if not name.startswith("moved-")}
        assert now == tree(base.parent / "beyond"), nth
        if seen < nth:
            assert result["ok"]
            break
    assert nth > 20


def test_a_file_changed_by_another_program_meanwhile(place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that knows no lock saves between our reading and our rename: its text is not lost."""
    root, _ = place

    def save(kind: str, path: str) -> None:
        if kind == "fsync" and "tier-b" in path:
            store.before = None
            (root / NOTE).write_text(note("edited", "by hand"))

    monkeypatch.setattr(store, "before", save)
    before = files(root)
    result = add({**IDEA, "content": "more"}, root, ms(NOW))
    assert result["code"] == "EWRITE_FAILED" and "changed" in result["message"]
    assert files(root) == before | {NOTE: note("edited", "by hand").encode()}


def test_a_note_made_by_another_program_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(kind: str, path: str) -> None:
        if kind == "link" and path == NOTE:
            (tmp_path / NOTE).write_text("theirs")

    monkeypatch.setattr(store, "before", save)
    result = add(IDEA, tmp_path, ms(NOW))
    assert result["code"] == "EWRITE_FAILED" and (tmp_path / NOTE).read_text() == "theirs"
    assert debris(tmp_path) == []


def test_a_row_added_to_a_log_by_another_program_is_not_taken_back(
    place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = place
    log = root / OBS / "tier-b-writes.jsonl"

    def intrude(kind: str, path: str) -> None:
        if kind == "rename" and path == NOTE:
            with log.open("ab") as file:
                file.write(b'{"theirs":1}\n')
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "before", intrude)
    result = add({**IDEA, "content": "more"}, root, ms(NOW))
    assert result["code"] == "EWRITE_FAILED" and "another program" in result["message"]
    assert log.read_bytes().endswith(b'{"theirs":1}\n')


def test_temporary_names_cannot_be_guessed_and_are_never_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the name is known, a link there is not written through."""
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    root = tmp_path / "root"
    (root / "KNOWLEDGE" / "Ideas").mkdir(parents=True)
    real_urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: b"\0" * size)
    planted: list[Path] = []

    def plant(kind: str, path: str) -> None:
        if kind == "open" and path.endswith(".tmp") and not planted:
            planted.append(root / path)
            (root / path).symlink_to(outside)

    monkeypatch.setattr(store, "before", plant)
    before = tree(root)
    result = add(IDEA, root, ms(NOW))
    assert result["code"] == "EWRITE_FAILED" and planted
    planted[0].unlink()
    assert outside.read_text() == "theirs" and tree(root) == before
    monkeypatch.setattr(os, "urandom", real_urandom)


def test_debris_of_killed_writers_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE" / "Ideas").mkdir(parents=True)
    folder_ = tmp_path / "KNOWLEDGE" / "Ideas"
    ours = folder_ / f".loom-tension.md.cortex-{'0' * 16}.tmp"
    kept = [".loom.md.tmp", ".x.cortex-0.tmp", "loom.cortex-0000000000000000.tmp", ".hidden"]
    for name in (ours.name, *kept):
        (folder_ / name).write_text("x")
    (folder_ / f".folder.cortex-{'1' * 16}.tmp").mkdir()
    write(tmp_path, IDEA)
    names = {path.name for path in folder_.iterdir()}
    assert names == {"loom-tension.md", f".folder.cortex-{'1' * 16}.tmp", *kept}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_as_another_user(tmp_path: Path) -> None:
    """What may not be read or written is refused in clear words."""
    root = tmp_path / "root"
    root.mkdir()
    for parent in (tmp_path, *tmp_path.parents):
        if parent not in (Path("/"), Path("/tmp")):
            parent.chmod(stat.S_IMODE(parent.stat().st_mode) | 0o755)
    for item in (IDEA, MEMORY):
        write(root, item)
    before = tree(root)
    for item in ITEMS.values():
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, json.dumps(add(item, root)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            result = json.loads(pipe.read())
        os.waitpid(pid, 0)
        assert result["code"] == "EWRITE_FAILED" and "Permission denied" in result["message"], result
    assert tree(root) == before
