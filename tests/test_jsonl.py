"""JSONL rows (section 6): every rule, with a message that names `path:line` and the field and quotes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cortex_tools
from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.jsonl import parse_row
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import is_blank
from cortex_tools.library import Runtime, run_cortex
from tests.support import row, write_corpus

BASE = {
    "id": "r1",
    "type": "log",
    "title": "A row",
    "created": "2024-01-01",
    "updated": "2024-01-02",
    "content": "UTTERANCE of a note",
}
PATH = "KNOWLEDGE/Log/2024.jsonl"
MISSING = object()


def parse(**changes: Any) -> Record:
    fields = {**BASE, **changes}
    return parse_row(json.dumps({name: value for name, value in fields.items() if value is not MISSING}), PATH, 7)


def refused(line: str, *mentions: str) -> str:
    """The message with which a line is refused; it quotes none of the line's content."""
    with pytest.raises(CortexError) as caught:
        parse_row(line, PATH, 7)
    assert caught.value.code == "integrity_error"
    message = caught.value.message
    assert message.startswith(f"{PATH}:7: ") and "UTTERANCE" not in message
    for word in mentions:
        assert word in message
    return message


def test_a_row_and_its_defaults() -> None:
    assert json.loads(parse().json()) == {
        "id": "r1",
        "type": "log",
        "title": "A row",
        "created": "2024-01-01",
        "updated": "2024-01-02",
        "provenance": {"source": "canonical", "session": None, "path": PATH},
        "content": "UTTERANCE of a note",
        "related": [],
        "valid_from": None,
        "valid_until": None,
    }


def test_a_row_with_everything() -> None:
    record = parse(
        source="other",
        source_kind="chat",
        source_session="s1",
        related=["a", "b", "a"],
        valid_from="2024-01-01",
        valid_until="2024-01-02T00:00Z",
    )
    assert (record.source, record.session, record.related) == ("chat", "s1", ["a", "b", "a"])
    assert (record.valid_from, record.valid_until) == ("2024-01-01", "2024-01-02T00:00Z")
    assert parse(source="other").source == "other"


def test_null_where_it_may_stand() -> None:
    record = parse(source_session=None, valid_from=None, valid_until=None, related=[])
    assert (record.session, record.valid_from, record.valid_until) == (None, None, None)
    assert parse(source_session="").session == ""


NO_STRING = [MISSING, None, 1, 1.5, True, [], {}, ["x"]]
BLANK = ["", " ", "\t\n\r", "\u00a0\u2003\ufeff", "\u2028"]


@pytest.mark.parametrize("name", BASE)
def test_required_fields(name: str) -> None:
    for value in [*NO_STRING, *BLANK]:
        fields = {key: value if key == name else was for key, was in BASE.items()}
        refused(json.dumps({key: was for key, was in fields.items() if was is not MISSING}), name)


@pytest.mark.parametrize("name", ["source_kind", "source"])
def test_sources_where_present(name: str) -> None:
    for value in [*NO_STRING[1:], *BLANK]:
        refused(json.dumps({**BASE, name: value}), name)


@pytest.mark.parametrize("value", [1, True, False, [], {}, ["s"]])
def test_sessions(value: object) -> None:
    refused(json.dumps({**BASE, "source_session": value}), "source_session")


@pytest.mark.parametrize("value", [None, "a", 1, {}, {"slug": "a"}, [1], [None], ["a", ""], ["a", " "], [["a"]]])
def test_related(value: object) -> None:
    refused(json.dumps({**BASE, "related": value}), "related")


@pytest.mark.parametrize("name", ["valid_from", "valid_until"])
@pytest.mark.parametrize("value", ["", "soon", "2024-02-30", "2024-01-01T10:00", 0, 1704067200000, False, [], {}])
def test_validity(name: str, value: object) -> None:
    refused(json.dumps({**BASE, name: value}), name)


@pytest.mark.parametrize("name", ["created", "updated"])
@pytest.mark.parametrize("value", ["soon", "2024-02-30", "2024-01-01 ", "2024-01-01T10:00", "0099-01-01"])
def test_times(name: str, value: str) -> None:
    refused(json.dumps({**BASE, name: value}), name)


