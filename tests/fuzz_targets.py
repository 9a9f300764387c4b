"""What reads damaged or hostile input, each as a function of bytes that holds for every input.

A target raises AssertionError, or whatever leaves the code under test that is no exception of the project's own.
It answers whether the input was taken: an input that is refused at once tests little.
tests/test_fuzz_targets.py tries each on a few hundred inputs, tests/soak/fuzz.py on as many as time allows.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from xxhash import xxh3_64

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.grammar import check_utf8, count_positionals, parse
from cortex_tools.contract.options import COMMANDS
from cortex_tools.domain import envelope, values
from cortex_tools.domain.capture import create_capture_envelope
from cortex_tools.domain.markdown import front_matter, links
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.stripping import Stripper
from cortex_tools.domain.timestamps import format_ms, parse_ms
from cortex_tools.driver.plan import plan_for
from cortex_tools.driver.request import parse_request
from cortex_tools.evidence import reviewer
from cortex_tools.evidence.benchmark import labels
from cortex_tools.evidence.reading import parse_object
from cortex_tools.files.names import shown
from cortex_tools.files.reading import parse_note
from cortex_tools.files.walk import NoteFile
from cortex_tools.governance import frontmatter, hot, items
from cortex_tools.governance.refusal import Refusal
from cortex_tools.stages import unwrap as cortex_unwrap
from cortex_tools.stages.write import check_type, parse_payload
from cortex_tools.streams.items import Item
from cortex_tools.streams.lines import decode, encode
from cortex_tools.streams.segments import SegmentReader, SegmentWriter
from tests.test_privacy import disagreement, naive_strip
from tests.test_timestamps import by_datetime

NAIVE = 400  # characters: the naive stripper is quadratic
NOW = "2026-01-02T03:04:05.678Z"

# Words that a mutation puts in: markup, structure, and what numbers and times are judged by.
WORDS = [
    *(
        "<private>",
        "</private>",
        "<private ",
        "<pri",
        "vate>",
        "<privateer>",
        "<private/>",
        "</pri",
        "\u200b",
        "\uff1c",
    ),
    *("\uff1e", "\u0301", "\\u003cprivate\\u003e", "\\u003c", "\\ud800", "\\u0000", "\r\n", "\n", "---\n", "\n---\n"),
    *("\ufeff", "\u2028", "\x00", "\x85", "slug: ", "- slug: a\n", "related:\n", "title: ", "id: ", "'", '"', "{", "}"),
    *("[", "]", ",", ":", "null", "true", "-1", "1e400", "1e308", "NaN", "0.1", "9" * 20, "9" * 5000, "[" * 2000),
    *("2024-02-29", "2024-01-01T10:20:30.5Z", "+23:59", "0100-01-01", "9999-12-31", "--page", "--adapter", "claude"),
    *('"kind":"seal"', '"kind":"record"', '"kind":"error"', "RULE: ", "<!-- BEGIN ENTRIES -->", "<!-- END ENTRIES -->"),
]


def lenient(data: bytes) -> str:
    """Text of any bytes; what is not UTF-8 becomes lone surrogates, as in arguments."""
    return data.decode("utf-8", "surrogateescape")


def no_markup(text: str) -> None:
    """Stripping would change nothing in `text`: it was behind the boundary."""
    assert strip_private(text) == text
    if len(text) <= NAIVE:
        assert naive_strip(text) == text


# --- notes ---------------------------------------------------------------------------------------------------


def strip(data: bytes) -> bool:
    found = disagreement([lenient(data)[:NAIVE]])
    assert found is None, found
    return True


def pieces(data: bytes) -> bool:
    """Text that comes in pieces, whose size the first byte says, is stripped as in one piece."""
    size = data[0] % 40 + 1 if data else 1
    text = lenient(data[1:])
    stripper = Stripper()
    out = [stripper.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*out, stripper.finish()]) == strip_private(text)
    return True


def check_record(record: Record) -> None:
    """What a note gives is sound as a line, says the same there, and holds no markup."""
    line = encode(record)
    again = decode(line, "the line")
    assert isinstance(again, Record)
    assert again.json() == record.json()
    texts = [record.id, record.type, record.title, record.source, record.session or "", record.content]
    for text in (*texts, record.created, record.updated, *record.related):
        no_markup(text)


def note_of(data: bytes, name: str, form: str) -> bool:
    try:
        for record in parse_note(NoteFile(name, form, len(data), 0, 0, 0), data):
            check_record(record)
    except CortexError as error:
        assert error.code == "integrity_error"
        assert "KNOWLEDGE/a." in error.message
        return False
    return True


def markdown(data: bytes) -> bool:
    return note_of(data, "KNOWLEDGE/a.md", "markdown")


def rows(data: bytes) -> bool:
    return note_of(data, "KNOWLEDGE/a.jsonl", "jsonl")


def front(data: bytes) -> bool:
    """Reading front matter and editing it agree on where it is, and an edit says what it was to say."""
    text = lenient(data)
    links(text)
    found = frontmatter.bounds(text)
    if found is None:
        assert front_matter(text) == {}
        return False
    head = [line.removesuffix("\r") for line in text[found[0] : found[1]].split("\n")[:-1]]
    if any("\r" in line for line in head):
        return False  # a lone CR: whoever edits refuses it
    edited = frontmatter.set_updated(head, NOW)
    assert front_matter("---\n" + "".join(f"{line}\n" for line in edited) + "---\n").get("updated") == NOW
    merged, why = frontmatter.merge_related(head, [{"slug": "new", "type": "related"}])
    assert (merged == head) if why else ("new" in links("\n".join(merged)))
    return True


def hot_memory(data: bytes) -> bool:
    """However damaged, a hot file is read; and where it can be written, its one form reads back as itself, and an
    entry more shows no line that was private."""
    text = lenient(data)
    parts = hot.parse(text)
    parts.entries.append("RULE: new")
    try:
        old = hot.decoded("x", text.encode())
        hot.check_privacy("x", old, parts.text(NOW), ["RULE: new"], NOW)
    except (Refusal, UnicodeEncodeError):
        return False
    before = set(re.findall(r"zqx\d+", naive_strip(text) if len(text) <= NAIVE else strip_private(text)))
    once = parts.text(NOW)
    assert set(re.findall(r"zqx\d+", strip_private(once))) <= before
    assert hot.parse(once).text(NOW) == once
    return True


# --- streams -------------------------------------------------------------------------------------------------


def line(data: bytes) -> bool:
    try:
        item = decode(data, "line 1 of the stream")
    except CortexError as error:
        assert error.code == "integrity_error"
        no_markup(error.message)
        return False
    check_item(item)
    return True


def check_item(item: Item) -> None:
    """An item that was taken is written as a line that is taken, and holds no markup wherever it can be seen."""
    encoded = encode(item)
    assert encoded.endswith(b"\n")
    if len(encoded) <= NAIVE and item.kind not in ("seal", "error"):
        no_markup("\n".join(strings(json.loads(encoded))))
    assert encode(decode(encoded, "the line again")) == encoded


def strings(value: Any) -> list[str]:
    """All strings in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in strings(part)]


