"""Proposals: kinds and targets, the queue, a person's decision (section 6)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.files.root import pin_root
from cortex_tools.governance import proposals, store
from cortex_tools.governance.layout import Layout
from cortex_tools.governance.places import TARGETS
from cortex_tools.governance.refusal import Refusal
from cortex_tools.governance.session import governed
from cortex_tools.tools import proposals as tool
from tests.governed import LATER, NOW, OBS, PROPOSAL, QUEUE, Item, debris, files, ms, refused, rows, tree, write
from tests.support import run, write_corpus

LOG = "pending-proposals.jsonl"
STYLE = "USER/PRINCIPAL/WRITINGSTYLE.md"
ONE_TARGET = {kind: targets[0] for kind, targets in TARGETS.items() if len(targets) == 1}


def person(root: Path, *argv: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of cortex-proposals, run in this process."""
    import contextlib
    import tempfile

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        saved = os.dup(1), os.dup(2)
        try:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = tool.work([*argv, "--memory-root", str(root)])
        finally:
            for number, descriptor in enumerate(saved, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        with contextlib.ExitStack():
            out.seek(0)
            err.seek(0)
            return status, out.read().decode(), err.read().decode()


def propose(root: Path, **fields: Any) -> str:
    """Queue a proposal; its ID."""
    identifier: str = write(root, {**PROPOSAL, **fields})["detail"]["id"]
    return identifier


def target(root: Path, text: str | bytes = "Style.\n", path: str = STYLE) -> Path:
    write_corpus(root, {path: text, "KNOWLEDGE/readme.txt": ""})
    return root / path


def approve(root: Path, identifier: str) -> proposals.Change:
    """Approve with the fixed clock; raises Refusal and CortexError."""
    pinned = pin_root(os.fsencode(root))
    try:
        return governed(pinned, os.fsencode(root), ms(LATER), lambda s: proposals.approve(s, identifier))[0]
    finally:
        pinned.close()


# Queueing.


def test_the_bytes_of_a_queued_row(tmp_path: Path) -> None:
    item = {
        **PROPOSAL,
        "target_kind": "style",
        "edit": "Kurze Sätze. <private>UTTERANCE</private>",
        "observed_across_sessions": 3,
        "source_session": "s-1",
    }
    result = write(tmp_path, item)
    identifier = result["detail"]["id"]
    assert result == {"ok": True, "type": "proposal", "path": QUEUE, "detail": {"id": identifier, "status": "queued"}}
    assert identifier.startswith("prop_") and len(identifier) == 17
    expected = (
        f'{{"id":"{identifier}","ts":"{NOW}","status":"pending","target_file":"{tmp_path}/{STYLE}","target_kind":"style",'
        '"edit":"Kurze Sätze. ","confidence":0.9,"rationale":"Said so twice.","observed_across_sessions":3,'
        '"source_session":"s-1"}\n'
    )
    assert files(tmp_path) == {QUEUE: expected.encode()}
    assert tree(tmp_path)[QUEUE][1] == 0o600 and debris(tmp_path) == []


def test_the_same_proposal_twice_has_two_ids(tmp_path: Path) -> None:
    assert len({propose(tmp_path) for _ in range(5)}) == 5
    assert [row["observed_across_sessions"] for row in rows(tmp_path, LOG)] == [1] * 5


@pytest.mark.parametrize("kind", ONE_TARGET)
def test_a_kind_with_one_target_is_pinned_to_it(kind: str, tmp_path: Path) -> None:
    for named in ("anything", "/etc/passwd", "../x", ONE_TARGET[kind]):
        propose(tmp_path, target_file=named, target_kind=kind)
    assert {row["target_file"] for row in rows(tmp_path, LOG)} == {f"{tmp_path}/USER/{ONE_TARGET[kind]}"}
    assert {row["target_kind"] for row in rows(tmp_path, LOG)} == {kind}


@pytest.mark.parametrize("kind", TARGETS)
def test_without_a_kind_the_target_tells(kind: str, tmp_path: Path) -> None:
    for path in TARGETS[kind]:
        for named in (path, f"USER/{path}", f"{tmp_path}/USER/{path}", f"{tmp_path}/x/../USER/./{path}"):
            propose(tmp_path, target_file=named)
            assert rows(tmp_path, LOG)[-1]["target_kind"] == kind
            assert rows(tmp_path, LOG)[-1]["target_file"] == f"{tmp_path}/USER/{path}"


@pytest.mark.parametrize("kind", [None, "identity"])
def test_identity_names_one_of_its_two(kind: str | None, tmp_path: Path) -> None:
    extra = {} if kind is None else {"target_kind": kind}
    for path in TARGETS["identity"]:
        propose(tmp_path, target_file=path, **extra)
    others = ["x", "/etc/passwd", "PRINCIPAL/../../KNOWLEDGE/a.md", "PRINCIPAL_IDENTITY.md", "../USERS/DEFINITIONS.md"]
    if kind is not None:
        others.append("PRINCIPAL/WRITINGSTYLE.md")
    for named in others:
        refused(tmp_path, {**PROPOSAL, "target_file": named, **extra}, "EINVAL_ITEM", *TARGETS["identity"])


def test_a_leading_tilde_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / ".claude" / "LIFEOS" / "MEMORY"
    root.mkdir(parents=True)
    write(root, {**PROPOSAL, "target_file": "~/.claude/LIFEOS/USER/DIGITAL_ASSISTANT/DA_IDENTITY.md"})
    (row,) = rows(root, LOG)
    assert row["target_file"] == f"{tmp_path}/.claude/LIFEOS/USER/DIGITAL_ASSISTANT/DA_IDENTITY.md"
    assert row["target_kind"] == "identity"
    refused(root, {**PROPOSAL, "target_file": "~other/x"}, "EINVAL_ITEM")


def test_a_proposal_changes_nothing_else(tmp_path: Path) -> None:
    target(tmp_path)
    before = tree(tmp_path)
    propose(tmp_path)
    after = tree(tmp_path)
    assert {path for path in after if path not in before} == {OBS, QUEUE}
    assert all(after[path] == before[path] for path in before)


def test_a_torn_last_line_is_completed(tmp_path: Path) -> None:
    write_corpus(tmp_path, {QUEUE: '{"id":"a"}\n{"id":"to', "KNOWLEDGE/x.txt": ""})
    identifier = propose(tmp_path)
    lines = (tmp_path / QUEUE).read_text().split("\n")
    assert lines[:2] == ['{"id":"a"}', '{"id":"to'] and json.loads(lines[2])["id"] == identifier


def test_a_queue_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path, {QUEUE: b'{"id":"\xff"}\n', "KNOWLEDGE/x.txt": ""})
    refused(tmp_path, PROPOSAL, "EWRITE_FAILED", "UTF-8")


