"""Typed items: fields, limits, private spans, and what would be read as something else (sections 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cortex_tools.governance.items import ENTITY_TYPES, FIELDS, RELATIONS, TARGET_KINDS, sanitize
from cortex_tools.governance.refusal import Refusal
from tests.governed import IDEA, ITEMS, KNOWLEDGE, MEMORY, PROPOSAL, Item, refused, tree

RULE = "RULE: x"
SET: Item = {"type": "memory", "actor": "assistant", "op": "set", "entries": [RULE]}
LINK = {"slug": "a", "type": "related"}


def invalid(item: Any, *mentions: str, code: str = "EINVAL_ITEM") -> str:
    with pytest.raises(Refusal) as caught:
        sanitize(item)
    assert caught.value.code == code, caught.value.message
    for word in mentions:
        assert word in caught.value.message
    return caught.value.message


def without(item: Item, field: str) -> Item:
    return {key: value for key, value in item.items() if key != field}


@pytest.mark.parametrize(
    "item", [None, [], "x", 1, True, {}, {"type": None}, {"type": 1}, {"type": ["idea"]}], ids=repr
)
def test_what_is_no_item(item: Any, tmp_path: Path) -> None:
    invalid(item, "type")
    refused(tmp_path, item, "EINVAL_ITEM", "type")


@pytest.mark.parametrize("kind", ["", "note", "Idea", "idea ", "memories"])
def test_unknown_types(kind: str, tmp_path: Path) -> None:
    invalid({"type": kind}, "memory, idea, knowledge, proposal", code="EUNKNOWN_TYPE")
    refused(tmp_path, {"type": kind, "junk": 1}, "EUNKNOWN_TYPE")


@pytest.mark.parametrize("kind", ITEMS)
def test_other_fields_are_refused_by_name_in_order(kind: str) -> None:
    assert invalid({**ITEMS[kind], "zeta": 1, "alpha": 2, 3: 4}).startswith("3, alpha, zeta: ")
    for other in {field for fields in FIELDS.values() for field in fields} - set(FIELDS[kind]):
        invalid({**ITEMS[kind], other: "x"}, other)


@pytest.mark.parametrize("kind", ITEMS)
def test_all_fields_of_a_type_together(kind: str) -> None:
    values = {
        "confidence": 0.5,
        "provenance": "deduced",
        "op": "add",
        "source_session": "s-1",
        "related": [LINK],
        "target_kind": "style",
        "observed_across_sessions": 3,
    }
    full = {**{field: values[field] for field in FIELDS[kind] if field in values}, **ITEMS[kind]}
    assert set(full) | {"entries"} >= set(FIELDS[kind])
    sanitize(full)


REQUIRED = [(IDEA, "title"), (IDEA, "content"), (KNOWLEDGE, "entity_type"), (KNOWLEDGE, "name"), (KNOWLEDGE, "content")]
REQUIRED += [(PROPOSAL, field) for field in ("target_file", "edit", "rationale", "confidence")]
REQUIRED += [(MEMORY, "actor"), (MEMORY, "content"), (SET, "entries")]


@pytest.mark.parametrize(("item", "field"), REQUIRED)
def test_required_fields(item: Item, field: str) -> None:
    invalid(without(item, field), field)
    for nothing in (None, -1, True, {}, [1]):
        invalid({**item, field: nothing}, field)


TEXTS = [(IDEA, "title"), (IDEA, "content"), (KNOWLEDGE, "name"), (PROPOSAL, "edit"), (PROPOSAL, "rationale")]
TEXTS += [(PROPOSAL, "target_file")]


@pytest.mark.parametrize(("item", "field"), TEXTS)
def test_required_text_is_not_blank_nor_emptied(item: Item, field: str) -> None:
    for blank in ("", " ", "\t\u3000\ufeff", "\u2028" if field in ("content", "edit") else "\xa0"):
        invalid({**item, field: blank}, field, "blank")
    if field != "target_file":
        message = invalid({**item, field: " <private>UTTERANCE</private> "}, field, "private")
        assert "UTTERANCE" not in message


@pytest.mark.parametrize(("item", "field"), [*TEXTS, (MEMORY, "content"), (IDEA, "source_session")])
@pytest.mark.parametrize(
    "bad", ["\0", "\x08", "\x0b", "\x0c", "\x1b", "\x1f", "\x7f", "\x80", "\x85", "\x9f", "\ud800", "\udfff"], ids=ascii
)
def test_controls_and_lone_surrogates(item: Item, field: str, bad: str) -> None:
    invalid({**item, field: f"RULE: a{bad}b"}, field)


def test_controls_inside_a_private_span_go_with_it() -> None:
    assert sanitize({**IDEA, "content": "a<private>\x1b[31m</private>b"})["content"] == "ab"
    invalid({**IDEA, "content": "a<private>\ud800</private>b"}, "surrogate")


@pytest.mark.parametrize("bad", ["<!--", "-->", "a <!-- b --> c"])
@pytest.mark.parametrize(("item", "field"), [*TEXTS, (MEMORY, "content"), (IDEA, "source_session")])
def test_comments(item: Item, field: str, bad: str) -> None:
    invalid({**item, field: f"RULE: {bad}"}, field, "comment")
    invalid({**SET, "entries": [RULE, f"RULE: {bad}"]}, "entries[1]", "comment")


@pytest.mark.parametrize(
    "bad", ["---", "a\n---", "---\nb", "a\r\n---\r\nb", "a\r---", "a\n --- \nb", "a\u2028---"], ids=ascii
)
@pytest.mark.parametrize(("item", "field"), [(IDEA, "content"), (PROPOSAL, "edit"), (PROPOSAL, "rationale")])
def test_lines_that_end_front_matter(item: Item, field: str, bad: str) -> None:
    invalid({**item, field: bad}, field, "---")
    for good in ("----", "a --- b", "a\n- --\nb", "--- a", "***"):
        sanitize({**item, field: good})


@pytest.mark.parametrize(
    ("item", "field"), [(IDEA, "title"), (KNOWLEDGE, "name"), (IDEA, "source_session"), (PROPOSAL, "target_file")]
)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\u2028", "\u2029"], ids=ascii)
def test_single_lines(item: Item, field: str, end: str) -> None:
    invalid({**item, field: f"a{end}b"}, field, "single line")


@pytest.mark.parametrize(
    "bad",
    [
        "slug: x",
        "a\nslug: x",
        "- slug: x",
        "a\n  -  slug:x",
        "a\rslug: x",
        "a\nslug:\n\nx",
        "a\nslug:",
        "\u2028slug: '",
    ],
)
def test_content_with_what_the_reader_takes_for_a_link(bad: str) -> None:
    invalid({**IDEA, "content": bad}, "content", "slug:")
    invalid({**KNOWLEDGE, "content": bad}, "content", "slug:")
    for good in ("a slug: x", "sluggish: x", "* slug: x", "slug x", "-- slug: x"):
        sanitize({**IDEA, "content": good})


LIMITS = [
    (IDEA, "content", 65_536, "x"),
    (PROPOSAL, "edit", 65_536, "x"),
    (PROPOSAL, "rationale", 65_536, "x"),
    (IDEA, "title", 1_024, "x"),
    (KNOWLEDGE, "name", 1_024, "x"),
    (IDEA, "source_session", 1_024, "x"),
    (PROPOSAL, "source_session", 1_024, "x"),
    (PROPOSAL, "target_file", 4_096, "x"),
]


@pytest.mark.parametrize(("item", "field", "limit", "char"), LIMITS)
def test_limits_in_utf16_units(item: Item, field: str, limit: int, char: str) -> None:
    sanitize({**item, field: char * limit})
    invalid({**item, field: char * (limit + 1)}, field, str(limit))
    sanitize({**item, field: "😀" * (limit // 2)})
    invalid({**item, field: "😀" * (limit // 2) + "x"}, field)
    if field != "target_file":  # what is stripped does not count
        sanitize({**item, field: char * limit + "<private>" + char * limit + "</private>"})


# Private text.


@pytest.mark.parametrize(("item", "field"), [pair for pair in TEXTS if pair[1] != "target_file"])
def test_private_spans_are_stripped_first(item: Item, field: str) -> None:
    clean = sanitize({**item, field: "public <private>UTTERANCE <b></private>text"})
    assert clean[field if field != "name" else "title"] == "public text"
    assert "UTTERANCE" not in repr(
        sanitize({**item, field: "rest <private>UTTERANCE"})
    )  # never closed: private to its end


@pytest.mark.parametrize(
    "bad", ["<privateer> UTTERANCE", "if a < private_count: UTTERANCE", "<pri\u200bvate>UTTERANCE", "<private/>"]
)
@pytest.mark.parametrize(("item", "field"), [pair for pair in TEXTS if pair[1] != "target_file"])
def test_a_cut_at_a_malformed_opener_is_refused(item: Item, field: str, bad: str) -> None:
    message = invalid({**item, field: f"public {bad}"}, field, "cut off")
    assert "UTTERANCE" not in message
    # Within a span, too: the opener hides the span's end, and the tail would be lost in silence.
    invalid({**item, field: f"public <private>x {bad} y</private> and a tail"}, field, "cut off")


def test_a_tag_that_forms_when_a_span_is_removed() -> None:
    invalid({**IDEA, "content": "a <pri<private>x</private>vate>b"}, "content", "cut off")


def test_target_file_is_refused_with_markup_not_stripped() -> None:
    invalid({**PROPOSAL, "target_file": "a<private>b</private>.md"}, "target_file", "private")
    invalid({**PROPOSAL, "target_file": "a</private>.md"}, "target_file", "private")


def test_entries_and_related_are_stripped_too() -> None:
    clean = sanitize({**SET, "entries": ["RULE: a<private>UTTERANCE</private>b"]})
    assert clean["entries"] == ["RULE: ab"]
    clean = sanitize({**IDEA, "related": [{"slug": "a<private>UTTERANCE</private>b", "type": "related"}]})
    assert clean["related"] == [{"slug": "ab", "type": "related"}]


# Fields one by one.


@pytest.mark.parametrize("good", [0, 1, 0.0, 1.0, 0.5, 1e-9])
@pytest.mark.parametrize("kind", ITEMS)
def test_confidence(kind: str, good: Any) -> None:
    assert sanitize({**ITEMS[kind], "confidence": good})["confidence"] == good
    for bad in (-1e-9, 1.0000001, 2, float("inf"), float("nan"), True, False, "1", None, [0.5]):
        invalid({**ITEMS[kind], "confidence": bad}, "confidence")


@pytest.mark.parametrize("good", [1, 2, 10**9, 3.0])
def test_observed_across_sessions(good: Any) -> None:
    assert sanitize({**PROPOSAL, "observed_across_sessions": good})["observed_across_sessions"] == good
    for bad in (0, -1, 1.5, True, "1", None, 10**400, float("inf"), float("nan")):
        invalid({**PROPOSAL, "observed_across_sessions": bad}, "observed_across_sessions")
    assert sanitize(PROPOSAL)["observed_across_sessions"] == 1


CHOICES = [
    (MEMORY, "actor", ("principal", "assistant")),
    (MEMORY, "provenance", ("explicit", "deduced", "inferred")),
    (KNOWLEDGE, "entity_type", ENTITY_TYPES),
    (PROPOSAL, "target_kind", TARGET_KINDS),
]


@pytest.mark.parametrize(("item", "field", "choices"), CHOICES)
def test_choices(item: Item, field: str, choices: tuple[str, ...]) -> None:
    for good in choices:
        assert sanitize({**item, field: good})[field] == good
    for bad in ("", "other", choices[0].upper(), choices[0] + " ", None, 1, [choices[0]]):
        invalid({**item, field: bad}, field, choices[0])


def test_operations_and_what_they_need() -> None:
    assert sanitize({**MEMORY, "op": "add"}) == sanitize(MEMORY)
    invalid({**MEMORY, "op": "remove"}, "op")
    invalid({**MEMORY, "op": None}, "op")
    invalid({**MEMORY, "op": "set"}, "entries")
    invalid({**SET, "op": "add"}, "content")
    invalid({**SET, "content": RULE}, "content")
    invalid({**MEMORY, "entries": [RULE]}, "entries")


def test_entries() -> None:
    assert sanitize({**SET, "entries": []})["entries"] == []
    assert len(sanitize({**SET, "entries": [RULE] * 48})["entries"]) == 48
    invalid({**SET, "entries": [f"RULE: {n}" for n in range(51)]}, "51", "48", "trim 3")
    for bad in ("x", {}, None, [1], [None], [[RULE]]):
        invalid({**SET, "entries": bad}, "entries")
    for bad in (
        "",
        " ",
        "RULE: ",
        "RULE:",
        "RULE:x",
        "rule: x",
        "x",
        "NOTE: x",
        "RULE: a\nRULE: b",
        "<private>x</private>",
    ):
        invalid({**SET, "entries": [RULE, bad]}, "entries[1]")
        invalid({**MEMORY, "content": bad}, "content")


@pytest.mark.parametrize("prefix", ["NAME: ", "ROLE: ", "RELATION: ", "PREFERENCE: ", "RULE: "])
def test_an_entry_has_256_characters_after_its_prefix(prefix: str) -> None:
    for fits in (prefix + "x" * 256, prefix + "😀" * 128):
        assert sanitize({**MEMORY, "content": f" {fits}\n"})["entries"] == [fits]
        assert sanitize({**SET, "entries": [fits]})["entries"] == [fits]
        invalid({**MEMORY, "content": fits + "x"}, "256")
        invalid({**SET, "entries": [fits + "x"]}, "256")


def test_related() -> None:
    assert sanitize({**IDEA, "related": [{"slug": f"s{n}", "type": "related"} for n in range(64)]})
    invalid({**IDEA, "related": [LINK] * 65}, "related", "64")
    for kind in RELATIONS:
        sanitize({**IDEA, "related": [{"slug": "A9._-x", "type": kind}]})
    assert sanitize({**IDEA, "related": [{"slug": "x" * 256, "type": "related"}]})
    bad_links: list[Any] = [None, "a", [], {}, {"slug": "a"}, {"type": "related"}, {**LINK, "x": 1}]
    bad_links += [{**LINK, "type": kind} for kind in ("", "Related", None, ["related"], "other")]
    slugs = ["", ".a", "-a", "_a", "a b", "a/b", "é", "a\n", "a:b", "x" * 257, 1, None, "a'", '"a"']
    bad_links += [{**LINK, "slug": slug} for slug in slugs]
    for bad in bad_links:
        invalid({**IDEA, "related": [LINK, bad]}, "related[1]")
    for no_list in (None, {}, "a", LINK):
        invalid({**IDEA, "related": no_list}, "related")


def test_related_merges_by_slug() -> None:
    links = [LINK, {"slug": "b", "type": "extends"}, {"slug": "a", "type": "supports"}]
    assert sanitize({**IDEA, "related": links})["related"] == [{"slug": "a", "type": "supports"}, links[1]]


@pytest.mark.parametrize(
    "good",
    [
        "s-1",
        "2026-01-02-abc",
        "a:b",
        "x#y",
        "0f3a9c1e-77",
        "it's so",
        "sitzung-é",
        "1.2.3",
        "a - b",
        "nullable",
        "1e5x",
    ],
)
def test_sessions(good: str) -> None:
    assert sanitize({**IDEA, "source_session": f" {good} "})["source_session"] == good


OTHERWISE = """null NULL ~ true False yes No on OFF y n << = 1 -1 +1 1_000 0x1F 0o17 0b1 017 1.5 .5 1. 1e5 1E+5 .inf
-.Inf .NaN 1:30 12:30:45 2026-01-02 2026-01-02T03:04:05Z @a `a &a *a !a |a >a %a [a] {a} ,a #a "a" 'a' a: a'"""
SPACED = ["a: b", "a #b", "- a", "? a", ": a", "a\tb", "2026-01-02 03:04:05", "<private>a</private>1"]


@pytest.mark.parametrize("bad", [*OTHERWISE.split(), *SPACED])
def test_sessions_that_yaml_reads_otherwise(bad: str) -> None:
    invalid({**IDEA, "source_session": bad}, "source_session")


def test_a_blank_session_counts_as_absent() -> None:
    for blank in ("", "  ", "\u3000", "<private>s-1</private>"):
        assert "source_session" not in sanitize({**IDEA, "source_session": blank})
    for bad in (None, 1, [], "a\nb"):
        invalid({**IDEA, "source_session": bad}, "source_session")


def test_nothing_of_the_item_is_changed_and_nothing_of_it_said() -> None:
    item = {**IDEA, "content": "a <private>x</private>", "related": [dict(LINK)]}
    copy = {**item, "related": [dict(LINK)]}
    sanitize(item)
    assert item == copy
    assert "UTTERANCE" not in invalid({**IDEA, "content": "UTTERANCE\x00"})
    assert "UTTERANCE" not in invalid({**IDEA, "<private>UTTERANCE</private>": 1})


def test_a_refusal_makes_nothing_in_an_empty_root(tmp_path: Path) -> None:
    for item in ({**IDEA, "content": ""}, {**MEMORY, "content": "x"}, {**PROPOSAL, "target_kind": "identity"}):
        refused(tmp_path, item, "EINVAL_ITEM")
    assert tree(tmp_path) == {}
