"""Streams between stages: the form of lines, seals, parts, errors and --unsealed (docs/streams.md)."""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import marshal
import os
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from xxhash import xxh3_64_hexdigest

from cortex_tools.contract import limits
from cortex_tools.contract.errors import EXIT_STATUS, CortexError
from cortex_tools.domain.records import CARD_KEYS, PROVENANCE_KEYS, RECORD_KEYS
from cortex_tools.streams import lines as line_kinds
from tests.support import BIN, SAMPLE, SCHEMAS, environment, failure, note, row, shell, with_options, write_corpus

SCHEMA = json.loads((SCHEMAS / "cortex-stream-v1.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
KINDS = ("corpus", "file", "record", "card", "explanation", "anchor", "expansion", "digest", "result", "error", "seal")

# Every stage that reads, with arguments that succeed on `Streams`, and the stream that it reads.
READERS = {
    "cortex-strip": ([], "listing"),
    "cortex-select": (["--valid"], "records"),
    "cortex-rank": (["loom"], "records"),
    "cortex-window": (["--anchor", "2024-01-01"], "records"),
    "cortex-expand": (["a"], "records"),
    "cortex-digest": ([], "records"),
    "cortex-card": ([], "records"),
    "cortex-through": (["cat"], "records"),
    "cortex-envelope": (["status"], "records"),
}
READING = [pytest.param(name, id=name) for name in READERS]

# Many short runs of stages from one process that forks for each: the executable's own code, descriptors and
# exit status without the start of an interpreter each time.
_FORKING = """
import gc, hashlib, marshal, os, sys, tempfile, traceback, xxhash
from cortex_tools.contract import limits
from cortex_tools.domain import envelope as _
from cortex_tools.stages import card, digest, envelope, executable, expand, rank, scan, select, strip, window

def run(argv, data):
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(data)
    files[0].seek(0)
    pid = os.fork()
    if pid == 0:
        try:
            for number, file in enumerate(files):
                os.dup2(file.fileno(), number)
            sys.argv = argv
            executable.main(argv[0])
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    outputs = [os.pread(file.fileno(), 1 << 26, 0) for file in files[1:]]
    for file in files:
        file.close()
    return status, *outputs

gc.disable()
most = limits.RECORDS
while True:
    try:
        jobs, records = marshal.load(sys.stdin.buffer)
    except EOFError:
        break
    limits.RECORDS = records or most
    marshal.dump([run(*job) for job in jobs], sys.stdout.buffer)
    sys.stdout.flush()
"""


@functools.cache
def _forking() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )


@pytest.fixture(scope="module", autouse=True)
def _end_forking() -> Iterator[None]:
    yield
    _forking().communicate(timeout=30)
    _forking.cache_clear()


Done = subprocess.CompletedProcess[bytes]


def batch(jobs: list[tuple[list[str], bytes]], records: int | None = None) -> list[Done]:
    """Run each (executable and arguments, standard input); `records` replaces the corpus's record limit."""
    server = _forking()
    assert server.stdin is not None and server.stdout is not None
    marshal.dump((jobs, records), server.stdin)
    server.stdin.flush()
    results = marshal.load(server.stdout)
    return [subprocess.CompletedProcess(argv, *result) for (argv, _), result in zip(jobs, results, strict=True)]


def one(argv: list[str], data: bytes = b"", status: int = 0) -> bytes:
    (done,) = batch([(argv, data)])
    assert done.returncode == status, done
    return done.stdout


def pipe(data: bytes, *stages: list[str]) -> Done:
    """The last stage's outcome, each stage reading what the one before it wrote."""
    for argv in stages:
        (done,) = batch([(argv, data)])
        data = done.stdout
    return done


def split_lines(stream: bytes) -> list[bytes]:
    assert stream.endswith(b"\n") or not stream
    return [line + b"\n" for line in stream.split(b"\n")[:-1]]


def sealed(lines: list[bytes], **extra: bool) -> bytes:
    """The lines as a segment, with a seal made here."""
    body = b"".join(lines)
    seal = {"kind": "seal", "stage": "test", "lines": len(lines), "xxh3": xxh3_64_hexdigest(body), **extra}
    return body + json.dumps(seal, separators=(",", ":")).encode() + b"\n"


def segments(stream: bytes) -> list[list[dict[str, Any]]]:
    """The values of each segment without its seal; fails unless every segment is sealed over its exact bytes."""
    found: list[list[dict[str, Any]]] = []
    body: list[bytes] = []
    for line in split_lines(stream):
        value = json.loads(line)
        if value["kind"] != "seal":
            body.append(line)
            continue
        assert list(value)[:4] == ["kind", "stage", "lines", "xxh3"] and body
        assert (value["lines"], value["xxh3"]) == (len(body), xxh3_64_hexdigest(b"".join(body)))
        found.append([json.loads(one_line) for one_line in body])
        body = []
    assert not body, "the stream does not end with a seal"
    return found


def seals(stream: bytes) -> list[dict[str, Any]]:
    return [value for value in map(json.loads, split_lines(stream)) if value["kind"] == "seal"]


def of_kind(stream: bytes, kind: str) -> list[dict[str, Any]]:
    return [value for segment in segments(stream) for value in segment if value["kind"] == kind]


def refused(done: Done, name: str, code: str = "integrity_error") -> str:
    """The message of a stage, or of the envelope, that failed as it must: one error, sealed, said once."""
    assert done.returncode == EXIT_STATUS[code], done
    if name == "cortex-envelope":
        message = failure(done, EXIT_STATUS[code], code)
        assert b"Traceback" not in done.stderr
        return message
    (error,) = of_kind(done.stdout, "error")
    assert (error["code"], error["exit"]) == (code, EXIT_STATUS[code])
    assert json.loads(split_lines(done.stdout)[-2]) == error
    said = [line for line in done.stderr.decode().splitlines() if "warning: seals" not in line]
    assert said == ([f"{name}: {code}: {error['message']}"] if error["stage"] == name else [])
    return str(error["message"])


class Streams(NamedTuple):
    root: Path
    listing: bytes
    records: bytes

    def __getitem__(self, name: Any) -> Any:
        return getattr(self, name)


def streams_of(root: Path, *options: str) -> Streams:
    listing = one(["cortex-scan", "--memory-root", str(root), *options])
    return Streams(root, listing, one(["cortex-strip"], listing))


def odd_corpus(root: Path) -> Path:
    """Few notes, each with something that a line might not survive."""
    write_corpus(
        root,
        {
            "KNOWLEDGE/a.md": note("a", 'loom "quoted" \\ back\u2028slash\n- slug: b\nslug: row:2 # why'),
            "KNOWLEDGE/b.md": note("b", "loom <private>never</private> loom", type="idea", valid_until="2020-01-01"),
            "KNOWLEDGE/empty.md": b"",
            "KNOWLEDGE/漢字 \u200b name.md": "織機 loom 🧵\r\n",
            "KNOWLEDGE/old \n line.md": note("line feed in its path", source_kind="web", source_session="s"),
            "KNOWLEDGE/log.jsonl": row("row:1", source_session=None)
            + "\r\n"
            + row("row:2", related=["a", "nobody"], valid_from="2020-01-01", content="\t\U0001f9f5 loom")
            # Escaped, so that it is not blank before it is unescaped and stripped.
            + row("row:3", source="x", title="<b>\u2029", content="BODY").replace("BODY", "\\u003cprivate>gone"),
            "KNOWLEDGE/blank.jsonl": "\n\n",
            "HOT_MEMORY.md": note("hot", created="2024-02-29T23:59:59.999+05:30"),
        },
    )
    os.utime(root / "KNOWLEDGE/a.md", ns=(-(10**9), -(10**9)))  # before 1970
    return root


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams_of(odd_corpus(tmp_path_factory.mktemp("odd")))


@pytest.fixture(scope="module")
def in_parts(odd: Streams) -> Streams:
    """The same corpus in three parts."""
    return streams_of(odd.root, "--parts", "3")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams_of(write_corpus(tmp_path_factory.mktemp("short"), {"a.md": note("a", "loom")}))


def segment_bytes(stream: bytes) -> list[bytes]:
    """The bytes of each segment, seal included."""
    found, body = [], b""
    for line in split_lines(stream):
        body += line
        if line.startswith(b'{"kind":"seal"'):
            found.append(body)
            body = b""
    return found


# --- the form of lines -------------------------------------------------------------------------------------------


def test_schema_is_valid_and_names_every_kind() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["oneOf"] == [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]
    for kind in KINDS:
        assert next(iter(SCHEMA["$defs"][kind]["properties"])) == "kind"
        assert SCHEMA["$defs"][kind]["properties"]["kind"] == {"const": kind}
        assert SCHEMA["$defs"][kind]["additionalProperties"] is False
    assert set(line_kinds._READERS) == set(KINDS)


def test_schema_holds_the_contract_s_keys_and_statuses() -> None:
    defs = SCHEMA["$defs"]
    assert tuple(defs["record"]["properties"]) == ("kind", *RECORD_KEYS)
    assert tuple(defs["card"]["properties"]) == ("kind", *CARD_KEYS)
    assert tuple(defs["item"]["properties"]) == CARD_KEYS
    assert tuple(defs["provenance"]["properties"]) == PROVENANCE_KEYS
    assert set(defs["error"]["properties"]["code"]["enum"]) == set(EXIT_STATUS)
    for code, status in EXIT_STATUS.items():
        for exit in {*EXIT_STATUS.values(), 0, 2}:
            line = {"kind": "error", "code": code, "exit": exit, "message": "m", "stage": "s"}
            assert VALIDATOR.is_valid(line) == (exit == status)
    assert VALIDATOR.is_valid({"kind": "result", "adapter": "claude", "result": {"anything": 1}})
    assert not VALIDATOR.is_valid({"kind": "result", "adapter": "claude", "result": {}, "more": 1})


def everything_written(streams: Streams) -> list[bytes]:
    """What each stage writes over the corpus, successes and failures."""
    ids = [record["id"] for record in of_kind(streams.records, "record")]
    on_records = [
        ["cortex-select", "--valid"],
        ["cortex-select", "--at", "2019-01-01", "--limit", "3"],
        ["cortex-rank", "loom", "--recency", "0.1"],
        ["cortex-rank", "loom", "--bodies"],
        ["cortex-rank", "loom 織機", "--tokens", "unicode", "--explain", "--recency", "0.1"],
        ["cortex-rank", "loom", "--recency", "1e308"],  # overflows: an error line
        ["cortex-window", "--anchor", ids[0]],
        ["cortex-window", "--anchor", "9999-12-31T23:59:59-23:59", "--bodies"],  # answered as year 10000
        ["cortex-window", "--anchor", "nobody"],
        ["cortex-expand", ids[0]],
        ["cortex-expand", "<private>no</private>body"],
        ["cortex-digest"],
        ["cortex-card"],
        ["cortex-card", "--unsealed"],
        ["cortex-rank", ""],
    ]
    scan = ["cortex-scan", "--memory-root", str(streams.root)]
    jobs = [([*scan, "--parts", "50"], b""), (["cortex-scan", "--memory-root", "/dev/null"], b"")]
    done = batch(jobs + [(argv, streams.records) for argv in on_records])
    again = [(["cortex-strip"], done[0].stdout), (["cortex-card"], done[6].stdout), (["cortex-card"], done[11].stdout)]
    return [streams.listing, streams.records, *(one.stdout for one in done + batch(again))]


@pytest.fixture(scope="module")
def written(odd: Streams) -> list[bytes]:
    return everything_written(odd)


@pytest.mark.parametrize("corpus", ["sample", "odd"])
def test_every_line_of_every_stage_has_the_form_of_its_kind(corpus: str, written: list[bytes]) -> None:
    if corpus == "sample":
        written = everything_written(streams_of(SAMPLE))
    kinds = set()
    for line in {line for stream in written for line in split_lines(stream)}:
        value = json.loads(line)
        VALIDATOR.validate(value)
        assert next(iter(value)) == "kind"
        kinds.add(value["kind"])
        if value["kind"] in ("record", "card"):
            keys = RECORD_KEYS if value["kind"] == "record" else CARD_KEYS
            assert tuple(value) == ("kind", *keys) and tuple(value["provenance"]) == PROVENANCE_KEYS
        if value["kind"] == "expansion":
            assert all(tuple(item) == CARD_KEYS for item in value["items"])
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        assert line == compact or value["kind"] in (
            "card",
            "expansion",
            "explanation",
        )  # whose scores are the contract's numbers
    assert kinds == {*KINDS} - {"result"}
    for stream in written:
        for segment in segments(stream):
            assert segment[0]["kind"] in ("corpus", "error")
            assert [value["kind"] for value in segment].count("corpus") <= 1


RESULT = {"kind": "result", "adapter": "claude", "result": {"ok": True, "type": "idea", "path": "a.md", "detail": {}}}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_schema_refuses_no_stage_takes(kind: str, written: list[bytes]) -> None:
    lines = [value for stream in written for value in map(json.loads, split_lines(stream))]
    line = next(value for value in [*lines, RESULT] if value["kind"] == kind)
    line_kinds.decode(json.dumps(line).encode(), "line 1")
    altered: list[dict[str, Any]] = [{**line, "more": 1}, {**line, "kind": "other"}]
    for key in line:
        altered.append({name: value for name, value in line.items() if name != key})
        altered += [{**line, key: value} for value in ([], {}, True, 1.5, -1, "\ud800")]
    refused_lines = 0
    for value in altered:
        if VALIDATOR.is_valid(value):
            continue
        refused_lines += 1
        with pytest.raises(CortexError) as caught:
            line_kinds.decode(json.dumps(value).encode(), "line 1")
        assert caught.value.code == "integrity_error"
    assert refused_lines > 3 * len(line)


# --- seals ---------------------------------------------------------------------------------------------------------


def _reseal(all: list[bytes], **fields: Any) -> list[bytes]:
    seal = {**json.loads(all[-1]), **fields}
    return [*all[:-1], json.dumps(seal, separators=(",", ":")).encode() + b"\n"]


# What can happen to one segment of at least four lines and its seal.
FAULTS = {
    "nothing there": lambda all: [],
    "white space in a line": lambda all: [*all[:2], all[2].replace(b"}\n", b" }\n"), *all[3:]],
    "line removed": lambda all: [*all[:2], *all[3:]],
    "first line removed": lambda all: all[1:],
    "last line removed": lambda all: [*all[:-2], all[-1]],
    "line repeated": lambda all: [*all[:2], all[1], *all[2:]],
    "blank line added": lambda all: [*all[:2], b"\n", *all[2:]],
    "lines swapped": lambda all: [all[0], all[2], all[1], *all[3:]],
    "no seal": lambda all: all[:-1],
    "seal twice": lambda all: [*all, all[-1]],
    "seal alone": lambda all: all[-1:],
    "seal first": lambda all: [all[-1], *all],
    "seal in the middle": lambda all: [*all[:2], all[-1], *all[2:]],
    "wrong count": lambda all: _reseal(all, lines=len(all)),
    "wrong hash": lambda all: _reseal(all, xxh3="0123456789abcdef"),
    "hash in upper case": lambda all: _reseal(all, xxh3="0123456789ABCDEF"),
    "seal with another key": lambda all: _reseal(all, more=1),
    "a seal over nothing first": lambda all: [sealed([]), *all],
    "a seal over nothing last": lambda all: [*all, sealed([])],
    "line after the seal": lambda all: [*all, all[1]],
    "corpus line after the seal": lambda all: [*all, all[0]],
    "sealed twice over": lambda all: [*all, *all],
    "no corpus line, sealed anew": lambda all: [sealed(all[1:-1])],
    "corpus line not first, sealed anew": lambda all: [sealed([all[1], all[0], *all[2:-1]])],
    "two corpus lines, sealed anew": lambda all: [sealed([all[0], *all[:-1]])],
    "a line of no kind, sealed anew": lambda all: [sealed([*all[:-1], b'{"kind":"none"}\n'])],
    "a line that is no JSON, sealed anew": lambda all: [sealed([*all[:-1], b"loom\n"])],
}


@pytest.mark.parametrize("name", READING)
def test_a_broken_segment_is_an_integrity_error(name: str, odd: Streams) -> None:
    arguments, reads = READERS[name]
    lines = split_lines(odd[reads])
    done = batch([([name, *arguments], b"".join(fault(lines))) for fault in FAULTS.values()])
    wrong = {}
    for fault, outcome in zip(FAULTS, done, strict=True):
        try:
            assert refused(outcome, name)
        except AssertionError as error:
            wrong[fault] = str(error)[:400]
    assert not wrong
    # Whatever of the answer got out before the fault was seen, the end of the pipeline is a failure.
    last = [(["cortex-envelope", "status"], outcome.stdout) for outcome in done if name != "cortex-envelope"]
    for outcome in batch(last):
        failure(outcome, 4, "integrity_error")


@pytest.mark.parametrize(
    ("argv", "stages", "step"),
    [
        (["cortex-strip"], [], 5),
        (["cortex-envelope", "status"], [["cortex-strip"]], 1),
        (["cortex-envelope", "search"], [["cortex-strip"], ["cortex-rank", "loom"]], 5),
    ],
    ids=["strip", "status", "search"],
)
def test_a_stream_cut_at_any_byte_is_never_a_smaller_one(
    argv: list[str], stages: list[list[str]], step: int, short: Streams
) -> None:
    stream = pipe(short.listing, *stages).stdout if stages else short.listing
    ends = {
        len(stream),
        len(stream) - 1,
        *itertools.accumulate(map(len, split_lines(stream))),
        *range(0, len(stream), step),
    }
    whole, *cuts = batch([(argv, stream[:length]) for length in sorted(ends, reverse=True)])
    assert whole.returncode == 0
    # Without its last line feed the seal is still whole: that may count as the whole stream, or as none.
    if cuts[0].returncode == 0:
        assert cuts.pop(0).stdout == whole.stdout
    for cut in cuts:
        refused(cut, argv[0])


@pytest.mark.parametrize(
    "stages",
    [
        [["cortex-strip"], ["cortex-envelope", "status"]],
        [["cortex-strip"], ["cortex-expand", "a"], ["cortex-card"], ["cortex-envelope", "search"]],
        [["cortex-strip"], ["cortex-window", "--anchor", "a"], ["cortex-envelope", "timeline"]],
    ],
    ids=["status", "search", "timeline"],
)
def test_a_stream_cut_at_any_line_fails_at_the_end_of_the_pipeline(stages: list[list[str]], in_parts: Streams) -> None:
    """Each place in the pipeline is cut once at every line, the seals between three segments among them."""
    assert pipe(in_parts.listing, *stages).returncode == 0
    data = in_parts.listing
    for number, argv in enumerate(stages):
        lines = split_lines(data)
        done = batch([(argv, b"".join(lines[:length])) for length in range(len(lines))])
        if argv[0] == "cortex-strip":
            # A listing may be cut between its segments: strip takes fewer parts, the next stage misses the rest.
            done = batch([(stages[number + 1], outcome.stdout) for outcome in done])
        for following in stages[number + 1 + (argv[0] == "cortex-strip") :]:
            done = batch([(following, outcome.stdout) for outcome in done])
        for outcome in done:
            failure(outcome, 4, "integrity_error")
        data = one(argv, data) if argv[0] != "cortex-envelope" else b""


def test_a_rebuild_cut_at_any_line_is_no_rebuild(odd: Streams) -> None:
    digest = one(["cortex-digest"], odd.records)
    lines = split_lines(digest + digest)
    *cuts, whole = batch([(["cortex-envelope", "rebuild"], b"".join(lines[:to])) for to in range(len(lines) + 1)])
    assert whole.returncode == 0
    for outcome in cuts:
        failure(outcome, 4, "integrity_error")
    (three,) = batch([(["cortex-envelope", "rebuild"], digest * 3)])
    failure(three, 4, "integrity_error")


@pytest.mark.parametrize("options", [[], ["--unsealed"]])
def test_a_rebuild_over_different_roots_is_no_rebuild(tmp_path: Path, options: list[str]) -> None:
    roots = [write_corpus(tmp_path / name, {"a.md": note("a")}) for name in ("one", "other")]
    one_digest, other = (one(["cortex-digest"], streams_of(root).records) for root in roots)
    argv = ["cortex-envelope", "rebuild", *options]
    same, different = batch([(argv, one_digest + one_digest), (argv, one_digest + other)])
    assert json.loads(same.stdout)["data"]["equivalent"] is True
    failure(different, 4, "integrity_error", "different memory roots")


def test_more_parts_than_a_corpus_may_have_files_are_refused() -> None:
    def stream(parts: int) -> bytes:
        head = {"kind": "corpus", "root": "/r", "listing": "0" * 16, "part": 1, "parts": parts, "files": 0, "bytes": 0}
        heads = [{**head, "part": part} for part in range(1, 10_001)]
        return b"".join(sealed([json.dumps(value, separators=(",", ":")).encode() + b"\n"]) for value in heads)

    argv = ["cortex-envelope", "status"]
    most, more = batch([(argv, stream(10_000)), (argv, stream(20_000))])
    assert most.returncode == 0, most
    failure(more, 4, "integrity_error", "line 1 ")


@pytest.mark.parametrize(
    "foreign",
    [
        "sed 's/loom/Loom/'",
        "sed '3d'",
        "sed '2p'",
        "sed '$d'",
        "head -n 5",
        "tail -n +2",
        "head -c 1000",
        "grep -v idea",
        "sort -r",
        "true",  # nothing gets through
        "{ cat; echo loom; }",
    ],
)
def test_a_foreign_filter_without_unsealed_fails_the_pipeline(foreign: str) -> None:
    done = shell(
        f"cortex-scan --memory-root {shlex.quote(str(SAMPLE))} | cortex-strip | {foreign} | "
        "cortex-select --valid | cortex-rank loom | cortex-card | cortex-envelope search"
    )
    failure(done, 4, "integrity_error")


# --- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 50])
def test_parts_hold_each_file_once(parts: int, odd: Streams) -> None:
    listing = one(["cortex-scan", "--memory-root", str(odd.root), "--parts", str(parts)])
    heads = of_kind(listing, "corpus")
    assert [head["part"] for head in heads] == list(range(1, parts + 1))
    assert {(head["parts"], head["root"]) for head in heads} == {(parts, str(odd.root))}
    assert {head["listing"] for head in heads} == {of_kind(odd.listing, "corpus")[0]["listing"]}
    assert of_kind(listing, "file") == of_kind(odd.listing, "file")
    for head, *files in segments(listing):
        assert (head["files"], head["bytes"]) == (len(files), sum(file["bytes"] for file in files))


def test_parts_share_the_work(tmp_path: Path) -> None:
    write_corpus(tmp_path, {f"{number:02}.md": note(f"n{number}", "x" * 50_000) for number in range(40)})
    heads = of_kind(one(["cortex-scan", "--memory-root", str(tmp_path), "--parts", "4"]), "corpus")
    assert [head["files"] for head in heads] == [10, 10, 10, 10]


ANSWERS = (
    [["cortex-envelope", "status"]],
    [["cortex-rank", "loom title"], ["cortex-envelope", "search"]],
    [["cortex-select", "--valid"], ["cortex-expand", "a"], ["cortex-card"], ["cortex-envelope", "search"]],
    [["cortex-window", "--anchor", "a"], ["cortex-envelope", "timeline"]],
    [["cortex-envelope", "get", "hot", "a", "hot"]],
    [["cortex-digest"]],
)


@pytest.mark.parametrize("stages", ANSWERS, ids=lambda stages: "-".join(argv[0][7:] for argv in stages))
def test_parts_in_any_order_answer_as_one(stages: list[list[str]], odd: Streams, in_parts: Streams) -> None:
    """Shuffled before strip, and after it: a listing spread over machines comes back in any order."""
    whole = pipe(odd.records, *stages).stdout
    listed = segment_bytes(in_parts.listing)
    stripped = [one(["cortex-strip"], part) for part in listed]
    assert b"".join(stripped) == in_parts.records
    orders = list(itertools.permutations(range(3)))
    done = batch([(["cortex-strip"], b"".join(listed[part] for part in order)) for order in orders])
    done += [subprocess.CompletedProcess([], 0, b"".join(stripped[part] for part in order), b"") for order in orders]
    for argv in stages:
        done = batch([(argv, before.stdout) for before in done])
    if stages[0] == ["cortex-select", "--valid"]:
        # A stage that answers line by line keeps the order that it is given; the expansion is the same in any.
        assert len({outcome.stdout.split(b'"expansion"')[1] for outcome in done}) == 1
        assert {outcome.returncode for outcome in done} == {0}
    else:
        assert {(outcome.returncode, outcome.stdout) for outcome in done} == {(0, whole)}


def test_missing_repeated_and_foreign_parts_are_refused(odd: Streams, in_parts: Streams, short: Streams) -> None:
    first, second, third = segment_bytes(in_parts.records)
    in_two = streams_of(odd.root, "--parts", "2")
    gathered = {
        "missing": first + third,
        "last one missing": first + second,
        "alone": second,
        "repeated": first + second + third + second,
        "one for another": first + second + second,
        "of another corpus": first + second + third + short.records,
        "of another split": first + segment_bytes(in_two.records)[1] + third,
        "whole and parts": odd.records + first + second + third,
    }
    readers = [[name, *arguments] for name, (arguments, reads) in READERS.items() if reads == "records"]
    for outcome in batch([(argv, stream) for argv in readers for stream in gathered.values()]):
        assert "part" in refused(outcome, outcome.args[0])


def test_parts_of_a_listing_made_before_the_corpus_changed_are_foreign(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("a"), "b.md": note("b"), "c.md": note("c")})
    before = segment_bytes(streams_of(tmp_path, "--parts", "2").records)
    (tmp_path / "c.md").write_text(note("c", "a longer loom body"))
    after = segment_bytes(streams_of(tmp_path, "--parts", "2").records)
    (done,) = batch([(["cortex-envelope", "status"], before[0] + after[1])])
    assert "different listings" in failure(done, 4, "integrity_error")


