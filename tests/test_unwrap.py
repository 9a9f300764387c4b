"""cortex-unwrap: the inverse of cortex-envelope, and what it cannot give back."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.contract.errors import EXIT_STATUS
from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain import envelope as envelopes
from cortex_tools.domain.records import CARD_KEYS, PROVENANCE_KEYS, RECORD_KEYS
from cortex_tools.stages import envelope as wrapping
from cortex_tools.stages import unwrap as unwrapping
from cortex_tools.streams.items import Seal
from cortex_tools.streams.segments import SegmentReader, SegmentWriter
from tests.support import SAMPLE, envelope, failure, note, row, run, shell, write_corpus
from tests.test_plan import as_printed
from tests.test_streams import VALIDATOR, batch, of_kind, one, seals, segments, split_lines

NAME = "cortex-unwrap"
HEAD = {"kind": "corpus", "root": None, "listing": "0" * 16, "part": 1, "parts": 1, "files": 0, "bytes": 0}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus whose answers hold what a careless reader changes."""
    return write_corpus(
        tmp_path_factory.mktemp("odd"),
        {
            "KNOWLEDGE/crlf.md": note("crlf", "loom\r\nvat").replace("\n", "\r\n"),
            "KNOWLEDGE/織機 \n.md": "loom 織機與染缸\n",
            "KNOWLEDGE/lines.md": note("lines", "loom\u2028vat\u2029end\n- slug: emoji 🧵", type="idea"),
            "KNOWLEDGE/emoji.jsonl": row(
                "emoji 🧵", content='loom 🧵 \\ "quoted" \ufeff\uffff\ue000', related=["lines", "x"]
            )
            + row("two", valid_from="2020-01-01", source_session=None, updated="2024-02-29T23:59:59.123456789+05:30"),
            "HOT_MEMORY.md": note("hot", 'say "loom" \\n \\u003cb\\u003e <b>bold</b> &lt;private&gt; / \x7e'),
        },
    )


def refused(done: subprocess.CompletedProcess[bytes], code: str, *mentions: str) -> None:
    """It failed with an error line at the end, sealed, and said so once."""
    *_, error = (value for segment in segments(done.stdout) for value in segment)
    assert (error["kind"], error["code"], error["stage"]) == ("error", code, NAME), error
    assert (done.returncode, done.stderr.decode()) == (EXIT_STATUS[code], f"{NAME}: {code}: {error['message']}\n")
    for word in mentions:
        assert word in error["message"], error