# Tiers.


def test_tiers_by_path(tmp_path: Path) -> None:
    pinned = pin_root(os.fsencode(tmp_path))
    layout = Layout(pinned, os.fsencode(tmp_path))
    pinned.close()
    tiers = {
        "A": ["PRINCIPAL_MEMORY.md", "DA_MEMORY.md", "x/../DA_MEMORY.md"],
        "B": ["USER/PROJECTS.md", "USER/CONTACTS.md", "KNOWLEDGE/a.md", "KNOWLEDGE/x/y/z.md"],
        "C": [
            f"USER/{path}" for kind, paths in TARGETS.items() for path in paths if kind not in ("projects", "contacts")
        ],
        "D": [
            "X_MEMORY.md",
            "KNOWLEDGE",
            "KNOWLEDGE/../x.md",
            "USER/x.md",
            "USER/PRINCIPAL/PRINCIPAL_MEMORY.md",
            "../y",
        ],
    }
    for tier, paths in tiers.items():
        assert {path: layout.tier(f"{tmp_path}/{path}") for path in paths} == dict.fromkeys(paths, tier)
    assert layout.tier("/etc/passwd") == "D"


def test_tiers_of_the_existing_layout(tmp_path: Path) -> None:
    root = tmp_path / "LIFEOS" / "MEMORY"
    root.mkdir(parents=True)
    pinned = pin_root(os.fsencode(root))
    layout = Layout(pinned, os.fsencode(root))
    pinned.close()
    user = tmp_path / "LIFEOS" / "USER"
    assert layout.tier(f"{user}/PRINCIPAL/PRINCIPAL_MEMORY.md") == "A"
    assert layout.tier(f"{user}/DIGITAL_ASSISTANT/DA_MEMORY.md") == "A"
    assert layout.tier(f"{user}/PROJECTS.md") == "B" and layout.tier(f"{user}/DEFINITIONS.md") == "C"
    assert layout.tier(f"{root}/PRINCIPAL_MEMORY.md") == layout.tier(f"{root}/USER/DEFINITIONS.md") == "D"


