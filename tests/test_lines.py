"""Lines of a stream, judged in full one by one: exactly their fields, and in each only what it may hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.streams.lines import decode, encode
from cortex_tools.streams.segments import SegmentReader
from tests.fuzz_targets import CARD_LINE, CORPUS_LINE, FILE_LINE, OTHER_LINES, RECORD_LINE, sealed

LINES = {json.loads(line)["kind"]: line for line in (RECORD_LINE, CARD_LINE, CORPUS_LINE, FILE_LINE, *OTHER_LINES)}
# Fields that hold what the name of a file may hold, or what another program answered.
FREE = {"path", "root", "result"}


def taken(value: Any) -> bool:
    try:
        decode(json.dumps(value).encode(), "line 1 of the stream")
    except CortexError as error:
        assert error.code == "integrity_error"
        return False
    return True


@pytest.mark.parametrize("kind", LINES)
def test_a_sound_line_is_taken_and_written_as_it_was(kind: str) -> None:
    assert encode(decode(LINES[kind].encode(), "line 1 of the stream")) == LINES[kind].encode()


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every object in a JSON value that has a shape of its own."""
    found = [way] if isinstance(value, dict) else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [inner for key, part in parts if key not in FREE for inner in places(part, (*way, key))]


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


@pytest.mark.parametrize("kind", LINES)
def test_a_field_too_few_or_too_many_is_refused(kind: str) -> None:
    for way in places(json.loads(LINES[kind])):
        for name in at(json.loads(LINES[kind]), way):
            value = json.loads(LINES[kind])
            del at(value, way)[name]
            assert not taken(value), (way, name)
        value = json.loads(LINES[kind])
        at(value, way)["more"] = 1
        assert not taken(value), way


@pytest.mark.parametrize("bad", ["a\x01b", "a\x7fb", "a\x85b", "a\ud800b", "a<private>b", "a<privateer>b"], ids=ascii)
@pytest.mark.parametrize("kind", LINES)
def test_no_text_holds_a_control_half_a_pair_or_markup(kind: str, bad: str) -> None:
    for way in places(json.loads(LINES[kind])):
        for name, held in at(json.loads(LINES[kind]), way).items():
            if isinstance(held, str) and name not in FREE:
                value = json.loads(LINES[kind])
                at(value, way)[name] = bad
                quotes = name == "message" and "<" not in bad and "\ud800" not in bad  # the name of a file, perhaps
                assert taken(value) is quotes, (way, name)
            elif isinstance(held, list) and held and isinstance(held[0], str):
                value = json.loads(LINES[kind])
                at(value, way)[name][0] = bad
                assert not taken(value), (way, name)


@pytest.mark.parametrize(("kind", "name"), [("corpus", "listing"), ("digest", "sha256"), ("seal", "xxh3")])
def test_a_digest_is_lower_case_hex_of_its_length(kind: str, name: str) -> None:
    value = json.loads(LINES[kind])
    length = len(value[name])
    for bad in ("A" * length, "g" * length, "0" * (length - 1), "0" * (length + 1), "", "\u0660" * length, 0, None):
        assert not taken({**value, name: bad}), bad
    assert taken({**value, name: "f" * length})


@pytest.mark.parametrize("path", ["", "/etc/a.md", "../a.md", "a/../b.md", "./a.md", "a//b.md", "a/", "a/.", "a\0.md"])
def test_a_listed_path_stays_below_the_root(path: str) -> None:
    assert not taken({**json.loads(FILE_LINE), "path": path})


def test_what_failed_upstream_is_told_rather_than_what_is_found_here(tmp_path: Path) -> None:
    """A stage that failed half-way leaves a stream that is broken, and says why further down."""
    said = '{"kind":"error","code":"not_found","exit":3,"message":"no such anchor","stage":"cortex-window"}\n'
    for before in ("broken\n", RECORD_LINE.replace("2024-01-02", "soon"), CORPUS_LINE):
        file = tmp_path / "stream"
        file.write_bytes((CORPUS_LINE + before + said).encode())
        descriptor = os.open(file, os.O_RDONLY)
        try:
            with pytest.raises(CortexError) as caught:
                list(SegmentReader(descriptor))
        finally:
            os.close(descriptor)
        assert (caught.value.code, caught.value.message, caught.value.stage) == (
            "not_found",
            "no such anchor",
            "cortex-window",
        )


def test_the_seal_counts_lines_and_bytes(tmp_path: Path) -> None:
    whole = sealed((CORPUS_LINE + RECORD_LINE).encode())
    file = tmp_path / "stream"
    for data, sound in ((whole, True), (whole.replace(b'"lines":2', b'"lines":3'), False), (whole[1:], False)):
        file.write_bytes(data)
        with open(file, "rb") as stream:
            reader = SegmentReader(stream.fileno())
            if sound:
                assert len(list(reader)) == 3
            else:
                with pytest.raises(CortexError):
                    list(reader)
