"""The last that is allowed and the first that is refused of every bound (sections 4 and 5, 14.9, 14.14, 14.15, 14.19).

The numbers are written out here, not taken from the program.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.library import Runtime, create_cortex_adapter, run_cortex
from tests.support import BIN, envelope, environment, failure, note, row, run, shell, write_corpus

FILES = 10_000
FILE_BYTES = 8_388_608
CORPUS_BYTES = 134_217_728
RECORDS = 50_000
PAYLOAD_BYTES = 262_144

Ask = Callable[..., tuple[int, dict[str, Any]]]


def ask(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    return run_cortex(list(arguments), Runtime(memory_root=root))


def data(root: Path, *arguments: str) -> dict[str, Any]:
    """The data of an answer that must be a success."""
    status, body = ask(root, *arguments)
    assert status == 0, body
    found: dict[str, Any] = body["data"]
    return found


def refused(answer: tuple[int, dict[str, Any]], code: str, *mentions: str) -> None:
    status, body = answer
    assert status == 4 and body["error"]["code"] == code, body
    for word in mentions:
        assert word in body["error"]["message"], body


def records(root: Path) -> int:
    found: int = data(root, "status")["canonical"]["records"]
    return found


# The corpus


def test_files(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, {"KNOWLEDGE/n.md": "loom", "A_MEMORY.md": "loom"}) / "KNOWLEDGE"
    # Links to one file cost less than files; to a reader they are files.
    for number in range(2, FILES):
        os.link(folder / "n.md", folder / f"{number}.md")
    write_corpus(tmp_path, {"KNOWLEDGE/no-note.txt": "x", "KNOWLEDGE/_hidden.md": "x", "flat.md": "x"})
    assert records(tmp_path) == FILES
    done = run("cortex", "search", "loom", "--memory-root", tmp_path)
    assert envelope(done)["data"]["total"] == FILES

    os.link(folder / "n.md", folder / "one-more.md")
    refused(ask(tmp_path, "status"), "integrity_error", str(FILES))
    done = run("cortex-scan", "--memory-root", tmp_path)
    assert done.returncode == 4 and json.loads(done.stdout.splitlines()[0])["code"] == "integrity_error"
    (folder / "one-more.md").unlink()
    (tmp_path / "B_MEMORY.md").write_text("a hot file counts as any other")
    refused(ask(tmp_path, "search", "loom"), "integrity_error", str(FILES))


def test_bytes_of_a_file_and_of_the_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "KNOWLEDGE"
    head = "loom 織機 "
    body = head + "warp and weft " * ((FILE_BYTES - len(head.encode())) // 14)
    body += "." * (FILE_BYTES - len(body.encode()))
    first = write_corpus(tmp_path, {"KNOWLEDGE/00.md": body}) / "KNOWLEDGE/00.md"
    assert first.stat().st_size == FILE_BYTES
    for number in range(1, CORPUS_BYTES // FILE_BYTES):
        os.link(first, folder / f"{number:02}.md")
    done = run("cortex", "search", "loom", "--memory-root", tmp_path)
    cards = envelope(done)["data"]
    assert cards["total"] == 16 and cards["items"][0]["est_tokens"] == (len(body) + 3) // 4

    (folder / "empty.md").touch()
    assert json.loads(run("cortex-scan", "--memory-root", tmp_path).stdout.splitlines()[0])["bytes"] == CORPUS_BYTES
    (folder / "empty.md").write_text("x")
    refused(ask(tmp_path, "status"), "integrity_error", str(CORPUS_BYTES))
    assert run("cortex-scan", "--memory-root", tmp_path).returncode == 4
    (folder / "empty.md").rename(folder / "_empty.md")
    with first.open("ab") as file:
        file.write(b"x")
    for number in range(1, 16):
        (folder / f"{number:02}.md").unlink()
    refused(ask(tmp_path, "status"), "integrity_error", "KNOWLEDGE/00.md", str(FILE_BYTES))


def test_a_file_of_rows_may_be_as_long(tmp_path: Path) -> None:
    line = row("a", content="x")
    path = write_corpus(tmp_path, {"a.jsonl": row("a", content="x" * (FILE_BYTES - len(line) + 1))}) / "a.jsonl"
    assert path.stat().st_size == FILE_BYTES
    assert len(data(tmp_path, "get", "a")["items"][0]["content"]) == FILE_BYTES - len(line) + 1
    with path.open("a") as file:
        file.write("\n")
    refused(ask(tmp_path, "get", "a"), "integrity_error", "a.jsonl")


def test_records(tmp_path: Path) -> None:
    rows = [row(f"{number:x}") for number in range(RECORDS)]
    half = RECORDS // 2
    root = write_corpus(tmp_path, {"a.jsonl": "".join(rows[:half]), "b.jsonl": "\n".join(rows[half:])})
    status = run("cortex", "status", "--memory-root", root)
    assert envelope(status)["data"]["canonical"]["records"] == RECORDS  # by several processes, where there are cores

    with (root / "b.jsonl").open("a") as file:
        file.write(row("one-more"))
    failure(run("cortex", "status", "--memory-root", root), 4, "integrity_error", str(RECORDS))
    (root / "c.md").write_text(note("0"))
    refused(ask(root, "search", "loom"), "integrity_error", str(RECORDS))  # an ID that stands twice is judged later
    done = shell(f"cortex-scan --memory-root {root} | cortex-strip | cortex-envelope status")
    failure(done, 4, "integrity_error", str(RECORDS))

    write_corpus(root, {"b.jsonl": "".join(rows[half:-1])})
    failure(run("cortex", "status", "--memory-root", root), 4, "integrity_error", "c.md", "a.jsonl:1")


def test_records_are_counted_over_the_parts_of_a_listing(tmp_path: Path) -> None:
    """No single reader of the parts sees too many; the first that sees all of them does."""
    half = RECORDS // 2
    files = {f"{part}.jsonl": "".join(row(f"{part}{number:x}") for number in range(half)) for part in "ab"}
    root = write_corpus(tmp_path / "root", {**files, "c.md": note("one-more")})
    script = """
        cortex-scan --memory-root {0} --parts 2 > listing
        head -n $(( $(grep -n '"seal"' listing | head -n 1 | cut -d: -f1) )) listing > one
        tail -n +$(( $(wc -l < one) + 1 )) listing > two
        cortex-strip < one > one.records && cortex-strip < two > two.records &&
        cat two.records one.records | cortex-envelope status
    """
    failure(shell(script.format(root), cwd=tmp_path), 4, "integrity_error", str(RECORDS))
    (root / "c.md").unlink()
    done = shell(script.format(root), cwd=tmp_path)
    assert envelope(done)["data"]["canonical"]["records"] == RECORDS


# The values of options


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 notes in a chain of links, one a day."""
    days = [f"2024-{1 + number // 28:02}-{1 + number % 28:02}" for number in range(120)]
    links = {
        f"{number:03}.md": note(f"n{number}", f"loom {number}\nslug: n{number + 1}", created=day)
        for number, day in enumerate(days)
    }
    return write_corpus(tmp_path_factory.mktemp("chain"), dict(links))


