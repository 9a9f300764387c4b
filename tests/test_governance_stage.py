"""remember and propose four ways: command, library, cortex-write, the shell of cortex-plan; permission (section 10)."""

from __future__ import annotations

import itertools
import json
import os
import pty
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.options import ADAPTERS
from cortex_tools.library import Runtime, create_cortex_adapter, run_cortex
from cortex_tools.streams import lines
from tests.governed import IDEA, ITEMS, MEMORY, NOW, PROPOSAL, Item, ask, files, ms, rows, tree
from tests.support import BIN, envelope, environment, failure, run, shell

COMMANDS = {"memory": "remember", "idea": "remember", "knowledge": "remember", "proposal": "propose"}
GRANTED = ["--adapter", "claude", "--allow-write"]


def stream(done: subprocess.CompletedProcess[bytes]) -> list[Item]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", ITEMS)
def test_every_type_through_the_command_and_found_again(kind: str, tmp_path: Path) -> None:
    command = COMMANDS[kind]
    data = json.dumps(ITEMS[kind]).encode()
    done = run("cortex", command, "-", *GRANTED, "--memory-root", tmp_path, input=data)
    body = envelope(done)
    assert done.returncode == 0 and done.stderr == b""
    assert list(body["data"]) == ["adapter", "result"] and body["data"]["adapter"] == "claude"
    assert list(body["data"]["result"]) == ["ok", "type", "path", "detail"]
    if kind == "proposal":
        assert rows(tmp_path, "pending-proposals.jsonl")[0]["edit"] == PROPOSAL["edit"]
        return
    word = {"memory": "oiled", "idea": "even", "knowledge": "wrote"}[kind]
    (card,) = envelope(run("cortex", "search", word, "--memory-root", tmp_path))["data"]["items"]
    assert card["provenance"]["path"] == body["data"]["result"]["path"]
    (record,) = envelope(run("cortex", "get", card["id"], "--memory-root", tmp_path))["data"]["items"]
    assert ITEMS[kind]["content"] in record["content"]
    assert ask(tmp_path, "rebuild", "--from-canonical")["equivalent"] is True


@pytest.mark.parametrize("kind", ITEMS)
def test_the_library_and_the_command_do_the_same(kind: str, tmp_path: Path) -> None:
    command = COMMANDS[kind]
    roots = [tmp_path / name for name in ("a", "b")]
    for root in roots:
        root.mkdir()
    runtime = Runtime(roots[0], now_ms=ms(NOW))
    adapter = create_cortex_adapter("claude", runtime)
    one = getattr(adapter, command)(ITEMS[kind], {"allow_write": True})
    two = run_cortex([command, json.dumps(ITEMS[kind]), *GRANTED], Runtime(roots[1], now_ms=ms(NOW)))
    if kind == "proposal":  # whose row, and so its ID, names the root
        assert [outcome[0] for outcome in (one, two)] == [0, 0] and set(files(roots[0])) == set(files(roots[1]))
    else:
        assert one == two and one[0] == 0
        assert files(roots[0]) == files(roots[1])


@pytest.mark.parametrize("kind", ITEMS)
def test_the_plan_is_a_pipeline_that_answers_the_same(kind: str, tmp_path: Path) -> None:
    command, root = COMMANDS[kind], tmp_path / "ro'ot"
    root.mkdir()
    for item, status in ((ITEMS[kind], 0), ({**ITEMS[kind], "junk": 1}, 5), ({"type": "x"}, 5), ([], 5)):
        plan = run("cortex-plan", command, "-", *GRANTED, "--memory-root", root)
        options = f"--adapter claude --allow-write --memory-root {shlex.quote(str(root))}"
        expected = f"cortex-write {command} {options} |\n  cortex-envelope {command}\n"
        assert (plan.returncode, plan.stdout.decode()) == (0, expected)
        data = json.dumps(item).encode()
        before = tree(root)
        done = shell(plan.stdout.decode(), input=data)
        assert done.returncode == status
        if status == 0:
            assert envelope(done)["data"]["result"]["type"] == kind
        else:
            assert tree(root) == before
            assert done.stdout == run("cortex", command, "-", *GRANTED, "--memory-root", root, input=data).stdout


