"""cortex-select by any of several values, and cortex-window on any stream (docs/streams.md)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS
from tests.support import envelope, failure, row, run, shell, write_corpus

TYPES, SOURCES, SESSIONS = ("idea", "log", "it's"), ("web", "internal", ""), ("s1", "s2", None)
ALL = [
    {"id": f"r{number:02d}", "type": type, "source": source or "canonical", "source_session": session,
     "created": f"2024-03-{number + 1:02d}", "updated": "2025-01-01", "content": "loom " * (number + 1)}
    for number, (type, source, session) in enumerate(itertools.product(TYPES, SOURCES, SESSIONS))
]  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    root = write_corpus(tmp_path_factory.mktemp("select"), {"a.jsonl": "".join(row(**fields) for fields in ALL)})
    return shell(f"cortex-scan --memory-root '{root}' | cortex-strip").stdout


@pytest.fixture(scope="module")
def cards(records: bytes) -> bytes:
    return run("cortex-rank", "loom", input=records).stdout


def lines(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.splitlines()]


def ids(stream: bytes) -> list[str]:
    return [line["id"] for line in lines(stream) if line["kind"] in ("record", "card")]


def filtered(stream: bytes, *arguments: str, stage: str = "cortex-select") -> bytes:
    done = run(stage, *arguments, input=stream)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "keeps"),
    [
        (["--type", "idea", "--type", "log"], lambda one: one["type"] in ("idea", "log")),
        (["--type", "it's", "--type", "it's"], lambda one: one["type"] == "it's"),
        (["--type", "Idea", "--type", "nothing"], lambda one: False),
        (["--source", "web", "--source", "canonical"], lambda one: one["source"] in ("web", "canonical")),
        (["--session", "s1", "--session", "s2"], lambda one: one["source_session"] is not None),
        (["--session", "None", "--session", "null"], lambda one: False),
        (["--id", "r03", "--id", "r01", "--id", ""], lambda one: one["id"] in ("r01", "r03")),
        (
            ["--type", "idea", "--source", "web", "--type", "log", "--source", "internal", "--session", "s1"],
            lambda one: (
                one["type"] != "it's" and one["source"] in ("web", "internal") and one["source_session"] == "s1"
            ),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_any_of_several_values(arguments: list[str], keeps: Any, records: bytes, cards: bytes) -> None:
    """Values of one option widen, options narrow; on records and on cards alike."""
    expected = [one["id"] for one in ALL if keeps(one)]
    assert ids(filtered(records, *arguments)) == expected
    assert sorted(ids(filtered(cards, *arguments))) == expected
    assert ids(filtered(records, *arguments, "--limit", "1")) == expected[:1]


@pytest.mark.parametrize("option", ["--from", "--to", "--at", "--limit", "--valid"])
def test_what_is_given_once(option: str, records: bytes) -> None:
    value = {"--valid": [], "--limit": ["3"]}.get(option, ["2024-03-05"])
    done = run("cortex-select", option, *value, "--type", "idea", option, *value, input=records)
    assert done.returncode == 4 and f"{option} was given twice".encode() in done.stderr


def test_others_take_each_filter_once(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.jsonl": row("a")})
    for option in ("--type", "--source", "--session"):
        assert EXECUTABLES["cortex-select"].options[option].repeatable
        assert not EXECUTABLES["cortex-window"].options[option].repeatable
        for command in ("search", "timeline"):
            assert not COMMANDS[command].options[option].repeatable
        twice = [option, "log", option, "idea", "--memory-root", str(tmp_path)]
        failure(run("cortex", "search", "loom", *twice), 4, "invalid_input", option, "twice")
        failure(run("cortex", "timeline", "--anchor", "a", *twice), 4, "invalid_input", option, "twice")


# cortex-window.


def around(stream: bytes, *arguments: str) -> tuple[str | None, list[str]]:
    """The anchor's ID and the IDs of the window."""
    out = filtered(stream, *arguments, stage="cortex-window")
    (anchor,) = (line for line in lines(out) if line["kind"] == "anchor")
    kinds = [line["kind"] for line in lines(out)]
    assert kinds[:2] == ["corpus", "anchor"] and set(kinds[2:-1]) <= {"card"} and kinds[-1] == "seal"
    return anchor["id"], ids(out)