@pytest.mark.parametrize(
    "changes",
    [
        {"created": "2024-01-03"},
        {"created": "2024-01-02T00:00:00.001Z"},
        {"valid_from": "2024-01-02", "valid_until": "2024-01-02"},
        {"valid_from": "2024-01-03", "valid_until": "2024-01-02"},
    ],
)
def test_times_in_the_wrong_order(changes: dict[str, str]) -> None:
    refused(json.dumps({**BASE, **changes}), "updated" if "created" in changes else "valid_from")


@pytest.mark.parametrize("name", ["", "ID", "tags", "session", "provenance", "source_kind ", "\u0130d", "kind"])
def test_no_other_field(name: str) -> None:
    refused(json.dumps({**BASE, name: "x"}), "not allowed")


@pytest.mark.parametrize("line", ["[]", "[{}]", "null", "true", "1", '"a"', json.dumps([BASE])])
def test_a_row_is_an_object(line: str) -> None:
    refused(line, "object")


GOOD_LINE = json.dumps(BASE)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "{}x",
        GOOD_LINE + " x",
        GOOD_LINE + GOOD_LINE,
        GOOD_LINE + ",",
        GOOD_LINE[:-1] + ",}",
        GOOD_LINE[:-1],
        GOOD_LINE.replace('"', "'"),
        GOOD_LINE.replace('"r1"', "NaN"),
        '{"id":NaN,' + GOOD_LINE[1:],  # though a later value of the key would count
        '{"id":-Infinity,' + GOOD_LINE[1:],
        GOOD_LINE[:-1] + ',"source_session":NaN}',
        GOOD_LINE[:-1] + ',"source_session":Infinity}',
        GOOD_LINE[:-1] + ',"source_session":-Infinity}',
        GOOD_LINE[:-1] + ',"source_session":undefined}',
        GOOD_LINE[:-1] + ',"source_session":01}',
        GOOD_LINE[:-1] + ',"source_session":.5}',
        GOOD_LINE[:-1] + ',"source_session":+1}',
        GOOD_LINE[:-1] + ',"source_session":"\\x41"}',
        GOOD_LINE[:-1] + ',"source_session":"\\u12"}',
        GOOD_LINE[:-1] + ',"source_session":"\\u12_4"}',
        GOOD_LINE[:-1] + ',"source_session":"\\u+123"}',
        GOOD_LINE[:-1] + ',"source_session":"a\tb"}',  # a raw tab in a string
        GOOD_LINE[:-1] + ',"source_session":"a\rb"}',
        GOOD_LINE[:-1] + ',"source_session":' + "1" * 5000 + "}",  # more digits than Python reads
        GOOD_LINE[:-1] + ',"source_session":' + "[" * 100_000 + "]" * 100_000 + "}",
        "\ufeff" + GOOD_LINE,
        "\u00a0" + GOOD_LINE,
        GOOD_LINE + "\u2028",
        "// a comment",
        GOOD_LINE + " // a comment",
    ],
)
def test_strict_json(line: str) -> None:
    refused(line, "JSON")


@pytest.mark.parametrize(
    "line", [f" \t{GOOD_LINE} \r", GOOD_LINE.replace(",", " ,\t\r"), GOOD_LINE.replace(":", " : ")]
)
def test_blanks_of_json(line: str) -> None:
    assert parse_row(line, PATH, 7).json() == parse().json()


def test_of_a_repeated_key_the_last_counts() -> None:
    line = '{"id":5,"id":"","tags":1,' + GOOD_LINE[1:]
    refused(line, "not allowed")  # a name that is not allowed is no better for being repeated
    assert parse_row(line.replace('"tags":1,', ""), PATH, 7).id == "r1"
    refused(GOOD_LINE[:-1] + ',"id":" "}', "id")
    assert parse_row(GOOD_LINE[:-1] + ',"content":"later"}', PATH, 7).content == "later"