def test_characters_of_a_query(root: Path) -> None:
    assert data(root, "search", "loom" + " " * 2_044)["total"] == 120
    refused(ask(root, "search", "loom" + " " * 2_045), "invalid_input", "2048")
    # Lengths are UTF-16 code units: an astral character counts twice, one of three bytes once.
    assert data(root, "search", "loom" + "\U0001d400" * 1_022)["total"] == 120
    refused(ask(root, "search", "loom " + "\U0001d400" * 1_022), "invalid_input", "2048")
    assert data(root, "search", "loom" + "織" * 2_044)["total"] == 120
    refused(ask(root, "search", "loom" + "織" * 2_045), "invalid_input", "2048")
    failure(run("cortex", "search", "loom" + "織" * 2_045, "--memory-root", root), 4, "invalid_input", "2048")


def test_terms_of_a_query(root: Path) -> None:
    assert data(root, "search", " ".join(["loom"] * 64))["total"] == 120  # repeats are counted
    refused(ask(root, "search", " ".join(["loom"] * 65)), "invalid_input", "64")
    assert data(root, "search", "-".join(f"t{number}" for number in range(64)))["total"] == 0
    refused(ask(root, "search", "-".join(f"t{number}" for number in range(65))), "invalid_input", "64")
    assert data(root, "search", "x")["total"] == 0
    for nothing in ("", " ", "!?", "織機", "é"):
        refused(ask(root, "search", nothing), "invalid_input", "query")


