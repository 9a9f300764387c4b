"""The library, sentence by sentence (sections 11 and 14.18)."""

from __future__ import annotations

import copy
import inspect
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cortex_tools.library as library
from cortex_tools.library import CortexAdapter, Runtime, create_cortex_adapter, run_cortex
from tests.support import envelope, note, row, run, write_corpus

NAMES = ["claude", "hermes", "codex", "subagent"]
IDEA = {"type": "idea", "title": "An idea", "content": "Some words"}
PROPOSAL = {"type": "proposal", "target_file": "PROJECTS.md", "edit": "e", "rationale": "r", "confidence": 0.5}
GRANTED = {"allow_write": True}
Outcome = tuple[int, dict[str, Any]]


class Writer:
    """Stands in for the function that performs authorized writes, and remembers its calls."""

    def __init__(self, result: Any = None) -> None:
        self.items: list[Any] = []
        self.roots: list[Any] = []
        self._result = {"ok": True, "type": "idea", "path": "p", "detail": {}} if result is None else result

    def __call__(self, item: Any, root: Any, *more: Any, **named: Any) -> Any:
        self.items.append(copy.deepcopy(item))
        self.roots.append(root)
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    notes = {"a": note("a", "loom"), "b": note("--type", "loom vat"), "c": note("past", valid_until="2020-01-01")}
    files: dict[str, str | bytes] = {f"KNOWLEDGE/{name}.md": text for name, text in notes.items()}
    return write_corpus(
        tmp_path / "root", {**files, "KNOWLEDGE/d.jsonl": row("--anchor", created="2024-02-01", updated="2024-02-02")}
    )


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """The library never prints: that holds for every test of this file."""
    yield
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def adapter(root: Path, name: str = "claude", memory_add: Any = None) -> CortexAdapter:
    return create_cortex_adapter(name, Runtime(memory_root=root, memory_add=memory_add))


def refused(outcome: Outcome, code: str, *mentions: str) -> str:
    """The message of a failure with this code and its status; the envelope is whole and names the command."""
    status, answer = outcome
    assert list(answer) == ["schema", "ok", "command", "data", "error"]
    assert answer["ok"] is False and answer["data"] is None, answer
    assert answer["error"]["code"] == code, answer
    assert status == {"internal_error": 1, "not_found": 3, "invalid_input": 4, "integrity_error": 4}.get(code, 5)
    message: str = answer["error"]["message"]
    for word in mentions:
        assert word in message, message
    return message


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The object.


@pytest.mark.parametrize("name", NAMES)
def test_each_identity_answers_alike(name: str, root: Path) -> None:
    """Identity grants nothing, to none of the four."""
    mine, claude = adapter(root, name), adapter(root)
    assert mine.name == name
    assert mine.status() == claude.status()
    assert mine.search("loom") == claude.search("loom")
    refused(mine.remember(IDEA), "write_refused")
    refused(mine.propose(PROPOSAL), "write_refused")


def test_it_is_immutable(root: Path) -> None:
    mine = adapter(root)
    for attribute in ("name", "status", "search", "remember", "extra", "_name", "_runtime"):
        with pytest.raises(AttributeError):
            setattr(mine, attribute, "codex")
        with pytest.raises(AttributeError):
            delattr(mine, attribute)
    assert not hasattr(mine, "__dict__")
    assert mine.name == "claude" and mine.status()[0] == 0


def test_its_methods() -> None:
    public = {name for name in dir(CortexAdapter) if not name.startswith("_")}
    assert public == {"name", "status", "search", "timeline", "get", "export", "remember", "propose"}
    assert {"create_cortex_adapter", "run_cortex", "Runtime", "CortexAdapter"} <= set(library.__all__)
    for name in library.__all__:
        assert inspect.getdoc(getattr(library, name))


# Reading: what the command line answers.