def unwrap(document: bytes | str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return run(NAME, input=document.encode() if isinstance(document, str) else document, **options)


ALL_IDS = ["crlf", "lines", "emoji 🧵", "two", "hot"]
# A contract command line that fits on one page, and the stage that must print the same envelope again.
COMMANDS = {
    "get": (["get", *ALL_IDS], ["get", *ALL_IDS]),
    "get, repeated": (["get", "hot", "two", "hot", "hot"], ["get", "hot", "two", "hot", "hot"]),
    "export": (["export", "lines", "crlf"], ["export", "lines", "crlf"]),
    "search": (["search", "loom"], ["search"]),
    "search with recency": (["search", "loom quoted", "--recency", "0.3"], ["search"]),
    "search with an expansion": (["search", "loom", "--expand", "lines"], ["search"]),
    "search cut short": (["search", "loom", "--expand", "lines", "--max-nodes", "1"], ["search"]),
    "search for nothing": (["search", "nowhere"], ["search"]),
    "timeline": (["timeline", "--anchor", "two"], ["timeline"]),
    "timeline at a time": (["timeline", "--anchor", "2024-01-01T12:00:00+01:00"], ["timeline"]),
    "timeline of the year 10000": (["timeline", "--anchor", "9999-12-31T23:59:59-23:59"], ["timeline"]),
    "not found": (["get", "nobody"], ["get", "nobody"]),
    "invalid": (["search", "loom", "--page", "0"], ["search"]),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
def test_an_envelope_that_is_unwrapped_and_wrapped_again_is_the_same(case: str, odd: Path) -> None:
    comes_back(odd, *COMMANDS[case])


def test_so_it_is_with_the_sample_corpus() -> None:
    size = ["--page-size", "100"]
    comes_back(SAMPLE, ["search", "loom indigo", "--expand", "idea-tension-logger", *size], ["search", *size])
    comes_back(SAMPLE, ["timeline", "--anchor", "idea-tension-logger", "--after", "40", *size], ["timeline", *size])
    found = envelope(run("cortex", "search", "loom", *size, "--memory-root", SAMPLE))["data"]["items"]
    get = ["get", *(item["id"] for item in found)]
    comes_back(SAMPLE, get, get)


def comes_back(root: Path, argv: list[str], again: list[str]) -> None:
    direct = run("cortex", *argv, "--memory-root", root)
    stream = unwrap(direct.stdout)
    assert stream.returncode == direct.returncode
    second = run("cortex-envelope", *again, input=stream.stdout)
    assert (second.returncode, second.stdout) == (direct.returncode, direct.stdout)
    if direct.returncode == 0:
        assert (stream.stderr, second.stderr) == (b"", b"")
    for line in split_lines(stream.stdout):
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize("case", ["get", "search with an expansion", "timeline"])
def test_layout_and_the_order_of_keys_do_not_matter(case: str, odd: Path) -> None:
    direct = run("cortex", *COMMANDS[case][0], "--memory-root", odd).stdout
    stream = unwrap(direct).stdout
    value = json.loads(direct)
    layouts = {
        "pretty": json.dumps(value, indent=4, ensure_ascii=False),
        "pretty ASCII": json.dumps(value, indent="\t"),
        "CRLF": json.dumps(value, indent=2).replace("\n", "\r\n"),
        "sorted": json.dumps(value, sort_keys=True),
        "no line end": direct.rstrip().decode(),
        "blanks around": "\n\n \t" + direct.decode() + "\r\n \n",
    }
    for name, document in layouts.items():
        done = unwrap(document)
        assert (done.returncode, done.stderr, done.stdout) == (0, b"", stream), name
    if shutil.which("jq"):
        for option in (".", "-S ."):
            assert shell(f"jq {option} | {NAME}", input=direct).stdout == stream


def test_the_lines_are_those_of_the_pipeline_below_a_head_without_a_root(odd: Path) -> None:
    cards = shell(f"cortex-scan --memory-root '{odd}' | cortex-strip | cortex-window --anchor two").stdout
    done = unwrap(run("cortex", "timeline", "--anchor", "two", "--memory-root", odd).stdout)
    assert split_lines(done.stdout)[1:-1] == split_lines(cards)[1:-1]
    assert json.loads(split_lines(done.stdout)[0]) == HEAD
    records = shell(f"cortex-scan --memory-root '{odd}' | cortex-strip").stdout
    done = unwrap(run("cortex", "get", *ALL_IDS, "--memory-root", odd).stdout)
    assert set(split_lines(done.stdout)[1:-1]) < set(split_lines(records))
    assert seals(done.stdout)[0]["stage"] == NAME and "unsealed" not in seals(done.stdout)[0]


def test_what_export_saved_without_its_envelope_is_taken_too(odd: Path) -> None:
    direct = run("cortex", "export", *ALL_IDS, "--memory-root", odd).stdout
    bare = json.dumps(json.loads(direct)["data"], indent=2)
    assert unwrap(bare).stdout == unwrap(direct).stdout
    for data in (run("cortex", "search", "loom", "--memory-root", odd), run("cortex", "status", "--memory-root", odd)):
        refused(unwrap(json.dumps(json.loads(data.stdout)["data"])), "integrity_error", "is no envelope")


def test_an_export_filtered_down_to_nothing_is_an_empty_stream() -> None:
    done = unwrap('{"format":"lifeos-cortex-export/v1","items":[]}')
    assert (done.returncode, done.stderr, segments(done.stdout)) == (0, b"", [[HEAD]])


def test_unwrapped_records_go_through_every_stage(odd: Path) -> None:
    stream = unwrap(run("cortex", "get", *ALL_IDS, "--memory-root", odd).stdout).stdout
    answers = batch(
        [
            (["cortex-select", "--valid", "--type", "idea"], stream),
            (["cortex-rank", "loom"], stream),
            (["cortex-window", "--anchor", "two"], stream),
            (["cortex-expand", "lines"], stream),
            (["cortex-digest"], stream),
            (["cortex-card"], stream),
            (["cortex-through", "cat"], stream),
        ]
    )
    assert [(done.returncode, done.stderr) for done in answers] == [(0, b"")] * 7
    ended = one(["cortex-envelope", "search"], answers[1].stdout)
    direct = run("cortex", "search", "loom", "--memory-root", odd).stdout
    assert {item["id"] for item in json.loads(ended)["data"]["items"]} < {
        item["id"] for item in json.loads(direct)["data"]["items"]
    }
    status, strip = batch([(["cortex-envelope", "status"], stream), (["cortex-strip"], stream)])
    failure(status, 4, "integrity_error", "root")  # an envelope does not tell whose records they are
    assert strip.returncode == 4


def test_streams_of_two_envelopes_cannot_be_mixed_up(odd: Path) -> None:
    stream = unwrap(run("cortex", "get", "hot", "--memory-root", odd).stdout).stdout
    corpus = shell(f"cortex-scan --memory-root '{odd}' | cortex-strip").stdout
    for mixed in (stream + stream, stream + corpus, corpus + stream):
        assert run("cortex-digest", input=mixed).returncode == 4


def test_a_page_of_many_gives_its_cards_and_says_what_is_missing(odd: Path) -> None:
    for argv in (["--page", "2", "--page-size", "2"], ["--page", "3", "--page-size", "2"], ["--page", "9"]):
        direct = run("cortex", "search", "loom", *argv, "--memory-root", odd)
        total = envelope(direct)["data"]["total"]
        done = unwrap(direct.stdout)
        assert total >= 5
        held = len(envelope(direct)["data"]["items"])
        assert (done.returncode, len(of_kind(done.stdout, "card"))) == (0, held)
        page = argv[1]
        assert done.stderr.decode() == (
            f"{NAME}: note: page {page} holds {held} of {total} cards; the others are not in the envelope\n"
        )
        again = envelope(run("cortex-envelope", "search", input=done.stdout))
        assert (again["data"]["items"], again["data"]["total"]) == (envelope(direct)["data"]["items"], held)


@pytest.mark.parametrize("code", EXIT_STATUS)
def test_a_failure_envelope_is_an_error_line_with_its_code_and_status(code: str) -> None:
    body = {
        "schema": "lifeos-cortex/v1",
        "ok": False,
        "command": "x",
        "data": None,
        "error": {"code": code, "message": "why 織\n"},
    }
    document = json.dumps(body)
    done = unwrap(document)
    (error,) = of_kind(done.stdout, "error")
    assert (error["code"], error["message"], done.returncode) == (code, "why 織\n", EXIT_STATUS[code])
    assert done.stderr.decode() == f"{NAME}: {code}: why 織\\n\n"
    failure(run("cortex-envelope", "search", input=done.stdout), EXIT_STATUS[code], code)


@pytest.mark.parametrize("command", [["status"], ["rebuild", "--from-canonical"]])
def test_an_envelope_without_records_or_cards_is_refused_by_name(command: list[str]) -> None:
    document = run("cortex", *command, "--memory-root", SAMPLE).stdout
    refused(unwrap(document), "integrity_error", "neither records nor cards", "get, export, search, timeline")


# --- any record, any card ------------------------------------------------------------------------------------------

# What may stand in a record: no controls but tab, LF and CR, no surrogates, nothing that looks like a private tag.
TEXTS = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc"], exclude_characters="<\uff1c\ufe64", include_characters="\t\n\r\x85\u2028"
    )
).filter(lambda text: not any("\x80" <= char <= "\x9f" for char in text))
NAMES = TEXTS.filter(lambda text: text.strip() and text.strip("\ufeff\u200b"))
TIMES = st.sampled_from(["2024-01-01", "2024-02-29T23:59Z", "2024-03-01T00:00:00.123456789+05:30"])
PROVENANCE = st.fixed_dictionaries({"source": TEXTS, "session": st.none() | TEXTS, "path": NAMES})
RECORDS = st.fixed_dictionaries(
    {
        "id": NAMES, "type": TEXTS, "title": TEXTS, "created": st.just("2020-01-01"), "updated": TIMES,
        "provenance": PROVENANCE, "content": TEXTS, "related": st.lists(TEXTS, max_size=3),
        "valid_from": st.none() | st.just("2019-01-01"), "valid_until": st.none() | TIMES,
    }
)  # fmt: skip
CARDS = st.fixed_dictionaries(
    {
        "id": NAMES, "type": TEXTS, "created": st.just("2020-01-01"), "updated": TIMES, "provenance": PROVENANCE,
        "score": st.floats(allow_nan=False, allow_infinity=False), "est_tokens": st.integers(0, 2**53),
    }
)  # fmt: skip


