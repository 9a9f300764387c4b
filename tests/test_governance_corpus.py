"""A write neither changes which folder is the corpus nor makes it unsound (sections 1 and 4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cortex_tools.contract import limits
from cortex_tools.governance import corpus
from cortex_tools.library import Runtime, run_cortex
from tests.governed import IDEA, ITEMS, LATER, MEMORY, OBS, PROPOSAL, Item, ask, files, ms, refused, rows, tree, write
from tests.support import note, row, write_corpus


def found(root: Path) -> list[str]:
    """The IDs that a search for loom finds."""
    return sorted(item["id"] for item in ask(root, "search", "loom", "--page-size", "100")["items"])


@pytest.mark.parametrize("kind", ITEMS)
def test_the_first_write_into_an_empty_root(kind: str, tmp_path: Path) -> None:
    assert found(tmp_path) == []
    write(tmp_path, ITEMS[kind])
    assert (tmp_path / "KNOWLEDGE").is_dir()
    assert len(found(tmp_path)) == (kind in ("idea", "memory"))
    for other in ITEMS.values():
        write(tmp_path, other)
    assert ask(tmp_path, "status")["canonical"]["records"] == 3
    assert ask(tmp_path, "rebuild", "--from-canonical")["equivalent"] is True


FLAT = {
    "flat": {"a.md": note("a"), "sub/b.md": note("b")},
    "rows": {"log.jsonl": row("a")},
    "nested": {"MEMORY/KNOWLEDGE/a.md": note("a")},
    "nested, empty": {"MEMORY/KNOWLEDGE/readme.txt": ""},
    "hot alone": {"PRINCIPAL_MEMORY.md": note("a")},
    "a note among the logs": {f"{OBS}/mine.md": note("a")},
}


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("case", FLAT)
def test_a_root_with_notes_but_without_knowledge(case: str, kind: str, tmp_path: Path) -> None:
    write_corpus(tmp_path, dict(FLAT[case]))
    before = found(tmp_path)
    refused(tmp_path, ITEMS[kind], "EWRITE_FAILED", "KNOWLEDGE", "move")
    assert found(tmp_path) == before


@pytest.mark.parametrize("kind", ITEMS)
def test_the_way_out(kind: str, tmp_path: Path) -> None:
    """What the refusal advises works."""
    write_corpus(tmp_path, {"a.md": note("a"), "b.md": note("b"), "DA_MEMORY.md": note("hot")})
    before = found(tmp_path)
    refused(tmp_path, ITEMS[kind], "EWRITE_FAILED")
    (tmp_path / "KNOWLEDGE").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / name).rename(tmp_path / "KNOWLEDGE" / name)
    write(tmp_path, ITEMS[kind])
    assert set(found(tmp_path)) >= set(before)


@pytest.mark.parametrize("log", ["memory-health.jsonl", "memory-retrievals.jsonl", "memory-snapshots/A__B.md"])
def test_logs_are_no_notes(log: str, tmp_path: Path) -> None:
    """A root in which only something was logged holds no notes: KNOWLEDGE is made, and the corpus is sound."""
    write_corpus(tmp_path, {f"{OBS}/{log}": '{"ts":"2026-01-01"}\n', "_hidden.md": "x", "readme.txt": "x"})
    write(tmp_path, IDEA)
    assert len(found(tmp_path)) == 1


@pytest.mark.parametrize("case", ["file", "link", "dangling", "fifo"])
def test_a_knowledge_that_is_no_folder(case: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    target = root / "KNOWLEDGE"
    {
        "file": lambda: target.write_text("x"),
        "link": lambda: target.symlink_to(outside),
        "dangling": lambda: target.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(target),
    }[case]()
    for item in ITEMS.values():
        refused(root, item, "EWRITE_FAILED", "KNOWLEDGE")
    assert list(outside.iterdir()) == []


def test_knowledge_is_made_before_any_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(
        "cortex_tools.governance.store.before", lambda kind, path: made.append(path) if kind == "mkdir" else None
    )
    write(tmp_path, MEMORY)
    assert made == ["KNOWLEDGE", OBS]


def test_knowledge_taken_back_by_a_refused_writer_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two first writers: the one that made KNOWLEDGE is refused while the other begins its logs."""
    from cortex_tools.governance import store

    def intrude(kind: str, path: str) -> None:
        if kind == "mkdir" and path == "KNOWLEDGE/Ideas":
            store.before = None
            write(tmp_path, PROPOSAL)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "before", intrude)
    from cortex_tools.governance import add

    assert add(IDEA, tmp_path, ms(LATER))["code"] == "EWRITE_FAILED"
    assert (tmp_path / "KNOWLEDGE").is_dir() and len(rows(tmp_path, "pending-proposals.jsonl")) == 1
    assert ask(tmp_path, "status")["canonical"]["records"] == 0