def test_strip_takes_a_part_alone_but_none_twice(in_parts: Streams, short: Streams) -> None:
    first, second, third = segment_bytes(in_parts.listing)
    alone, two, twice, foreign = batch(
        [(["cortex-strip"], stream) for stream in (second, third + first, first + first, first + short.listing)]
    )
    assert [segment[0]["part"] for segment in segments(alone.stdout)] == [2]
    assert [segment[0]["part"] for segment in segments(two.stdout)] == [3, 1]
    assert alone.returncode == two.returncode == 0
    refused(twice, "cortex-strip")
    refused(foreign, "cortex-strip")


def test_the_first_reader_of_all_parts_judges_duplicate_ids(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("same"), "m.md": note("other"), "z.md": note("same")})
    listed = segment_bytes(one(["cortex-scan", "--memory-root", str(tmp_path), "--parts", "3"]))
    stripped = batch([(["cortex-strip"], part) for part in listed])
    assert {part.returncode for part in stripped} == {0}
    stream = b"".join(part.stdout for part in stripped)
    jobs = [([name, *arguments], stream) for name, (arguments, _) in READERS.items() if name != "cortex-strip"]
    for outcome in batch([*jobs, (["cortex-strip"], b"".join(listed))]):
        message = refused(outcome, outcome.args[0])
        assert "same" in message and "a.md" in message and "z.md" in message


