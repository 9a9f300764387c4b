"""The envelope (section 3): its check, its schema, and that the two agree on every shape."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.contract.errors import EXIT_STATUS, CortexError
from cortex_tools.domain.envelope import Raw, check, failed, safe_message, success
from cortex_tools.library import Runtime, run_cortex
from tests.golden import cases
from tests.support import SCHEMAS, envelope, failure, note, run, write_corpus

FILE = SCHEMAS / "lifeos-cortex-v1.schema.json"
SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

ERROR = {"code": "not_found", "message": "gone"}
SUCCESS = {"schema": "lifeos-cortex/v1", "ok": True, "command": "status", "data": {}, "error": None}
FAILURE = {"schema": "lifeos-cortex/v1", "ok": False, "command": "get", "data": None, "error": ERROR}
MISSING = object()


def accepted(shape: dict[str, Any]) -> bool:
    try:
        check(shape)
    except ValueError:
        return False
    return True


def changed(shape: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**shape, **changes}.items() if value is not MISSING}


def test_both_shapes_pass() -> None:
    assert accepted(SUCCESS) and accepted(FAILURE)
    assert VALIDATOR.is_valid(SUCCESS) and VALIDATOR.is_valid(FAILURE)
    for code in EXIT_STATUS:
        assert accepted(changed(FAILURE, error={"code": code, "message": "x"}))


MALFORMED: list[dict[str, Any]] = [
    {},
    *(changed(shape, **{name: MISSING}) for shape in (SUCCESS, FAILURE) for name in SUCCESS),
    *(changed(shape, extra=value) for shape in (SUCCESS, FAILURE) for value in (1, None)),
    *(changed(SUCCESS, schema=value) for value in (None, "", "lifeos-cortex/v2", "lifeos-cortex/v1 ", 1)),
    *(changed(shape, ok=value) for shape in (SUCCESS, FAILURE) for value in (None, 1, 0, "true", "", [], {})),
    *(changed(shape, command=value) for shape in (SUCCESS, FAILURE) for value in (None, 1, [], True)),
    changed(SUCCESS, data=None),
    changed(SUCCESS, error=ERROR),
    changed(SUCCESS, error={}),
    changed(SUCCESS, error=False),
    changed(SUCCESS, ok=False),
    changed(FAILURE, ok=True),
    changed(FAILURE, data={}),
    changed(FAILURE, data=[]),
    changed(FAILURE, data=0),
    changed(FAILURE, error=None),
    *(changed(FAILURE, error=value) for value in ({}, [], "not_found", 1, ["not_found", "gone"])),
    *(changed(FAILURE, error=changed(ERROR, **{name: MISSING})) for name in ERROR),
    changed(FAILURE, error={**ERROR, "stack": "x"}),
    changed(FAILURE, error={**ERROR, "data": None}),
    *(
        changed(FAILURE, error={**ERROR, "code": value})
        for value in (None, "", 3, "NOT_FOUND", "unknown", ["not_found"])
    ),
    *(changed(FAILURE, error={**ERROR, "message": value}) for value in (None, "", 1, ["gone"], {})),
]


@pytest.mark.parametrize("shape", MALFORMED, ids=repr)
def test_no_other_shape_passes(shape: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="envelope"):
        check(shape)
    assert not VALIDATOR.is_valid(shape)


def test_check_and_schema_agree() -> None:
    """All combinations of likely values of all fields; only those two shapes are left."""
    values: dict[str, list[Any]] = {
        "schema": ["lifeos-cortex/v1", "v1"],
        "ok": [True, False, None, 1, MISSING],
        "command": ["status", "", None, MISSING],
        "data": [None, {}, "text", 0, MISSING],
        "error": [None, ERROR, {**ERROR, "x": 1}, {**ERROR, "message": ""}, {**ERROR, "code": "x"}, "text", MISSING],
        "extra": [MISSING, None],
    }
    passed = []
    for combination in itertools.product(*values.values()):
        shape = changed({}, **dict(zip(values, combination, strict=True)))
        assert accepted(shape) == VALIDATOR.is_valid(shape), shape
        if accepted(shape):
            passed.append(shape)
    assert len(passed) == 2 * 3 + 2 * 1  # two commands each, three kinds of data or one error
    assert {len(shape) for shape in passed} == {5}


# Building.


def test_a_success_is_printed_in_order() -> None:
    answer = success("search", Raw('{"items":[],"score":1e-7}'))
    assert answer.status == 0
    assert answer.line == (
        '{"schema":"lifeos-cortex/v1","ok":true,"command":"search","data":{"items":[],"score":1e-7},"error":null}\n'
    )
    assert answer.envelope["data"] == {"items": [], "score": 1e-7}


@pytest.mark.parametrize(("code", "status"), EXIT_STATUS.items())
def test_a_failure_is_printed_in_order(code: str, status: int) -> None:
    answer = failed('g"é', CortexError(code, "Wörter\n\u2028"))
    assert answer.status == status
    assert answer.line == (
        '{"schema":"lifeos-cortex/v1","ok":false,"command":"g\\"é","data":null,'
        f'"error":{{"code":"{code}","message":"Wörter\\n\u2028"}}}}\n'
    )
    assert answer.line.count("\n") == 1


def test_the_statuses_of_the_table() -> None:
    assert EXIT_STATUS == {
        "internal_error": 1,
        "not_found": 3,
        "invalid_input": 4,
        "integrity_error": 4,
        "write_refused": 5,
        "governance_refused": 5,
    }


def test_a_failure_without_words_is_never_printed() -> None:
    with pytest.raises(ValueError, match="message"):
        failed("get", CortexError("not_found", ""))


# The schema.


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert len(SCHEMA["oneOf"]) == 2
    for shape in ("success", "failure"):
        assert SCHEMA["$defs"][shape]["additionalProperties"] is False
        assert list(SCHEMA["$defs"][shape]["properties"]) == list(SUCCESS)
    codes = SCHEMA["$defs"]["failure"]["properties"]["error"]["properties"]["code"]["enum"]
    assert sorted(codes) == sorted(EXIT_STATUS)


def test_the_schema_is_printed_on_request() -> None:
    done = run("cortex-envelope", "--schema")
    assert (done.returncode, done.stdout, done.stderr) == (0, FILE.read_bytes(), b"")
    failure(run("cortex-envelope", "--schema", "--schema"), 4, "invalid_input", "--schema")


def test_every_golden_success_fits() -> None:
    lines = [case["stdout"] for name in cases.NAMES for case in cases.load(name)["cases"] if "stdout" in case]
    assert len(lines) == 289
    for line in lines:
        answer = json.loads(line)
        VALIDATOR.validate(answer)
        check(answer)
        assert list(answer) == list(SUCCESS)


def test_every_golden_failure_fits(tmp_path: Path) -> None:
    """As we answer it: the golden cases give only its code."""
    count = 0
    for name in cases.NAMES:
        golden = cases.load(name)
        failing = [case for case in golden["cases"] if "code" in case]
        if not failing:
            continue
        root = tmp_path / name
        cases.materialise(golden["corpus"], root)
        for case in failing:
            argv = [argument.replace("$ROOT", str(root)) for argument in case["args"]]
            status, answer = run_cortex(argv)
            VALIDATOR.validate(answer)
            assert answer["error"]["code"] == case["code"] and status == EXIT_STATUS[case["code"]] == case["exit"]
            count += 1
    assert count == 267


# What stands on standard output, and what does not.


def test_one_line_and_nothing_else(tmp_path: Path) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a", "line one\nline two\r\n\u2028\u2029")})
    for argv in (["get", "a"], ["search", "line"], ["status"], ["get", "nobody"], ["bogus"], []):
        done = run("cortex", *argv, *(["--memory-root", root] if argv else []))
        answer = envelope(done)
        VALIDATOR.validate(answer)
        assert answer["command"] == (argv[0] if argv else "")
        assert done.stderr == b"" and (done.returncode == 0) == answer["ok"]


def test_non_ascii_is_not_escaped(tmp_path: Path) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/é.md": note("日本 \U0001f600", 'Wörter\t"\\/')})
    done = run("cortex", "get", "日本 \U0001f600", "--memory-root", root)
    assert "日本 \U0001f600".encode() in done.stdout and "KNOWLEDGE/é.md".encode() in done.stdout
    assert b'W\xc3\xb6rter\\t\\"\\\\/' in done.stdout and b"\\u" not in done.stdout
    assert b": " not in done.stdout.replace(b"id: ", b"").replace(b"title: ", b"").replace(b"created: ", b"")


def test_what_nobody_expected_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 14.12: its type alone, neither its words nor where it happened."""

    def break_down(*_: object) -> object:
        raise ZeroDivisionError("UTTERANCE of a note")

    root = write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a")})
    monkeypatch.setattr("cortex_tools.files.reading.parse_markdown", break_down)
    status, answer = run_cortex(["status"], Runtime(memory_root=root))
    VALIDATOR.validate(answer)
    assert (status, answer["error"]["code"]) == (1, "internal_error")
    for word in ("UTTERANCE", "Traceback", ".py", "line "):
        assert word not in answer["error"]["message"]


@pytest.mark.parametrize("message", ["<private>UTTERANCE</private>", "<privateer>UTTERANCE", " <private>UTTERANCE"])
def test_a_message_that_is_private_throughout_is_replaced(message: str) -> None:
    """An envelope needs a message, and what is left of this one is blank."""
    error = CortexError("not_found", message)
    assert safe_message(error) == "not_found: the message held private markup and was removed"
    assert failed("get", error).envelope["error"]["message"] == safe_message(error)


def test_a_message_is_utf8_whatever_it_quotes() -> None:
    error = CortexError("invalid_input", "bytes \udcff and half a pair \ud83d")
    assert not re.search("[\ud800-\udfff]", safe_message(error))
    assert json.loads(failed("get", error).line.encode())["error"]["message"] == safe_message(error)