def test_a_type_may_not_write_to_another_tier(tmp_path: Path) -> None:
    from cortex_tools.governance.layout import Place

    pinned = pin_root(os.fsencode(tmp_path))
    layout = Layout(pinned, os.fsencode(tmp_path))
    pinned.close()
    note, hot = Place("root", ("KNOWLEDGE", "Ideas"), "x.md"), layout.hot("principal")
    layout.check_tier("idea", note)
    layout.check_tier("memory", hot)
    for kind, place in (("memory", note), ("idea", hot), ("knowledge", Place("root", (), "x.md"))):
        with pytest.raises(Refusal) as caught:
            layout.check_tier(kind, place)
        assert caught.value.code == "ETIER_MISMATCH"


# Listing and showing.


def test_listing(tmp_path: Path) -> None:
    assert person(tmp_path, "list") == (0, "no proposal waits for a decision\n", "")
    assert tree(tmp_path) == {}
    first, second = propose(tmp_path), propose(tmp_path, edit="Other\nedit", target_file="PROJECTS.md")
    status, out, err = person(tmp_path, "list")
    assert (status, err) == (0, "") and "Other edit" in out and "projects" in out
    assert [line.split()[0] for line in out.splitlines() if "prop_" in line] == [first, second]
    person(tmp_path, "reject", first)
    assert first not in person(tmp_path, "list")[1]
    assert first in person(tmp_path, "list", "--all")[1]
    value = json.loads(person(tmp_path, "list", "--json", "--all")[1])
    assert value == {"proposals": rows(tmp_path, LOG), "unreadable_lines": []}


def test_listing_what_another_program_queued(tmp_path: Path) -> None:
    """Private text and controls of a row never reach the terminal, and a torn line is told."""
    row = {"id": "p1", "status": "pending", "edit": "a <private>UTTERANCE</private>\x1b[31mred", "rationale": 5}
    write_corpus(tmp_path, {QUEUE: "[1]\n" + json.dumps(row) + '\n\n{"id":', "KNOWLEDGE/x.txt": ""})
    status, out, err = person(tmp_path, "list")
    assert status == 0 and "p1" in out and "UTTERANCE" not in out and "\x1b" not in out
    assert "1, 4" in err and "2 lines" in err
    assert json.loads(person(tmp_path, "list", "--json")[1])["unreadable_lines"] == [1, 4]
    status, out, err = person(tmp_path, "show", "p1")
    assert "UTTERANCE" not in out + err


def test_showing_the_exact_difference(tmp_path: Path) -> None:
    target(tmp_path, "".join(f"line {n}\n" for n in range(9)))
    identifier = propose(tmp_path, edit="Short.\n\nClear.")
    before = tree(tmp_path)
    status, out, _ = person(tmp_path, "show", identifier)
    head, _, diff = out.partition("\n\n")
    assert status == 0 and f"id: {identifier}" in head and "rationale: Said so twice." in head
    name = STYLE
    assert diff == (f"--- {name}\n+++ {name}\n@@ -7,3 +7,7 @@\n line 6\n line 7\n line 8\n+\n+Short.\n+\n+Clear.\n")
    assert json.loads(person(tmp_path, "show", identifier, "--json")[1]) == {
        "proposal": rows(tmp_path, LOG)[0],
        "diff": diff,
    }
    assert tree(tmp_path) == before
    assert person(tmp_path, "approve", identifier)[1] == f"{diff}approved {identifier}\n"


