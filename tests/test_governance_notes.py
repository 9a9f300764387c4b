"""Notes: file names, the exact bytes of a new one, appending, ownership (section 4)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from cortex_tools.governance.notes import file_names
from tests.governed import (
    IDEA,
    KNOWLEDGE,
    LATER,
    NOW,
    OBS,
    Item,
    ask,
    content_of,
    debris,
    files,
    refused,
    rows,
    tree,
    write,
)
from tests.support import note, write_corpus

PATH = "KNOWLEDGE/Ideas/loom-tension.md"


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


# Names.


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Loom tension", "loom-tension"),
        ("  A--B  c!! ", "a-b-c"),
        ("x_y.z", "x-y-z"),
        ("C++ & Rust", "c-rust"),
        ("2026 plan", "2026-plan"),
        ("a" * 80, "a" * 64),
        ("it's “quoted” — 😀", "it-s-quoted"),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    assert file_names(title) == [f"{slug}.md", f"{slug}-{sha(title)[:8]}.md"]


@pytest.mark.parametrize(
    ("title", "slug"), [("織機", ""), ("Loom 織機", "loom"), ("Привет мир", ""), ("Größe", "gr-e"), ("١٢٣ a", "a")]
)
def test_titles_of_other_scripts_keep_apart(title: str, slug: str) -> None:
    assert file_names(title) == [f"{slug}-{sha(title)[:8]}.md".lstrip("-")]


@pytest.mark.parametrize("title", ["!!!", "😀", "…"])
def test_titles_without_any_letter_have_a_name_of_their_own(title: str) -> None:
    assert file_names(title) == [f"{sha(title)[:8]}.md"]


def test_two_titles_never_share_a_note(tmp_path: Path) -> None:
    titles = [
        "Loom tension",
        "Loom, tension",
        "LOOM TENSION",
        "loom-tension!",
        "織機",
        "绸缎",
        "!!!",
        "???",
        "a" * 64,
        "a" * 65,
    ]
    paths = [write(tmp_path, {**IDEA, "title": title, "content": f"on {title}"})["path"] for title in titles]
    assert len(set(paths)) == len(titles)
    assert paths[:2] == [PATH, f"KNOWLEDGE/Ideas/loom-tension-{sha('Loom, tension')[:8]}.md"]
    again = [write(tmp_path, {**IDEA, "title": f" {title} "}, LATER) for title in titles]
    assert [one["path"] for one in again] == paths
    assert all(one["detail"]["created_or_appended"] == "appended" for one in again)
    assert ask(tmp_path, "status")["canonical"]["records"] == len(titles)


def test_a_title_goes_to_the_note_that_has_it_already(tmp_path: Path) -> None:
    """Also where the note that took the plain name first is gone."""
    write(tmp_path, IDEA)
    other = {**IDEA, "title": "Loom Tension"}
    path = write(tmp_path, other)["path"]
    (tmp_path / PATH).unlink()
    assert write(tmp_path, other)["path"] == path


def test_a_note_that_has_the_hashed_name_and_another_title(tmp_path: Path) -> None:
    hashed = f"KNOWLEDGE/Ideas/{file_names('織機')[0]}"
    write_corpus(tmp_path, {hashed: note("x")})
    refused(tmp_path, {**IDEA, "title": "織機"}, "EWRITE_FAILED", hashed, "another title")


# New notes.


def test_the_bytes_of_a_new_idea(tmp_path: Path) -> None:
    item = {
        **IDEA,
        "title": ' Loom "tension" \\ pull ',
        "content": "\n  Warp threads\n\twant an even pull. \n\n",
        "confidence": 0.9,
        "source_session": "s-1",
        "related": [{"slug": "idea-a", "type": "extends"}, {"slug": "b.c", "type": "related"}],
    }
    path = "KNOWLEDGE/Ideas/loom-tension-pull.md"
    expected = f"""---