def test_the_first_reader_of_all_parts_judges_the_record_limit(tmp_path: Path) -> None:
    write_corpus(tmp_path, {f"{name}.md": note(name) for name in "abcdef"})
    listed = segment_bytes(one(["cortex-scan", "--memory-root", str(tmp_path), "--parts", "2"]))
    stripped = batch([(["cortex-strip"], part) for part in listed], records=5)
    assert {part.returncode for part in stripped} == {0}
    stream = b"".join(part.stdout for part in stripped)
    jobs = [([name, *arguments], stream) for name, (arguments, _) in READERS.items() if name != "cortex-strip"]
    jobs.append((["cortex-strip"], b"".join(listed)))
    for outcome in batch(jobs, records=5):
        assert "more than 5 records" in refused(outcome, outcome.args[0])
    assert {outcome.returncode for outcome in batch(jobs, records=6)} == {0}


@pytest.mark.parametrize("jobs", ["1", "2", "9"])
def test_strip_over_several_processes_writes_the_same(jobs: str, odd: Streams, in_parts: Streams) -> None:
    for streams in (odd, in_parts):
        assert one(["cortex-strip", "--jobs", jobs], streams.listing) == streams.records


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READING)
def test_an_upstream_error_is_passed_on_and_ends_all_work(name: str, odd: Streams) -> None:
    arguments, reads = READERS[name]
    (failed,) = batch([(["cortex-expand", "nobody"], odd.records)])
    error = split_lines(failed.stdout)[-2]
    assert json.loads(error)["stage"] == "cortex-expand" and failed.returncode == 3
    lines = split_lines(odd[reads])
    upstream = {
        "alone": sealed([error]),
        "after everything": sealed([*lines[:-1], error]),
        "in the middle": sealed([*lines[:3], error, *lines[3:-1]]),
        "before everything": sealed([error]) + odd[reads],
        "in a segment of its own": odd[reads] + sealed([error]),
        "without a seal": error,
        "in a stream cut off": b"".join([*lines[:3], error, *lines[3:5]]),
        "after a line that is none": b"".join([lines[0], b"garbage\n", error]),
        "after a broken seal": b"".join([*_reseal(lines, lines=1), error]),
        "before another error": sealed([error]) + sealed([error.replace(b"not_found", b"internal_error")]),
        "after a duplicate": sealed([*lines[:-1], lines[-2], error]),
    }
    done = batch([([name, *arguments], stream) for stream in upstream.values()])
    for outcome in done:
        assert (outcome.returncode, outcome.stderr) == (3, b""), outcome
        if name == "cortex-envelope":
            assert failure(outcome, 3, "not_found") == json.loads(error)["message"]
            continue
        assert split_lines(outcome.stdout)[-2] == error
        assert seals(outcome.stdout)[-1]["stage"] == name
        # No work: strip reads no note, and no stage gives an answer.
        kinds = {value["kind"] for segment in segments(outcome.stdout) for value in segment}
        passes_on = {"corpus", "record"} if name in ("cortex-select", "cortex-expand") else {"corpus", "card"}
        assert kinds <= {"error", *(passes_on if name in ("cortex-select", "cortex-expand", "cortex-card") else ())}


