"""Timelines (section 10): a naive window as reference, `--before 0`, the anchor in all its forms."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.library import Runtime, run_cortex
from tests.support import row, write_corpus

NOW = 1_750_000_000_000


def ask(root: Path, anchor: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    argv = ["timeline", "--anchor", anchor, *arguments]
    status, envelope = run_cortex(argv, Runtime(memory_root=root, now_ms=NOW))
    return status, envelope["data"] if status == 0 else envelope["error"]


def window(root: Path, anchor: str, *arguments: str) -> list[str]:
    status, data = ask(root, anchor, *arguments, "--page-size", "100")
    assert status == 0, data
    assert data["total"] == len(data["items"])
    return [card["id"] for card in data["items"]]


def corpus(folder: Path, *rows: str) -> Path:
    return write_corpus(folder, {"KNOWLEDGE/a.jsonl": "".join(rows)})


def at(identifier: str, created: str, **fields: Any) -> str:
    return row(identifier, created=created, updated="2999-01-01", **fields)


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """d01 to d15, one a day; odd ones are ideas."""
    rows = [at(f"d{day:02d}", f"2024-03-{day:02d}", type="idea" if day % 2 else "log") for day in range(1, 16)]
    random.Random(1).shuffle(rows)
    return corpus(tmp_path, *rows)


def named(*numbers: int) -> list[str]:
    return [f"d{number:02d}" for number in numbers]


def test_five_before_and_five_after(days: Path) -> None:
    assert window(days, "d08") == named(*range(3, 14))
    assert window(days, "d02") == named(*range(1, 8))
    assert window(days, "d15") == named(*range(10, 16))


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 1), (1, 0), (2, 3), (100, 100), (100, 0), (0, 100)])
def test_before_and_after(days: Path, before: int, after: int) -> None:
    """`--before 0` gives no earlier record (section 14.5)."""
    expected = named(*range(max(1, 8 - before), min(15, 8 + after) + 1))
    assert window(days, "d08", "--before", str(before), "--after", str(after)) == expected


def test_an_anchor_in_time(days: Path) -> None:
    """Strictly earlier and strictly later: what was created at that very moment is neither."""
    assert window(days, "2024-03-08", "--before", "1", "--after", "1") == named(7, 9)
    assert window(days, "2024-03-08T00:00:00.001Z", "--before", "1", "--after", "1") == named(8, 9)
    assert window(days, "2024-03-07T23:59:59.9999Z", "--before", "1", "--after", "1") == named(7, 8)
    assert window(days, "2020-01-01") == named(1, 2, 3, 4, 5)
    assert window(days, "2030-01-01") == named(11, 12, 13, 14, 15)
    assert window(days, "2024-03-08", "--before", "0", "--after", "0") == []


def test_filters_count_before_the_window_is_cut(days: Path) -> None:
    assert window(days, "d08", "--type", "log", "--before", "2", "--after", "2") == named(4, 6, 8, 10, 12)
    assert window(days, "d08", "--from", "2024-03-06", "--to", "2024-03-10") == named(6, 7, 8, 9, 10)


def test_an_anchor_that_the_filters_leave_out(days: Path) -> None:
    status, data = ask(days, "d08", "--type", "idea", "--before", "1", "--after", "1")
    assert status == 0
    assert data["anchor"] == {"id": "d08", "date": "2024-03-08"}
    assert [card["id"] for card in data["items"]] == named(7, 9)
    assert window(days, "d08", "--to", "2024-03-05", "--before", "2") == named(4, 5)


@pytest.mark.parametrize(
    ("anchor", "date"),
    [
        ("2024-06-01", "2024-06-01T00:00:00.000Z"),
        ("2024-06-01T10:20:30.123999Z", "2024-06-01T10:20:30.123Z"),
        ("2024-06-01T01:00+02:00", "2024-05-31T23:00:00.000Z"),
        ("0100-01-01T00:00+00:01", "0099-12-31T23:59:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("9999-12-31T23:59:59.999-00:01", "+010000-01-01T00:00:59.999Z"),
    ],
)
def test_the_date_of_an_anchor_in_time(days: Path, anchor: str, date: str) -> None:
    status, data = ask(days, anchor)
    assert status == 0 and data["anchor"] == {"id": None, "date": date}


def test_shape_of_the_answer(days: Path) -> None:
    status, data = ask(days, "d08")
    assert status == 0 and list(data) == ["items", "total", "page", "page_size", "anchor"]
    assert (data["total"], data["page"], data["page_size"]) == (11, 1, 10)
    for card in data["items"]:
        assert list(card) == ["id", "type", "created", "updated", "provenance", "score", "est_tokens"]
        assert card["score"] == 0


def test_pages_of_the_window(days: Path) -> None:
    pages = [ask(days, "d08", "--page", str(page), "--page-size", "4")[1] for page in (1, 2, 3, 4)]
    assert [[card["id"] for card in page["items"]] for page in pages] == [
        named(3, 4, 5, 6), named(7, 8, 9, 10), named(11, 12, 13), [],
    ]  # fmt: skip
    assert {page["total"] for page in pages} == {11}


def test_a_records_date_is_as_written(tmp_path: Path) -> None:
    root = corpus(tmp_path, at("a", "2024-01-01T10:00:00.5+05:00"))
    assert ask(root, "a")[1]["anchor"] == {"id": "a", "date": "2024-01-01T10:00:00.5+05:00"}


def test_an_id_that_looks_like_a_time_is_an_id_first(tmp_path: Path) -> None:
    root = corpus(tmp_path, at("2024-01-05", "2024-02-01"), at("x", "2024-01-06"), at("y", "2024-02-02"))
    status, data = ask(root, "2024-01-05")
    assert status == 0 and data["anchor"] == {"id": "2024-01-05", "date": "2024-02-01"}
    assert [card["id"] for card in data["items"]] == ["x", "2024-01-05", "y"]


def test_records_of_one_moment_go_by_id(tmp_path: Path) -> None:
    """Ties straddle the edge of the window on both sides; those of the anchor's own moment stay out."""
    early = [at(name, "2024-01-01") for name in ("b", "B", "_", "é", "e", "10")]
    late = [at(name, "2024-01-03T00:00:00.0001Z") for name in ("z", "Z", "a", "ß", "9")]
    same = [at(name, "2024-01-02") for name in ("m", "n", "l")]
    root = corpus(tmp_path, *early, *late, *same)
    assert window(root, "m", "--before", "3", "--after", "3") == ["B", "e", "é", "m", "9", "a", "z"]
    assert window(root, "m") == ["10", "b", "B", "e", "é", "m", "9", "a", "z", "Z", "ß"]


