"""Markdown notes (section 6): a naive reference, JavaScript's own expressions, each field, linear time."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.markdown import front_matter, links, parse_markdown, unquote
from cortex_tools.library import Runtime, run_cortex
from tests.support import write_corpus
from tests.test_numbers import needs_node, node

BLANK = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
DOT = "[^\n\r\u2028\u2029]"
START = "(?:(?<=[\n\r\u2028\u2029])|\\A)"
END = "(?=[\n\r\u2028\u2029]|\\Z)"

# The words of section 6 as expressions of JavaScript, where blanks are \s and a line ends at four characters.
FRONT_MATTER = r"/^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)/"
FIELD = r"/^([A-Za-z0-9_]+):\s*(.*)$/"
LINK = r"/^\s*-?\s*slug:\s*([^\s#]+).*$/gm"


def naive_front_matter(text: str) -> dict[str, str]:
    """FRONT_MATTER and FIELD in Python's terms; slow and simple."""
    found = re.match(r"---\r?\n((?:.|\n)*?)\r?\n---(?:\r?\n|\Z)", text, re.DOTALL)
    fields: dict[str, str] = {}
    for line in re.split(r"\r?\n", found[1]) if found else []:
        field = re.fullmatch(f"([A-Za-z0-9_]+):[{BLANK}]*({DOT}*)", line)
        if field:
            fields[field[1]] = naive_unquote(re.sub(f"^[{BLANK}]+|[{BLANK}]+\\Z", "", field[2]))
    return fields


def naive_links(text: str) -> list[str]:
    """LINK in Python's terms."""
    return [
        naive_unquote(found[1])
        for found in re.finditer(f"{START}[{BLANK}]*-?[{BLANK}]*slug:[{BLANK}]*([^{BLANK}#]+){DOT}*{END}", text)
    ]


def naive_unquote(value: str) -> str:
    return re.sub("[\"']\\Z", "", re.sub("^[\"']", "", value))


PIECES = ["---", "----", "\n", "\n", "\n", "\r\n", "\r", "\u2028", "\u2029", "\f", "\u00a0", "\ufeff", "\u0085"]
FRONT_PIECES = [*PIECES, "\nid: x", "\na_1:", "\nA: ", "id", "é:", ":", "-", " ", " ", "#", '"', "'", "x", "y z"]
LINK_PIECES = [
    *PIECES,
    "\nslug: x",
    "\n- slug:",
    "slug:",
    "slug:",
    "- ",
    "-",
    " ",
    "#",
    '"',
    "'",
    "x",
    "slug",
    "\u200b",
]


def random_texts(pieces: list[str], count: int, seed: int) -> list[str]:
    """Texts of a few pieces, three of four with front matter's first line, some with its last."""
    chance = random.Random(seed)
    texts = []
    for number in range(count):
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 14)))
        head, tail = [("", ""), ("---\n", ""), ("---\n", "\n---\n"), ("---", "\r\n---")][number % 4]
        texts.append(head + text + tail)
    return texts


def test_front_matter_against_the_reference() -> None:
    texts = random_texts(FRONT_PIECES, 12_000, 1)
    wrong = [text for text in texts if front_matter(text) != naive_front_matter(text)]
    assert wrong == []
    assert sum(bool(front_matter(text)) for text in texts) > 1500  # the comparison is not one of empty answers


def test_links_against_the_reference() -> None:
    texts = random_texts(LINK_PIECES, 12_000, 2)
    wrong = [text for text in texts if links(text) != naive_links(text)]
    assert wrong == []
    assert sum(len(links(text)) > 1 for text in texts) > 1000


UNQUOTE = """const unquote = value => value.replace(/^["']/, '').replace(/["']$/, '');"""


@needs_node
def test_front_matter_against_javascript() -> None:
    texts = random_texts(FRONT_PIECES, 12_000, 3)
    script = (
        UNQUOTE
        + f"""
        return data.map(text => {{
            const fields = [], found = text.match({FRONT_MATTER});
            for (const line of found ? found[1].split(/\\r?\\n/) : []) {{
                const field = line.match({FIELD});
                if (field) fields.push([field[1], unquote(field[2].trim())]);
            }}
            return fields;
        }});"""
    )
    expected = [dict(fields) for fields in node(script, texts)]
    wrong = [text for text, fields in zip(texts, expected, strict=True) if front_matter(text) != fields]
    assert wrong == []


