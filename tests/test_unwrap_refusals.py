"""cortex-unwrap: what is no sound envelope is refused, never changed; the same with every parser of ijson."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ijson
import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.stages import unwrap as unwrapping
from cortex_tools.streams.segments import SegmentWriter
from tests.support import environment, failure, run
from tests.test_streams import batch, split_lines
from tests.test_unwrap import NAME, refused


def available(name: str) -> bool:
    try:
        ijson.get_backend(name)
    except ImportError:
        return False
    return True


BACKENDS = [name for name in ("yajl2_c", "python") if available(name)]


@contextmanager
def parser(name: str) -> Iterator[None]:
    """ijson with another parser, in this process."""
    before = ijson.basic_parse_coro
    ijson.basic_parse_coro = ijson.get_backend(name).basic_parse_coro
    try:
        yield
    finally:
        ijson.basic_parse_coro = before


def outcome(document: bytes, folder: Path) -> tuple[CortexError | None, bytes]:
    """What the stage's own code in this process raises, and the lines that it wrote until then."""
    (folder / "document").write_bytes(document)
    with open(folder / "document", "rb") as source, open(folder / "stream", "w+b") as stream:
        writer = SegmentWriter(NAME, stream.fileno())
        error = None
        try:
            unwrapping.run(writer, source.fileno())
        except CortexError as caught:
            error = caught
            writer.flush()
        stream.seek(0)
        return error, stream.read()


def item(**changes: Any) -> dict[str, Any]:
    base = {
        "id": "a", "type": "log", "title": "t", "created": "2024-01-01", "updated": "2024-01-01",
        "provenance": {"source": "s", "session": None, "path": "p.md"}, "content": "BODY", "related": [],
        "valid_from": None, "valid_until": None,
    }  # fmt: skip
    return {**base, **changes}


def card(**changes: Any) -> dict[str, Any]:
    base = {name: item()[name] for name in ("id", "type", "created", "updated", "provenance")}
    return {**base, "score": 1.5, "est_tokens": 1, **changes}


def wrapped(data: Any, **changes: Any) -> dict[str, Any]:
    return {"schema": "lifeos-cortex/v1", "ok": True, "command": "get", "data": data, "error": None, **changes}


def export(*items: Any, **changes: Any) -> dict[str, Any]:
    return wrapped({"format": "lifeos-cortex-export/v1", "items": list(items) or [item()]}, **changes)


def search(*cards: Any, command: str = "search", **data: Any) -> dict[str, Any]:
    return wrapped({"items": list(cards), "total": len(cards), "page": 1, "page_size": 10, **data}, command=command)


SOUND = json.dumps(export())
ANCHOR = {"id": None, "date": "2024-01-01"}
ERROR = {"code": "not_found", "message": "m"}


def body(text: str) -> bytes:
    """A sound export but for what stands in the content, as it is."""
    return SOUND.replace("BODY", text).encode("utf-8", "surrogateescape")