def test_the_furthest_upstream_error_wins_over_a_finding_further_down(tmp_path: Path) -> None:
    """Three stages fail for reasons of their own; the corpus is what is wrong first."""
    write_corpus(tmp_path, {"a.md": note("a"), "b.md": note("b", created="yesterday")})
    done = shell(
        f"cortex-scan --memory-root {tmp_path} | cortex-strip | cortex-expand nobody | "
        "cortex-window --anchor nobody | cortex-envelope get x"
    )
    failure(done, 4, "integrity_error", "b.md", "created")
    assert done.stderr.decode().count("\n") == 1 and done.stderr.startswith(b"cortex-strip: integrity_error: ")


PIPELINES = {
    "scan": ("cortex-scan --memory-root /nowhere | cortex-strip | cortex-envelope status", 4, "integrity_error"),
    "strip": ("cortex-scan --memory-root {bad} | cortex-strip | cortex-envelope status", 4, "integrity_error"),
    "usage": (
        "cortex-scan --memory-root {good} | cortex-strip | cortex-select --type | cortex-rank x | "
        "cortex-envelope search",
        4,
        "invalid_input",
    ),
    "value": (
        "cortex-scan --memory-root {good} | cortex-strip | cortex-rank ! | cortex-card | cortex-envelope search",
        4,
        "invalid_input",
    ),
    "not found": (
        "cortex-scan --memory-root {good} | cortex-strip | cortex-window --anchor x | cortex-card | "
        "cortex-envelope timeline",
        3,
        "not_found",
    ),
    "envelope": ("cortex-scan --memory-root {good} | cortex-strip | cortex-envelope get x", 3, "not_found"),
}


