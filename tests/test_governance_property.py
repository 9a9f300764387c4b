"""What the writer writes, the reader accepts and gives back; the rest is refused by name (sections 3 and 4)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_tools.domain import markdown
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.text import trim
from cortex_tools.governance import add, frontmatter
from cortex_tools.governance.refusal import EAT_CAP, EINVAL_ITEM
from tests.governed import LATER, NOW, Item, ask, ms

# Pieces that have a meaning somewhere on the way, among any text of any script.
PIECES = st.sampled_from(
    [
        "---", "\n---\n", "\r\n", "\r", "\n", "\t", '"', "'", "\\", ":", "#", " #", ": ", "- ", "slug: x",
        "\nslug: y\n", "<", ">", "<private>", "</private>", "private", "<private>z</private>", "<!--", "-->",
        "\u2028", "\u2029", "\x85", "\x00",
        "\ufeff", "\u200b", "\u0301", "\u200d", "😀", "👩‍👩‍👧", "織機", "مرحبا", "Straße", "İ", "id: x", "title: t",
        "updated: 1", "loom",
        "## Appended", "RULE: ", "[]", "{}", "%", "&amp;", "<b>", "`", "｜", "＜", "＞", "\ud800",
    ]
)  # fmt: skip
ANY = st.one_of(PIECES, st.text(max_size=12), st.text("ab <>/:-\n\"'\\", max_size=8))
TEXT = st.lists(ANY, min_size=1, max_size=6).map("".join)
LINE = st.lists(
    st.one_of(ANY.filter(lambda piece: not set(piece) & set("\n\r\u2028\u2029")), st.just("a")), max_size=5
).map("".join)
RELATED = st.lists(
    st.fixed_dictionaries(
        {"slug": st.sampled_from(["a", "b", "C-1", "x.y_z"]), "type": st.sampled_from(["extends", "related"])}
    ),
    max_size=3,
)
NOTES = st.fixed_dictionaries(
    {"type": st.just("idea"), "title": LINE, "content": TEXT},
    optional={"source_session": LINE, "confidence": st.floats(0, 1), "related": RELATED},
)
BUDGET = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


class Root:
    """A fresh root for each example."""

    def __enter__(self) -> Path:
        self._folder = Path(tempfile.mkdtemp(prefix="governed-"))
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)


def record_at(root: Path, path: str) -> Item:
    found = ask(root, "timeline", "--anchor", LATER, "--before", "100", "--page-size", "100")["items"]
    (card,) = [item for item in found if item["provenance"]["path"] == path]
    record: Item = ask(root, "get", card["id"])["items"][0]
    return record


@BUDGET
@given(NOTES)
def test_notes_are_refused_by_name_or_given_back(item: Item) -> None:
    with Root() as root:
        result = add(item, root, ms(NOW))
        if not result["ok"]:
            assert result["code"] == EINVAL_ITEM and list(root.iterdir()) == []
            assert any(word in result["message"] for word in ("title", "content", "source_session"))
            return
        record = record_at(root, result["path"])
        content = trim(strip_private(item["content"]))
        assert record["content"].endswith(f"\n\n{content}\n")
        assert (record["created"], record["updated"], record["type"]) == (NOW, NOW, "idea")
        assert record["related"] == list(dict.fromkeys(link["slug"] for link in item.get("related", [])))
        session = trim(strip_private(item.get("source_session", "")))
        assert record["provenance"]["session"] == (session or None)
        assert ask(root, "rebuild", "--from-canonical")["equivalent"] is True
        again = add({**item, "content": "more of it"}, root, ms(LATER))
        assert again["ok"] and again["path"] == result["path"], "the same title goes to the same note"
        assert record_at(root, result["path"])["content"].endswith("\n\nmore of it\n")


@BUDGET
@given(TEXT, NOTES)
def test_any_note_of_a_person_is_extended_or_left_as_it_is(body: str, item: Item) -> None:
    """The old note may hold anything that the reader takes."""
    item = {**item, "title": "Loom tension"}
    text = f'---\ntitle: "Loom tension"\ncreated: 2024-01-01\n---\n{body}'.encode("utf-8", "replace")
    with Root() as root:
        note = root / "KNOWLEDGE" / "Ideas" / "loom-tension.md"
        note.parent.mkdir(parents=True)
        note.write_bytes(text)
        result = add(item, root, ms(NOW))
        if not result["ok"]:
            assert note.read_bytes() == text
            return
        after = note.read_bytes()
        _, end = frontmatter.bounds(after.decode()) or (0, 0)
        assert after[end:].startswith(text[text.index(b"---\n", 4) :]) or result["detail"].get("left_alone")
        content = trim(strip_private(item["content"]))
        assert record_at(root, result["path"])["content"].endswith(f"\n\n{content}\n")


@BUDGET
@given(
    st.lists(st.one_of(LINE.map("RULE: ".__add__), LINE.map("NAME: ".__add__)), max_size=5), LINE.map("ROLE: ".__add__)
)
def test_entries_are_refused_by_name_or_given_back(entries: list[str], more: str) -> None:
    with Root() as root:
        first = add({"type": "memory", "actor": "principal", "op": "set", "entries": entries}, root, ms(NOW))
        second = add({"type": "memory", "actor": "principal", "content": more}, root, ms(LATER))
        wanted = [trim(strip_private(entry)) for entry in entries] if first["ok"] else []
        if second["ok"]:
            wanted.append(trim(strip_private(more)))
        for result in (first, second):
            assert result["ok"] or result["code"] in (EINVAL_ITEM, EAT_CAP, "EWRITE_FAILED"), result
        if not (first["ok"] or second["ok"]):
            assert list(root.iterdir()) == []
            return
        lines = record_at(root, "PRINCIPAL_MEMORY.md")["content"].split("\n")
        for entry in wanted:
            assert lines.count(entry) == 1


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["---", "--- ", "id: x", "", "a", "\r", 'title: "y"']), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
)
def test_front_matter_is_where_the_reader_sees_it(lines: list[str], end: str) -> None:
    text = end.join(lines)
    where = frontmatter.bounds(text)
    fields = markdown.front_matter(text)
    if where is None:
        assert fields == {}
        return
    head = text[where[0] : where[1]]
    assert markdown.front_matter(f"---\n{head}---\n") == fields
    assert markdown.front_matter(text[: where[0]] + "probe: 1\n" + text[where[0] :])["probe"] == "1"