def test_milliseconds_are_the_grain(tmp_path: Path) -> None:
    root = corpus(
        tmp_path,
        at("a", "2024-01-01T00:00:00.0019Z"),
        at("b", "2024-01-01T00:00:00.0011Z"),
        at("c", "2024-01-01T00:00:00.002Z"),
    )
    assert window(root, "a") == ["a", "c"]  # b was created in the same millisecond
    assert window(root, "c") == ["a", "b", "c"]


@pytest.mark.parametrize("anchor", ["nowhere", "gone", "later", "2024-02-30", "2024-01-01T10:00", "D01"])
def test_an_anchor_that_is_nothing(anchor: str, tmp_path: Path) -> None:
    gone = at("gone", "2024-01-01", valid_until="2024-02-01")
    root = corpus(tmp_path, at("d01", "2024-01-01"), gone, at("later", "2024-01-01", valid_from="2999-01-01"))
    status, error = ask(root, anchor)
    assert (status, error["code"]) == (3, "not_found") and anchor in error["message"]


def test_only_valid_records_are_seen(tmp_path: Path) -> None:
    """valid_from is inclusive, valid_until exclusive."""
    now = datetime.fromtimestamp(NOW / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    root = corpus(
        tmp_path,
        at("anchor", "2024-01-01"),
        at("begins", "2024-01-02", valid_from=now),
        at("ends", "2024-01-03", valid_until=now),
        at("soon", "2024-01-04", valid_from=now.replace(".000Z", ".001Z")),
        at("still", "2024-01-05", valid_until=now.replace(".000Z", ".001Z")),
    )
    assert window(root, "anchor") == ["anchor", "begins", "still"]


def test_random_windows_against_the_reference(tmp_path: Path) -> None:
    """IDs of one case and width, so that ID order is plain; few moments, so that ties abound."""
    chance = random.Random(7)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    records = []
    for number in range(60):
        created = start + timedelta(hours=chance.randrange(24))
        records.append((created, f"r{number:02d}", chance.choice(["idea", "log"])))
    chance.shuffle(records)
    root = corpus(tmp_path, *(at(name, when.strftime("%Y-%m-%dT%H:%MZ"), type=kind) for when, name, kind in records))
    for _ in range(150):
        before, after, kind = chance.randrange(15), chance.randrange(15), chance.choice(["idea", "log", None])
        centre, anchor, _ = chance.choice(records)
        by_time = chance.random() < 0.3
        kept = sorted((when, name) for when, name, type in records if kind in (None, type))
        expected = [name for when, name in kept if when < centre]
        expected = expected[max(0, len(expected) - before) :]
        expected += [name for _, name in kept if name == anchor and not by_time]
        expected += [name for when, name in kept if when > centre][:after]
        given = centre.strftime("%Y-%m-%dT%H:%MZ") if by_time else anchor
        filters = ["--type", kind] if kind else []
        assert window(root, given, "--before", str(before), "--after", str(after), *filters) == expected
