"""The option grammar (section 4): each rule by table, the order of failures pair by pair, values (14.14, 14.15)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.library import Runtime, run_cortex
from tests.support import envelope, failure, note, run, write_corpus

VALUE_OPTIONS = {
    "status": [],
    "search": [
        "--type", "--source", "--session", "--from", "--to", "--page", "--page-size", "--recency", "--expand",
        "--max-nodes", "--max-tokens",
    ],
    "timeline": [
        "--anchor", "--before", "--after", "--type", "--source", "--session", "--from", "--to", "--page", "--page-size",
    ],
    "get": [],
    "export": [],
    "rebuild": [],
    "remember": [],
    "propose": [],
}  # fmt: skip
FLAGS = {"rebuild": ["--from-canonical"], "remember": ["--allow-write"], "propose": ["--allow-write"]}
COMMON = ["--memory-root", "--adapter"]
EVERY_OPTION = sorted({*COMMON, *itertools.chain(*VALUE_OPTIONS.values()), *itertools.chain(*FLAGS.values())})
COMMANDS = list(VALUE_OPTIONS)
# What makes each command succeed, as far as writes can without permission.
SOUND = {
    "status": [],
    "search": ["loom"],
    "timeline": ["--anchor", "a"],
    "get": ["a"],
    "export": ["a"],
    "rebuild": ["--from-canonical"],
    "remember": ["{}"],
    "propose": ["{}"],
}
READS = [command for command in COMMANDS if command not in ("remember", "propose")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "sound", {"KNOWLEDGE/a.md": note("a"), "KNOWLEDGE/b.md": note("-x", "loom")})


def ask(root: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, error code and message; the latter two are empty for a success."""
    status, answer = run_cortex(list(arguments), Runtime(memory_root=root))
    error: dict[str, Any] = answer["error"] or {"code": "", "message": ""}
    return status, error["code"], error["message"]


def refused(root: Path, *arguments: str, mentions: str = "") -> None:
    status, code, message = ask(root, *arguments)
    assert (status, code) == (4, "invalid_input"), (arguments, message)
    assert mentions in message, (arguments, message)


@pytest.mark.parametrize("command", READS)
def test_what_is_sound_succeeds(command: str, root: Path) -> None:
    assert ask(root, command, *SOUND[command])[0] == 0


@pytest.mark.parametrize("command", ["", "Status", "stat", "statuss", " status", "help", "--help", "-", "x" * 5000])
def test_unknown_commands(command: str, root: Path) -> None:
    refused(root, command)
    refused(root, command, "--bogus")
    refused(root)


# Options.


@pytest.mark.parametrize("command", COMMANDS)
def test_options_that_a_command_does_not_have(command: str, root: Path) -> None:
    allowed = {*COMMON, *VALUE_OPTIONS[command], *FLAGS.get(command, [])}
    for option in {*EVERY_OPTION, "--", "--help", "--version", "--bogus", "--Type", "--TYPE"} - allowed:
        refused(root, command, *SOUND[command], option, "1", mentions=option)
        refused(root, command, option, mentions=option)


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_abbreviated_or_joined(command: str, root: Path) -> None:
    for option in [*COMMON, *VALUE_OPTIONS[command], *FLAGS.get(command, [])]:
        for form in (option[:-1], f"{option}=1", f"{option}=", option.upper(), f"{option} ", option.replace("-", "_")):
            if form.startswith("--"):
                refused(root, command, *SOUND[command], form, "1")