COUNTS = [
    ("search", "--page", "1", "9007199254740991"),
    ("search", "--page-size", "1", "100"),
    ("search", "--max-nodes", "1", "100"),
    ("search", "--max-tokens", "1", "50000"),
    ("timeline", "--page", "1", "9007199254740991"),
    ("timeline", "--page-size", "1", "100"),
    ("timeline", "--before", "0", "100"),
    ("timeline", "--after", "0", "100"),
]


@pytest.mark.parametrize(("command", "option", "least", "most"), COUNTS)
def test_counts(root: Path, command: str, option: str, least: str, most: str) -> None:
    base = ["search", "loom"] if command == "search" else ["timeline", "--anchor", "n60"]
    for allowed in (least, most, "00" + least, "0" * 5_000 + most):
        assert ask(root, *base, option, allowed)[0] == 0, allowed[-20:]
    above, below = str(int(most) + 1), str(int(least) - 1)
    for bad in (
        above,
        below,
        "9" * 5_000,
        "1.0",
        "0x1",
        "+1",
        "1e0",
        " 1",
        "1 ",
        " ",
        "1_0",
        "\u0661",
        "\uff11",
        "x",
        "-0",
    ):
        refused(ask(root, *base, option, bad), "invalid_input", option, most)


def test_what_the_largest_counts_give(root: Path) -> None:
    page = data(root, "search", "loom", "--page-size", "100")
    assert (len(page["items"]), page["total"], page["page_size"]) == (100, 120, 100)
    assert len(data(root, "search", "loom", "--page-size", "100", "--page", "2")["items"]) == 20
    last = data(root, "search", "loom", "--page", "9007199254740991")
    assert (last["items"], last["total"], last["page"]) == ([], 120, 9007199254740991)
    window = ["timeline", "--page-size", "100", "--anchor"]
    assert data(root, *window, "n110", "--before", "100", "--after", "0")["total"] == 101
    assert data(root, *window, "n10", "--before", "0", "--after", "100")["total"] == 101
    assert data(root, *window, "n60", "--before", "0", "--after", "0")["total"] == 1
    assert data(root, *window, "n60")["total"] == 11


def test_the_budgets_of_an_expansion(root: Path) -> None:
    def nodes(*options: str) -> tuple[int, bool]:
        found = data(root, "search", "loom", "--expand", "n0", *options)["expansion"]
        return len(found["items"]), found["truncated"]

    assert nodes("--max-nodes", "1") == (1, True)
    assert nodes() == (10, True)
    assert nodes("--max-nodes", "100", "--max-tokens", "50000") == (100, True)
    assert nodes("--max-nodes", "1", "--max-tokens", "1") == (0, True)
    chain = data(root, "search", "loom", "--expand", "n118", "--max-tokens", "50000")["expansion"]
    tokens = sum(card["est_tokens"] for card in chain["items"])
    assert (len(chain["items"]), chain["est_tokens"], chain["truncated"]) == (2, tokens, False)
    for budget, expected in ((tokens, (2, False)), (tokens - 1, (1, True))):
        found = data(root, "search", "loom", "--expand", "n118", "--max-tokens", str(budget))["expansion"]
        assert (len(found["items"]), found["truncated"]) == expected


def test_budgets_are_judged_without_an_expansion_too(root: Path) -> None:
    for option in ("--max-nodes", "--max-tokens"):
        refused(ask(root, "search", "loom", option, "0"), "invalid_input", option)


@pytest.mark.parametrize("value", ["0", "3", "3.", ".5", "0.25", "1e3", "2E-4", "00.1e+2", "1e-400", "1" + "0" * 290])
def test_a_recency_that_is_taken(root: Path, value: str) -> None:
    assert ask(root, "search", "loom", "--recency", value)[0] == 0


@pytest.mark.parametrize(
    "value", ["-1", "+1", ".", "e1", "1e", "1e309", "9" * 400, "inf", "nan", "0x1", " ", " 1", "1_0", "1,5", "\u0661"]
)
def test_a_recency_that_is_refused(root: Path, value: str) -> None:
    refused(ask(root, "search", "loom", "--recency", value), "invalid_input", "--recency")


def test_a_recency_whose_arithmetic_overflows(root: Path) -> None:
    refused(ask(root, "search", "loom", "--recency", "1.7e308"), "invalid_input", "--recency")


