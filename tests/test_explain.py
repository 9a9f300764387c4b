"""cortex-rank --explain: what scores are made of, on a stream and on a terminal (docs/streams.md)."""

from __future__ import annotations

import json
import math
import os
import pty
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.domain.numbers import round6
from cortex_tools.streams import lines
from tests.support import BIN, SAMPLE, environment, failure, note, row, run, shell, write_corpus

RECENT = ["--recency", "0.3"]


@pytest.fixture(scope="module")
def records() -> bytes:
    return shell(f"cortex-scan --memory-root '{SAMPLE}' | cortex-strip").stdout


def ranked(records: bytes, *arguments: str) -> list[dict[str, Any]]:
    done = run("cortex-rank", *arguments, input=records)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_kind(stream: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in stream if line["kind"] == kind]


@pytest.mark.parametrize(
    "arguments",
    [
        ["loom tension"],
        ["tension loom vat the a of zzz loom", *RECENT],
        ["loom", "--recency", "1e9"],
        ["ZOË loom", "--tokens", "unicode", *RECENT],
    ],
    ids=" ".join,
)
def test_shares_add_up_and_nothing_else_changes(arguments: list[str], records: bytes) -> None:
    plain, explained = ranked(records, *arguments), ranked(records, *arguments, "--explain")
    cards, explanations = of_kind(plain, "card"), of_kind(explained, "explanation")
    assert len(cards) > 1 and of_kind(explained, "card") == cards
    body = [line["kind"] for line in explained[1:-1]]
    assert body == ["card", "explanation"] * len(cards)
    assert [one["id"] for one in explanations] == [card["id"] for card in cards]
    for card, one in zip(cards, explanations, strict=True):
        total = 0.0
        for term in one["terms"]:
            total += term["share"]
        total += one["recency"]
        assert total == one["score"]  # to the last bit: 1e-9 is far more than the numbers lose
        assert math.isclose(math.fsum([term["share"] for term in one["terms"]] + [one["recency"]]), one["score"])
        assert round6(total) == card["score"]
    assert explanations == sorted(explanations, key=lambda one: -one["score"])


def test_by_hand(tmp_path: Path) -> None:
    """Three records whose every number fits on a page."""
    write_corpus(
        tmp_path,
        {
            "a.md": note("a", "loom loom vat", title="x").split("---\n", 2)[2],
            "b.jsonl": json.dumps(
                {"id": "b", "type": "t", "title": "Loom", "created": "2001-09-09T01:46:40Z",
                 "updated": "2001-09-09T01:46:40Z", "content": "vat. vat?"}
            ),
            "c.md": "one two three four",
        },
    )  # fmt: skip
    stream = shell(f"cortex-scan --memory-root '{tmp_path}' | cortex-strip").stdout
    found = {
        one["id"]: one for one in of_kind(ranked(stream, "vat Loom zzz", "--recency", "10", "--explain"), "explanation")
    }
    assert len(found) == 2
    one = found["b"]
    assert list(one) == ["kind", "id", "records", "length", "average", "terms", "recency", "score"]
    # Lengths: "a md loom loom vat" is 5, "Loom vat vat" 3, "c md one two three four" 6.
    assert (one["records"], one["length"], one["average"]) == (3, 3, 14 / 3)
    idf = math.log(1 + (3 - 2 + 0.5) / 2.5)
    norm = 1.5 * (0.25 + 0.75 * 3 / (14 / 3))
    assert [list(term) for term in one["terms"]] == [["term", "df", "idf", "tf", "share"]] * 3
    assert [term["term"] for term in one["terms"]] == ["vat", "loom", "zzz"]
    assert [(term["df"], term["tf"]) for term in one["terms"]] == [(2, 2), (2, 1), (0, 0)]
    shares = [idf * 2 * 2.5 / (2 + norm), idf * 2.5 / (1 + norm), 0]
    for term, share in zip(one["terms"], shares, strict=True):
        assert math.isclose(term["share"], share, rel_tol=1e-12)
    assert math.isclose(one["terms"][0]["idf"], idf) and math.isclose(one["terms"][2]["idf"], math.log(1 + 3.5 / 0.5))
    assert one["recency"] == 10 * 1_000_000_000_000 / 1e13 == 1