@pytest.mark.parametrize("command", COMMANDS)
def test_values_that_are_none(command: str, root: Path) -> None:
    """Absent, empty, or another option; also where the next argument is an option that exists."""
    for option in [*COMMON, *VALUE_OPTIONS[command]]:
        rest = [] if option in SOUND[command] else SOUND[command]
        refused(root, command, *rest, option, mentions=option)
        for value in ("", "--", "--page", "--x y", "--1"):
            refused(root, command, *rest, option, value, mentions=option)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_given_twice(command: str, root: Path) -> None:
    for option in [*COMMON, *VALUE_OPTIONS[command]]:
        rest = [] if option in SOUND[command] else SOUND[command]
        for values in (("1", "1"), ("1", "2")):
            refused(root, command, *rest, option, values[0], option, values[1], mentions=option)
    for flag in FLAGS.get(command, []):
        rest = [argument for argument in SOUND[command] if argument != flag]
        refused(root, command, *rest, flag, flag, mentions=flag)


def test_options_may_stand_anywhere(root: Path) -> None:
    for argv in itertools.permutations([["loom"], ["--type", "memory"], ["--page-size", "1"]]):
        assert ask(root, "search", *itertools.chain(*argv))[0] == 0


def test_one_dash_makes_a_positional_or_a_value(root: Path) -> None:
    assert ask(root, "get", "-x")[0] == 0
    assert ask(root, "get", "-")[:2] == (3, "not_found")
    assert ask(root, "search", "-loom", "--type", "-x", "--source", "-")[0] == 0
    refused(root, "status", "-x")
    refused(root, "status", "-")


def test_flags_take_no_value(root: Path) -> None:
    refused(root, "rebuild", "--from-canonical", "yes")


@pytest.mark.parametrize("name", ["claude", "hermes", "codex", "subagent"])
@pytest.mark.parametrize("command", READS)
def test_adapters(command: str, name: str, root: Path) -> None:
    assert ask(root, command, *SOUND[command], "--adapter", name)[0] == 0


@pytest.mark.parametrize("name", ["Claude", "claude ", "gpt", "claud", "claude,codex", "-", "\u0441laude"])
@pytest.mark.parametrize("command", COMMANDS)
def test_other_adapters(command: str, name: str, root: Path) -> None:
    refused(root, command, *SOUND[command], "--adapter", name, mentions="--adapter")


# Positionals.


@pytest.mark.parametrize(
    ("command", "numbers"),
    [
        ("status", [1, 2]),
        ("search", [0, 2]),
        ("timeline", [1]),
        ("get", [0, 101]),
        ("export", [0, 101]),
        ("rebuild", [1]),
    ],
)
def test_numbers_of_positionals(command: str, numbers: list[int], root: Path) -> None:
    options = [argument for argument in SOUND[command] if command in ("timeline", "rebuild")]
    for number in numbers:
        refused(root, command, *options, *["a"] * number, mentions=str(number))


@pytest.mark.parametrize("command", ["get", "export"])
def test_up_to_a_hundred_ids_repeats_counted(command: str, root: Path) -> None:
    assert ask(root, command, *["a"] * 100)[0] == 0
    refused(root, command, *["a"] * 101)
    assert ask(root, command, "")[:2] == (3, "not_found")  # the empty ID is an ID, of no record
    assert ask(root, command, "a", "")[:2] == (3, "not_found")


def test_rebuild_wants_its_flag(root: Path) -> None:
    refused(root, "rebuild", mentions="--from-canonical")


# The first failure decides.  Each entry: what to add to the command, the code, what the message mentions.
Fault = tuple[list[str], str, str]