id: kb_{sha(f"{path} {NOW}")[:12]}
type: idea
title: "Loom \\"tension\\" \\\\ pull"
tags: [untagged]
status: seedling
quality: 2
quality_inferred: true
confidence: 0.9
source_kind: internal
source_session: s-1
created: {NOW}
updated: {NOW}
related:
  - slug: idea-a
    type: extends
  - slug: b.c
    type: related
convention: kb-v3
---

# Loom "tension" \\ pull

Warp threads
\twant an even pull.
""".encode()
    detail = {"bytes_written": len(expected), "created_or_appended": "created", "related_links": 2}
    assert write(tmp_path, item) == {"ok": True, "type": "idea", "path": path, "detail": detail}
    assert files(tmp_path)[path] == expected
    row = {"ts": NOW, "type": "idea", "path": path, **detail, "source_session": "s-1", "confidence": 0.9}
    assert rows(tmp_path, "tier-b-writes.jsonl") == [row | {"sha256": sha(expected)}]
    assert set(files(tmp_path)) == {path, f"{OBS}/tier-b-writes.jsonl"}


@pytest.mark.parametrize(
    ("entity_type", "folder"), [("person", "People"), ("company", "Companies"), ("research", "Research")]
)
def test_the_bytes_of_new_knowledge(entity_type: str, folder: str, tmp_path: Path) -> None:
    path = f"KNOWLEDGE/{folder}/ada.md"
    result = write(tmp_path, {**KNOWLEDGE, "entity_type": entity_type})
    assert (result["type"], result["path"]) == ("knowledge", path)
    assert (
        files(tmp_path)[path].decode()
        == f"""---
id: kb_{sha(f"{path} {NOW}")[:12]}
type: {entity_type}
title: "Ada"
tags: [untagged]
status: seedling
quality: 2
quality_inferred: true
source_kind: internal
created: {NOW}
updated: {NOW}
related: []
convention: kb-v3
---

# Ada