@needs_node
def test_links_against_javascript() -> None:
    texts = random_texts(LINK_PIECES, 12_000, 4)
    script = UNQUOTE + f"return data.map(text => [...text.matchAll({LINK})].map(found => unquote(found[1])))"
    wrong = [text for text, found in zip(texts, node(script, texts), strict=True) if links(text) != found]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("---\nid: a\n---\n", {"id": "a"}),
        ("---\nid: a\n---", {"id": "a"}),
        ("---\r\nid: a\r\n---\r\nbody", {"id": "a"}),
        ("---\nid: a\r\ntype: b\n---\n", {"id": "a", "type": "b"}),
        ("---\nid: a\n--- \nx: y\n---\n", {"id": "a", "x": "y"}),  # that line closes nothing
        ("---\nid: a\n----\nx: y\n---\n", {"id": "a", "x": "y"}),
        ("---\n---\nid: a\n---\n", {"id": "a"}),  # closed from the third line on
        ("---\n\n---\nid: a", {}),
        ("---\n---\n", {}),
        ("---\nid: a\n", {}),  # unclosed
        ("--- \nid: a\n---\n", {}),
        ("\n---\nid: a\n---\n", {}),
        (" ---\nid: a\n---\n", {}),
        ("\ufeff---\nid: a\n---\n", {}),  # a BOM is dropped by the reader, one of two
        ("---\rid: a\r---\r", {}),  # CR alone ends no line here
        ("---\n id: a\n- id: b\n---\n", {}),  # nested and dashed
        ("---\nid : a\nmy-id: b\nïd: c\n: d\n---\n", {}),
        ("---\nid:a\n_x9: \t b c \u00a0\n---\n", {"id": "a", "_x9": "b c"}),
        ("---\nid: a # no comment\n---\n", {"id": "a # no comment"}),
        ("---\nid: a\nid: b\n---\n", {"id": "b"}),
        ("---\nid: a\nid:\n---\n", {"id": ""}),
        ("---\nid: a: b\n---\n", {"id": "a: b"}),
        ("---\nid: a\rb\n---\n", {}),  # the value holds CR
        ("---\nid: a\u2028b\nx: \u2029\n---\n", {"x": ""}),
        ("---\nid: \r b\n---\n", {"id": "b"}),  # that CR is a blank before the value
        ('---\nid: "a"\nx: \'b"\ny: "c\nz: d\'\nw: "\nv: ""\nu: """\nt: " e "\n---\n',
         {"id": "a", "x": "b", "y": "c", "z": "d", "w": "", "v": "", "u": '"', "t": " e "}),
    ],
)  # fmt: skip
def test_front_matter(text: str, fields: dict[str, str]) -> None:
    assert front_matter(text) == naive_front_matter(text) == fields


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("slug: a", ["a"]),
        ("slug:a#b c", ["a"]),
        ("  - slug: a rest of it slug: b\n-slug: c\n - \t slug:\td", ["a", "c", "d"]),
        ("slug: 'a'\nslug: \"b\nslug: c'\nslug: \"\"\nslug: '", ["a", "b", "c", "", ""]),
        ("slug: a\nslug: a\n", ["a", "a"]),
        ("slug:\nnext", ["next"]),
        ("slug:\n\n \t\r\nnext words", ["next"]),
        ("-\n\nslug: a", ["a"]),
        ("slug:\nslug: b", ["slug:"]),  # the run of blanks crossed the line's end, so the next line is the value
        ("slug:\n", []),
        ("slug: #a", []),
        ("- - slug: a\n* slug: b\n1. slug: c\nxslug: d\nSlug: e\nslug : f", []),
        ("x\rslug: a\u2028slug: b\u2029- slug: c\vslug: d", ["a", "b", "c"]),
        ("\u00a0\ufeffslug: a", ["a"]),
        ("\u0085slug: a\n\u200bslug: b", []),  # not blanks
        ("x\n-\n-\nslug: a", ["a"]),
        ("slug: a\u0085b", ["a\u0085b"]),
    ],
)
def test_links(text: str, found: list[str]) -> None:
    assert links(text) == naive_links(text) == found