def sealed(data: bytes) -> bytes:
    """`data` as lines, and a seal that fits them."""
    data = data if data.endswith(b"\n") else data + b"\n"
    seal = {"kind": "seal", "stage": "x", "lines": data.count(b"\n"), "xxh3": xxh3_64(data).hexdigest()}
    return data + json.dumps(seal, separators=(",", ":")).encode() + b"\n"


def segments(data: bytes) -> bool:
    """The first byte says how the rest is read: sealed anew or as it stands, unsealed, complete, twice."""
    how, rest = (data[0], data[1:]) if data else (0, b"")
    with tempfile.TemporaryFile() as file:
        file.write(sealed(rest) if how & 1 else rest)
        file.seek(0)
        reader = SegmentReader(file.fileno(), unsealed=bool(how & 2), complete=not how & 4, passes=2 if how & 8 else 1)
        try:
            for item in reader:
                assert item.kind != "error"
        except CortexError:
            return False
    return True


def unwrap(data: bytes) -> bool:
    """What cortex-unwrap seals is a sound stream; all else is refused, with nothing sealed."""
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as output:
        file.write(data)
        file.seek(0)
        writer = SegmentWriter("cortex-unwrap", output.fileno())
        try:
            cortex_unwrap.run(writer, file.fileno())
        except CortexError:
            writer.flush()
            output.seek(0)
            assert b'{"kind":"seal"' not in output.read()
            return False
        output.seek(0)
        for item in SegmentReader(output.fileno(), complete=False):
            check_item(item)
    return True