def success(command: str, data: dict[str, Any]) -> str:
    body = {"schema": "lifeos-cortex/v1", "ok": True, "command": command, "data": data, "error": None}
    return as_printed(body) + "\n"


def ordered(item: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    provenance = {key: item["provenance"][key] for key in PROVENANCE_KEYS}
    return {key: provenance if key == "provenance" else item[key] for key in keys}


def there_and_back(document: str, command: str, ids: list[str], folder: Path) -> str:
    """Unwrapped and wrapped again by the stages' own code in this process."""
    (folder / "document").write_text(document, newline="")
    with open(folder / "document", "rb") as source, open(folder / "stream", "w+b") as stream:
        unwrapping.run(SegmentWriter(NAME, stream.fileno()), source.fileno())
        stream.seek(0)
        stage = wrapping.build(Arguments({}, [command, *ids]), 0)
        for item in SegmentReader(stream.fileno()):
            if not isinstance(item, Seal):
                stage.take(item)
    return envelopes.success(command, stage.data()).line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round trip")


@settings(max_examples=100, deadline=None)
@given(items=st.lists(RECORDS, min_size=1, max_size=4, unique_by=lambda item: item["id"]), ascii=st.booleans())
def test_any_records_come_back_as_they_were(folder: Path, items: list[dict[str, Any]], ascii: bool) -> None:
    records = [ordered(item, RECORD_KEYS) for item in items]
    document = success("export", {"format": "lifeos-cortex-export/v1", "items": records})
    as_given = json.dumps(json.loads(document), ensure_ascii=True, indent=1) if ascii else document
    assert there_and_back(as_given, "export", [item["id"] for item in items], folder) == document


@settings(max_examples=100, deadline=None)
@given(
    items=st.lists(CARDS, max_size=4, unique_by=lambda item: item["id"]),
    expansion=st.none() | st.lists(CARDS, max_size=2),
    anchor=st.none() | NAMES,
)
def test_any_cards_come_back_as_they_were(
    folder: Path, items: list[dict[str, Any]], expansion: list[dict[str, Any]] | None, anchor: str | None
) -> None:
    cards = [ordered(item, CARD_KEYS) for item in items]
    page: dict[str, Any] = {"items": cards, "total": len(cards), "page": 1, "page_size": 10}
    timeline = success("timeline", {**page, "anchor": {"id": anchor, "date": "2024-01-01"}})
    assert there_and_back(timeline, "timeline", [], folder) == timeline
    if expansion is not None:
        reached = [ordered(item, CARD_KEYS) for item in expansion]
        page["expansion"] = {"items": reached, "est_tokens": 7, "truncated": True}
    search = success("search", page)
    assert there_and_back(search, "search", [], folder) == search