def test_escapes() -> None:
    line = GOOD_LINE.replace("UTTERANCE of a note", r"\u0041\"\\\/\n\t\r\ud83d\ude00\u00e9")
    assert parse_row(line, PATH, 7).content == 'A"\\/\n\t\r\U0001f600é'
    assert parse_row(GOOD_LINE.replace('"id"', r'"\u0069d"'), PATH, 7).id == "r1"


TEXT_FIELDS = ["id", "type", "title", "content", "source_kind", "source", "source_session"]
FAULTS = [r"\u0000", r"\u0001", r"\b", r"\f", r"\u000b", r"\u001f", r"\u007f", r"\u0080", r"\u0085", r"\u009f"]
SURROGATES = [r"\ud800", r"\udc00", r"\ud83dx", r"\ude00\ud83d"]


@pytest.mark.parametrize("name", TEXT_FIELDS)
def test_escaped_controls_and_lone_surrogates(name: str) -> None:
    for fault in [*FAULTS, *SURROGATES]:
        fields = {**BASE, name: "x@y"}
        line = json.dumps(fields).replace("@", fault)
        refused(line, name, "surrogate" if fault in SURROGATES else "control")


def test_the_same_in_links() -> None:
    refused(json.dumps({**BASE, "related": ["a", "x@y"]}).replace("@", r"\u0000"), "related")


def test_also_inside_a_private_span_that_escapes_hide() -> None:
    line = json.dumps({**BASE, "title": "a <private>x@</private> b"})
    escaped = line.replace("<", r"\u003c").replace("@", r"\u0000")
    refused(escaped, "title", "control")


def test_every_string_is_stripped_after_unescaping() -> None:
    hidden = r"\u003cprivate\u003eUTTERANCE\u003c/private\u003e"
    fields = {**BASE, "source": "s@", "source_session": "n@", "related": ["l@", "@"], "type": "t@"}
    fields |= {"id": "i@", "title": "@T", "content": "c@"}
    record = parse_row(json.dumps(fields).replace("@", hidden), PATH, 7)
    assert (record.id, record.type, record.title, record.content) == ("i", "t", "T", "c")
    assert (record.source, record.session, record.related) == ("s", "n", ["l", ""])
    assert "UTTERANCE" not in record.json()


def test_stripping_may_empty_the_content_but_not_the_id() -> None:
    line = json.dumps({**BASE, "content": "@"}).replace("@", r"\u003cprivate\u003ex\u003c/private\u003e")
    assert parse_row(line, PATH, 7).content == ""
    for name in ("id", "created"):
        refused(json.dumps({**BASE, name: "@"}).replace("@", r"\u003cprivate\u003ex"), name)


def test_the_raw_line_is_stripped_before_it_is_parsed() -> None:
    assert parse(content="a <private>UTTERANCE</private> b").content == "a  b"
    spanning = GOOD_LINE.replace('"title"', '<private>"junk": [,</private>"title"')
    assert parse_row(spanning, PATH, 7).title == "A row"
    refused(json.dumps({**BASE, "title": "a <private>x"}))  # an open span takes the rest of the line with it
    refused(f"<private>{GOOD_LINE}</private>")
    refused(json.dumps({**BASE, "content": "a <privateer> b"}))
    # A field that only the span held is missing; what it blanked is blank, though the span did not look so.
    refused(json.dumps({**BASE, "type": "<private>log</private>"}), "type")


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<＜﹤")).filter(
    lambda text: not is_blank(text)
)


@given(st.fixed_dictionaries(dict.fromkeys(("id", "type", "title", "content"), WORDS)), st.booleans())
@settings(max_examples=150, deadline=None, database=None)
def test_text_survives_however_it_is_written(fields: dict[str, str], ascii_only: bool) -> None:
    record = parse_row(json.dumps({**BASE, **fields}, ensure_ascii=ascii_only), PATH, 7)
    assert {name: getattr(record, name) for name in fields} == fields


# Lines of a file.