def test_what_has_no_plan_fails_as_the_command_does(tmp_path: Path) -> None:
    for argv in (["remember", *GRANTED], ["remember", "{}", "{}", *GRANTED], ["propose", "{}", "--adapter", "nobody"]):
        plan, done = run("cortex-plan", *argv), run("cortex", *argv)
        assert (plan.returncode, plan.stdout) == (done.returncode, done.stdout) and plan.returncode == 4
    plan = run("cortex-plan", "remember", "{}", "--memory-root", tmp_path)  # permission is the stage's to refuse
    assert plan.returncode == 0
    failure(shell(plan.stdout.decode()), 5, "write_refused", "--allow-write")
    assert tree(tmp_path) == {}


def test_the_lines_of_the_stage(tmp_path: Path) -> None:
    done = run("cortex-write", "remember", *GRANTED, "--memory-root", tmp_path, input=json.dumps(IDEA).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    corpus, result, seal = stream(done)
    root = {"root": str(tmp_path), "listing": "0" * 16, "part": 1, "parts": 1, "files": 0, "bytes": 0}
    assert corpus == {"kind": "corpus", **root}
    assert (
        list(result) == ["kind", "adapter", "result"] and result["result"]["path"] == "KNOWLEDGE/Ideas/loom-tension.md"
    )
    assert seal["kind"] == "seal" and seal["stage"] == "cortex-write" and seal["lines"] == 2
    line = done.stdout.splitlines(keepends=True)[1]
    assert lines.encode(lines.decode(line, "line 2")) == line
    answered = run("cortex-envelope", "remember", input=done.stdout)
    assert envelope(answered)["data"] == {"adapter": "claude", "result": result["result"]}


def test_what_the_envelope_takes_for_a_write(tmp_path: Path) -> None:
    done = run("cortex-write", "propose", *GRANTED, "--memory-root", tmp_path, input=json.dumps(PROPOSAL).encode())
    head, result, _ = done.stdout.splitlines(keepends=True)
    failure(run("cortex-envelope", "remember", input=head + result), 4, "integrity_error", "seal")
    failure(run("cortex-envelope", "remember", "--unsealed", input=head), 4, "integrity_error", "result line")
    failure(run("cortex-envelope", "remember", "--unsealed", input=head + result * 2), 4, "integrity_error", "result")
    failure(run("cortex-envelope", "search", input=done.stdout), 4, "integrity_error", "result")
    for bad in (b'"ok":false', b'"ok":1'):
        failure(
            run("cortex-envelope", "propose", "--unsealed", input=head + result.replace(b'"ok":true', bad)),
            4,
            "integrity_error",
            "result",
        )
    assert run("cortex-envelope", "propose", input=done.stdout).returncode == 0


# Permission: every combination.


@pytest.mark.parametrize("command", ["remember", "propose"])
def test_every_combination_of_adapter_permission_command_and_type(command: str, tmp_path: Path) -> None:
    kinds: dict[str, Any] = {**ITEMS, "unknown": {"type": "note"}, "list": [], "null": None}
    for adapter, allowed, kind in itertools.product([*ADAPTERS, "nobody", None], [True, False], kinds):
        argv = [command, json.dumps(kinds[kind]), *(["--allow-write"] if allowed else [])]
        argv += ["--adapter", adapter] if adapter else []
        before = tree(tmp_path)
        status, answer = run_cortex(argv, Runtime(tmp_path))
        code = (answer["error"] or {"code": None})["code"]
        if adapter == "nobody":
            expected: tuple[int, str | None] = (4, "invalid_input")
        elif not (adapter and allowed) or COMMANDS.get(kind) != command:
            expected = (5, "write_refused")
        else:
            expected = (0, None)
        assert (status, code) == expected, (argv, answer)
        assert (tree(tmp_path) == before) == (status != 0)


@pytest.mark.parametrize(
    "argv", [[], ["--adapter", "claude"], ["--allow-write"], ["--adapter", "nobody", "--allow-write"]]
)
def test_the_stage_alone_demands_permission_before_it_reads(argv: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [BIN / "cortex-write", "remember", *argv, "--memory-root", tmp_path],
            stdin=reading,
            capture_output=True,
            env=environment(),
            timeout=60,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)
    code = "invalid_input" if "nobody" in argv else "write_refused"
    error, seal = stream(done)
    assert (error["kind"], error["code"], error["stage"]) == ("error", code, "cortex-write") and seal["lines"] == 1
    assert done.returncode == error["exit"] == (4 if "nobody" in argv else 5)
    assert done.stderr.decode() == f"cortex-write: {code}: {error['message']}\n"
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "argv", [[], ["search"], ["remember", "x"], ["--bogus"], ["remember", "--allow-write", "--allow-write"]]
)
def test_bad_command_lines_of_the_stage(argv: list[str]) -> None:
    done = run("cortex-write", *argv)
    assert done.returncode == 4 and stream(done)[0]["code"] == "invalid_input"