@pytest.mark.parametrize(
    ("method", "arguments", "argv"),
    [
        ("status", [], ["status"]),
        ("search", ["loom"], ["search", "loom"]),
        ("search", ["?"], ["search", "?"]),
        ("timeline", ["a"], ["timeline", "--anchor", "a"]),
        ("timeline", ["2024-01-15"], ["timeline", "--anchor", "2024-01-15"]),
        ("timeline", ["nobody"], ["timeline", "--anchor", "nobody"]),
        ("get", ["a", "a"], ["get", "a", "a"]),
        ("get", ["past"], ["get", "past"]),
        ("get", [""], ["get", ""]),
        ("export", ["a"], ["export", "a"]),
        ("export", ["a", "nobody"], ["export", "a", "nobody"]),
        ("get", [], ["get"]),
        ("get", ["a"] * 101, ["get", *["a"] * 101]),
    ],
)
def test_calls_answer_what_the_command_line_answers(
    method: str, arguments: list[str], argv: list[str], root: Path
) -> None:
    outcome = getattr(adapter(root), method)(*arguments)
    done = run("cortex", *argv, "--memory-root", root, "--adapter", "claude")
    assert outcome == (done.returncode, envelope(done))
    assert run_cortex([*argv, "--memory-root", str(root)]) == outcome


def test_arguments_are_never_options(root: Path) -> None:
    mine = adapter(root)
    assert mine.get("--type")[1]["data"]["items"][0]["id"] == "--type"
    assert mine.export("--type", "--anchor")[0] == 0
    assert mine.timeline("--anchor")[1]["data"]["anchor"]["id"] == "--anchor"
    assert mine.search("--loom --page 0")[1]["data"]["total"] == 3
    refused(mine.get("--bogus"), "not_found", "--bogus")
    refused(mine.get("--memory-root", "/"), "not_found")
    refused(mine.timeline("--before"), "not_found", "--before")
    refused(mine.search("--"), "invalid_input", "query")
    refused(mine.search(""), "invalid_input")
    refused(mine.timeline(""), "invalid_input")


class Thing:
    """Neither text nor JSON; its name is the same in every process that collects the tests."""

    def __repr__(self) -> str:
        return "a thing"


THING = Thing()
NOT_STRINGS: list[Any] = [None, 1, 1.5, True, b"a", ["a"], ("a",), {"a": 1}, THING, Path("a")]


@pytest.mark.parametrize("value", NOT_STRINGS, ids=repr)
def test_what_is_no_string(value: Any, root: Path) -> None:
    mine = adapter(root)
    for outcome in (
        mine.search(value),
        mine.timeline(value),
        mine.get(value),
        mine.get("a", value),
        mine.export(value),
    ):
        refused(outcome, "invalid_input")


@pytest.mark.parametrize("value", NOT_STRINGS, ids=repr)
def test_what_is_no_string_is_refused_before_the_corpus_is_read(value: Any, root: Path) -> None:
    (root / "KNOWLEDGE" / "bad.md").write_bytes(b"\xff")
    mine = adapter(root)
    for outcome in (mine.search(value), mine.timeline(value), mine.get(value), mine.export("a", value)):
        refused(outcome, "invalid_input")


def test_lone_surrogates_do_not_break_a_call(root: Path) -> None:
    mine = adapter(root)
    for outcome in (mine.get("a\ud800"), mine.timeline("\udcff"), mine.search("loom \ud83d")):
        assert "UTF-8" in refused(outcome, "invalid_input")


# Names.


@pytest.mark.parametrize(
    "name", ["", "Claude", "claude ", "gpt", "--allow-write", None, 5, ["claude"], THING], ids=repr
)
def test_an_unknown_name_gives_an_adapter_that_refuses_every_call(name: Any, root: Path) -> None:
    writer = Writer()
    mine = adapter(root, name, writer)
    for outcome in (
        mine.status(),
        mine.search("loom"),
        mine.timeline("a"),
        mine.get("a"),
        mine.export("a"),
        mine.remember(IDEA),
        mine.remember(IDEA, GRANTED),
        mine.propose(PROPOSAL, GRANTED),
    ):
        refused(outcome, "invalid_input")
    assert writer.items == []


# Permission.


@pytest.mark.parametrize("options", [(), (None,), ({},), ({"allow_write": False},)], ids=repr)
def test_read_only(options: tuple[Any, ...], root: Path) -> None:
    writer = Writer()
    mine, before = adapter(root, memory_add=writer), snapshot(root)
    refused(mine.remember(IDEA, *options), "write_refused")
    refused(mine.propose(PROPOSAL, *options), "write_refused")
    assert writer.items == [] and snapshot(root) == before