@pytest.mark.parametrize("command", ["get", "export"])
def test_ids(root: Path, command: str) -> None:
    ids = [f"n{number}" for number in range(101)]
    assert [item["id"] for item in data(root, command, *ids[:100])["items"]] == ids[:100]
    refused(ask(root, command, *ids), "invalid_input", "100")
    assert len(data(root, command, *["n5"] * 100)["items"]) == 100
    refused(ask(root, command, *["n5"] * 101), "invalid_input", "100")
    refused(ask(root, command), "invalid_input", "1 to 100")
    done = run("cortex", command, *ids[:100], "--memory-root", root)
    assert len(envelope(done)["data"]["items"]) == 100
    failure(run("cortex", command, *ids, "--memory-root", root), 4, "invalid_input", "100")


# The payload of a write


def payload(size: int, text: str = "C") -> str:
    """An idea as JSON of exactly `size` bytes: what is missing is padded with white space."""
    item = json.dumps({"type": "idea", "title": "T", "content": text}, ensure_ascii=False)
    return item + " " * (size - len(item.encode()))


GRANTED = ("--adapter", "claude", "--allow-write")


def test_bytes_of_a_payload(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = []

    def add(item: dict[str, Any], *_: object) -> dict[str, Any]:
        given.append(item)
        return {"ok": True}

    runtime = Runtime(memory_root=tmp_path, memory_add=add)
    for text in ("C", "織" * 20_000):
        assert run_cortex(["remember", payload(PAYLOAD_BYTES, text), *GRANTED], runtime)[0] == 0
        assert given.pop()["content"] == text
        answer = run_cortex(["remember", payload(PAYLOAD_BYTES + 1, text), *GRANTED], runtime)
        refused(answer, "invalid_input", str(PAYLOAD_BYTES))
    adapter = create_cortex_adapter("claude", runtime)
    item = {"type": "idea", "title": "T", "content": "x" * (PAYLOAD_BYTES + 1)}
    refused(adapter.remember(item, {"allow_write": True}), "invalid_input", str(PAYLOAD_BYTES))
    assert given == []


def remember(root: Path, stdin: int, *options: str) -> subprocess.CompletedProcess[bytes]:
    """`cortex remember -` on an open descriptor, so that the caller sees how far it was read."""
    command = [BIN / "cortex", "remember", "-", "--memory-root", root, *options]
    return subprocess.run(command, stdin=stdin, capture_output=True, env=environment(), timeout=120)


@pytest.mark.parametrize(
    ("size", "options", "code", "furthest"),
    [
        (PAYLOAD_BYTES, GRANTED, None, PAYLOAD_BYTES),
        # One byte more must be read to know that there is one.
        (PAYLOAD_BYTES + 1, GRANTED, "invalid_input", PAYLOAD_BYTES + 1),
        (4 * PAYLOAD_BYTES, GRANTED, "invalid_input", PAYLOAD_BYTES + 1),
        (100, GRANTED[:2], "write_refused", 0),
        (100, GRANTED[2:], "write_refused", 0),
        (100, ("--adapter", "zeus", "--allow-write"), "invalid_input", 0),
        (100, ("another payload", *GRANTED), "invalid_input", 0),
        (100, ("--bogus", *GRANTED), "invalid_input", 0),
    ],
)
def test_standard_input_is_read_no_further(
    tmp_path: Path, size: int, options: tuple[str, ...], code: str | None, furthest: int
) -> None:
    root = tmp_path / "root"
    (root / "KNOWLEDGE").mkdir(parents=True)
    (tmp_path / "payload").write_text(payload(size))
    stdin = os.open(tmp_path / "payload", os.O_RDONLY)
    try:
        done = remember(root, stdin, *options)
        assert os.lseek(stdin, 0, os.SEEK_CUR) == furthest
    finally:
        os.close(stdin)
    error = envelope(done)["error"]
    if code is None:
        assert error is None or error["code"] == "governance_refused", error
    else:
        assert error["code"] == code
        assert done.returncode == (5 if code == "write_refused" else 4)


def test_a_writer_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    """A payload that is already too large is refused although more may come."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [BIN / "cortex", "remember", "-", "--memory-root", tmp_path, *GRANTED],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        pipe.write(payload(PAYLOAD_BYTES + 1).encode())
        pipe.flush()
        out, _ = process.communicate(timeout=60)  # while the pipe is still open
    assert process.returncode == 4 and json.loads(out)["error"]["code"] == "invalid_input"


def test_a_payload_longer_than_one_argument_may_be_comes_by_standard_input(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        run("cortex", "remember", payload(PAYLOAD_BYTES), *GRANTED, "--memory-root", tmp_path)