TEXTUAL = {
    "nothing": b"",
    "blanks": b" \n\t",
    "a BOM": b"\xef\xbb\xbf" + SOUND.encode(),
    "UTF-16": SOUND.encode("utf-16"),
    "Latin-1": body("caf\udce9"),
    "half a character at the end": SOUND.encode() + b"\xe7",
    "an overlong NUL": body("\udcc0\udc80"),
    "a surrogate in UTF-8": body("\udced\udca0\udc80"),
    "a lone high surrogate": body("\\ud83e"),
    "a lone low surrogate": body("\\uddf5"),
    "surrogates the wrong way round": body("\\uddf5\\ud83e"),
    "a high surrogate and another character": body("\\ud83e\\u0041"),
    "a lone surrogate in a key": SOUND.replace('"content"', '"\\ud800content"').encode(),
    "a raw line feed in a string": body("a\nb"),
    "a raw tab in a string": body("a\tb"),
    "a raw NUL": body("\0"),
    "an unknown escape": body("\\x41"),
    "an octal escape": body("\\041"),
    "half an escape": body("\\u00e"),
    "NaN": SOUND.replace("null", "NaN").encode(),
    "Infinity": SOUND.replace("null", "-Infinity").encode(),
    "a sign": SOUND.replace("null", "+1").encode(),
    "a leading zero": SOUND.replace("null", "01").encode(),
    "a point without digits": SOUND.replace("null", "1.").encode(),
    "a hexadecimal number": SOUND.replace("null", "0x1").encode(),
    "a huge integer": SOUND.replace("null", "9" * 5000).encode(),
    "a huge exponent": SOUND.replace("null", "1e99999").encode(),
    "a bare word": SOUND.replace("null", "nil").encode(),
    "a word that goes on": SOUND.replace("null", "nullify").encode(),
    "a word in capitals": SOUND.replace("null", "NULL").encode(),
    "single quotes": SOUND.replace('"', "'").encode(),
    "a comment": SOUND.replace("{", "{/* why */", 1).encode(),
    "a trailing comma": SOUND.replace("}", ",}").encode(),
    "no comma": SOUND.replace(",", " ", 1).encode(),
    "no colon": SOUND.replace(":", " ", 1).encode(),
    "two commas": SOUND.replace(",", ",,", 1).encode(),
    "a bracket for a brace": SOUND.replace("]", "}", 1).encode(),
    "a brace too many": SOUND.encode() + b"}",
    "two documents": SOUND.encode() * 2,
    "two documents on two lines": (SOUND + "\n" + SOUND).encode(),
    "text after it": SOUND.encode() + b"\nloom",
    "a no-break space after it": (SOUND + "\xa0").encode(),
    "an array": b"[" + SOUND.encode() + b"]",
    "a string": b'"loom"',
    "a number": b"17",
    "no JSON": b"loom\n",
    "deeply nested": b'{"data":' + b"[" * 100_000,
    "deeply nested and closed": b'{"schema":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "binary": bytes(range(256)) * 300,
    "a stream": b'{"kind":"corpus"}\n{"kind":"seal"}\n',
}
TWICE = {
    "a key twice": SOUND[:-1] + ',"ok":true}',
    "data twice": SOUND[:-1] + ',"data":null}',
    "a key of a record twice": SOUND.replace('"type"', '"id":"b","type"'),
    "a key twice, once escaped": SOUND.replace('"type"', '"\\u0069d":"b","type"'),
    "a key of a provenance twice": SOUND.replace('"source"', '"path":"q","source"'),
}
SHAPES: dict[str, Any] = {
    "nothing in it": {},
    "another schema": export(schema="lifeos-cortex/v2"),
    "a field more": export(more=1),
    "a field less": {key: value for key, value in export().items() if key != "error"},
    "ok that is no boolean": export(ok=1),
    "ok with an error": export(error=ERROR),
    "no ok with data": export(ok=False, error=ERROR),
    "no ok without an error": wrapped(None, ok=False),
    "no ok and data that is no null": wrapped({}, ok=False, error=ERROR),
    "ok without data": wrapped(None),
    "data that is no object": wrapped([item()]),
    "an unknown code": wrapped(None, ok=False, error={"code": "loom", "message": "m"}),
    "a code that is a list": wrapped(None, ok=False, error={"code": [], "message": "m"}),
    "an empty message": wrapped(None, ok=False, error={"code": "not_found", "message": ""}),
    "an error with more in it": wrapped(None, ok=False, error={**ERROR, "stage": "x"}),
    "a command that is no string": export(command=["get"]),
    "an unknown command": export(command="fetch"),
    "another format": wrapped({"format": "lifeos-cortex-export/v2", "items": [item()]}),
    "no format": wrapped({"items": [item()]}),
    "no items": wrapped({"format": "lifeos-cortex-export/v1"}),
    "items that are null": wrapped({"format": "lifeos-cortex-export/v1", "items": None}),
    "items that are an object": wrapped({"format": "lifeos-cortex-export/v1", "items": {"a": item()}}),
    "data beside it": {**export(), "items": [item()]},
    "an item that is no object": export(item(), "b"),
    "an item in an array": export([item()]),
    "a record less a key": export({key: value for key, value in item().items() if key != "related"}),
    "a record with a key more": export(item(kind="record")),
    "a record with a bad date": export(item(created="2024-02-30")),
    "a record with a bad window": export(item(valid_from="2024-01-02", valid_until="2024-01-01")),
    "a blank ID": export(item(id=" ")),
    "an escaped control": export(item(content="\x07")),
    "a private span": export(item(content="a <private>SECRET</private> b")),
    "an opener": export(item(title="<private>SECRET")),
    "an opener in disguise": export(item(related=["\uff1cpri\u200bvate\uff1eSECRET"])),
    "the same ID with another body": export(item(), item(content="other")),
    "a card in an export": export(card()),
    "a record in a search": search(item()),
    "a record beside a card": search(card(), item(id="b")),
    "a score that is a string": search(card(score="1.5")),
    "a score that is a boolean": search(card(score=True)),
    "tokens that are no whole number": search(card(est_tokens=1.5)),
    "the same card twice": search(card(), card()),
    "a card taken away": search(card(), total=2),
    "a card added": search(card(), card(id="b"), total=1),
    "a page number of 0": search(page=0),
    "a page size of 101": search(page_size=101),
    "a page that is no number": search(page="1"),
    "a total that is no whole number": search(card(), total=1.0),
    "more cards than a page may hold": search(*(card(id=str(number)) for number in range(101)), page_size=101),
    "an anchor in a search": search(card(), anchor=ANCHOR),
    "no anchor in a timeline": search(card(), command="timeline"),
    "an anchor that is no object": search(card(), command="timeline", anchor=None),
    "an anchor with a key more": search(card(), command="timeline", anchor={**ANCHOR, "more": 1}),
    "an expansion in a timeline": search(command="timeline", anchor=ANCHOR, expansion={"items": []}),
    "an expansion that is null": search(card(), expansion=None),
    "an expansion of records": search(card(), expansion={"items": [item()], "est_tokens": 1, "truncated": False}),
    "an expansion less a key": search(card(), expansion={"items": [], "est_tokens": 1}),
}
NUMBERS = {
    "a score out of range": json.dumps(search(card())).replace("1.5", "1e400"),
    "a score with more digits than it can keep": json.dumps(search(card())).replace("1.5", "0.12345678901234567890"),
    "a total out of range": json.dumps(search(card())).replace('"total": 1', '"total": 1e0'),
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_no_sound_envelope_is_refused(backend: str, tmp_path: Path) -> None:
    cases = {
        **TEXTUAL,
        **{name: text.encode() for name, text in (TWICE | NUMBERS).items()},
        **{name: json.dumps(value).encode() for name, value in SHAPES.items()},
    }
    wrong = {}
    with parser(backend):
        error, written = outcome(SOUND.encode(), tmp_path)
        assert error is None and b"BODY" in written and split_lines(written)[-1].startswith(b'{"kind":"seal"')
        for name, document in cases.items():
            error, written = outcome(document, tmp_path)
            said = "" if error is None else error.message
            if error is None or error.code != "integrity_error" or b'"seal"' in written or b"SECRET" in written:
                wrong[name] = written
            elif any(word in said for word in ("BODY", "SECRET", "loom")):
                wrong[name] = said.encode()
    assert not wrong


def test_messages_say_what_is_wrong() -> None:
    said = {
        b"": "is empty",
        SOUND.encode()[:-20]: "cut off",
        SOUND.encode() * 2: f"goes on after its end at byte {len(SOUND) + 1}",
        TEXTUAL["a stream"]: "stream already",
        TEXTUAL["Latin-1"]: "UTF-8",
        body("\\ud83e "): f"escape that stands for no character at byte {SOUND.index('BODY') + 1}",
        TWICE["a key twice"].encode(): "same key twice",
        json.dumps(SHAPES["a card taken away"]).encode(): "cortex-through",
        json.dumps(SHAPES["the same ID with another body"]).encode(): "item 2 of the envelope",
        json.dumps(SHAPES["a record with a bad window"]).encode(): "valid_from",
    }
    done_all = batch([([NAME], document) for document in said])
    for mention, done in zip(said.values(), done_all, strict=True):
        refused(done, "integrity_error", mention)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_cut_anywhere_is_never_a_whole_one(backend: str, indent: int | None, tmp_path: Path) -> None:
    document = json.dumps(export(item(content="織 🧵 \\ \n"), item(id="b")), indent=indent).encode()
    with parser(backend):
        assert outcome(document, tmp_path)[0] is None
        for cut in range(len(document)):
            error, written = outcome(document[:cut], tmp_path)
            assert error is not None and ("cut off" if cut else "is empty") in error.message, cut
            assert b'"seal"' not in written


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_executable_says_it_once_with_any_parser(backend: str) -> None:
    """Nothing of a parser that was given up comes through, and the next stage fails, too."""
    for document in (SOUND.encode()[:-3], body("\\ud83e"), TEXTUAL["no comma"], TWICE["a key twice"].encode()):
        done = run(NAME, input=document, env=environment(IJSON_BACKEND=backend))
        refused(done, "integrity_error")
        failure(run("cortex-envelope", "get", "a", input=done.stdout), 4, "integrity_error")


def test_records_before_a_fault_go_out_but_never_as_a_whole_stream() -> None:
    """Memory stays constant because records are written at once; the error line tells that they were not all."""
    document = json.dumps(export(*(item(id=f"r{number}", content="x" * 100_000) for number in range(10)))).encode()
    (done,) = batch([([NAME], document[:-1])])
    kinds = [json.loads(line)["kind"] for line in split_lines(done.stdout)]
    assert kinds == ["corpus", *["record"] * 10, "error", "seal"]
    refused(done, "integrity_error", "cut off")
    for last in (["cortex-digest"], ["cortex-envelope", "get", "r1"]):
        assert batch([(last, done.stdout)])[0].returncode == 4


def test_arguments_are_judged_before_reading() -> None:
    for words in (["file.json"], ["--unsealed"], ["-"]):
        refused(run(NAME, *words), "invalid_input", NAME)
