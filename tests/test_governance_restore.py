"""cortex-restore: snapshots listed, compared, restored (section 6)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cortex_tools.files.root import pin_root
from cortex_tools.governance import restoring
from cortex_tools.governance.refusal import Refusal
from cortex_tools.governance.session import governed
from tests.governed import LATER, MEMORY, NOW, OBS, ask, debris, files, ms, rows, tree, write
from tests.support import run, write_corpus

HOT = "PRINCIPAL_MEMORY.md"
FIRST = "PRINCIPAL_MEMORY__2026-01-03T00-00-00-000Z.md"
FOLDER = f"{OBS}/memory-snapshots"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root whose hot file was written twice."""
    write(tmp_path, MEMORY, NOW)
    write(tmp_path, {**MEMORY, "content": "RULE: second"}, LATER)
    return tmp_path


def restore(root: Path, name: str, now: str = "2026-01-04T00:00:00.000Z") -> restoring.Restoration:
    pinned = pin_root(os.fsencode(root))
    try:
        return governed(pinned, os.fsencode(root), ms(now), lambda session: restoring.restore(session, name))[0]
    finally:
        pinned.close()


def person(root: Path, *argv: str) -> tuple[int, str, str]:
    done = run("cortex-restore", *argv, "--memory-root", root)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_restoring_is_a_governed_write(root: Path) -> None:
    old, new = files(root)[f"{FOLDER}/{FIRST}"], files(root)[HOT]
    restoration = restore(root, FIRST)
    assert files(root)[HOT] == old
    assert restoration.path == HOT and "-RULE: second" in restoration.diff
    assert files(root)[f"{FOLDER}/PRINCIPAL_MEMORY__2026-01-04T00-00-00-000Z.md"] == new
    row = rows(root, "memory-writes.jsonl")[-1]
    assert (row["type"], row["restored"], row["path"], row["rejected"]) == ("restore", FIRST, HOT, False)
    assert debris(root) == [] and ask(root, "status")["canonical"]["records"] == 1
    restore(root, "PRINCIPAL_MEMORY__2026-01-04T00-00-00-000Z.md", "2026-01-05T00:00:00.000Z")
    assert files(root)[HOT] == new


def test_a_file_that_is_gone_comes_back(root: Path) -> None:
    old = files(root)[f"{FOLDER}/{FIRST}"]
    (root / HOT).unlink()
    restore(root, FIRST)
    assert files(root)[HOT] == old


def test_a_file_that_is_like_the_snapshot_is_left_alone(root: Path) -> None:
    restore(root, FIRST)
    before = tree(root)
    assert restore(root, FIRST).diff == ""
    assert tree(root) == before


def test_a_target_of_proposals(tmp_path: Path) -> None:
    name = "DEFINITIONS__2026-01-01T00-00-00-000Z.md"
    write_corpus(tmp_path, {f"{FOLDER}/{name}": "Old.\n", "USER/DEFINITIONS.md": "New.\n", "KNOWLEDGE/x.txt": ""})
    restore(tmp_path, name)
    assert (tmp_path / "USER" / "DEFINITIONS.md").read_text() == "Old.\n"


BAD = [b"\xff", b"bell \x07\n", b"---\nupdated: nonsense\n---\n"]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_snapshot_that_would_make_the_corpus_unsound(data: bytes, root: Path) -> None:
    name = "PRINCIPAL_MEMORY__2025-01-01T00-00-00-000Z.md"
    (root / FOLDER / name).write_bytes(data)
    before = tree(root)
    with pytest.raises(Refusal) as caught:
        restore(root, name)
    assert caught.value.code == "EWRITE_FAILED" and tree(root) == before


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "",
        "../memory-writes.jsonl",
        "OTHER__2026-01-03T00-00-00-000Z.md",
        "PRINCIPAL_MEMORY__2026.md",
        f"../memory-snapshots/{FIRST}",
    ],
)
def test_what_is_no_snapshot(name: str, root: Path) -> None:
    from cortex_tools.contract.errors import CortexError

    before = tree(root)
    with pytest.raises(CortexError) as caught:
        restore(root, name)
    assert caught.value.code == "not_found" and tree(root) == before


def test_snapshots_that_are_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    name = "PRINCIPAL_MEMORY__2025-01-01T00-00-00-000Z.md"
    (root / FOLDER / name).symlink_to("/etc/passwd")
    before = tree(root)
    with pytest.raises(Refusal):
        restore(root, name)
    assert tree(root) == before


def test_the_command_line(root: Path) -> None:
    status, out, err = person(root, "list")
    assert (status, err) == (0, "") and FIRST in out and HOT in out
    (snapshot,) = json.loads(person(root, "list", "--json")[1])["snapshots"]
    assert snapshot.pop("age_seconds") > 0
    size = len(files(root)[f"{FOLDER}/{FIRST}"])
    assert snapshot == {"name": FIRST, "path": HOT, "bytes": size, "entries": 1}
    before = tree(root)
    status, shown, _ = person(root, "show", FIRST)
    assert status == 0 and "-RULE: second" in shown and tree(root) == before
    status, out, err = person(root, "restore", FIRST)
    assert (status, out, err) == (0, f"{shown}restored {HOT}\n", "")
    assert person(root, "show", FIRST)[1] == "the file is like this snapshot\n"
    assert person(root, "show", "x")[0] == 3
    for argv in ([], ["undo"], ["show"], ["list", "x"], ["restore", FIRST, "--json"], ["list", "--bogus"]):
        status, out, err = person(root, *argv)
        assert (status, out) == (4, "") and "invalid_input" in err


def test_an_empty_root(tmp_path: Path) -> None:
    assert person(tmp_path, "list") == (0, "no snapshots\n", "")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("old", "new", "public"),
    [
        ("RULE: a <private>UTTERANCE</private>\n", "RULE: a <private>other</private>\n", []),
        ("x <private>UTTERANCE</private>\n", "y <private>UTTERANCE</private>\n", ["-y", "+x"]),
        ("a\n<private>\nUTTERANCE\n</private>\nb\n", "a\n<private>\nUTTERANCE2\n</private>\nc\n", ["-c", "+b"]),
        ("a\n<privateer>UTTERANCE\nb\n", "a\nb\n", ["-b"]),
    ],
)
def test_private_text_is_not_shown(old: str, new: str, public: list[str], tmp_path: Path) -> None:
    """Neither on looking nor on restoring, and a file that differs in private text alone is not like its snapshot."""
    write_corpus(tmp_path, {HOT: new, f"{FOLDER}/{FIRST}": old, "KNOWLEDGE/x.txt": ""})
    for action in ("show", "restore"):
        status, out, err = person(tmp_path, action, FIRST)
        assert status == 0 and "UTTERANCE" not in out + err and "other" not in out
        assert "Private text is not shown" in out
        assert [line.rstrip() for line in out.splitlines()[2:] if line[:1] in "+-"] == public
    assert (tmp_path / HOT).read_text() == old
    assert person(tmp_path, "show", FIRST)[1] == "the file is like this snapshot\n"