BEFORE_VALUES: list[Fault] = [
    (["--bogus"], "invalid_input", "--bogus"),
    (["--adapter", "nobody"], "invalid_input", "--adapter"),
    (["one", "two", "three"], "invalid_input", "given"),
    (["--memory-root", "/nowhere/at/all"], "integrity_error", "/nowhere/at/all"),
]
SEARCH: list[Fault] = [
    *BEFORE_VALUES,
    (["?"], "invalid_input", "query"),
    (["--from", "x"], "invalid_input", "--from"),
    (["--to", "x"], "invalid_input", "--to"),
    (["--recency", "x"], "invalid_input", "--recency"),
    (["--page", "0"], "invalid_input", "--page "),
    (["--page-size", "0"], "invalid_input", "--page-size"),
    (["--max-nodes", "0"], "invalid_input", "--max-nodes"),
    (["--max-tokens", "0"], "invalid_input", "--max-tokens"),
    (["--expand", "nobody"], "not_found", "nobody"),
]
TIMELINE: list[Fault] = [
    *BEFORE_VALUES,
    (["no anchor"], "invalid_input", "--anchor"),
    (["--from", "x"], "invalid_input", "--from"),
    (["--to", "x"], "invalid_input", "--to"),
    (["--before", "x"], "invalid_input", "--before"),
    (["--after", "x"], "invalid_input", "--after"),
    (["--anchor", "nobody"], "not_found", "nobody"),
    (["--page", "0"], "invalid_input", "--page "),
    (["--page-size", "0"], "invalid_input", "--page-size"),
]


def build(command: str, faults: list[list[str]], root: Path) -> list[str]:
    """A command line with all the faults and otherwise sound."""
    given = list(itertools.chain(*faults))
    if "no anchor" in given:
        given.remove("no anchor")
    elif command == "timeline" and "--anchor" not in given:
        given += ["--anchor", "a"]
    if command == "search" and "?" not in given:
        given.append("loom")
    if "--memory-root" not in given:
        given += ["--memory-root", str(root)]
    return [command, *given]


@pytest.mark.parametrize(("command", "faults"), [("search", SEARCH), ("timeline", TIMELINE)])
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_failure_decides(command: str, faults: list[Fault], turned: bool, root: Path) -> None:
    """Each two faults together, in both orders on the command line."""
    for pair in itertools.combinations_with_replacement(faults, 2):
        if {"no anchor", "--anchor"} <= {fault[0][0] for fault in pair}:
            continue  # an anchor cannot be both missing and unknown
        arguments = [fault[0] for fault in dict.fromkeys(map(_hashable, pair))]
        argv = build(command, [list(one) for one in (arguments[::-1] if turned else arguments)], root)
        status, answer = run_cortex(argv)
        error = answer["error"]
        assert error is not None and error["code"] == pair[0][1] and pair[0][2] in error["message"], (argv, answer)
        assert status == (3 if pair[0][1] == "not_found" else 4)


def _hashable(fault: Fault) -> tuple[tuple[str, ...], str, str]:
    return tuple(fault[0]), fault[1], fault[2]


def test_the_first_bad_option_from_the_left(root: Path) -> None:
    faults = {
        "--bogus": ["--bogus"],
        "--type": ["--type", ""],
        "--page": ["--page"],
        "--session": ["--session", "a", "--session", "a"],
    }
    for first, second in itertools.permutations(faults, 2):
        refused(root, "search", "loom", *faults[first], *faults[second], mentions=first)


@pytest.mark.parametrize("command", READS)
def test_the_corpus_is_judged_before_values(command: str, tmp_path: Path) -> None:
    """A bad value on an unsound corpus is integrity_error; a bad option is still invalid_input."""
    root = write_corpus(tmp_path / "bad", {"KNOWLEDGE/a.md": note("a", created="never")})
    bad = {"search": ["?", "--page", "0"], "timeline": ["--anchor", "nobody", "--page", "x"], "get": ["nobody"]}
    status, code, message = ask(root, command, *bad.get(command, SOUND[command]))
    assert (status, code) == (4, "integrity_error") and "KNOWLEDGE/a.md" in message
    refused(root, command, *SOUND[command], "--bogus", mentions="--bogus")
    refused(root, command, *SOUND[command], "--adapter", "nobody", mentions="--adapter")


def test_a_timeline_without_anchor_on_an_unsound_corpus(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "bad", {"KNOWLEDGE/a.jsonl": "x"})
    assert ask(root, "timeline")[:2] == (4, "integrity_error")


# Values.