@pytest.mark.parametrize("case", PIPELINES)
def test_envelope_and_status_are_the_same_with_and_without_pipefail(case: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    good = write_corpus(tmp_path / "good", {"a.md": note("a")})
    bad = write_corpus(tmp_path / "bad", {"a.md": note("a") + "\0"})
    script, status, code = PIPELINES[case]
    script = script.format(good=good, bad=bad)
    plain, strict = (
        subprocess.run([bash, "-c", option + script], capture_output=True, env=environment(), timeout=60)
        for option in ("", "set -o pipefail; ")
    )
    failure(plain, status, code)
    assert (strict.returncode, strict.stdout) == (plain.returncode, plain.stdout)


USAGE_ERRORS = {
    "cortex-scan": ["--parts", "0"],
    "cortex-strip": ["--jab"],
    "cortex-select": ["--valid", "--at", "2024-01-01"],
    "cortex-rank": ["loom", "--recency", "-1"],
    "cortex-window": [],
    "cortex-expand": ["a", "b"],
    "cortex-digest": ["a"],
    "cortex-card": ["--unsealed", "--unsealed"],
    "cortex-through": ["--accept", "256", "cat"],
    "cortex-envelope": ["search", "--page", "0"],
}


@pytest.mark.parametrize("name", USAGE_ERRORS)
def test_a_usage_error_is_reported_at_once_without_reading(name: str) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"garbage\n")
        done = subprocess.run(  # the pipe stays open: a stage that read to its end would hang
            [BIN / name, *USAGE_ERRORS[name]], stdin=reading, capture_output=True, env=environment(), timeout=30
        )
        refused(done, name, "invalid_input")
        waiting = struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, b"\0" * 4))[0]
        assert waiting == len(b"garbage\n")
    finally:
        os.close(reading)
        os.close(writing)