BAD_OPTIONS: list[Any] = [
    {"allow_write": 1},
    {"allow_write": 0},
    {"allow_write": None},
    {"allow_write": "true"},
    {"allow_write": "True"},
    {"allow_write": [True]},
    {"allowWrite": True},
    {"allow-write": True},
    {"ALLOW_WRITE": True},
    {"allow_write": True, "force": True},
    {"allow_write": True, "adapter": "codex"},
    {"allow_write": True, "memory_root": "/"},
    {"force": False},
    {1: True},
    {None: None},
    {True: True},
    True,
    "allow_write",
    ["allow_write"],
    [("allow_write", True)],
    1,
    THING,
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=repr)
def test_other_options_make_the_whole_call_invalid(options: Any, root: Path) -> None:
    writer = Writer()
    mine = adapter(root, memory_add=writer)
    refused(mine.remember(IDEA, options), "invalid_input")
    refused(mine.propose(PROPOSAL, options), "invalid_input")
    assert writer.items == []


def test_permission_is_for_that_call_alone(root: Path) -> None:
    writer = Writer()
    mine = adapter(root, memory_add=writer)
    assert mine.remember(IDEA, GRANTED)[0] == 0
    refused(mine.remember(IDEA), "write_refused")
    assert writer.items == [IDEA]


class Pretender(dict[str, bool]):
    """A mapping whose keys say one thing and whose values another; still a dict."""


def test_a_subclass_of_dict_is_judged_by_its_keys(root: Path) -> None:
    refused(adapter(root, memory_add=Writer()).remember(IDEA, Pretender(allow_write=True, x=True)), "invalid_input")


# Items.


def cyclic() -> Any:
    item: dict[str, Any] = {"type": "idea"}
    item["content"] = item
    return item


def deep() -> Any:
    item: Any = "x"
    for _ in range(100_000):
        item = [item]
    return {"type": "idea", "content": item}


NO_JSON: dict[str, Any] = {
    "object": object(),
    "set": {"type", "idea"},
    "bytes": b'{"type":"idea"}',
    "function": len,
    "NaN": {**IDEA, "confidence": float("nan")},
    "infinity": {**IDEA, "confidence": float("inf")},
    "key": {**IDEA, 1: "x"},
    "key None": {None: "x"},
    "deep in": {**IDEA, "related": [{"slug": {1, 2}}]},
    "path": {**IDEA, "content": Path("x")},
    "surrogate": {**IDEA, "content": "\ud800"},
    "surrogate key": {**IDEA, "\udc00": 1},
    "cycle": cyclic(),
    "depth": deep(),
}


@pytest.mark.parametrize("case", NO_JSON)
def test_what_is_not_json_is_refused_before_permission(case: str, root: Path) -> None:
    writer = Writer()
    mine = adapter(root, memory_add=writer)
    for options in (None, GRANTED):
        refused(mine.remember(NO_JSON[case], options), "invalid_input")
        refused(mine.propose(NO_JSON[case], options), "invalid_input")
    assert writer.items == []


@pytest.mark.parametrize(
    "item", [None, True, 5, 1.5, "", "-", "--allow-write", '{"type":"idea"}', [], [IDEA], {}], ids=repr
)
def test_json_that_is_no_item(item: Any, root: Path) -> None:
    """Among them a string `-`, which on a command line would mean standard input."""
    writer = Writer()
    mine = adapter(root, memory_add=writer)
    refused(mine.remember(item), "write_refused")
    refused(mine.remember(item, GRANTED), "write_refused", "memory, idea, knowledge")
    refused(mine.propose(item, GRANTED), "write_refused", "proposal")
    assert writer.items == []


@pytest.mark.parametrize("type", ["proposal", "Idea", "idea ", "note", "", None, 1, ["idea"], {"idea": 1}], ids=repr)
def test_types_that_remember_does_not_take(type: Any, root: Path) -> None:
    writer = Writer()
    refused(adapter(root, memory_add=writer).remember({**IDEA, "type": type}, GRANTED), "write_refused")
    assert writer.items == []


@pytest.mark.parametrize("type", ["memory", "idea", "knowledge", "Proposal", None], ids=repr)
def test_types_that_propose_does_not_take(type: Any, root: Path) -> None:
    writer = Writer()
    refused(adapter(root, memory_add=writer).propose({**PROPOSAL, "type": type}, GRANTED), "write_refused")
    assert writer.items == []


def test_the_size_of_an_item(root: Path) -> None:
    """262,144 bytes of JSON, here as on the command line; far below the limit and far above it."""
    writer = Writer()
    mine = adapter(root, memory_add=writer)
    assert mine.remember({**IDEA, "content": "é" * 60_000}, GRANTED)[0] == 0
    refused(mine.remember({**IDEA, "content": "x" * 262_200}, GRANTED), "invalid_input", "262144")
    refused(mine.remember({**IDEA, "content": "é" * 131_100}, GRANTED), "invalid_input")
    assert len(writer.items) == 1


