"""Labels of the benchmark, judged case by case: what is refused is refused with file and line."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.evidence.benchmark import labels
from cortex_tools.evidence.benchmark.labels import Labels

MOMENT = "2026-03-10T12:00:00.000Z"


def label(
    id: str = "q1", query: str = "loom tension", expected: list[str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A valid label, by default one that expects record a."""
    expected = ["a"] if expected is None else expected
    row = {
        "id": id,
        "query": query,
        "expected_ids": expected,
        "provenance": {
            "schema": "lifeos-cortex-benchmark-label-provenance/v1",
            "query_execution": {
                "method": "live-cortex-cli",
                "command": ["cortex", "search", query],
                "executed_at": MOMENT,
                "query": query,
                "returned_ids": [*expected, "other"],
            },
            "expected_ids_verification": {
                "method": "manual-corpus-verification",
                "verified_at": MOMENT,
                "verifier": "upgrade-validation",
                "verified_ids": expected,
            },
        },
        **fields,
    }
    return {name: value for name, value in row.items() if value is not ...}


def jsonl(*rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read(tmp_path: Path, data: bytes) -> Labels:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(data)
    return labels.read(str(path))


def refused(tmp_path: Path, data: bytes, line: int | None, mentions: str = "") -> str:
    with pytest.raises(CortexError) as caught:
        read(tmp_path, data)
    message = caught.value.message
    assert caught.value.code == "invalid_input" and mentions in message, message
    assert message.startswith(f"{tmp_path}/labels.jsonl{'' if line is None else f':{line}:'}"), message
    return message


def test_a_sound_file_is_read_with_its_digest_and_lines(tmp_path: Path) -> None:
    data = b"\n" + jsonl(label()) + b" \r\n" + jsonl(label("q2", "Ünïcode loom", ["b", "a"], false_ids=["c"]))
    found = read(tmp_path, data)
    assert found.digest == hashlib.sha256(data).hexdigest()
    assert [(number, one.id) for number, one in found.rows] == [(2, "q1"), (4, "q2")]
    first, second = (one for _, one in found.rows)
    assert (first.query, first.expected, first.order, first.false) == ("loom tension", ["a"], ["a"], [])
    assert (second.expected, second.order, second.false) == (["b", "a"], ["b", "a"], ["c"])


def test_another_order_can_be_expected(tmp_path: Path) -> None:
    found = read(tmp_path, jsonl(label(expected=["a", "b"], temporal_expected_order=["b", "c", "a"])))
    assert found.rows[0][1].order == ["b", "c", "a"]


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    *(({name: ...}, f"lacks {name}") for name in ("id", "query", "expected_ids", "provenance")),
    ({"note": "x"}, "not allowed"),
    ({"id": ""}, "id must be"),
    ({"id": "  "}, "id must be"),
    ({"id": 7}, "id must be"),
    ({"id": None}, "id must be"),
    ({"id": "x" * 257}, "256"),
    ({"id": "😀" * 129}, "256"),
    ({"query": 7}, "query must be"),
    ({"query": ""}, "no term"),
    ({"query": "…"}, "no term"),
    ({"query": "x" * 2049}, "2048"),
    ({"query": "x " * 65}, "64"),
    ({"expected_ids": "a"}, "expected_ids"),
    ({"expected_ids": []}, "1 to 100"),
    ({"expected_ids": [f"r{n}" for n in range(101)]}, "1 to 100"),
    ({"expected_ids": ["a", "a"]}, "twice"),
    ({"expected_ids": [1]}, "non-empty strings"),
    ({"expected_ids": [""]}, "non-empty strings"),
    ({"expected_ids": None}, "expected_ids"),
    ({"temporal_expected_order": []}, "temporal_expected_order"),
    ({"temporal_expected_order": ["a", "a"]}, "twice"),
    ({"temporal_expected_order": "a"}, "temporal_expected_order"),
    ({"temporal_expected_order": None}, "temporal_expected_order"),
    ({"false_ids": None}, "false_ids"),
    ({"false_ids": ["b", "b"]}, "twice"),
    ({"false_ids": [0]}, "non-empty strings"),
    ({"false_ids": ["a"]}, "only be one of them"),
    ({"provenance": None}, "provenance must be an object"),
    ({"provenance": []}, "provenance must be an object"),
    ({"id": "\ud800"}, "lone surrogate"),
    ({"query": "loom \u0007"}, "control"),
    ({"query": "loom \u0085"}, "control"),
]