# Limits.


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach."""
    monkeypatch.setattr(limits, "CORPUS_FILES", 5)
    monkeypatch.setattr(limits, "CORPUS_BYTES", 5_000)
    monkeypatch.setattr(limits, "RECORDS", 30)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("item", [IDEA, MEMORY])
def test_the_number_of_files(item: Item, tmp_path: Path) -> None:
    write_corpus(tmp_path, {f"KNOWLEDGE/{n}.md": note(str(n)) for n in range(4)})
    write(tmp_path, item)  # the fifth
    refused(tmp_path, {**IDEA, "title": "sixth"}, "EWRITE_FAILED", "5 files")
    write(tmp_path, item | ({"content": "RULE: two"} if item is MEMORY else {}))  # adds no file
    assert ask(tmp_path, "status")["canonical"]["records"] == 5


@pytest.mark.usefixtures("small")
def test_the_bytes_of_the_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a", "x" * 4_000)})
    used = sum(len(data) for path, data in files(tmp_path).items() if path.startswith("KNOWLEDGE"))
    size = write(tmp_path, {**IDEA, "content": "y"})["detail"]["bytes_written"]
    left = 5_000 - used - size
    other = {**IDEA, "title": "Loom tensioz"}  # as long, so as large
    refused(tmp_path, {**other, "content": "y" * (left - size + 2)}, "EWRITE_FAILED", "5000")
    write(tmp_path, {**other, "content": "y" * (left - size + 1)})
    refused(tmp_path, MEMORY, "EWRITE_FAILED", "bytes")
    assert ask(tmp_path, "status")["canonical"]["records"] == 3


@pytest.mark.usefixtures("small")
def test_the_number_of_records(tmp_path: Path) -> None:
    """Counted only where the size of the JSONL notes leaves it open."""
    lines = "".join(row(str(n)) for n in range(29))
    write_corpus(tmp_path, {"KNOWLEDGE/log.jsonl": lines})
    write(tmp_path, IDEA)
    refused(tmp_path, {**IDEA, "title": "one more"}, "EWRITE_FAILED", "30 records")
    write(tmp_path, IDEA)
    assert ask(tmp_path, "status")["canonical"]["records"] == 30


def test_rows_are_not_read_where_their_size_settles_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/log.jsonl": "not even JSON\n"})
    monkeypatch.setattr(corpus, "_count_records", lambda *_: pytest.fail("read"))
    write(tmp_path, IDEA)


def test_a_least_row_is_no_shorter_than_what_the_reader_takes(tmp_path: Path) -> None:
    least = '{"id":"x","type":"x","title":"x","created":"2000-01-01","updated":"2000-01-01","content":"x"}'
    assert len(least) == corpus._LEAST_ROW
    write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": least})
    assert ask(tmp_path, "status")["canonical"]["records"] == 1


def test_an_unsound_listing_is_refused_since_nothing_could_be_found_in_it(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a")})
    (tmp_path / "KNOWLEDGE" / "link.txt").symlink_to("nowhere")
    refused(tmp_path, IDEA, "EWRITE_FAILED", "link.txt", "symbolic link")
    refused(tmp_path, MEMORY, "EWRITE_FAILED", "link.txt")


def test_an_unsound_note_elsewhere_is_not_read(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": b"\xff"})
    write(tmp_path, IDEA)
    write(tmp_path, MEMORY)


# Where the store lies.


def test_the_existing_layout(tmp_path: Path) -> None:
    """A root that ends in LIFEOS/MEMORY has USER beside it, made where it is missing."""
    root = tmp_path / "LIFEOS" / "MEMORY"
    root.mkdir(parents=True)
    user = tmp_path / "LIFEOS" / "USER"
    hot = write(root, MEMORY)
    assert hot["path"] == str(user / "PRINCIPAL" / "PRINCIPAL_MEMORY.md")
    assert write(root, {**MEMORY, "actor": "assistant"})["path"] == str(user / "DIGITAL_ASSISTANT" / "DA_MEMORY.md")
    assert write(root, IDEA)["path"] == "KNOWLEDGE/Ideas/loom-tension.md"
    assert write(root, PROPOSAL)["path"] == f"{OBS}/pending-proposals.jsonl"
    assert sorted(path.name for path in user.iterdir()) == ["DIGITAL_ASSISTANT", "PRINCIPAL"]
    assert ask(root, "status")["canonical"]["records"] == 1
    assert rows(root, "memory-writes.jsonl")[0]["path"] == hot["path"]


def test_the_layout_goes_by_the_root_as_requested(tmp_path: Path) -> None:
    real, home = tmp_path / "data" / "memory", tmp_path / "home" / "LIFEOS"
    real.mkdir(parents=True)
    home.mkdir(parents=True)
    (home / "MEMORY").symlink_to(real)
    assert write(home / "MEMORY", MEMORY)["path"] == str(home / "USER" / "PRINCIPAL" / "PRINCIPAL_MEMORY.md")
    assert write(real, MEMORY)["path"] == "PRINCIPAL_MEMORY.md"
    assert write(home / "x" / ".." / "MEMORY", MEMORY)["detail"]["prior_count"] == 1


def test_a_relative_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "LIFEOS" / "MEMORY").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "LIFEOS" / "MEMORY")
    write(Path("."), MEMORY)
    assert (tmp_path / "LIFEOS" / "USER" / "PRINCIPAL" / "PRINCIPAL_MEMORY.md").exists()


def test_a_user_folder_that_is_a_link_is_the_real_one(tmp_path: Path) -> None:
    root, real = tmp_path / "LIFEOS" / "MEMORY", tmp_path / "me"
    root.mkdir(parents=True)
    real.mkdir()
    (tmp_path / "LIFEOS" / "USER").symlink_to(real)
    assert write(root, MEMORY)["path"] == str(real / "PRINCIPAL" / "PRINCIPAL_MEMORY.md")
    (tmp_path / "LIFEOS" / "USER").unlink()
    (tmp_path / "LIFEOS" / "USER").symlink_to("nowhere")
    refused(root, MEMORY, "EWRITE_FAILED", "USER")


@pytest.mark.parametrize("tail", ["MEMORY", "LIFEOS/memory", "LIFEOS/MEMORY/x", "xLIFEOS/MEMORY"])
def test_any_other_root_is_self_contained(tail: str, tmp_path: Path) -> None:
    root = tmp_path / tail
    root.mkdir(parents=True)
    assert write(root, MEMORY)["path"] == "PRINCIPAL_MEMORY.md"
    assert found(root) != []


def test_the_environment_and_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cortex_tools.governance import add

    monkeypatch.setenv("CORTEX_MEMORY_ROOT", str(tmp_path))
    assert add(IDEA)["ok"]
    monkeypatch.delenv("CORTEX_MEMORY_ROOT")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".claude" / "LIFEOS" / "MEMORY").mkdir(parents=True)
    assert add(MEMORY)["ok"]
    assert (tmp_path / "home/.claude/LIFEOS/USER/PRINCIPAL/PRINCIPAL_MEMORY.md").exists()


def test_a_root_that_is_none(tmp_path: Path) -> None:
    status, envelope = run_cortex(
        ["remember", '{"type":"idea"}', "--adapter", "claude", "--allow-write"], Runtime(tmp_path / "no")
    )
    assert (status, envelope["error"]["code"]) == (4, "integrity_error")
    assert tree(tmp_path) == {}