# --- items, labels, logs ---------------------------------------------------------------------------------------


def payload(data: bytes) -> bool:
    """Bytes into a clean item, in which every text is behind the boundary."""
    try:
        item = parse_payload(data)
        command = "propose" if isinstance(item, dict) and item.get("type") == "proposal" else "remember"
        check_type(command, item)
        clean = items.sanitize(item)
    except (CortexError, Refusal) as error:
        no_markup(error.message)
        return False
    for text in strings(clean):
        no_markup(text)
    json.dumps(clean, allow_nan=False).encode()
    return True


def label(data: bytes) -> bool:
    try:
        assert labels.parse(data).expected
    except (CortexError, labels.Fault):
        return False
    return True


def log_row(data: bytes) -> bool:
    row = parse_object(data)
    if row is None:
        return False
    found = (reviewer.is_success(row), reviewer.is_skip(row))
    assert all(isinstance(one, bool) for one in found) and not all(found)
    return any(found)


def capture(data: bytes) -> bool:
    try:
        given = json.loads(data)
        kept = create_capture_envelope(given)
    except (ValueError, RecursionError):
        return False
    except CortexError as error:
        no_markup(error.message)
        return False
    for text in strings(kept):
        no_markup(text)
    return True


# --- arguments -------------------------------------------------------------------------------------------------


def arguments(data: bytes) -> bool:
    """Words that NUL parts, as a contract command, and as what comes after each command and executable."""
    words = [lenient(word) for word in data.split(b"\0")]
    for command in (*COMMANDS.values(), *EXECUTABLES.values(), *SUBCOMMANDS.values()):
        try:
            given = parse(command, words)
            check_utf8(given)
            count_positionals(command, given.positionals)
            for name in command.values:
                text = given.positionals[0] if name == "query" else given.text(name)
                values.judge(command, name, text)
        except CortexError as error:
            assert error.code == "invalid_input"
    try:
        plan_for(parse_request(words))
    except CortexError as error:
        assert error.code in ("invalid_input", "write_refused")
        return False
    return True


def timestamp(data: bytes) -> bool:
    text = lenient(data)
    ms = parse_ms(text)
    assert ms == by_datetime(text)
    if ms is not None and format_ms(ms)[0] != "+" and not format_ms(ms).startswith("0099"):
        assert parse_ms(format_ms(ms)) == ms
    return ms is not None


def message(data: bytes) -> bool:
    """Whatever a message quotes, the failure envelope is sound and holds no markup."""
    text = lenient(data)
    answer = envelope.failed(text, CortexError("invalid_input", text if text.strip() else "x"))
    line_of = json.loads(answer.line.encode())
    envelope.check(line_of)
    no_markup(line_of["error"]["message"])
    assert shown(text).startswith(strip_private(shown(text)))  # cutting it short may leave the head of a tag
    return True


