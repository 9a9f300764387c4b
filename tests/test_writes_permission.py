"""remember and propose up to the writer: the order of sections 4 and 10, the payload, standard input (14.9, 14.19)."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.library import Runtime, run_cortex
from tests.support import BIN, envelope, environment, failure, run

COMMANDS = {"remember": {"type": "idea", "title": "t", "content": "UTTERANCE"}, "propose": {"type": "proposal"}}
PERMISSION = ["--adapter", "claude", "--allow-write"]
LIMIT = 262_144


def payload(command: str, size: int = 0) -> str:
    """A payload that the writer would get; with `size`, of so many bytes."""
    text = json.dumps(COMMANDS[command])
    return text.ljust(size) if size else text


def ask(root: Path, *argv: str) -> tuple[int, str, str, list[Any]]:
    """Exit status, error code, message, and what an injected writer was given."""
    given: list[Any] = []

    def memory_add(item: Any, *_: Any, **__: Any) -> dict[str, Any]:
        given.append(item)
        return {"ok": True, "type": item["type"], "path": "p", "detail": {}}

    status, answer = run_cortex([*argv, "--memory-root", str(root)], Runtime(memory_add=memory_add))
    error = answer["error"] or {"code": "", "message": ""}
    return status, error["code"], error["message"], given


def refused(root: Path, argv: list[str], code: str, *mentions: str) -> None:
    status, found, message, given = ask(root, *argv)
    assert (found, status) == (code, {"write_refused": 5, "governance_refused": 5}.get(code, 4)), (argv, message)
    assert given == [] and "UTTERANCE" not in message
    for word in mentions:
        assert word in message, (argv, message)


@pytest.mark.parametrize("command", COMMANDS)
def test_with_both_the_writer_is_called(command: str, tmp_path: Path) -> None:
    for argv in itertools.permutations([["--adapter", "codex"], ["--allow-write"], [payload(command)]]):
        status, _, message, given = ask(tmp_path, command, *itertools.chain(*argv))
        assert (status, given) == (0, [COMMANDS[command]]), message


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("options", [[], ["--allow-write"], *(["--adapter", name] for name in ("claude", "subagent"))])
def test_without_both_it_is_refused(command: str, options: list[str], tmp_path: Path) -> None:
    for rest in ([payload(command)], [], ["{"], ["a", "b"], ["-"], [payload(command, LIMIT + 1)]):
        refused(tmp_path, [command, *rest, *options], "write_refused", "--adapter", "--allow-write")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_adapter_that_nobody_knows(command: str, tmp_path: Path) -> None:
    refused(tmp_path, [command, payload(command), "--adapter", "nobody", "--allow-write"], "invalid_input", "--adapter")
    refused(tmp_path, [command, payload(command), "--adapter", "nobody"], "invalid_input", "--adapter")


# The first failure decides: what to give in place of a sound part, its code, and what the message mentions.
Fault = tuple[str, list[str], str, str]
FAULTS: list[Fault] = [
    ("option", ["--bogus"], "invalid_input", "--bogus"),
    ("name", ["--adapter", "nobody"], "invalid_input", "--adapter"),
    ("permission", [], "write_refused", "--allow-write"),
    ("payloads", [], "invalid_input", "payload"),
    ("payloads", ["{}", "{}"], "invalid_input", "2"),
    ("payload", [" " * (LIMIT + 1)], "invalid_input", "262144"),
    ("payload", ["{"], "invalid_input", "JSON"),
    ("payload", ['{"type":"note"}'], "write_refused", "type"),
    ("root", ["--memory-root", "/nowhere/at/all"], "integrity_error", "/nowhere/at/all"),
]


def build(command: str, faults: list[Fault], root: Path) -> list[str]:
    kinds = {kind for kind, _, _, _ in faults}
    argv = [command, *itertools.chain(*(arguments for _, arguments, _, _ in faults))]
    argv += [] if kinds & {"payloads", "payload"} else [payload(command)]
    argv += [] if "permission" in kinds else ["--allow-write"]
    argv += [] if "name" in kinds else ["--adapter", "claude"]
    return argv + ([] if "root" in kinds else ["--memory-root", str(root)])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_failure_decides(command: str, tmp_path: Path) -> None:
    for pair in itertools.combinations(FAULTS, 2):
        if {kind for kind, _, _, _ in pair} <= {"payloads", "payload"}:
            continue  # one payload has one fault; their order is below
        for faults in (list(pair), list(pair[::-1])):
            status, answer = run_cortex(build(command, faults, tmp_path))
            error = answer["error"]
            assert error["code"] == pair[0][2] and pair[0][3] in error["message"], (faults, answer)
            assert status == (5 if error["code"] == "write_refused" else 4)


@pytest.mark.parametrize("command", COMMANDS)
def test_faults_of_one_payload_in_order(command: str, tmp_path: Path) -> None:
    """Number, size, encoding and JSON, type: each payload here has all the later faults, too."""

    def given(*payloads: str) -> list[str]:
        return [command, *payloads, *PERMISSION]

    long = "\ufeff[" + "é" * LIMIT
    refused(tmp_path, given(long, long), "invalid_input", "2 given")
    refused(tmp_path, given(long), "invalid_input", "262144")
    refused(tmp_path, given("\ufeff[1]"), "invalid_input", "JSON")
    refused(tmp_path, given("[1]"), "write_refused", "type")


def test_each_command_takes_its_own_types(tmp_path: Path) -> None:
    for command, type in itertools.product(COMMANDS, ("memory", "idea", "knowledge", "proposal", "note", "", "Idea")):
        argv = [command, json.dumps({"type": type}), *PERMISSION]
        if (type == "proposal") == (command == "propose") and type not in ("note", "", "Idea"):
            assert ask(tmp_path, *argv)[0] == 0
        else:
            refused(tmp_path, argv, "write_refused", "type")


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        "5",
        "-5",
        '"idea"',
        "[]",
        '[{"type":"idea"}]',
        "{}",
        '{"type":null}',
        '{"type":["idea"]}',
        '{"type":{}}',
    ],
)
def test_payloads_that_are_no_item(text: str, tmp_path: Path) -> None:
    for command in COMMANDS:
        refused(tmp_path, [command, text, *PERMISSION], "write_refused", "type")


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "idea", "{'type':'idea'}", '{"type":"idea"} x', '{"type":"idea"}{}', '{"type":"idea",}', "NaN",
        '{"type":"idea","x":NaN}', '{"type":"idea","x":Infinity}', '{"type":"idea","x":-Infinity}', '{"type":"i\tdea"}',
        '\ufeff{"type":"idea"}', '\u00a0{"type":"idea"}', '{"type":"idea","x":"\\x"}', '{"type":"idea","x":01}',
        "[" * 100_000, '{"type":"idea","x":' + "[" * 100_000 + "]" * 100_000 + "}", "1" * 5000,
        '{"type":"idea","x":' + "1" * 5000 + "}",
    ],
)  # fmt: skip
def test_payloads_that_are_no_json(text: str, tmp_path: Path) -> None:
    refused(tmp_path, ["remember", text, *PERMISSION], "invalid_input", "payload")


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    refused(tmp_path, ["remember", '{"type":"idea","x":"\udcff"}', *PERMISSION], "invalid_input", "UTF-8")
    arguments = ["remember", b'{"type":"idea","x":"\xff"}', *PERMISSION, "--memory-root", tmp_path]
    failure(run("cortex", *arguments), 4, "invalid_input", "UTF-8")


def test_the_size_is_counted_in_bytes(tmp_path: Path) -> None:
    fits = payload("remember", LIMIT)
    assert ask(tmp_path, "remember", fits, *PERMISSION)[0] == 0
    refused(tmp_path, ["remember", fits + " ", *PERMISSION], "invalid_input", "262144")
    wide = payload("remember", LIMIT - 1).replace("UTTERANCE", "UTTERANC" + "é")
    assert len(wide) < LIMIT == len(wide.encode())
    assert ask(tmp_path, "remember", wide, *PERMISSION)[0] == 0
    refused(tmp_path, ["remember", wide.replace("é", "日"), *PERMISSION], "invalid_input", "262144")


def test_the_corpus_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE").mkdir()
    (tmp_path / "KNOWLEDGE" / "bad.md").write_bytes(b"\xff")
    assert ask(tmp_path, "remember", payload("remember"), *PERMISSION)[0] == 0


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", ["remember", payload("remember"), *PERMISSION], "integrity_error", "file")


# The executable, and standard input.

REFUSALS: dict[str, tuple[list[str], int, str]] = {
    "no permission": (["remember", "-"], 5, "write_refused"),
    "no adapter": (["remember", "-", "--allow-write"], 5, "write_refused"),
    "no flag": (["propose", "-", "--adapter", "claude"], 5, "write_refused"),
    "unknown adapter": (["remember", "-", "--allow-write", "--adapter", "nobody"], 4, "invalid_input"),
    "unknown option": (["remember", "-", *PERMISSION, "--bogus"], 4, "invalid_input"),
    "two payloads": (["remember", "-", "-", *PERMISSION], 4, "invalid_input"),
    "a payload of its own": (["remember", "{}", *PERMISSION], 5, "write_refused"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_standard_input_is_not_read_before_permission(case: str, tmp_path: Path) -> None:
    """The pipe stays open, so that reading to its end would hang, and holds all its bytes afterwards."""
    argv, status, code = REFUSALS[case]
    reading, writing = os.pipe()
    try:
        os.write(writing, payload("remember").encode())
        done = subprocess.run(
            [BIN / "cortex", *argv, "--memory-root", tmp_path],
            stdin=reading, capture_output=True, env=environment(), timeout=60,
        )  # fmt: skip
        failure(done, status, code)
        assert os.read(reading, 10_000) == payload("remember").encode()
    finally:
        os.close(reading)
        os.close(writing)
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_never_read_past_the_limit(tmp_path: Path) -> None:
    """One byte more tells that the payload is too large; where the file stands afterwards tells what was read."""
    big = tmp_path / "big"
    big.write_bytes(b" " * (4 * LIMIT))
    with big.open("rb") as file:
        done = subprocess.run(
            [BIN / "cortex", "remember", "-", *PERMISSION, "--memory-root", tmp_path],
            stdin=file, capture_output=True, env=environment(), timeout=60,
        )  # fmt: skip
        failure(done, 4, "invalid_input", "262144")
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) <= LIMIT + 1


@pytest.mark.parametrize(
    ("data", "status", "code", "mention"),
    [
        (b"", 4, "invalid_input", "JSON"),
        (b"{", 4, "invalid_input", "JSON"),
        (b'\xef\xbb\xbf{"type":"idea"}', 4, "invalid_input", "payload"),
        (b'{"type":"idea","x":"\xff"}', 4, "invalid_input", "UTF-8"),
        (b'{"type":"idea","x":"\xed\xa0\x80"}', 4, "invalid_input", "UTF-8"),
        ('{"type":"idea"}'.encode("utf-16"), 4, "invalid_input", "payload"),
        (b'{"type":"idea"}\0', 4, "invalid_input", "payload"),
        (b'{"type":"idea"}'.ljust(LIMIT + 1), 4, "invalid_input", "262144"),
        (b'{"type":"proposal"}', 5, "write_refused", "type"),
        (b'{"type":"proposal"}'.ljust(LIMIT), 5, "write_refused", "type"),
        (b' \r\n{"type":"note"}\r\n', 5, "write_refused", "type"),
    ],
)
def test_payloads_on_standard_input(data: bytes, status: int, code: str, mention: str, tmp_path: Path) -> None:
    done = run("cortex", "remember", "-", *PERMISSION, "--memory-root", tmp_path, input=data)
    failure(done, status, code, mention)
    assert done.stderr == b"" and list(tmp_path.iterdir()) == []


def test_a_standard_input_that_cannot_be_read(tmp_path: Path) -> None:
    """Closed, or open for writing alone."""
    argv = [BIN / "cortex", "remember", "-", *PERMISSION, "--memory-root", tmp_path]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *argv], capture_output=True, env=environment(), timeout=60
    )
    failure(closed, 4, "invalid_input", "payload")
    with open(os.devnull, "wb") as write_only:
        done = subprocess.run(argv, stdin=write_only, capture_output=True, env=environment(), timeout=60)
    failure(done, 4, "invalid_input", "standard input")


SCRIPT = """
import json, sys
from cortex_tools.library import Runtime, run_cortex
given = []
def memory_add(item, *rest, **named):
    given.append(item)
    return {"ok": True, "type": "idea", "path": "p", "detail": {}}