@pytest.mark.parametrize(("change", "mentions"), BAD_FIELDS, ids=lambda value: str(value)[:40])
def test_bad_fields_are_refused_with_their_line(tmp_path: Path, change: dict[str, Any], mentions: str) -> None:
    row = {name: value for name, value in {**label("bad"), **change}.items() if value is not ...}
    bad = json.dumps(row).encode() + b"\n"
    refused(tmp_path, jsonl(label()) + b"\n" + bad + jsonl(label("q3")), 3, mentions)


Change = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], Any]

BAD_PROVENANCE: list[tuple[str, Change, str]] = [
    ("schema", lambda p, q, v: p.update(schema="lifeos-cortex-benchmark-label-provenance/v2"), "provenance.schema"),
    ("no schema", lambda p, q, v: p.pop("schema"), "lacks schema"),
    ("no execution", lambda p, q, v: p.pop("query_execution"), "lacks query_execution"),
    ("no verification", lambda p, q, v: p.pop("expected_ids_verification"), "lacks expected_ids_verification"),
    ("more", lambda p, q, v: p.update(by="me"), "not allowed"),
    ("execution", lambda p, q, v: p.update(query_execution=[]), "query_execution must be an object"),
    ("verification", lambda p, q, v: p.update(expected_ids_verification="yes"), "must be an object"),
    *(
        (f"execution without {name}", lambda p, q, v, name=name: q.pop(name), f"lacks {name}")  # type: ignore[misc]
        for name in ("method", "command", "executed_at", "query", "returned_ids")
    ),
    *(
        (f"verification without {name}", lambda p, q, v, name=name: v.pop(name), f"lacks {name}")  # type: ignore[misc]
        for name in ("method", "verified_at", "verifier", "verified_ids")
    ),
    ("more execution", lambda p, q, v: q.update(host="x"), "not allowed"),
    ("more verification", lambda p, q, v: v.update(host="x"), "not allowed"),
    ("method", lambda p, q, v: q.update(method="replay"), "query_execution.method"),
    ("other query", lambda p, q, v: q.update(query="loom"), "query_execution.query"),
    ("command text", lambda p, q, v: q.update(command="cortex search loom tension"), "command must be a list"),
    ("no parts", lambda p, q, v: q.update(command=[]), "1 to 32"),
    ("many parts", lambda p, q, v: q.update(command=["search", "loom tension", *["x"] * 31]), "1 to 32"),
    ("empty part", lambda p, q, v: q["command"].append(""), "non-empty"),
    ("number", lambda p, q, v: q["command"].append(3), "non-empty"),
    ("long", lambda p, q, v: q["command"].append("é" * 8200), "16384"),
    ("no search", lambda p, q, v: q.update(command=["cortex", "find", "loom tension"]), "search and the query"),
    ("no query", lambda p, q, v: q.update(command=["cortex", "search", "loom"]), "search and the query"),
    ("returned", lambda p, q, v: q.update(returned_ids=["b"]), "among returned_ids"),
    ("returned twice", lambda p, q, v: q["returned_ids"].append("a"), "twice"),
    ("returned none", lambda p, q, v: q.update(returned_ids=[]), "returned_ids"),
    ("verification method", lambda p, q, v: v.update(method="trust"), "expected_ids_verification.method"),
    ("verifier", lambda p, q, v: v.update(verifier="me"), "verifier must be"),
    ("verified more", lambda p, q, v: v.update(verified_ids=["a", "b"]), "verified_ids must equal"),
    ("verified none", lambda p, q, v: v.update(verified_ids=[]), "verified_ids must equal"),
    *(
        (
            f"{name} {text}",
            lambda p, q, v, name=name, text=text: (q if name == "executed_at" else v).update({name: text}),
            name,
        )  # type: ignore[misc]
        for name in ("executed_at", "verified_at")
        for text in (
            "2026-03-10",
            "2026-03-10T12:00:00Z",
            "2026-03-10T12:00:00.000+00:00",
            "2026-03-10T12:00:00.0000Z",
            "2026-02-30T12:00:00.000Z",
            "2026-03-10T24:00:00.000Z",
            "2026-03-10t12:00:00.000z",
            "",
            None,
            0,
        )
    ),
]