# --- --unsealed ----------------------------------------------------------------------------------------------------

WARNING = ": warning: seals are not checked"

# A foreign filter, the stage that takes its output, and a pipeline of stages that must answer the same.
FOREIGN = {
    "grep": ('grep -e \'"kind":"corpus"\' -e \'"type":"idea"\'', "cortex-card", "cortex-select --type idea"),
    "grep -v": ('grep -v \'"type":"idea"\'', "cortex-select --type log", "cortex-select --type log"),
    "sed": ('sed \'s/"type":"idea"/"type":"log"/\'', "cortex-select --type none", "cortex-select --type none"),
    "sort": ("LC_ALL=C sort", "cortex-rank loom", "cortex-rank loom"),
    "sort -r": ("LC_ALL=C sort -r", "cortex-rank loom", "cortex-rank loom"),
    "no seal": ("sed '$d'", "cortex-window --anchor 2024-01-01", "cortex-window --anchor 2024-01-01 --bodies"),
    "blank lines": ("sed G", "cortex-rank loom", "cortex-rank loom"),
    "jq": (
        'jq -c \'select(.kind=="corpus" or .type=="idea")\'',
        "cortex-rank loom",
        "cortex-select --type idea | cortex-rank loom",
    ),
    "jq that sorts keys": ("jq -cS .", "cortex-rank loom", "cortex-rank loom"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_unsealed_takes_what_a_foreign_filter_gives(case: str) -> None:
    foreign, stage, same = FOREIGN[case]
    program = foreign.split()[0]
    if program == "jq" and shutil.which(program) is None:
        pytest.skip("jq is not installed")
    name = stage.split()[0]
    command = "timeline" if "window" in stage else "search"
    head = f"cortex-scan --memory-root {shlex.quote(str(SAMPLE))} | cortex-strip"
    done = shell(f"{head} | {foreign} | {stage} --unsealed | cortex-card | cortex-envelope {command}")
    expected = shell(f"{head} | {same} | cortex-card | cortex-envelope {command}")
    assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout) == (0, expected.stdout), done
    said = done.stderr.decode().splitlines()
    assert [line.split(";")[0] for line in said] == [name + WARNING, "cortex-envelope" + WARNING]
    assert expected.stderr == b""


def test_unsealed_is_told_by_every_seal_further_down(odd: Streams) -> None:
    lines = split_lines(odd.records)[:-1]
    first = one(["cortex-select", "--unsealed"], b"".join(lines))
    second = one(["cortex-select", "--valid"], first)
    third = one(["cortex-card"], second)
    assert [seals(stream)[-1].get("unsealed") for stream in (first, second, third)] == [True, True, True]
    assert "unsealed" not in seals(one(["cortex-card"], odd.records))[-1]
    sealed_end, unsealed_end = batch(
        [(["cortex-envelope", "search"], third), (["cortex-envelope", "search", "--unsealed"], third)]
    )
    assert sealed_end.stdout == unsealed_end.stdout
    for done in (sealed_end, unsealed_end):
        assert done.returncode == 0 and done.stderr.decode().split(";")[0] == "cortex-envelope" + WARNING


@pytest.mark.parametrize("name", READING)
def test_every_reading_stage_takes_an_unsealed_stream(name: str, odd: Streams) -> None:
    arguments, reads = READERS[name]
    lines = split_lines(odd[reads])
    wrong_seal = _reseal(lines, lines=7)
    whole, *others = batch(
        [([name, *arguments], odd[reads])]
        + [
            ([name, *with_options(name, arguments, "--unsealed")], b"".join(one))
            for one in (lines[:-1], wrong_seal, [lines[-1], *lines])
        ]
    )
    for done in others:
        assert done.returncode == 0 and (name + WARNING).encode() in done.stderr
        if name == "cortex-envelope":
            assert done.stdout == whole.stdout
        else:
            assert segments(done.stdout) == segments(whole.stdout)
            assert all(seal["unsealed"] is True for seal in seals(done.stdout))


@pytest.mark.parametrize("name", READING)
def test_unsealed_obeys_error_lines_wherever_they_stand(name: str, odd: Streams) -> None:
    arguments, reads = READERS[name]
    error = {"kind": "error", "code": "not_found", "exit": 3, "message": "nobody", "stage": "cortex-expand"}
    forms = [
        json.dumps(error, separators=(",", ":")).encode() + b"\n",
        json.dumps(error).encode() + b"\n",  # as a filter in between may write it
        json.dumps(dict(reversed(error.items()))).encode() + b"\n",
    ]
    lines = split_lines(odd[reads])
    jobs = []
    for form in forms:
        jobs += [[form], [*lines, form], [form, *lines], [*lines[:2], form, *lines[2:]], [lines[0], b"no JSON\n", form]]
    done = batch([([name, *with_options(name, arguments, "--unsealed")], b"".join(job)) for job in jobs])
    assert [outcome.returncode for outcome in done] == [3] * len(jobs)
    for outcome in done:
        if name == "cortex-envelope":
            failure(outcome, 3, "not_found", "nobody")
        else:
            assert json.loads(split_lines(outcome.stdout)[-2]) == error


RECORD = {
    "kind": "record",
    "id": "new",
    "type": "log",
    "title": "t",
    "created": "2024-01-01",
    "updated": "2024-01-01",
    "provenance": {"source": "s", "session": None, "path": "p.md"},
    "content": "loom",
    "related": [],
    "valid_from": None,
    "valid_until": None,
}
CARD = {name: RECORD[name] for name in ("kind", *CARD_KEYS) if name in RECORD} | {"score": 0, "est_tokens": 1}
FILE = {"kind": "file", "path": "p.md", "format": "markdown", "bytes": 1, "dev": 1, "ino": 1, "mtime_ns": 1}
GARBAGE: dict[str, Any] = {
    "no JSON": b"loom",
    "half a line": json.dumps(RECORD).encode()[:-9],
    "two values": json.dumps(RECORD).encode() * 2,
    "an array": [RECORD],
    "a string": "record",
    "nothing in it": {},
    "no kind": {key: value for key, value in RECORD.items() if key != "kind"},
    "an unknown kind": {**RECORD, "kind": "note"},
    "a kind that is no string": {**RECORD, "kind": ["record"]},
    "a key too many": {**RECORD, "score": 1},
    "a key too few": {key: value for key, value in RECORD.items() if key != "related"},
    "blank ID": {**RECORD, "id": " "},
    "a private span": {**RECORD, "content": "a <private>b</private> c"},
    "an opener": {**RECORD, "title": "<private>"},
    "an opener in disguise": {**RECORD, "related": ["\uff1cpri\u200bvate\uff1e"]},
    "a control": {**RECORD, "content": "\x07"},
    "a lone surrogate": {**RECORD, "content": "\ud800"},
    "no date": {**RECORD, "created": "2024-02-30"},
    "updated before created": {**RECORD, "updated": "2023-01-01"},
    "no time in its window": {**RECORD, "valid_from": "2024-01-02", "valid_until": "2024-01-01"},
    "NaN": b'{"kind":"card","score":NaN}',
    "a score that is no number": {**CARD, "score": "1"},
    "an infinite score": json.dumps(CARD).encode().replace(b'"score": 0', b'"score": 1e999'),
    "tokens below none": {**CARD, "est_tokens": -1},
    "a path out of the root": {**FILE, "path": "../p.md"},
    "an absolute path": {**FILE, "path": "/etc/passwd"},
    "another format": {**FILE, "format": "text"},
    "the format of another ending": {**FILE, "format": "jsonl"},
    "no note by its ending": {**FILE, "path": "p.txt"},
    "no note and no format": {**FILE, "path": "p.txt", "format": None},
    "a file over the limit": {**FILE, "bytes": limits.FILE_BYTES + 1},
    "part 2 of 1": {"kind": "corpus", "root": "/", "listing": "0" * 16, "part": 2, "parts": 1, "files": 0, "bytes": 0},
    "an error with the wrong status": {"kind": "error", "code": "not_found", "exit": 0, "message": "m", "stage": "s"},
    "not UTF-8": json.dumps(RECORD).encode().replace(b"loom", b"l\xff\xffm"),
    "UTF-16": json.dumps(RECORD).encode("utf-16"),
    "a BOM": b"\xef\xbb\xbf" + json.dumps(RECORD).encode(),
    "deeply nested": b'{"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a huge integer": json.dumps(FILE).encode().replace(b'"bytes": 1', b'"bytes": ' + b"9" * 5_000),
    "a huge exponent": json.dumps(CARD).encode().replace(b'"est_tokens": 1', b'"est_tokens": 1e99999'),
}


@pytest.mark.parametrize("name", READING)
def test_unsealed_still_refuses_garbage(name: str, odd: Streams) -> None:
    arguments, reads = READERS[name]
    corpus = split_lines(odd[reads])[0]
    garbage = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in GARBAGE.values()]
    done = batch([([name, *with_options(name, arguments, "--unsealed")], corpus + line + b"\n") for line in garbage])
    for case, outcome in zip(GARBAGE, done, strict=True):
        message = refused(outcome, name)
        assert "line 2" in message, case
        # A line may be unstripped text: not a word of it is shown.
        assert not any(word in outcome.stdout + outcome.stderr for word in (b"loom", b"a <private", b"passwd")), case