def test_with_bodies_the_record_is_explained(records: bytes) -> None:
    stream = ranked(records, "loom", "--bodies", "--explain")
    assert [line["kind"] for line in stream[1:-1]] == ["record", "explanation"] * ((len(stream) - 2) // 2)
    for record, one in zip(of_kind(stream, "record"), of_kind(stream, "explanation"), strict=True):
        assert record["id"] == one["id"]


def test_no_match_is_no_explanation(records: bytes) -> None:
    assert [line["kind"] for line in ranked(records, "zzz", "--explain")] == ["corpus", "seal"]


def test_other_stages_pass_it_on_and_the_envelope_refuses_it(records: bytes) -> None:
    explained = run("cortex-rank", "loom", "--explain", input=records).stdout
    body = explained.splitlines()[:-1]
    for stage in (["cortex-card"], ["cortex-select", "--from", "1970-01-01"]):
        assert run(*stage, input=explained).stdout.splitlines()[:-1] == body
    for line in body:
        assert lines.encode(lines.decode(line + b"\n", "a line")) == line + b"\n"
    failure(run("cortex-envelope", "search", input=explained), 4, "integrity_error", "explanation")
    windowed = run("cortex-window", "--anchor", "2024-06-01", input=explained).stdout.splitlines()
    kinds = [json.loads(line)["kind"] for line in windowed]
    first_card = kinds.index("card")  # a stage that sorts writes what it does not handle first
    assert set(kinds[1:first_card]) == {"explanation", "anchor"} and set(kinds[first_card:-1]) == {"card"}


@pytest.mark.parametrize(
    "arguments", [["--limit", "2"], ["--type", "log"], ["--id", "idea-open-dobby"], ["--id", "nobody"]], ids=" ".join
)
def test_select_drops_it_with_its_card(arguments: list[str], records: bytes) -> None:
    explained = run("cortex-rank", "loom", "--explain", input=records).stdout
    done = run("cortex-select", *arguments, input=explained)
    kept = [json.loads(line) for line in done.stdout.splitlines()][1:-1]
    wanted = run("cortex-select", *arguments, input=run("cortex-rank", "loom", input=records).stdout)
    cards = [json.loads(line) for line in wanted.stdout.splitlines()][1:-1]
    assert [line["kind"] for line in kept] == ["card", "explanation"] * len(cards)
    assert of_kind(kept, "card") == cards
    assert [one["id"] for one in of_kind(kept, "explanation")] == [card["id"] for card in cards]


def on_a_terminal(*argv: str, input: bytes) -> tuple[int, str]:
    """The exit status, and what is written where standard output is a terminal."""
    master, terminal = pty.openpty()
    said: list[bytes] = []

    def listen() -> None:
        try:
            while data := os.read(master, 65_536):
                said.append(data)
        except OSError:
            pass  # how Linux says that the terminal is closed

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        name, *rest = argv
        done = subprocess.run(
            [BIN / name, *rest], input=input, stdout=terminal, stderr=subprocess.PIPE, env=environment(), timeout=60
        )
    finally:
        os.close(terminal)
        listener.join(20)
        os.close(master)
    return done.returncode, b"".join(said).decode().replace("\r\n", "\n")


def test_a_table_on_a_terminal(records: bytes) -> None:
    status, text = on_a_terminal("cortex-rank", "loom tension zzz", "--explain", *RECENT, input=records)
    assert status == 0 and "{" not in text and "\x1b" not in text
    explanations = of_kind(ranked(records, "loom tension zzz", "--explain", *RECENT), "explanation")
    head, *blocks = text.split("\n\n")
    assert head.startswith(f"{explanations[0]['records']} records of ")
    assert [line.split()[0] for line in blocks[0].splitlines()] == ["term", "loom", "tension", "zzz"]
    assert len(blocks) == 1 + len(explanations)
    for block, one in zip(blocks[1:], explanations, strict=True):
        title, *shares = block.splitlines()
        assert title == f"{one['score']:.6f}  {one['id']} ({one['length']} terms)"
        shown = {line.split("%")[1].split()[0]: float(line.split()[0]) for line in shares}
        expected = {term["term"]: term["share"] for term in one["terms"] if term["tf"]}
        expected["recency"] = one["recency"]
        assert shown.keys() == expected.keys()
        for name, share in expected.items():
            assert abs(shown[name] - share) <= 1e-6


def test_a_table_of_nothing_and_of_wide_characters(records: bytes, tmp_path: Path) -> None:
    assert on_a_terminal("cortex-rank", "zzz", "--explain", input=records) == (
        0,
        "No record holds a term of the query.\n",
    )
    write_corpus(tmp_path, {"a.jsonl": row("two\nlines", title="織機", content="x")})
    stream = shell(f"cortex-scan --memory-root '{tmp_path}' | cortex-strip").stdout
    status, text = on_a_terminal("cortex-rank", "織機 x", "--tokens", "unicode", "--explain", input=stream)
    assert status == 0 and "two\\nlines (2 terms)" in text
    assert "織機           1" in text and "x              1" in text  # a wide character takes two columns


def test_no_table_from_a_broken_stream(records: bytes) -> None:
    status, text = on_a_terminal("cortex-rank", "loom", "--explain", input=records[:-40])
    assert status == 4 and '"kind":"error"' in text and "terms)" not in text


def test_without_explain_a_terminal_gets_the_stream(records: bytes) -> None:
    assert on_a_terminal("cortex-rank", "loom", input=records)[1].count('"kind":"card"') > 5


def test_the_contract_s_commands_have_no_such_option() -> None:
    for option in ("--explain", "--tokens"):
        assert option in EXECUTABLES["cortex-rank"].options
        failure(run("cortex", "search", "loom", option, "--memory-root", SAMPLE), 4, "invalid_input", option)