RECORD_LINE = (
    '{"kind":"record","id":"a","type":"log","title":"A","created":"2024-01-01","updated":"2024-01-02","provenance":'
    '{"source":"s","session":null,"path":"KNOWLEDGE/a.md"},"content":"loom","related":["b"],"valid_from":null,'
    '"valid_until":"2030-01-01T00:00Z"}\n'
)
CARD_KIND = '{"kind":"card",'
CARD_LINE = (
    CARD_KIND + '"id":"a","type":"log","created":"2024-01-01","updated":"2024-01-02","provenance":'
    '{"source":"s","session":null,"path":"KNOWLEDGE/a.md"},"score":1.5,"est_tokens":3}\n'
)
CORPUS_LINE = '{"kind":"corpus","root":"/r","listing":"0123456789abcdef","part":1,"parts":1,"files":1,"bytes":9}\n'
FILE_LINE = '{"kind":"file","path":"a.md","format":"markdown","bytes":9,"dev":1,"ino":2,"mtime_ns":3}\n'
OTHER_LINES = [
    '{"kind":"anchor","id":null,"date":"2024-01-01T00:00:00.000Z"}\n',
    f'{{"kind":"expansion","items":[{{{CARD_LINE.strip().removeprefix(CARD_KIND)}],'
    '"est_tokens":3,"truncated":false}\n',
    f'{{"kind":"digest","sha256":"{"0" * 64}","records":3}}\n',
    '{"kind":"result","adapter":"claude","result":{"ok":true,"type":"idea","path":"p","detail":{}}}\n',
    '{"kind":"error","code":"integrity_error","exit":4,"message":"m","stage":"cortex-scan"}\n',
    '{"kind":"seal","stage":"cortex-scan","lines":1,"xxh3":"0123456789abcdef"}\n',
    '{"kind":"explanation","id":"a","records":1,"length":2,"average":1.5,"terms":[{"term":"loom","df":1,"idf":0.5,'
    '"tf":1,"share":0.25}],"recency":0,"score":0.25}\n',
]
ROW = (
    '{"id":"a","type":"log","title":"A","created":"2024-01-01","updated":"2024-01-02","content":"x '
    '<private>y</private>","source_kind":"s","source_session":null,"related":["b","\\u003cprivate\\u003ez"],"valid_from":null}\n'
)
NOTE = (
    "---\nid: a\ntitle: 'T <private>x</private>'\ncreated: 2024-01-01\nrelated:\n  - slug: b\n    type: extends\n---\n"
    "body <private a=b>c\n---\n</private >\n- slug: c # d\n"
)
HOT = (
    "---\nowner: me\nlast_updated: 2026-01-01\nlast_updated_by: x\n---\nfree zqx1\n\n<!-- BEGIN ENTRIES -->\n"
    "RULE: oil zqx2\nPREF: tea <private>zqx3</private>\n<private>\nRULE: zqx4\n</private>\n<!-- END ENTRIES -->\n"
)
ENVELOPE = '{"schema":"lifeos-cortex/v1","ok":true,"command":"get","data":{"format":"lifeos-cortex-export/v1","items":['
ENVELOPE += RECORD_LINE.strip().replace('"kind":"record",', "") + ']},"error":null}\n'
SEARCH = '{"schema":"lifeos-cortex/v1","ok":true,"command":"search","data":{"items":['
SEARCH += CARD_LINE.strip().replace('"kind":"card",', "") + '],"total":1,"page":1,"page_size":10},"error":null}\n'
FAILURE = (
    '{"schema":"lifeos-cortex/v1","ok":false,"command":"get","data":null,"error":{"code":"not_found","message":"m"}}\n'
)
ITEMS = [
    '{"type":"idea","title":"T","content":"x <private>y</private> z","related":[{"slug":"a","type":"extends"}]}',
    '{"type":"knowledge","entity_type":"person","name":"N","content":"c","source_session":"s-1a","confidence":0.5}',
    '{"type":"memory","actor":"principal","op":"set","entries":["RULE: a","PREF: b"],"provenance":"explicit"}',
    '{"type":"memory","actor":"assistant","content":"RULE: a <private>b</private>"}',
    '{"type":"proposal","target_file":"A/B.md","edit":"e","rationale":"r","confidence":1,"observed_across_sessions":2}',
]
LABEL = (
    '{"id":"l","query":"loom","expected_ids":["a"],"false_ids":["b"],"provenance":{"schema":"'
    f'{labels.PROVENANCE_SCHEMA}","query_execution":{{"method":"{labels.EXECUTION_METHOD}","command":["cortex","search",'
    '"loom"],"executed_at":"2026-01-01T00:00:00.000Z","query":"loom","returned_ids":["a"]},"expected_ids_verification":'
    f'{{"method":"{labels.VERIFICATION_METHOD}","verified_at":"2026-01-01T00:00:00.000Z","verifier":"{labels.VERIFIER}",'
    '"verified_ids":["a"]}}}'
)
SUCCESS_ROW = (
    '{"ts":"2026-01-01T00:00:00.000Z","runId":"r","transcript":"t","exchanges":3,"ok":true,"parse_ok":true,'
    '"inference_duration_ms":5,"dispatch_summary":{"total":1,"succeeded":1,"failed":0,"skipped_guard":0,"by_type":'
    '{"idea":1},"failures":[],"skips":[],"proposals_auto_applied":0,"proposals_auto_apply_failed":0}}'
)
CAPTURE = '{"source":"s","channel":"c","timestamps":{"captured_at":"2024-01-01"},"content":"a <private>b</private>"}'
ARGUMENTS = [
    "search\0loom tension\0--page\0002\0--recency\0.5e1\0--from\x002024-01-01\0--expand\0a",
    "timeline\0--anchor\0a\0--before\0000\0--after\x007\0--type\0log",
    "remember\0{}\0--adapter\0claude\0--allow-write",
    "get\0a\0-b\0--memory-root\0/r",
    "search\0--refuse\0invalid_input\0--\0--page-size\x00100",
]