COUNTS = [
    ("search", "--page", 1, 2**53 - 1),
    ("search", "--page-size", 1, 100),
    ("search", "--max-nodes", 1, 100),
    ("search", "--max-tokens", 1, 50_000),
    ("timeline", "--before", 0, 100),
    ("timeline", "--after", 0, 100),
    ("timeline", "--page", 1, 2**53 - 1),
    ("timeline", "--page-size", 1, 100),
]
NO_COUNTS = [
    "0x1", "+1", "1.0", " 1", "1 ", " ", "\t", "\u00a0", "1e0", "1e1", "-1", "1_0", "1,0", "\uff11", "\u0661", "\u00b9",
    "Ⅰ", "one", "1\n", "\ufeff1", "0b1", "0o1", "1n", "NaN", "Infinity", "-0", "true",
]  # fmt: skip


@pytest.mark.parametrize(("command", "option", "low", "high"), COUNTS)
def test_counts(command: str, option: str, low: int, high: int, root: Path) -> None:
    """Also max-nodes and max-tokens without --expand (section 14.15)."""
    good = [str(low), str(high), f"000{high}", "0" * 5000 + "1"]
    for value in good:
        assert ask(root, command, *SOUND[command], option, value)[0] == 0, value
    for value in [*NO_COUNTS, str(high + 1), str(low - 1), "9" * 400, "9" * 5000, "1" + "0" * 5000]:
        refused(root, command, *SOUND[command], option, value, mentions=option)


@pytest.mark.parametrize("option", ["--max-nodes", "--max-tokens"])
def test_budgets_are_checked_with_an_expansion_too(option: str, root: Path) -> None:
    refused(root, "search", "loom", "--expand", "a", option, "0", mentions=option)
    assert ask(root, "search", "loom", "--expand", "a", option, "1")[0] == 0


@pytest.mark.parametrize(
    "value",
    ["0", "00", "3", "3.", ".5", "0.25", "00.5", "1e3", "2E-4", "1e+3", "3.e2", ".5E1", "1e-999", "0e999", "9" * 300],
)
def test_recencies(value: str, root: Path) -> None:
    status, _, message = ask(root, "search", "nowhere", "--recency", value)
    assert status == 0, message


@pytest.mark.parametrize(
    "value",
    [
        ".", "", " ", " 1", "1 ", "+1", "-1", "-0", "1.0.0", "e3", ".e3", "1e", "1e+", "1e1.5", "1,5", "1_0", "0x1",
        "0b1", "Infinity", "inf", "NaN", "nan", "1e309", "9" * 400, "\uff11", "1\u0660", "½", "1e\u0661", "1n", "1f",
        "1\n",
    ],
)  # fmt: skip
def test_other_recencies(value: str, root: Path) -> None:
    refused(root, "search", "loom", "--recency", value, mentions="--recency")


@pytest.mark.parametrize("command", ["search", "timeline"])
@pytest.mark.parametrize("option", ["--from", "--to"])
def test_times(command: str, option: str, root: Path) -> None:
    for value in ("2024-01-01", "2024-01-01T10:00Z", "0100-01-01", "9999-12-31T23:59:59.999999999-23:59"):
        assert ask(root, command, *SOUND[command], option, value)[0] == 0
    for value in ("now", "2024", "2024-02-30", "2024-01-01T10:00", "2024-01-01 ", "1704067200000", "0099-12-31"):
        refused(root, command, *SOUND[command], option, value, mentions=option)


def test_filters_are_exact(root: Path) -> None:
    for option, value in (("--type", "memory"), ("--source", "canonical")):
        for given, total in ((value, 2), (value.upper(), 0), (value + " ", 0), (value[:-1], 0)):
            status, answer = run_cortex(["search", "loom", option, given], Runtime(memory_root=root))
            assert status == 0 and answer["data"]["total"] == total
    assert run_cortex(["search", "loom", "--session", "null"], Runtime(memory_root=root))[1]["data"]["total"] == 0