def answer(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    return run_cortex(list(arguments), Runtime(memory_root=root))


def status_of(folder: Path, content: str | bytes) -> tuple[int, str]:
    """The exit status, and the message or the number of records, of a corpus of one file."""
    status, envelope = answer(write_corpus(folder, {"KNOWLEDGE/a.jsonl": content}), "status")
    return status, envelope["error"]["message"] if status else str(envelope["data"]["canonical"]["records"])


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    content = "\n" + row("a") + " \t\r\n\u00a0\u2003\n\n" + row("b").rstrip("\n")
    assert status_of(tmp_path / "good", content) == (0, "2")
    status, message = status_of(tmp_path / "bad", content + "\n\nx")
    assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:8: ")


@pytest.mark.parametrize("content", ["", "\n", "\r\n \n", "\ufeff", "\ufeff\n"])
def test_a_file_without_a_row(content: str, tmp_path: Path) -> None:
    assert status_of(tmp_path, content) == (0, "0")


def test_crlf_and_bom(tmp_path: Path) -> None:
    rows = ("\ufeff" + row("a") + row("b")).replace("\n", "\r\n")
    assert status_of(tmp_path / "good", rows) == (0, "2")
    status, message = status_of(tmp_path / "second", row("a") + "\ufeff" + row("b"))
    assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:2: ")
    status, message = status_of(tmp_path / "twice", "\ufeff\ufeff" + row("a"))
    assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:1: ")


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    for number, end in enumerate(("\r", "\u2028", "\u2029")):
        status, message = status_of(tmp_path / str(number), row("a").rstrip() + end + row("b"))
        assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:1: ")
    inside = row("a", content="one\u2028two\u2029three")
    assert status_of(tmp_path / "inside", inside) == (0, "1")


def test_a_line_that_is_one_private_span_is_malformed(tmp_path: Path) -> None:
    """Whether a line is blank is judged before it is stripped."""
    for number, span in enumerate(("<private>UTTERANCE</private>", " <private>UTTERANCE", "</private>")):
        status, message = status_of(tmp_path / str(number), row("a") + span + "\n" + row("b"))
        assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:2: ") and "UTTERANCE" not in message


def test_a_span_ends_with_its_line(tmp_path: Path) -> None:
    content = row("a", content="x <private>UTTERANCE</private>") + row("b")
    assert status_of(tmp_path / "closed", content) == (0, "2")
    status, message = status_of(tmp_path / "open", row("a", content="x <private>") + row("b", content="</private> y"))
    assert status == 4 and message.startswith("KNOWLEDGE/a.jsonl:1: ")


def test_ids_repeat_across_rows_and_notes(tmp_path: Path) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": row("a") + row("b"), "KNOWLEDGE/b.jsonl": "\n" + row("b")})
    status, envelope = answer(root, "status")
    assert status == 4 and envelope["error"]["code"] == "integrity_error"
    for word in ("b", "KNOWLEDGE/a.jsonl:2", "KNOWLEDGE/b.jsonl:2"):
        assert word in envelope["error"]["message"]


def test_provenance_is_the_file_without_the_line(tmp_path: Path) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/Log/a.jsonl": row("a") + row("b", source_session="s")})
    status, envelope = answer(root, "get", "b", "a", "b")
    assert status == 0
    provenance = [item["provenance"] for item in envelope["data"]["items"]]
    b = {"source": "canonical", "session": "s", "path": "KNOWLEDGE/Log/a.jsonl"}
    assert provenance == [b, {**b, "session": None}, b]


PACKAGE = Path(cortex_tools.__file__).parents[1]
BROKEN = ('"', "{", '"a', '{"a', "[", '{"a":1,}', '{"a":"\\x"}', "", "nul", '{"a":1}x', '{"a":NaN}', "[" * 100_000)


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:9])
def test_broken_json_is_named_as_such_where_the_package_json_was_never_imported(text: str) -> None:
    program = (
        "import sys\n"
        "from cortex_tools.domain.jsontext import json_value\n"
        "assert 'json' not in sys.modules\n"
        "try: json_value(sys.argv[1])\n"
        "except (ValueError, RecursionError): sys.exit(7)\n"
    )
    command = [sys.executable, "-S", "-c", program, text]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(PACKAGE)}, check=False).returncode == 7