# Writing, with an injected function.


@pytest.mark.parametrize("type", ["memory", "idea", "knowledge"])
def test_an_authorized_write(type: str, root: Path) -> None:
    result = {"ok": True, "type": type, "path": "x/é.md", "detail": {"n": 1, "list": [None, False, "<b>"]}}
    writer = Writer(result)
    item = {"type": type, "content": "Wörter\n", "related": [{"slug": "a", "type": "related"}], "confidence": 0.25}
    status, answer = adapter(root, "hermes", writer).remember(item, GRANTED)
    assert (status, answer["ok"], answer["command"], answer["error"]) == (0, True, "remember", None)
    assert answer["data"] == {"adapter": "hermes", "result": result}
    assert list(answer["data"]) == ["adapter", "result"]
    assert writer.items == [item]
    assert os.fspath(writer.roots[0]) in (str(root), os.fsencode(root))


def test_an_authorized_proposal(root: Path) -> None:
    result = {"ok": True, "type": "proposal", "path": "q", "detail": {"id": "1", "status": "queued"}}
    writer = Writer(result)
    status, answer = adapter(root, "codex", writer).propose(PROPOSAL, GRANTED)
    assert status == 0 and answer["command"] == "propose"
    assert answer["data"] == {"adapter": "codex", "result": result}
    assert writer.items == [PROPOSAL]


def test_a_refusal_of_governance(root: Path) -> None:
    writer = Writer({"ok": False, "code": "EAT_CAP", "message": "48 entries; trim 1"})
    message = refused(adapter(root, memory_add=writer).remember(IDEA, GRANTED), "governance_refused")
    assert message == "EAT_CAP: 48 entries; trim 1"


@pytest.mark.parametrize(
    "error", [RuntimeError, ValueError, KeyError, OSError, RecursionError, MemoryError, SystemExit]
)
def test_an_exception_in_the_function_becomes_internal_error(error: type[BaseException], root: Path) -> None:
    """SystemExit among them: the library never exits the process."""
    writer = Writer(error("UTTERANCE of the item"))
    mine = adapter(root, memory_add=writer)
    message = refused(mine.remember(IDEA, GRANTED), "internal_error")
    assert "UTTERANCE" not in message and "Traceback" not in message
    refused(mine.propose(PROPOSAL, GRANTED), "internal_error")


@pytest.mark.parametrize("result", [[], "ok", 1, {}, {"ok": 1}, {"ok": "yes"}, {"ok": True, "x": THING}], ids=repr)
def test_what_is_no_result_becomes_internal_error(result: Any, root: Path) -> None:
    refused(adapter(root, memory_add=Writer(result)).remember(IDEA, GRANTED), "internal_error")


def test_the_function_is_not_called_without_a_root(tmp_path: Path) -> None:
    writer = Writer()
    refused(adapter(tmp_path / "missing", memory_add=writer).remember(IDEA, GRANTED), "integrity_error", "missing")
    refused(adapter(tmp_path / "missing", memory_add=writer).remember({"type": "x"}, GRANTED), "write_refused")
    assert writer.items == [] and list(tmp_path.iterdir()) == []


def test_a_write_does_not_read_the_corpus(root: Path) -> None:
    (root / "KNOWLEDGE" / "bad.md").write_bytes(b"\xff")
    refused(adapter(root).status(), "integrity_error")
    assert adapter(root, memory_add=Writer()).remember(IDEA, GRANTED)[0] == 0


def test_the_item_is_not_changed_by_the_call(root: Path) -> None:
    item = {"type": "idea", "title": "t", "content": "<private>x</private>", "related": []}
    before = copy.deepcopy(item)
    adapter(root, memory_add=Writer()).remember(item, GRANTED)
    assert item == before


# The runtime.