class Target:
    """`run` holds for every input; `seeds` are inputs that get far into it."""

    def __init__(self, run: Callable[[bytes], bool], seeds: list[str]) -> None:
        self.run = run
        self.seeds = [seed.encode() for seed in seeds]


TARGETS = {
    "strip": Target(strip, ["a <private>b</private> c", "<pri<private>x</private>vate>y", "</private x>\uff1cprivate"]),
    "pieces": Target(
        pieces, ["\0" + NOTE, "\x09a <private>b<privat</private>e>c</private> <privateer>", "\3<pri</private>vate"]
    ),
    "markdown": Target(markdown, [NOTE, "\ufeff" + NOTE.replace("\n", "\r\n"), "no front matter"]),
    "rows": Target(rows, [ROW, ROW * 2, ROW.replace("\\u003c", "<")]),
    "front": Target(front, [NOTE, HOT, "---\nupdated: x\nrelated: []\n---\n"]),
    "hot": Target(
        hot_memory, [HOT, HOT.replace("\n", "\r\n"), "RULE: a\n<private>zqx5\nRULE: zqx6\n</private>RULE: b"]
    ),
    "line": Target(line, [RECORD_LINE, CARD_LINE, CORPUS_LINE, FILE_LINE, *OTHER_LINES]),
    "segments": Target(
        segments,
        [
            "\x01" + CORPUS_LINE + RECORD_LINE + CARD_LINE,
            "\x08" + sealed((CORPUS_LINE + FILE_LINE).encode()).decode() * 2,
            "\x02" + RECORD_LINE + "".join(line for line in OTHER_LINES if '"error"' not in line),
            "\x01" + CORPUS_LINE + "".join(OTHER_LINES[:5]),
            "\x09" + CORPUS_LINE + OTHER_LINES[2],
        ],
    ),
    "unwrap": Target(unwrap, [ENVELOPE, SEARCH, FAILURE, '{"format":"lifeos-cortex-export/v1","items":[]}']),
    "payload": Target(payload, ITEMS),
    "label": Target(label, [LABEL]),
    "log row": Target(log_row, [SUCCESS_ROW]),
    "capture": Target(capture, [CAPTURE]),
    "arguments": Target(arguments, ARGUMENTS),
    "timestamp": Target(timestamp, ["2024-02-29", "2024-01-01T10:20:30.123456789-23:59", "0100-01-01T00:00+23:59"]),
    "message": Target(
        message, ["no <private>x</private>", "a<privateer>" + "b" * 300, "\udcff".encode("utf-8", "replace").decode()]
    ),
}


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Seeds with some of their bytes left out, doubled or replaced, and words put in between."""
    piece = st.one_of(st.sampled_from([word.encode() for word in WORDS]), st.binary(max_size=3))
    edit = st.tuples(st.integers(0, 1000), st.sampled_from([0, 0, 1, 2, 5, 40]), piece)

    def edited(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
        for place, length, more in edits:
            at = place * len(seed) // 1000
            seed = seed[:at] + more + seed[at + length :]
        return seed

    return st.builds(edited, st.sampled_from([*target.seeds, b""]), st.lists(edit, max_size=6))