def test_private_text_of_the_target_is_not_shown(tmp_path: Path) -> None:
    target(tmp_path, "a\n<private>\nUTTERANCE\n</private>\nb\n")
    identifier = propose(tmp_path)
    out = person(tmp_path, "show", identifier)[1]
    assert "+Short sentences." in out and "UTTERANCE" not in out
    assert "UTTERANCE" not in person(tmp_path, "approve", identifier)[1]
    assert (tmp_path / STYLE).read_text().endswith("b\n\nShort sentences.\n")


@pytest.mark.parametrize("text", ["a\n<private>x\nUTTERANCE</private>", "a <private>UTTERANCE</private> b"])
def test_nor_is_it_where_the_last_line_has_no_end(text: str, tmp_path: Path) -> None:
    """The end that the addition gives to the last line is a difference, too."""
    target(tmp_path, text)
    identifier = propose(tmp_path)
    outs = [person(tmp_path, *argv)[1] for argv in (("show", identifier), ("show", identifier, "--json"))]
    outs.append(person(tmp_path, "approve", identifier)[1])
    for out in outs:
        assert "UTTERANCE" not in out and "Private text is not shown" in out
    assert (tmp_path / STYLE).read_text() == f"{text}\n\nShort sentences.\n"


# Deciding.


@pytest.mark.parametrize("kind", TARGETS)
def test_approving_each_kind(kind: str, tmp_path: Path) -> None:
    for path in TARGETS[kind]:
        file = target(tmp_path, "Old.\n", f"USER/{path}")
        identifier = propose(tmp_path, target_file=path, target_kind=kind)
        approve(tmp_path, identifier)
        assert file.read_text() == "Old.\n\nShort sentences.\n"
        row = rows(tmp_path, LOG)[-1]
        assert (row["status"], row["decided_at"]) == ("approved", LATER)
        log = "tier-b-writes.jsonl" if kind in ("projects", "contacts") else "memory-writes.jsonl"
        written = rows(tmp_path, log)[-1]
        assert written["proposal_id"] == identifier and written["path"] == f"USER/{path}" and written["op"] == "approve"
        stem = path.rpartition("/")[2].removesuffix(".md")
        snapshot = f"{OBS}/memory-snapshots/{stem}__2026-01-03T00-00-00-000Z.md"
        assert files(tmp_path)[snapshot] == b"Old.\n"
        assert debris(tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "Short sentences.\n"),
        ("no end", "no end\n\nShort sentences.\n"),
        ("gap\n\n", "gap\n\nShort sentences.\n"),
        ("crlf\r\n", "crlf\r\n\nShort sentences.\n"),
        ("\ufeffbom\n", "\ufeffbom\n\nShort sentences.\n"),
        ("Not Short sentences. no\n", "Not Short sentences. no\n\nShort sentences.\n"),
    ],
)
def test_where_the_text_goes(before: str, after: str, tmp_path: Path) -> None:
    file = target(tmp_path, before)
    approve(tmp_path, propose(tmp_path))
    assert file.read_bytes().decode() == after


def test_rejecting(tmp_path: Path) -> None:
    first, second = propose(tmp_path), propose(tmp_path)
    lines = (tmp_path / QUEUE).read_bytes().splitlines(keepends=True)
    assert person(tmp_path, "reject", first, "--reason", "in jest <private>UTTERANCE</private>")[0] == 0
    now = (tmp_path / QUEUE).read_bytes().splitlines(keepends=True)
    assert now[1] == lines[1]
    row = json.loads(now[0])
    assert (row["status"], row["reason"]) == ("rejected", "in jest") and row["decided_at"] > NOW
    assert {key: row[key] for key in json.loads(lines[0]) if key != "status"} == {
        key: value for key, value in json.loads(lines[0]).items() if key != "status"
    }
    assert person(tmp_path, "reject", second, "--reason", "a\nb")[0] == 4
    assert rows(tmp_path, LOG)[1]["status"] == "pending"


def test_a_decision_stands(tmp_path: Path) -> None:
    target(tmp_path)
    identifier = propose(tmp_path)
    approve(tmp_path, identifier)
    before = tree(tmp_path)
    for action in ("approve", "reject"):
        status, out, err = person(tmp_path, action, identifier)
        assert (status, out) == (5, "") and "approved already" in err and LATER in err
    status, out, _ = person(tmp_path, "show", identifier)
    assert status == 0 and "status: approved" in out and "Short sentences." in out
    assert tree(tmp_path) == before