Wrote note G.
"""
    )


@pytest.mark.parametrize(("content", "quality"), [("x" * 399, 2), ("x" * 400, 5), ("😀" * 199, 2), ("😀" * 200, 5)])
def test_quality_by_length(content: str, quality: int, tmp_path: Path) -> None:
    path = write(tmp_path, {**IDEA, "content": f"  {content}\n"})["path"]
    assert f"\nquality: {quality}\n" in (tmp_path / path).read_text()


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (1.0, "1"), (0, "0"), (0.25, "0.25"), (1e-7, "1e-7")])
def test_confidence_as_a_number_of_the_contract(value: float, text: str, tmp_path: Path) -> None:
    path = write(tmp_path, {**IDEA, "confidence": value})["path"]
    assert f"\nconfidence: {text}\n" in (tmp_path / path).read_text()


def test_it_is_found_and_given_back(tmp_path: Path) -> None:
    path = write(tmp_path, {**IDEA, "content": "warp <private>UTTERANCE</private> weft"})["path"]
    (card,) = ask(tmp_path, "search", "weft")["items"]
    assert card["provenance"] == {"source": "internal", "session": None, "path": path}
    assert content_of(tmp_path, path).endswith("# Loom tension\n\nwarp  weft\n")
    assert ask(tmp_path, "rebuild", "--from-canonical")["equivalent"] is True
    assert not any(b"UTTERANCE" in data for data in files(tmp_path).values())


def test_title_and_content_that_are_private_markup_only_together(tmp_path: Path) -> None:
    refused(tmp_path, {**IDEA, "title": "a <", "content": "private > UTTERANCE"}, "EINVAL_ITEM", "private markup")


# Appending.


def existing(tmp_path: Path, text: str | bytes, path: str = PATH) -> bytes:
    write_corpus(tmp_path, {path: text})
    return (tmp_path / path).read_bytes()


def appended(content: str, session: str = "none", confidence: str = "1", now: str = LATER) -> str:
    return f"\n## Appended {now}\n<!-- source_session: {session} · confidence: {confidence} -->\n\n{content}\n"


HEAD = '---\nid: a\ntitle: "Loom tension"\ncreated: 2024-01-01\n'


def test_the_bytes_of_an_appended_note(tmp_path: Path) -> None:
    write(tmp_path, IDEA)
    before = (tmp_path / PATH).read_text()
    item = {**IDEA, "content": " more ", "source_session": "s-2", "confidence": 0.5}
    result = write(tmp_path, item, LATER)
    after = before.replace(f"updated: {NOW}", f"updated: {LATER}") + appended("more", "s-2", "0.5")
    assert (tmp_path / PATH).read_text() == after
    detail = {"bytes_written": len(after.encode()), "created_or_appended": "appended", "related_links": 0}
    assert result == {"ok": True, "type": "idea", "path": PATH, "detail": detail}
    row = {"ts": LATER, "type": "idea", "path": PATH, **detail, "source_session": "s-2", "confidence": 0.5}
    assert rows(tmp_path, "tier-b-writes.jsonl")[1] == row | {"sha256": sha(after)}
    assert debris(tmp_path) == []


@pytest.mark.parametrize(
    ("head", "new_head"),
    [
        ("updated: 2024-02-02\nx: y\n", f"updated: {LATER}\nx: y\n"),
        ("updated:\n", f"updated: {LATER}\n"),
        ("updated: 2024-02-02\nupdated: 2024-03-03\n", f"updated: 2024-02-02\nupdated: {LATER}\n"),
        ("last_updated: 2024-02-02\n", f"last_updated: 2024-02-02\nupdated: {LATER}\n"),
        ("", f"updated: {LATER}\n"),
        ("nested:\n  updated: 1\n", f"nested:\n  updated: 1\nupdated: {LATER}\n"),
    ],
)
def test_setting_updated(head: str, new_head: str, tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}{head}---\nbody\n")
    result = write(tmp_path, IDEA, LATER)
    assert (tmp_path / PATH).read_text() == f"{HEAD}{new_head}---\nbody\n" + appended(IDEA["content"])
    assert "left_alone" not in result["detail"]
    assert ask(tmp_path, "get", "a")["items"][0]["updated"] == LATER


def test_an_updated_that_lies_in_the_future_stays(tmp_path: Path) -> None:
    before = existing(tmp_path, f"{HEAD}updated: 2099-01-01\n---\nbody\n")
    result = write(tmp_path, IDEA, LATER)
    assert (tmp_path / PATH).read_bytes() == before + appended(IDEA["content"]).encode()
    assert result["detail"]["left_alone"] == ["updated: it lies in the future"]


LINKS = [{"slug": "new", "type": "supports"}, {"slug": "old", "type": "extends"}]
OLD, NEW = "  - slug: old\n    type: extends\n", "  - slug: new\n    type: supports\n"
MERGES = [
    ("", f"related:\n{NEW}{OLD}"),
    ("related: []\n", f"related:\n{NEW}{OLD}"),
    ("related:\n", f"related:\n{NEW}{OLD}"),
    ("related: \n  - slug: old\n    type: related\nz: 1\n", f"related: \n{OLD}{NEW}z: 1\n"),
    ("related:\n  - slug: old\n", f"related:\n{OLD}{NEW}"),
    ('related:\n  - slug: "old"\n    type: "extends"\n', f'related:\n  - slug: "old"\n    type: "extends"\n{NEW}'),
    ("related:\n- slug: old\n  type: x\n", "related:\n- slug: old\n  type: extends\n- slug: new\n  type: supports\n"),
    (f"related:\n  - slug: other\n    type: x\n{NEW}\n", f"related:\n  - slug: other\n    type: x\n{NEW}{OLD}\n"),
]


@pytest.mark.parametrize(("head", "new_head"), MERGES)
def test_merging_related(head: str, new_head: str, tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}updated: 2024-02-02\n{head}---\nbody\n")
    result = write(tmp_path, {**IDEA, "related": LINKS}, LATER)
    whole = f"{HEAD}updated: {LATER}\n{new_head}---\nbody\n" + appended(IDEA["content"])
    assert (tmp_path / PATH).read_text() == whole
    assert result["detail"]["related_links"] == 2 and "left_alone" not in result["detail"]
    assert {"new", "old"} <= set(ask(tmp_path, "get", "a")["items"][0]["related"])
    write(tmp_path, {**IDEA, "related": LINKS}, LATER)
    assert (tmp_path / PATH).read_text() == whole + appended(IDEA["content"])  # merging again changes nothing


UNKNOWN = [
    ("related: [old, x]\n", "inline list"),
    ("related: [] # none\n", "inline list"),
    ("related: old\n", "inline list"),
    ("related:\n  - slug: old\n    type: x\n    note: y\n", "more than slug and type"),
    ("related:\n  - old\n", "more than slug and type"),
    ("related:\n  # comment\n  - slug: old\n", "more than slug and type"),
    ("related:\n  - type: x\n    slug: old\n", "more than slug and type"),
    ("related:\n  - slug: old\n      type: x\n", "more than slug and type"),
    ("related:\n  - slug: a\nrelated:\n  - slug: b\n", "twice"),
]


@pytest.mark.parametrize(("head", "said"), UNKNOWN)
def test_what_cannot_be_merged_is_left_alone_and_said(head: str, said: str, tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}updated: 2024-02-02\n{head}---\nbody\n")
    detail = write(tmp_path, {**IDEA, "related": LINKS}, LATER)["detail"]
    assert (tmp_path / PATH).read_text() == f"{HEAD}updated: {LATER}\n{head}---\nbody\n" + appended(IDEA["content"])
    assert detail["related_links"] == 0
    assert len(detail["left_alone"]) == 1 and said in detail["left_alone"][0]


KEPT = [
    f"{HEAD}---\r\nbody\r\nmore\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),  # CR LF throughout
    f"{HEAD}---\nbody without an end",
    f"\ufeff{HEAD}---\nbody\n",
    f"{HEAD}odd: \x09 tabs\nempty:\n# comment\n---\n\n\n  body \n\n\n",
    f"{HEAD}---\n---\nid: no\n---\n",
    f"{HEAD}---",
    f"{HEAD}---\nbody <private>UTTERANCE</private> more\n",
]


@pytest.mark.parametrize("text", KEPT, ids=range(len(KEPT)))
def test_every_other_byte_stays(text: str, tmp_path: Path) -> None:
    before = existing(tmp_path, text)
    write(tmp_path, IDEA, LATER)
    after = (tmp_path / PATH).read_bytes()
    assert after.replace(f"updated: {LATER}\n".encode(), b"").startswith(before)
    end = "" if text.endswith("\n") else "\n"
    assert after.endswith(before[-3:] + (end + appended(IDEA["content"])).encode())
    assert content_of(tmp_path, PATH).endswith(f"\n\n{IDEA['content']}\n")


def test_crlf_front_matter_is_left_alone_and_said(tmp_path: Path) -> None:
    before = existing(tmp_path, KEPT[0])
    detail = write(tmp_path, {**IDEA, "related": LINKS}, LATER)["detail"]
    assert (tmp_path / PATH).read_bytes() == before + appended(IDEA["content"]).encode()
    assert detail["left_alone"] == ["updated and related: the front matter has CR LF line ends"]
    assert detail["related_links"] == 0


def test_private_front_matter_is_left_alone_and_said(tmp_path: Path) -> None:
    before = existing(tmp_path, f"{HEAD}<private>\nupdated: 2024-02-02\n</private>\n---\nbody\n")
    detail = write(tmp_path, {**IDEA, "related": LINKS}, LATER)["detail"]
    assert (tmp_path / PATH).read_bytes() == before + appended(IDEA["content"]).encode()
    assert "private" in detail["left_alone"][0]


@pytest.mark.parametrize(
    "title", ["title: Loom tension", "title: 'Loom tension'", "name: Loom tension", 'title: "Loom tension']
)
def test_a_person_s_own_note(title: str, tmp_path: Path) -> None:
    """Without source_kind it is nobody's import, and appending is fine."""
    existing(tmp_path, f"---\nid: a\n{title}\nsource: diary\n---\nbody\n")
    assert write(tmp_path, IDEA, LATER)["detail"]["created_or_appended"] == "appended"