def test_the_injected_root_comes_first(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = write_corpus(tmp_path / "other", {"KNOWLEDGE/x.md": note("x")})
    monkeypatch.setenv("CORTEX_MEMORY_ROOT", str(other))
    for injected in (root, str(root), os.fsencode(root)):
        runtime = Runtime(memory_root=injected)
        assert run_cortex(["status", "--memory-root", str(other)], runtime)[1]["data"]["canonical"]["records"] == 4
        assert create_cortex_adapter("claude", runtime).status()[1]["data"]["canonical"]["root"] == os.path.realpath(
            root
        )
    assert run_cortex(["status"])[1]["data"]["canonical"]["records"] == 1
    assert create_cortex_adapter("claude").status()[1]["data"]["canonical"]["records"] == 1
    assert run_cortex(["status", "--memory-root", str(root)])[1]["data"]["canonical"]["records"] == 4


def test_the_clock_can_be_injected(root: Path) -> None:
    in_time = Runtime(memory_root=root, now_ms=1_500_000_000_000)
    assert create_cortex_adapter("claude", in_time).get("past")[0] == 0
    refused(adapter(root).get("past"), "not_found")


def test_an_adapter_outlives_changes_of_the_corpus(root: Path) -> None:
    """Nothing is remembered between calls."""
    mine = adapter(root)
    refused(mine.get("new"), "not_found")
    (root / "KNOWLEDGE" / "new.md").write_text(note("new"))
    assert mine.get("new")[0] == 0


def test_answers_are_the_callers_own(root: Path) -> None:
    mine = adapter(root)
    first = mine.get("a")[1]
    first["data"]["items"][0]["content"] = "changed"
    assert mine.get("a")[1] != first
    assert json.loads(json.dumps(first)) == first and pickle.loads(pickle.dumps(first)) == first


# run_cortex.


@pytest.mark.parametrize("args", ["status", [1], [None], ["get", b"a"], [["status"]], b"status", None, 5], ids=repr)
def test_arguments_that_are_no_sequence_of_strings(args: Any, root: Path) -> None:
    refused(run_cortex(args, Runtime(memory_root=root)), "invalid_input")


def test_arguments_may_come_from_an_iterator(root: Path) -> None:
    assert run_cortex(iter(["status"]), Runtime(memory_root=root))[0] == 0


@pytest.mark.parametrize("injected", [5, [], object(), "/tmp/\ud800"])
def test_a_root_that_is_no_path(injected: Any) -> None:
    runtime = Runtime(memory_root=injected)
    refused(run_cortex(["status"], runtime), "invalid_input")
    refused(create_cortex_adapter("claude", runtime).remember(IDEA, GRANTED), "invalid_input")


@pytest.mark.parametrize("clock", ["now", 1.5, True])
def test_a_clock_that_is_no_number(clock: Any, root: Path) -> None:
    refused(run_cortex(["status"], Runtime(memory_root=root, now_ms=clock)), "invalid_input")


def test_run_cortex_takes_options(root: Path) -> None:
    runtime = Runtime(memory_root=root)
    refused(run_cortex(["get", "--type"], runtime), "invalid_input", "--type")
    assert run_cortex(("search", "loom", "--page-size", "1"), runtime)[1]["data"]["page_size"] == 1
    writer = Writer()
    argv = ["remember", json.dumps(IDEA), "--adapter", "claude"]
    refused(run_cortex(argv, Runtime(memory_root=root, memory_add=writer)), "write_refused")
    status, answer = run_cortex([*argv, "--allow-write"], Runtime(memory_root=root, memory_add=writer))
    assert status == 0 and answer["data"]["adapter"] == "claude" and writer.items == [IDEA]


@pytest.mark.parametrize("argv", [[], ["bogus"], ["--help"], ["--version"], ["status", "--help"]], ids=repr)
def test_run_cortex_neither_prints_nor_exits(argv: list[str], root: Path) -> None:
    status, answer = run_cortex(argv, Runtime(memory_root=root))
    assert status == 4 and answer["command"] == (argv[0] if argv else "")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open descriptors cannot be counted without /proc")
@pytest.mark.parametrize("sound", [True, False])
def test_no_process_and_no_descriptor_is_left(sound: bool, root: Path) -> None:
    """Also by calls that fail: a caller may live for months."""
    if not sound:
        (root / "KNOWLEDGE" / "bad.md").write_bytes(b"\xff")
    mine = adapter(root, memory_add=Writer())
    calls = [mine.status, lambda: mine.search("loom"), lambda: mine.get("nobody"), lambda: mine.remember(IDEA, GRANTED)]
    calls.append(lambda: mine.timeline("a"))
    calls.append(lambda: run_cortex(["rebuild", "--from-canonical"], Runtime(memory_root=root)))
    for call in calls:
        call()
        before = len(os.listdir("/proc/self/fd"))
        call()
        assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