root, *argv = sys.argv[1:]
status, envelope = run_cortex(argv, Runtime(memory_root=root, memory_add=memory_add))
print(json.dumps([status, envelope, given]))
"""


@pytest.mark.parametrize("size", [0, 200_000, LIMIT])
def test_a_payload_on_standard_input_reaches_the_writer(size: int, tmp_path: Path) -> None:
    """Of up to the limit, which no argument could hold, and in pieces, as a slow pipe delivers it."""
    text = payload("remember", size).replace("UTTERANCE", "Wörter, 言葉") if not size else payload("remember", size)
    data = text.encode()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, tmp_path, "remember", "-", *PERMISSION],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(PYTHONPATH=os.pathsep.join(sys.path)),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        for start in range(0, len(data), 60_000):
            process.stdin.write(data[start : start + 60_000])
            process.stdin.flush()
        out, _ = process.communicate(timeout=60)
    status, answer, given = json.loads(out)
    assert status == 0 and answer["data"]["adapter"] == "claude"
    assert given == [json.loads(text)]


def test_the_envelope_names_the_command(tmp_path: Path) -> None:
    for command in COMMANDS:
        done = run("cortex", command, payload(command), "--memory-root", tmp_path)
        failure(done, 5, "write_refused")
        assert envelope(done)["command"] == command and list(tmp_path.iterdir()) == []