@pytest.mark.parametrize(
    ("change", "mentions"), [case[1:] for case in BAD_PROVENANCE], ids=[c[0] for c in BAD_PROVENANCE]
)
def test_bad_provenance_is_refused_with_its_line(tmp_path: Path, change: Change, mentions: str) -> None:
    bad = copy.deepcopy(label("bad"))
    provenance = bad["provenance"]
    change(provenance, provenance["query_execution"], provenance["expected_ids_verification"])
    refused(tmp_path, jsonl(label(), bad), 2, mentions)


def test_what_is_just_within_the_bounds_is_taken(tmp_path: Path) -> None:
    many = [f"r{n}" for n in range(100)]
    row = label("x" * 256, "q" * 2048, many)
    row["provenance"]["query_execution"]["command"] = ["search", "q" * 2048, *["x"] * 29, "y" * (16384 - 2048 - 6 - 29)]
    assert len(read(tmp_path, jsonl(row)).rows[0][1].expected) == 100
    assert read(tmp_path, jsonl(label(query="x " * 64))).rows
    assert read(tmp_path, jsonl(label(false_ids=[]))).rows[0][1].false == []


@pytest.mark.parametrize(
    ("line", "mentions"),
    [
        (b"{", "not one valid JSON"),
        (b"null", "no JSON object"),
        (b"7", "no JSON object"),
        (b"[]", "no JSON object"),
        (b'"q"', "no JSON object"),
        (b"{} {}", "not one valid JSON"),
        (b'{"id":NaN}', "not one valid JSON"),
        (b'{"id":"a","id":"b"}', "a key stands twice"),
        (b"[" * 100_000, "not one valid JSON"),
        (b"9" * 5000, "not one valid JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"id":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"id":"\x00"}', "control"),
        (b'{"id":"\x7f"}', "control"),
        (b'{"id":"\xc2\x85"}', "control"),
        (b"\xef\xbb\xbf{}", "not one valid JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_lines_that_are_no_json_object_are_refused(tmp_path: Path, line: bytes, mentions: str) -> None:
    refused(tmp_path, jsonl(label()) + line + b"\n", 2, mentions)


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    assert "line 1" in refused(tmp_path, jsonl(label(), label("q2"), label()), 3, "ID stands in")


def test_no_label_text_comes_out_in_a_refusal(tmp_path: Path) -> None:
    for change in ({"query": "canary " * 65}, {"canary": 1}, {"id": "canary" * 100}, {"expected_ids": ["canary"] * 2}):
        assert "canary" not in refused(tmp_path, jsonl({**label(), **change}), 1)


def test_a_thousand_labels_in_a_mebibyte_and_no_more(tmp_path: Path) -> None:
    rows = jsonl(*[label(f"q{number}") for number in range(1000)])
    assert len(read(tmp_path, rows).rows) == 1000
    refused(tmp_path, rows + jsonl(label("one more")), 1001, "more than 1000")
    padded = rows + b" " * (2**20 - len(rows) - 1) + b"\n"
    assert len(read(tmp_path, padded).rows) == 1000
    refused(tmp_path, padded + b"\n", None, "more than 1048576 bytes")


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\t\n"])
def test_a_file_without_labels_is_refused(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data, None, "holds no label")


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "fifo", "no name", "nul"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "labels.jsonl"
    if kind == "folder":
        path.mkdir()
    if kind == "link":
        (tmp_path / "real").write_bytes(jsonl(label()))
        path.symlink_to("real")
    if kind == "fifo":
        os.mkfifo(path)
    given = {"no name": f"{tmp_path}/", "nul": f"{tmp_path}/a\0b"}.get(kind, str(path))
    with pytest.raises(CortexError) as caught:
        labels.read(given)
    assert caught.value.code == "invalid_input" and str(tmp_path) in caught.value.message


@pytest.mark.parametrize("field", ["expected_ids", "temporal_expected_order", "false_ids"])
def test_ids_that_the_corpus_lacks_are_refused_with_their_line(tmp_path: Path, field: str) -> None:
    bad = label("q2", expected=["a", "gone"]) if field == "expected_ids" else label("q2", **{field: ["b", "gone"]})
    found = read(tmp_path, jsonl(label()) + b"\n" + jsonl(bad))
    found.check_ids({"a", "b", "gone"})
    with pytest.raises(CortexError, match=r"labels\.jsonl:3: the corpus has no record gone"):
        found.check_ids({"a", "b"})
