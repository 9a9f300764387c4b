"""Files as another program would leave them are read, respected and kept (sections 4 to 7)."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from cortex_tools.contract import limits
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.governance import add
from tests.governed import IDEA, LATER, MEMORY, NOW, OBS, PROPOSAL, QUEUE, ask, files, rows, tree, write
from tests.support import write_corpus

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A LifeOS tree as its own program keeps it; the answer is the memory root."""
    write_corpus(
        tmp_path / "LIFEOS",
        {
            f"MEMORY/{NOTE}": (
                '---\nid: kb_0123456789ab\ntype: idea\ntitle: "Loom tension"\ntags: [untagged]\nstatus: seedling\n'
                "quality: 2\nquality_inferred: true\nsource_kind: internal\ncreated: 2025-01-01T00:00:00.000Z\n"
                "updated: 2025-01-01T00:00:00.000Z\nrelated:\n  - slug: a\n    type: related\nconvention: kb-v3\n---\n"
                "\n# Loom tension\n\nOld words.\n"
            ),
            "MEMORY/KNOWLEDGE/_harvest-queue/x.md": "not ours to read \x00",
            f"MEMORY/{OBS}/tier-b-writes.jsonl": '{"ts":"2025-01-01T00:00:00.000Z","other":"format"}\n',
            f"MEMORY/{QUEUE}": '{"id":"p-1","status":"pending","edit":"x","target_kind":"style","target_file":"x"}\n',
            "USER/PRINCIPAL/PRINCIPAL_MEMORY.md": (
                "---\nschema_version: 1\nlast_updated: 2025-01-01T00:00:00.000Z\nlast_updated_by: MemorySystem.add\n"
                "---\n# Principal memory\n\nWhat the assistant knows.\n\n<!-- BEGIN ENTRIES -->\nNAME: Ada\n"
                "<!-- BEGIN ENTRIES -->\nRULE: be brief\n<!-- END ENTRIES -->\n"
            ),
            "USER/PRINCIPAL/WRITINGSTYLE.md": "Style.\n",
        },
    )
    return tmp_path / "LIFEOS" / "MEMORY"


def test_a_whole_session_on_one_tree(store: Path) -> None:
    before = tree(store.parent)
    write(store, {**IDEA, "related": [{"slug": "a", "type": "extends"}, {"slug": "b", "type": "related"}]}, LATER)
    write(store, MEMORY, LATER)
    write(store, PROPOSAL, LATER)
    note = files(store)[NOTE].decode()
    assert note.startswith('---\nid: kb_0123456789ab\ntype: idea\ntitle: "Loom tension"\n')
    assert "related:\n  - slug: a\n    type: extends\n  - slug: b\n    type: related\nconvention: kb-v3\n" in note
    assert f"updated: {LATER}\n" in note and "\n\n# Loom tension\n\nOld words.\n\n## Appended " in note
    hot = (store.parent / "USER" / "PRINCIPAL" / "PRINCIPAL_MEMORY.md").read_text()
    assert hot == (
        f"---\nschema_version: 1\nlast_updated: {LATER}\nlast_updated_by: MemorySystem.add\n---\n"
        "# Principal memory\n\nWhat the assistant knows.\n\n<!-- BEGIN ENTRIES -->\nNAME: Ada\nRULE: be brief\n"
        "RULE: keep the loom oiled\n<!-- END ENTRIES -->\n"
    )
    assert rows(store, "tier-b-writes.jsonl")[0] == {"ts": "2025-01-01T00:00:00.000Z", "other": "format"}
    assert rows(store, "pending-proposals.jsonl")[0]["id"] == "p-1" and len(rows(store, "pending-proposals.jsonl")) == 2
    after = tree(store.parent)
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {
        f"MEMORY/{NOTE}",
        f"MEMORY/{QUEUE}",
        f"MEMORY/{OBS}/tier-b-writes.jsonl",
        f"MEMORY/{OBS}/memory-writes.jsonl",
        f"MEMORY/{OBS}/memory-snapshots",
        f"MEMORY/{OBS}/memory-snapshots/PRINCIPAL_MEMORY__2026-01-03T00-00-00-000Z.md",
        "USER/PRINCIPAL/PRINCIPAL_MEMORY.md",
    }
    assert set(before) <= set(after)
    assert ask(store, "get", "kb_0123456789ab")["items"][0]["related"] == ["a", "b"]


def test_a_row_of_the_other_program_can_be_decided(store: Path) -> None:
    from cortex_tools.files.root import pin_root
    from cortex_tools.governance import proposals
    from cortex_tools.governance.session import governed

    pinned = pin_root(os.fsencode(store))
    governed(pinned, os.fsencode(store), 0, lambda session: proposals.approve(session, "p-1"))
    pinned.close()
    assert (store.parent / "USER" / "PRINCIPAL" / "WRITINGSTYLE.md").read_text() == "Style.\n\nx\n"
    assert rows(store, "pending-proposals.jsonl")[0]["status"] == "approved"


def test_the_other_program_s_lock_is_respected(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.1)
    now = format_ms(time.time_ns() // 1_000_000)
    lock = json.dumps({"pid": os.getppid(), "host": socket.gethostname(), "ts": now})
    for target, item in ((NOTE, IDEA), ("../USER/PRINCIPAL/PRINCIPAL_MEMORY.md", MEMORY), (QUEUE, PROPOSAL)):
        path = store / f"{target}.lock"
        path.write_text(lock)
        result = add(item, store)
        assert result["code"] == "EWRITE_FAILED" and f"by pid {os.getppid()}" in result["message"]
        assert path.read_text() == lock
        path.unlink()
        assert add(item, store)["ok"]


def test_a_reader_sees_no_temporary_or_lock_file(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At no moment of a write does the listing hold anything but notes."""
    from cortex_tools.files.root import pin_root
    from cortex_tools.files.walk import walk
    from cortex_tools.governance import store as seam

    seen: set[str] = set()

    def look(kind: str, path: str) -> None:
        pinned = pin_root(os.fsencode(store))
        seen.update(file.path for file in walk(pinned))
        pinned.close()

    monkeypatch.setattr(seam, "before", look)
    for item in (IDEA, {**IDEA, "title": "New"}, MEMORY, PROPOSAL):
        write(store, item, NOW)
    assert seen == {NOTE, "KNOWLEDGE/Ideas/new.md"}