def test_a_changed_target(tmp_path: Path) -> None:
    """What is applied is what is shown then; what the person wrote meanwhile stays."""
    file = target(tmp_path)
    identifier = propose(tmp_path)
    person(tmp_path, "show", identifier)
    file.write_text("Rewritten.\n")
    shown = person(tmp_path, "show", identifier)[1]
    out = person(tmp_path, "approve", identifier)[1]
    assert shown.partition("\n\n")[2] == out.removesuffix(f"approved {identifier}\n")
    assert file.read_text() == "Rewritten.\n\nShort sentences.\n"


def test_a_target_that_changes_in_that_very_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = target(tmp_path)
    identifier = propose(tmp_path)
    queue = (tmp_path / QUEUE).read_bytes()

    def save(kind: str, path: str) -> None:
        if kind == "fsync" and "memory-writes" in path:
            store.before = None
            file.write_text("Rewritten.\n")

    monkeypatch.setattr(store, "before", save)
    with pytest.raises(Refusal, match="changed by another program"):
        approve(tmp_path, identifier)
    assert file.read_text() == "Rewritten.\n" and (tmp_path / QUEUE).read_bytes() == queue
    assert rows(tmp_path, "memory-writes.jsonl") == [] and debris(tmp_path) == []


def test_a_target_that_holds_the_text_already(tmp_path: Path) -> None:
    file = target(tmp_path, "Style.\nShort sentences.\nmore\n")
    identifier = propose(tmp_path)
    assert "holds this text already" in person(tmp_path, "show", identifier)[1]
    assert "only the proposal is marked" in person(tmp_path, "approve", identifier)[1]
    assert file.read_text() == "Style.\nShort sentences.\nmore\n"
    assert rows(tmp_path, LOG)[0]["status"] == "approved" and rows(tmp_path, "memory-writes.jsonl") == []


@pytest.mark.parametrize("plant", ["missing", "folder missing", "folder", "link", "not UTF-8", "unclosed", "malformed"])
def test_a_vanished_or_unusable_target(plant: str, tmp_path: Path) -> None:
    file, outside = tmp_path / STYLE, tmp_path / "outside.md"
    outside.write_text("theirs")
    if plant != "folder missing":
        file.parent.mkdir(parents=True)
    if plant == "folder":
        file.mkdir()
    elif plant == "link":
        file.symlink_to(outside)
    elif plant == "not UTF-8":
        file.write_bytes(b"\xff")
    elif plant == "unclosed":  # what is added would never be seen
        file.write_text("a\n<private>b\n")
    elif plant == "malformed":
        file.write_text("a\n<privateer>b\n")
    root = tmp_path
    (root / "KNOWLEDGE").mkdir()
    outside.rename(root / "KNOWLEDGE" / "outside.md")
    identifier = propose(root)
    before = tree(root)
    for action in ("show", "approve"):
        status, _, err = person(root, action, identifier)
        assert status == 5 and "WRITINGSTYLE.md" in err and err.count("\n") == 1
    assert tree(root) == before


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"target_file": "/etc/passwd", "target_kind": "identity", "edit": "x"}, "target_file"),
        ({"target_file": "x", "target_kind": "root", "edit": "x"}, "target_kind"),
        ({"target_file": None, "edit": "x"}, "target_file"),
        ({"target_kind": "style", "edit": "x"}, "target_file"),
        ({"target_file": "x", "target_kind": "style"}, "edit"),
        ({"target_file": "x", "target_kind": "style", "edit": "\x07"}, "edit"),
        ({"target_file": "x", "target_kind": "style", "edit": "a\n---\nb"}, "edit"),
        ({"target_file": "x", "target_kind": "style", "edit": "<privateer> UTTERANCE"}, "edit"),
    ],
)
def test_rows_of_another_program_that_mean_no_good(row: Item, said: str, tmp_path: Path) -> None:
    target(tmp_path)
    line = json.dumps({"id": "p", "status": "pending", **row}) + "\n"
    write_corpus(tmp_path, {QUEUE: line, "KNOWLEDGE/x.txt": ""})
    before = tree(tmp_path)
    status, _, err = person(tmp_path, "approve", "p")
    assert status == 5 and "EINVAL_ITEM" in err and said in err and "UTTERANCE" not in err
    assert tree(tmp_path) == before