def test_a_note_without_front_matter_has_its_path_as_title(tmp_path: Path) -> None:
    existing(tmp_path, "# Loom tension\n")
    assert write(tmp_path, IDEA)["path"] == f"KNOWLEDGE/Ideas/{file_names(IDEA['title'])[1]}"


@pytest.mark.parametrize("kind", ["web", "import:x", "Internal"])
def test_a_note_of_another_source(kind: str, tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}source_kind: {kind}\n---\nbody\n")
    refused(tmp_path, IDEA, "ESOURCE_OWNED", PATH)


@pytest.mark.parametrize("kind", ["internal", '"internal"', ""])
def test_a_note_of_our_own_source(kind: str, tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}source_kind: {kind}\n---\nbody\n")
    assert write(tmp_path, IDEA)["detail"]["created_or_appended"] == "appended"


BAD = [
    (b"\xff\xfe", "UTF-8"),
    (HEAD.encode() + b"---\nbad \xe9\n", "UTF-8"),
    (HEAD + "---\nbell \x07\n", "control"),
    (HEAD + "updated: nonsense\n---\n", "updated"),
    (HEAD + "updated: 2023-01-01\n---\n", "created"),
    (HEAD + "---\nopen <private>UTTERANCE\n", "private tag"),
    (HEAD + "---\nif a < private_count\n", "private tag"),
]