def test_the_stage_on_a_terminal_says_what_it_wants(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    done = subprocess.run(
        [BIN / "cortex-write", "remember", *GRANTED, "--memory-root", tmp_path],
        stdin=slave,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    os.close(master)
    os.close(slave)
    assert done.returncode == 4 and b"terminal" in done.stderr and b"< item.json" in done.stderr


def test_the_stage_never_reads_past_the_limit(tmp_path: Path) -> None:
    data = json.dumps(IDEA).encode().ljust(262_144)
    done = run("cortex-write", "remember", *GRANTED, "--memory-root", tmp_path, input=data)
    assert done.returncode == 0
    done = run("cortex-write", "remember", *GRANTED, "--memory-root", tmp_path, input=data + b" ")
    assert done.returncode == 4 and "262144" in stream(done)[0]["message"]


def test_refusals_reach_the_envelope_with_their_code(tmp_path: Path) -> None:
    cases: list[tuple[Item, str]] = [
        ({**IDEA, "content": ""}, "EINVAL_ITEM: content"),
        ({**MEMORY, "op": "set", "entries": [f"RULE: {n}" for n in range(49)]}, "EINVAL_ITEM: entries"),
        ({**IDEA, "content": "UTTERANCE\x07"}, "EINVAL_ITEM: "),
    ]
    for item, words in cases:
        item = {key: value for key, value in item.items() if not (item.get("op") == "set" and key == "content")}
        done = run("cortex", "remember", json.dumps(item), *GRANTED, "--memory-root", tmp_path)
        message = failure(done, 5, "governance_refused", words)
        assert message.startswith(words) and "UTTERANCE" not in message
    assert tree(tmp_path) == {}


def test_an_injected_clock_and_root(tmp_path: Path) -> None:
    adapter = create_cortex_adapter("hermes", Runtime(tmp_path, now_ms=ms(NOW)))
    status, answer = adapter.remember(IDEA, {"allow_write": True})
    assert status == 0 and answer["data"]["adapter"] == "hermes"
    assert NOW in files(tmp_path)["KNOWLEDGE/Ideas/loom-tension.md"].decode()


def test_what_python_alone_can_hold_is_refused(tmp_path: Path) -> None:
    from cortex_tools.governance import add

    for item in (
        {**IDEA, "content": b"x"},
        {**IDEA, 1: 2},
        {**IDEA, "related": ({"slug": "a", "type": "related"},)},
        object(),
    ):
        assert add(item, tmp_path)["code"] == "EINVAL_ITEM"
    assert tree(tmp_path) == {}