def test_a_torn_queue_line_is_kept(tmp_path: Path) -> None:
    target(tmp_path)
    identifier = propose(tmp_path)
    good = (tmp_path / QUEUE).read_bytes()
    (tmp_path / QUEUE).write_bytes(b'{"id":"torn\r\n[]\n\n' + good + b'{"id":"cut')
    approve(tmp_path, identifier)
    data = (tmp_path / QUEUE).read_bytes()
    assert data.startswith(b'{"id":"torn\r\n[]\n\n{"id":"prop_') and data.endswith(b'}\n{"id":"cut')
    status, _, err = person(tmp_path, "show", "nobody")
    assert status == 3 and "nobody" in err and "1, 2, 5" in err


def test_ids_that_are_unknown_or_stand_twice(tmp_path: Path) -> None:
    target(tmp_path)
    identifier = propose(tmp_path)
    data = (tmp_path / QUEUE).read_bytes()
    (tmp_path / QUEUE).write_bytes(data + data)
    before = tree(tmp_path)
    for action in ("show", "approve", "reject"):
        assert person(tmp_path, action, "prop_unknown")[0] == 3
        status, _, err = person(tmp_path, action, identifier)
        assert status == 5 and "lines 1, 2" in err
    assert tree(tmp_path) == before


def test_a_queue_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    target(tmp_path)
    identifier = propose(tmp_path)
    for data in (b"\xff" + (tmp_path / QUEUE).read_bytes(), None):
        (tmp_path / QUEUE).unlink()
        if data is None:
            (tmp_path / QUEUE).mkdir()
        else:
            (tmp_path / QUEUE).write_bytes(data)
        before = tree(tmp_path)
        for argv in (["list"], ["show", identifier], ["approve", identifier], ["reject", identifier]):
            status, out, err = person(tmp_path, *argv)
            assert (status, out) == (5, "") and LOG in err and err.count("\n") == 1
        assert tree(tmp_path) == before


def test_the_backlog_goes_down_after_a_decision(tmp_path: Path) -> None:
    from cortex_tools.evidence import layout as layouts
    from cortex_tools.evidence import proposals as health
    from cortex_tools.evidence import thresholds

    def pending() -> int:
        layout = layouts.find(os.fsencode(tmp_path))
        try:
            count: int = health.check(layout, thresholds.effective({})[0], 0).evidence["pending"]
            return count
        finally:
            layout.close()

    target(tmp_path)
    ids = [propose(tmp_path) for _ in range(3)]
    assert pending() == 3
    approve(tmp_path, ids[0])
    assert pending() == 2
    person(tmp_path, "reject", ids[1])
    assert pending() == 1


# The command line.


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["decide"],
        ["show"],
        ["approve"],
        ["reject"],
        ["list", "x"],
        ["show", "a", "b"],
        ["list", "--reason", "x"],
        ["approve", "x", "--json"],
        ["approve", "x", "--reason", "x"],
        ["show", "x", "--all"],
        ["list", "--bogus"],
        ["list", "--json", "--json"],
        ["reject", "x", "--reason"],
    ],
)
def test_bad_command_lines(argv: list[str], tmp_path: Path) -> None:
    status, out, err = person(tmp_path, *argv)
    assert (status, out) == (4, "") and err.startswith("cortex-proposals: invalid_input: ") and err.count("\n") == 1


def test_as_an_executable(tmp_path: Path) -> None:
    target(tmp_path)
    identifier = propose(tmp_path)
    done = run("cortex-proposals", "approve", identifier, "--memory-root", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.endswith(f"approved {identifier}\n".encode())
    done = run("cortex-proposals", "list", "--memory-root", tmp_path / "nowhere")
    assert done.returncode == 4 and done.stdout == b"" and b"nowhere" in done.stderr
    help_text = run("cortex-proposals", "--help")
    assert help_text.returncode == 0 and b"approve ID" in help_text.stdout
    with pytest.raises(CortexError):
        approve(tmp_path, "prop_unknown")