@pytest.mark.parametrize(("data", "said"), BAD, ids=range(len(BAD)))
def test_nothing_is_added_to_a_note_that_the_reader_does_not_take_or_cuts_off(
    data: str | bytes, said: str, tmp_path: Path
) -> None:
    existing(tmp_path, data)
    assert "UTTERANCE" not in refused(tmp_path, IDEA, "EWRITE_FAILED", PATH, said)


def test_a_text_that_would_become_private_only_beside_the_old_one(tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}---\nends with <")
    write(tmp_path, {**IDEA, "content": "private > is no tag here"})
    assert content_of(tmp_path, PATH).endswith("private > is no tag here\n")


def test_modes_are_kept(tmp_path: Path) -> None:
    existing(tmp_path, f"{HEAD}---\nbody\n")
    for mode in (0o600, 0o640, 0o444, 0o664):
        (tmp_path / PATH).chmod(mode)
        write(tmp_path, IDEA)
        assert tree(tmp_path)[PATH][1] == mode
    assert tree(tmp_path)[f"{OBS}/tier-b-writes.jsonl"][1] == 0o600


# Results.


def test_a_torn_last_line_of_the_audit_is_completed_never_overwritten(tmp_path: Path) -> None:
    log = f"{OBS}/tier-b-writes.jsonl"
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), log: '{"ts":"2024"}\n{"torn'})
    write(tmp_path, IDEA)
    lines = (tmp_path / log).read_text().split("\n")
    assert lines[:2] == ['{"ts":"2024"}', '{"torn'] and json.loads(lines[2])["path"] == PATH and lines[3:] == [""]


def item_of(size: int) -> Item:
    return {**IDEA, "content": "y" * size}


def test_a_note_does_not_grow_past_the_size_of_a_file(tmp_path: Path) -> None:
    text = f"{HEAD}updated: {NOW}\n---\n"
    limit = 8 * 1024 * 1024
    room = limit - len(text) - len(appended("", now=NOW).encode())
    existing(tmp_path, text + "x" * (room - 100 - 1) + "\n")
    refused(tmp_path, item_of(101), "EWRITE_FAILED", str(limit))
    write(tmp_path, item_of(100))
    assert (tmp_path / PATH).stat().st_size == limit
    assert ask(tmp_path, "status")["canonical"]["records"] == 1