# Where the corpus lies, what scan leaves out there, and a note that it takes.
UNLISTED = {
    "KNOWLEDGE": (
        ["a.md", "MEMORY/KNOWLEDGE/a.md", "KNOWLEDGE/_a.md", "KNOWLEDGE/.a.md", "a_MEMORY.jsonl"],
        "_MEMORY.md",
    ),
    "MEMORY/KNOWLEDGE": (
        ["a.md", "MEMORY/a.md", "MEMORY/KNOWLEDGE/x/_y/a.md", "HOT_MEMORY.md"],
        "MEMORY/KNOWLEDGE/a_/b.md",
    ),
    "": ([".git/a.md", "_a/a.md", "a/.b.jsonl", "_MEMORY.md"], "a/HOT_MEMORY.md"),
}


@pytest.mark.parametrize("folder", UNLISTED)
def test_strip_opens_nothing_that_scan_would_not_list(folder: str, tmp_path: Path) -> None:
    """By name, however it came into the listing; the file is there and is as the line says."""
    unlisted, listed = UNLISTED[folder]
    paths = [*unlisted, listed]
    taken = os.path.join(folder, "taken.md")
    write_corpus(tmp_path, {taken: note("taken", "loom")} | {path: note(path, "TEASEL") for path in paths})
    lines = split_lines(one(["cortex-scan", "--memory-root", str(tmp_path)]))[:-1]
    assert {json.loads(line)["path"] for line in lines[1:]} == {taken, listed}

    def line_of(path: str) -> bytes:
        status = os.stat(tmp_path / path)
        held = {"bytes": status.st_size, "dev": status.st_dev, "ino": status.st_ino, "mtime_ns": status.st_mtime_ns}
        format = "jsonl" if path.endswith("jsonl") else "markdown"
        return json.dumps({"kind": "file", "path": path, "format": format, **held}).encode() + b"\n"

    assert b"TEASEL" in one(["cortex-strip", "--unsealed"], lines[0] + line_of(listed))
    streams = [[lines[0], line_of(path)] for path in unlisted]
    jobs = [(["cortex-strip", "--unsealed"], b"".join(stream)) for stream in streams]
    jobs += [(["cortex-strip"], sealed(stream)) for stream in streams]
    for path, done in zip([*unlisted, *unlisted], batch(jobs), strict=True):
        assert path in refused(done, "cortex-strip") and b"TEASEL" not in done.stdout, path


