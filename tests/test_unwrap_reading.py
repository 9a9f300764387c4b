"""How cortex-unwrap reads JSON: like a strict parser, in linear time and constant memory, with any parser of ijson."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.strict_json import StrictJson
from cortex_tools.streams import documents
from cortex_tools.streams.documents import Document
from tests.support import BIN, SAMPLE, environment, run, shell
from tests.test_through_running import peak_bytes
from tests.test_unwrap import NAME, refused
from tests.test_unwrap_refusals import BACKENDS, item, parser

IDS = ("idea-tension-logger", "idea-vat-monitor")


# --- the strict look at JSON, against a parser that is known ----------------------------------------------------------


def reference(document: bytes) -> Any:
    """The value by the standard library, with everything refused that it lets pass; ValueError for what is refused."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in found}) != len(found):
            raise ValueError("a key twice")
        return dict(found)

    def constant(name: str) -> Any:
        raise ValueError(name)

    value = json.loads(document.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    if not isinstance(value, dict):
        raise ValueError("no object")
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates
    return value


def by_document(document: bytes, size: int) -> Any:
    pieces = iter([document[at : at + size] for at in range(0, len(document), size)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_read", lambda _: next(pieces, b""))
        whole = Document(0, 10_000)
        whole.start()
        value = {key: whole.value() for key in whole.members()}
        whole.end()
        return value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda number: float(repr(number))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
DAMAGE = st.tuples(
    st.integers(0, 400), st.sampled_from([*'{}[]:,"\\ue0-+.1dD8fn\n', "", "\\ud83e", "\\u00", "\x7f", "\0"])
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_documents_are_read_as_by_a_strict_parser_or_refused_like_it(backend: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(
        st.dictionaries(st.text(max_size=3), VALUES, max_size=3), st.booleans(), st.sampled_from([None, 1]),
        st.lists(DAMAGE, max_size=2), st.sampled_from([1, 2, 7, 100_000]),
    )  # fmt: skip
    def check(value: dict[str, Any], ascii: bool, indent: int | None, damage: list[Any], pieces: int) -> None:
        text = json.dumps(value, ensure_ascii=ascii, indent=indent)
        for at, put in damage:
            at %= len(text) + 1
            text = text[:at] + put + text[at + 1 :]
        document = text.encode("utf-8", "surrogatepass")
        try:
            expected = reference(document)
        except ValueError:
            with pytest.raises(CortexError):
                by_document(document, pieces)
            return
        try:
            assert by_document(document, pieces) == expected
        except CortexError as error:
            assert "digits" in error.message or "no JSON value" in error.message  # numbers too long to be kept

    with parser(backend):
        check()


@pytest.mark.parametrize("unit", ["x", "\\n", "\\ud83e\\uddf5", "🧵", "1,", "[],", "{},", '"a",', " ", "\\"])
def test_the_look_takes_time_linear_in_the_document(unit: str) -> None:
    """Work is counted: what is looked at again must stay short, and a parser must get whole tokens, each once."""
    inside = unit in ("x", "\\n", "\\ud83e\\uddf5", "🧵", "\\")
    start = '{"a":"' if inside else '{"a":['
    document = (start + unit * 20_000).encode()
    strict, waiting, shown = StrictJson(10_000_000), [], []
    for at in range(0, len(document), 97):
        shown.append(strict.check(document[at : at + 97]))
        waiting.append(len(strict._rest))
    assert max(waiting) < 210
    assert document.startswith(b"".join(shown)) and all(piece.count(b'"') % 2 == 0 for piece in shown)
    assert len(b"".join(shown)) == 5 if inside else sum(map(bool, shown)) > 100


# --- constant memory -------------------------------------------------------------------------------------------------

_MAKE = """
import json, sys
count, size = int(sys.argv[1]), int(sys.argv[2])
item = json.loads(sys.argv[3])
write = sys.stdout.write
write('{"schema":"lifeos-cortex/v1","ok":true,"command":"export","data":{"format":"lifeos-cortex-export/v1","items":[')
for number in range(count):
    record = {**item, "id": f"r{number}", "content": "織 loom" * (size // 8)}
    write("," * (number > 0) + json.dumps(record, ensure_ascii=False))
write(']},"error":null}')
"""


def make_export(path: Path, megabytes: int) -> None:
    with open(path, "wb") as out:
        argv = [sys.executable, "-c", _MAKE, str(10 * megabytes), "100000", json.dumps(item())]
        subprocess.run(argv, stdout=out, env=environment(PYTHONIOENCODING="utf-8"), check=True, timeout=120)


def test_memory_is_constant(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (3, 30):
        path = tmp_path / f"{megabytes}.json"
        make_export(path, megabytes)
        assert path.stat().st_size > megabytes * 900_000
        peaks.append(peak_bytes(path, BIN / NAME))
    assert peaks[1] - peaks[0] < 3_000_000, peaks


def test_a_string_without_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with open(path, "wb") as out:
        out.write(b'{"data":"')
        for _ in range(80):
            out.write(b"x" * (1 << 20))
    done = shell(f"{NAME} < {path}")
    refused(done, "integrity_error", "a string of more than")


def test_the_sample_s_export_survives_both_parsers() -> None:
    document = run("cortex", "export", *IDS, "--memory-root", SAMPLE).stdout
    outputs = {run(NAME, input=document, env=environment(IJSON_BACKEND=name)).stdout for name in BACKENDS}
    assert len(outputs) == 1
    again = run("cortex-envelope", "export", *IDS, input=outputs.pop())
    assert again.stdout == document