def test_unquote() -> None:
    quoted = ["", "a", '"', '""', "'a\"", "''a''", '"a', "a'", "“a”", ' "a" ']
    assert [unquote(value) for value in quoted] == [naive_unquote(value) for value in quoted]


# Records.


def note(*lines: str, path: str = "KNOWLEDGE/n.md", body: str = "body") -> Any:
    return parse_markdown("\n".join(["---", *lines, "---", body]), path)


def test_a_note_without_front_matter() -> None:
    record = parse_markdown("Just words.\n", "KNOWLEDGE/Ideas/n.md")
    assert json.loads(record.json()) == {
        "id": "path:" + hashlib.sha256(b"KNOWLEDGE/Ideas/n.md").hexdigest()[:16],
        "type": "memory",
        "title": "KNOWLEDGE/Ideas/n.md",
        "created": "1970-01-01T00:00:00.000Z",
        "updated": "1970-01-01T00:00:00.000Z",
        "provenance": {"source": "canonical", "session": None, "path": "KNOWLEDGE/Ideas/n.md"},
        "content": "Just words.\n",
        "related": [],
        "valid_from": None,
        "valid_until": None,
    }
    assert list(json.loads(record.json())) == [
        "id", "type", "title", "created", "updated", "provenance", "content", "related", "valid_from", "valid_until",
    ]  # fmt: skip


def test_the_path_of_an_id_is_hashed_as_utf8() -> None:
    assert (
        parse_markdown("x", "KNOWLEDGE/é.md").id == "path:" + hashlib.sha256("KNOWLEDGE/é.md".encode()).hexdigest()[:16]
    )


ALL = {
    "id": ["id"],
    "type": ["type"],
    "title": ["title", "name"],
    "created": ["created", "date", "ts"],
    "updated": ["updated", "last_updated"],
    "source": ["source_kind", "source"],
    "session": ["source_session"],
    "valid_from": ["valid_from"],
    "valid_until": ["valid_until"],
}


@pytest.mark.parametrize("field", ALL)
def test_the_first_name_that_is_not_empty_counts(field: str) -> None:
    times = field in ("created", "updated", "valid_from", "valid_until")
    names = ALL[field]
    values = {name: f"2020-01-0{number}" if times else f"{name} it is" for number, name in enumerate(names, 1)}
    for first, name in enumerate(names):
        wanted = [f"{other}: {values[other]}" for other in reversed(names[first:])]
        empty = [f"{other}: {quotes}" for other, quotes in zip(names[:first], ("", '""'), strict=False)]
        assert getattr(note(*empty, *wanted), field) == values[name]


def test_what_stands_in_for_an_empty_field() -> None:
    record = note("id:", "type: ''", 'title: ""', "created:", "updated:", "source:", "source_session:", "valid_from:")
    bare = parse_markdown("x", "KNOWLEDGE/n.md")
    for name in ("id", "type", "title", "created", "updated", "source", "session", "valid_from", "valid_until"):
        assert getattr(record, name) == getattr(bare, name)
    assert note("date: 2021-02-03").updated == "2021-02-03"  # updated is created where it is not given
    assert note("id: a", "id:").id.startswith("path:")  # the last of a name wins, also when it is empty


def test_a_path_with_work_makes_a_type() -> None:
    assert parse_markdown("x", "KNOWLEDGE/WORK/a.md").type == "work"
    assert parse_markdown("x", "KNOWLEDGE/HOMEWORK/a.md").type == "work"  # the path contains it
    assert parse_markdown("x", "KNOWLEDGE/WORK.md").type == "memory"
    assert note("type: idea", path="WORK/a.md").type == "idea"


def test_private_text_goes_before_anything_is_read() -> None:
    text = (
        "---\nid: a<private>b\n---\nsecret</private>c\ntitle: <private>no</private>yes\n---\n"
        "slug: x\n<private>\nslug: y"
    )
    record = parse_markdown(text, "n.md")
    assert (record.id, record.title, record.related) == ("ac", "yes", ["x"])
    assert record.content == "---\nid: ac\ntitle: yes\n---\nslug: x\n"