@pytest.mark.parametrize(
    ("anchor", "more"),
    [
        ("r10", ["--before", "2", "--after", "1"]),
        ("2024-03-11T12:00Z", ["--type", "log"]),
        ("2024-03-11", ["--from", "2024-03-09", "--to", "2024-03-12"]),
        ("2030-01-01", []),
    ],
)
def test_a_window_on_cards_is_the_window_on_their_records(
    anchor: str, more: list[str], records: bytes, cards: bytes
) -> None:
    unranked = filtered(records, stage="cortex-card")
    expected = around(records, "--anchor", anchor, *more)
    assert around(unranked, "--anchor", anchor, *more) == expected
    assert around(cards, "--anchor", anchor, *more) == expected
    assert filtered(unranked, "--anchor", anchor, *more, stage="cortex-window") == filtered(
        records, "--anchor", anchor, *more, stage="cortex-window"
    )


def test_cards_come_through_as_they_are(cards: bytes) -> None:
    given = {line["id"]: line for line in lines(cards) if line["kind"] == "card"}
    out = lines(filtered(cards, "--anchor", "r05", "--before", "100", "--after", "100", stage="cortex-window"))
    assert [line["id"] for line in out if line["kind"] == "card"] == sorted(given)
    for line in out:
        assert line["kind"] != "card" or (line == given[line["id"]] and line["score"] > 0)
    answered = run("cortex-envelope", "timeline", input=filtered(cards, "--anchor", "r05", stage="cortex-window"))
    assert envelope(answered)["data"]["anchor"] == {"id": "r05", "date": "2024-03-06"}


def test_a_window_after_a_selection(records: bytes, cards: bytes) -> None:
    """The window is among what is left; an anchor that was left out is none."""
    for stream in (records, cards):
        some = filtered(stream, "--type", "idea", "--type", "it's")
        expected = [f"r{number:02d}" for number in (5, 6, 7, 8, 18, 19, 20)]
        at = ["--anchor", "2024-03-13", "--before", "4", "--after", "3"]
        assert around(some, *at) == (None, expected)
        failed = run("cortex-window", "--anchor", "r10", input=some)
        assert failed.returncode == 3 and b"r10" in failed.stderr
        assert around(filtered(stream, "--id", "nobody"), "--anchor", "2024-01-01") == (None, [])


def test_an_anchor_that_the_window_s_filters_leave_out(cards: bytes) -> None:
    found = around(cards, "--anchor", "r10", "--type", "idea", "--before", "2")
    assert found == ("r10", ["r07", "r08"])


def test_bodies_want_records(records: bytes, cards: bytes) -> None:
    done = run("cortex-window", "--anchor", "r05", "--bodies", input=cards)
    assert done.returncode == 4 and b"cards carry no bodies" in done.stderr and b'"kind":"card"' not in done.stdout
    kept = filtered(records, "--anchor", "r05", "--bodies", stage="cortex-window")
    assert [line["id"] for line in lines(kept) if line["kind"] == "record"] == around(records, "--anchor", "r05")[1]


def test_cards_of_one_moment_go_by_id(tmp_path: Path) -> None:
    names = ["b", "B", "a", "é", "_"]
    text = "".join(row(name, content="loom " * number) for number, name in enumerate(names, 1))
    root = write_corpus(tmp_path, {"a.jsonl": text})
    stream = shell(f"cortex-scan --memory-root '{root}' | cortex-strip | cortex-rank loom").stdout
    assert around(stream, "--anchor", "2000-01-01")[1] == ["_", "a", "b", "B", "é"]


def test_unsealed_cards(cards: bytes) -> None:
    """Cards that a foreign filter let through, without corpus line and seal."""
    some = b"".join(line for line in cards.splitlines(keepends=True) if b'"type":"log"' in line)
    done = run("cortex-window", "--anchor", "2024-03-13", "--after", "2", "--before", "0", "--unsealed", input=some)
    assert done.returncode == 0 and b"seals are not checked" in done.stderr
    assert ids(done.stdout) == ["r13", "r14"]