def test_filters_from_and_to_are_inclusive(root: Path) -> None:
    for arguments, total in (
        (["--from", "2024-01-01", "--to", "2024-01-01"], 2),
        (["--from", "2024-01-01T00:00:00.001Z"], 0),
        (["--to", "2023-12-31T23:59:59.999Z"], 0),
        (["--from", "2024-01-01T02:00+02:00", "--to", "2023-12-31T22:00-02:00"], 2),
        (["--from", "2025-01-01", "--to", "2020-01-01"], 0),
    ):
        status, answer = run_cortex(["search", "loom", *arguments], Runtime(memory_root=root))
        assert status == 0 and answer["data"]["total"] == total


# The query.


@pytest.mark.parametrize("query", ["", " ", "?", "日本語", "ß", "\u0301", "---", "ſ"])
def test_queries_without_a_term(query: str, root: Path) -> None:
    if query.startswith("--"):
        refused(root, "search", query)  # an option, and none of search's
    else:
        refused(root, "search", query, mentions="query")


def test_length_of_a_query_in_utf16(root: Path) -> None:
    for good in ("a" * 2048, "a" + " " * 2047, "a" + "é" * 2047, "ab" + "\U0001f600" * 1023):
        assert ask(root, "search", good)[0] == 0
    for bad in ("a" * 2049, "a" + " " * 2048, "abc" + "\U0001f600" * 1023):
        refused(root, "search", bad, mentions="2048")


def test_terms_of_a_query_repeats_counted(root: Path) -> None:
    dotted = "\u0130"  # its lower case ends in a mark that parts two terms: a, I with a dot, a are `ai` and `a`
    for separator in (" ", "-", "é", dotted):
        assert ask(root, "search", separator.join(["a"] * 64))[0] == 0
        refused(root, "search", separator.join(["a"] * 65), mentions="64")
    assert ask(root, "search", " ".join(f"t{number}" for number in range(64)))[0] == 0
    refused(root, "search", " ".join(["a b"] * 33), mentions="64")


# The executable itself.


def test_the_command_is_the_first_argument_as_given(root: Path) -> None:
    for argument, shown in (("bogus", "bogus"), ("--memory-root", "--memory-root"), ("é", "é"), ("", "")):
        done = run("cortex", argument)
        failure(done, 4, "invalid_input")
        assert envelope(done)["command"] == shown and done.stderr == b""
    assert envelope(run("cortex"))["command"] == ""


def test_bytes_that_are_not_utf8(root: Path) -> None:
    done = run("cortex", b"st\xffat\xc3")
    failure(done, 4, "invalid_input")
    assert envelope(done)["command"] == "st\ufffdat\ufffd"
    failure(run("cortex", "get", b"\xff", "--memory-root", root), 4, "invalid_input", "argument 1", "UTF-8")
    failure(run("cortex", "status", b"--\xff"), 4, "invalid_input")
    failure(run("cortex", "status", "--adapter", b"\xff"), 4, "invalid_input", "--adapter")
    failure(run("cortex", "search", "loom", "--page", b"1\xff", "--memory-root", root), 4, "invalid_input", "--page")
    # Taken for U+FFFD, such a value could name something else.
    failure(run("cortex", "search", "loom", "--type", b"\xff", "--memory-root", root), 4, "invalid_input", "--type")


def test_messages_never_quote_private_text(root: Path) -> None:
    secret = "<private>UTTERANCE</private>"
    for argv in (
        [secret],
        ["status", "--" + secret],
        ["status", secret],
        ["get", secret],
        ["search", "loom", "--expand", secret],
        ["search", "loom", "--page", secret],
        ["search", "loom", "--adapter", secret],
        ["timeline", "--anchor", secret],
        ["status", "--memory-root", "/nowhere/" + secret],
    ):
        status, answer = run_cortex(argv if argv[-2:-1] == ["--memory-root"] else [*argv, "--memory-root", str(root)])
        assert status in (3, 4) and "UTTERANCE" not in answer["error"]["message"]