def test_links_are_read_in_the_whole_content() -> None:
    record = note("id: a", "related:", "  - slug: front", "    type: supports", body="- slug: back # x\n")
    assert record.related == ["front", "back"]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('id: " "', "id"),
        ("id: '\u00a0\t'", "id"),
        ("created: 2024-13-01", "created"),
        ("date: soon", "created"),
        ("updated: 2024-01-01 10:00", "updated"),
        ("updated: 1969-12-31", "updated"),
        ("valid_from: never", "valid_from"),
        ("valid_until: 2024-01-01T10:00", "valid_until"),
        ("valid_from: 2024-01-01\nvalid_until: 2024-01-01", "valid_from"),
        ("valid_from: 2024-01-02\nvalid_until: 2024-01-01", "valid_from"),
        ("valid_from: 2024-01-01T01:00Z\nvalid_until: 2024-01-01T02:00+01:00", "valid_from"),
    ],
)
def test_what_breaks_a_record(line: str, field: str) -> None:
    with pytest.raises(CortexError) as caught:
        note(line)
    assert caught.value.code == "integrity_error"
    assert caught.value.message.startswith("KNOWLEDGE/n.md: ") and field in caught.value.message


def test_times_are_answered_as_written() -> None:
    record = note("created: 2024-01-01T10:00+05:30", "updated: 2024-01-01T04:30:00.0009Z", "valid_from: 2024-01-01")
    assert (record.created, record.updated) == ("2024-01-01T10:00+05:30", "2024-01-01T04:30:00.0009Z")
    assert record.updated_ms == record.created_ms  # compared at the millisecond


def test_bytes_on_disk(tmp_path: Path) -> None:
    """One BOM is dropped, CRLF is kept in the content, an empty file is a record."""
    root = write_corpus(
        tmp_path,
        {
            "KNOWLEDGE/bom.md": "\ufeff---\r\nid: bom\r\n---\r\nx\r\n",
            "KNOWLEDGE/two.md": "\ufeff\ufeff---\nid: two\n---\n",
            "KNOWLEDGE/empty.md": "",
        },
    )
    two, empty = (
        "path:" + hashlib.sha256(f"KNOWLEDGE/{name}.md".encode()).hexdigest()[:16] for name in ("two", "empty")
    )
    status, envelope = run_cortex(["get", "bom", two, empty], Runtime(memory_root=root))
    assert status == 0, json.dumps(envelope)
    contents = [item["content"] for item in envelope["data"]["items"]]
    assert contents == ["---\r\nid: bom\r\n---\r\nx\r\n", "\ufeff---\nid: two\n---\n", ""]


# Time.

SHAPES = {
    "blank lines": "\n",
    "spaces": " ",
    "CRLF": "\r\n",
    "slug": "slug:",
    "slug lines": "slug:\n",
    "slug dashes": "- slug:",
    "slug values": "slug: a\n",
    "slug comments": "slug: #\n",
    "dashes": "-",
    "dash lines": "-\n",
    "dash blanks": "- ",
    "rules": "---\n",
    "nearly rules": "\n--- ",
    "long rules": "\n----",
    "fields": "a: b\n",
    "colons": "a:",
    "names": "a",
    "CR": "a: \r",
    "separators": "\u2028",
    "quotes": '"',
}


def seconds(work: Callable[[str], object], text: str) -> float:
    """The best of three, in time of this process alone: others may be busy."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work(text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("work", [links, front_matter])
def test_time_is_linear(work: Callable[[str], object], shape: str) -> None:
    """Sixteen times the text takes sixteen times as long, where a quadratic reader takes 256 times."""
    piece = SHAPES[shape]
    for head, tail in (("", "\nslug:"), ("---\n", ""), ("---\n", "\n---")):
        small, large = (head + piece * (size // len(piece)) + tail for size in (20_000, 320_000))
        # A short time is mostly noise; and what one round seems to show, two more must confirm.
        ratios = (seconds(work, large) / max(seconds(work, small), 0.0001) for _ in range(3))
        assert any(ratio < 80 for ratio in ratios), (head, tail)


def test_a_million_blank_lines() -> None:
    assert links("\n" * 1_000_000 + "slug: a") == ["a"]
    assert front_matter("---\n" + "\n" * 1_000_000 + "id: a\n---\n") == {"id": "a"}
    assert links("- " * 500_000 + "slug: a") == []