def test_strip_reads_no_more_than_a_corpus_may_hold(odd: Streams) -> None:
    """Over all parts, and before it opens the first note."""
    corpus = split_lines(odd.listing)[0]
    head = {**json.loads(corpus), "parts": 2}
    halves = [json.dumps({**head, "part": part}).encode() + b"\n" for part in (1, 2)]
    line = json.dumps(FILE).encode() + b"\n"
    big = json.dumps({**FILE, "bytes": limits.FILE_BYTES}).encode() + b"\n"
    files, bigs = limits.CORPUS_FILES, limits.CORPUS_BYTES // limits.FILE_BYTES
    streams = {
        "files": [line] * files,
        "bytes": [big] * bigs,
    }
    for what, lines in streams.items():
        over = [halves[0], *lines, halves[1], line]
        limit = str(limits.CORPUS_FILES if what == "files" else limits.CORPUS_BYTES)
        within, *beyond = batch(
            [
                (["cortex-strip", "--unsealed"], b"".join([corpus, *lines])),
                (["cortex-strip", "--unsealed"], b"".join([corpus, *lines, line])),
                (["cortex-strip", "--unsealed"], b"".join(over)),
                (["cortex-strip"], sealed(over[:-2]) + sealed(over[-2:])),
            ]
        )
        assert "p.md is no note" in refused(within, "cortex-strip")
        for done in beyond:
            assert f"more than {limit} {what}" in refused(done, "cortex-strip")


@pytest.mark.parametrize("name", ["cortex-select", "cortex-rank", "cortex-digest", "cortex-card", "cortex-envelope"])
def test_unsealed_still_judges_duplicate_ids(name: str, odd: Streams) -> None:
    lines = split_lines(odd.records)
    (done,) = batch([([name, *with_options(name, READERS[name][0], "--unsealed")], b"".join([*lines, lines[3]]))])
    assert "stands in" in refused(done, name)


# --- the ends of the pipeline ----------------------------------------------------------------------------------------


def test_envelope_takes_no_records_for_search_and_no_status_without_its_corpus_line(odd: Streams) -> None:
    corpus, *rest = split_lines(odd.records)[:-1]
    cards = split_lines(one(["cortex-card"], odd.records))[1:-1]
    anchor = split_lines(one(["cortex-window", "--anchor", "a"], odd.records))[1]
    digest = one(["cortex-digest"], odd.records)
    wrong = {
        "records for search": ("search", [corpus, *rest], "record"),
        "one record among cards": ("search", [corpus, *cards, rest[0]], "record"),
        "an anchor for search": ("search", [corpus, anchor, *cards], "anchor"),
        "records for timeline": ("timeline", [corpus, anchor, *rest], "record"),
        "no anchor for timeline": ("timeline", [corpus, *cards], "anchor"),
        "cards for get": ("get", [corpus, *cards], "card"),
        "cards for status": ("status", [corpus, *cards], "card"),
        "status without its corpus line": ("status", rest, "corpus line"),
        "one digest for rebuild": ("rebuild", split_lines(digest)[:-1], "two digests"),
        "records for rebuild": ("rebuild", [corpus, *rest], "record"),
        "files for status": ("status", split_lines(odd.listing)[:-1], "file"),
    }
    jobs = []
    for command, lines, _ in wrong.values():
        argv = ["cortex-envelope", command, *(["a"] if command == "get" else [])]
        jobs += [(argv, sealed(lines)), (argv, sealed(lines, unsealed=True)), ([*argv, "--unsealed"], b"".join(lines))]
    done = batch(jobs)
    for number, (case, (_, _, mention)) in enumerate(wrong.items()):
        for outcome in done[3 * number : 3 * number + 3]:
            message = failure(outcome, 4, "integrity_error")
            assert mention in message or "no corpus line" in message, case


def test_strip_opens_no_note_before_the_seal_of_scan(tmp_path: Path) -> None:
    """After the listing a note becomes a FIFO: whoever waits to write to it learns that it was opened."""
    write_corpus(tmp_path, {"a.md": note("a"), "b.md": note("b")})
    lines = split_lines(one(["cortex-scan", "--memory-root", str(tmp_path)]))
    fifo = tmp_path / "a.md"
    fifo.unlink()
    os.mkfifo(fifo)
    opened = threading.Event()

    def wait() -> None:
        with open(fifo, "wb"):
            opened.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    unsound = {
        "no seal": lines[:-1],
        "wrong hash": _reseal(lines, xxh3="0" * 16),
        "wrong count": _reseal(lines, lines=2),
        "altered": [lines[0], *lines[2:]],
        "a line after the seal": [*lines, lines[1]],
        "an error after it all": [
            *lines,
            sealed([b'{"kind":"error","code":"not_found","exit":3,"message":"m","stage":"s"}\n']),
        ],
    }
    done = batch([(["cortex-strip"], b"".join(stream)) for stream in unsound.values()])
    assert [outcome.returncode for outcome in done] == [4, 4, 4, 4, 4, 3]
    assert not any(b"a.md" in outcome.stderr for outcome in done)
    assert not opened.is_set()
    # The same listing with its seal: now the note is opened, and is not what was listed.
    (done_whole,) = batch([(["cortex-strip"], b"".join(lines))])
    assert opened.wait(30)
    assert "a.md" in refused(done_whole, "cortex-strip")
    waiting.join(30)
