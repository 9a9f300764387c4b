"""cortex-plan: what it prints, run by a shell, answers what cortex and the library answer, byte for byte."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_tools.domain.jsontext import json_text
from cortex_tools.domain.numbers import js_number
from cortex_tools.library import run_cortex
from tests.support import environment, failure, note, row, run, shell, write_corpus

# IDs that a careless quoting would break, and one that a careful one must keep apart from options.
AWKWARD = [
    "it's", 'say "so"', "two\nlines", "$HOME", "`id`", "$(id)", "a b", "a  b", "back\\slash", "!!", "*", "~", "a;b",
    "a|b", "#x", "-n", "é", "日本語", "\U0001f600", "a'\"'b", "%s", "\\n", "&", "\t",
]  # fmt: skip
# A tab alone is no ID.
IDS = [identifier for identifier in AWKWARD if identifier.strip()]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of awkward IDs that link to one another, at a root with an awkward name."""
    rows = [
        row(one, content=f"loom {number} " + "vat " * number, related=[other, "nowhere"], type=other, source=one)
        for number, (one, other) in enumerate(zip(IDS, IDS[1:] + IDS[:1], strict=True))
    ]
    folder = tmp_path_factory.mktemp("plan") / "it's a $HOME\nfor `notes` é"
    files = {"KNOWLEDGE/a.jsonl": "".join(rows), "KNOWLEDGE/é ' $x.md": note("md", "loom <private>no</private>")}
    return write_corpus(folder, {**files})


@pytest.fixture(scope="module")
def unsound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("plan") / "bad", {"KNOWLEDGE/it's.md": note("a", created="never")})


def as_printed(value: Any) -> str:
    """A parsed envelope as the contract prints it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{as_printed(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_printed, value)) + "]"
    return js_number(value) if isinstance(value, float) else json_text(value)


def same_three_ways(*argv: str | bytes) -> tuple[int, str]:
    """The exit status and the plan of a command line that answers alike by cortex, shell and library."""
    direct, plan = run("cortex", *argv), run("cortex-plan", *argv)
    if all(isinstance(argument, str) for argument in argv):
        status, answer = run_cortex([argument for argument in argv if isinstance(argument, str)])
        assert (status, as_printed(answer) + "\n") == (direct.returncode, direct.stdout.decode())
    if plan.returncode:
        assert (plan.returncode, plan.stdout) == (direct.returncode, direct.stdout)
        return plan.returncode, ""
    assert plan.stderr == b""
    by_shell = shell(plan.stdout.decode())
    assert (by_shell.returncode, by_shell.stdout) == (direct.returncode, direct.stdout), plan.stdout
    return direct.returncode, plan.stdout.decode()


TEXTS = st.one_of(
    st.sampled_from([*AWKWARD, "loom", "md", "nobody", "", "--x"]),
    st.text(st.sampled_from(list("ab'\"$`\\\n \t*?[]{}()<>|&;#~!%=-é日\U0001f600")), max_size=8),
)
TIMES = st.sampled_from(["2024-01-01", "2024-01-01T00:00Z", "2023-06-01", "never"])
COUNTS = st.sampled_from(["0", "1", "2", "007", "100", "101", "x"])
OPTIONS: dict[str, dict[str, st.SearchStrategy[str]]] = {
    "status": {},
    "search": {
        "--type": TEXTS, "--source": TEXTS, "--session": TEXTS, "--from": TIMES, "--to": TIMES, "--page": COUNTS,
        "--page-size": COUNTS, "--recency": st.sampled_from([".5", "1e3", "-1"]), "--expand": TEXTS,
        "--max-nodes": COUNTS, "--max-tokens": COUNTS,
    },
    "timeline": {
        "--before": COUNTS, "--after": COUNTS, "--type": TEXTS, "--source": TEXTS, "--from": TIMES, "--to": TIMES,
        "--page": COUNTS, "--page-size": COUNTS,
    },
    "get": {},
    "export": {},
}  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(["search", "search", "search", "timeline", "timeline", "get", "export", "status"]))
    argv = []
    if command == "search":
        argv.append(draw(st.sampled_from(["loom", "loom vat", "vat\n'$HOME'", "`loom`", "?"])))
    elif command == "timeline":
        argv += ["--anchor", draw(st.one_of(TEXTS.filter(bool), TIMES))]
    elif command != "status":
        argv += draw(st.lists(TEXTS, min_size=1, max_size=4))
    possible = OPTIONS[command]
    for option in draw(st.lists(st.sampled_from(sorted(possible)), max_size=4, unique=True)) if possible else []:
        argv += [option, draw(possible[option])]
    return [command, *argv]


@given(argv=command_lines())
@settings(max_examples=16, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_random_command_lines(root: Path, argv: list[str]) -> None:
    same_three_ways(*argv, "--memory-root", str(root))


def test_every_awkward_id_at_once(root: Path) -> None:
    status, plan = same_three_ways("get", *IDS, "--memory-root", str(root))
    assert status == 0
    words = shlex.split(plan)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--id"] == IDS


@pytest.mark.parametrize("identifier", ["it's", "two\nlines", "-n", "$(id)"])
def test_awkward_values_of_options(identifier: str, root: Path) -> None:
    at = ["--memory-root", str(root)]
    assert same_three_ways("search", "loom", "--expand", identifier, "--source", identifier, *at)[0] == 0
    assert same_three_ways("timeline", "--anchor", identifier, "--before", "2", *at)[0] == 0


def test_get_with_repeats_and_the_empty_id(root: Path) -> None:
    at = ["--memory-root", str(root)]
    status, plan = same_three_ways("get", "md", "é", "md", *at)
    assert status == 0 and shlex.split(plan).count("--id") == 2  # a repeat is not looked for twice
    assert same_three_ways("get", "", *at)[0] == 3
    assert same_three_ways("export", "md", "", "md", *at)[0] == 3
    assert same_three_ways("get", *["md"] * 100, *at)[0] == 0


def test_bytes_that_are_not_utf8(root: Path) -> None:
    at = [b"--memory-root", str(root).encode()]
    assert same_three_ways("get", b"\xff", *at)[0] == 4
    assert same_three_ways("search", b"loom \xff", "--type", b"\xc3(", *at)[0] == 4
    assert same_three_ways(b"\xff", *at)[0] == 4


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["search", "?"], 4),
        (["search", "loom", "--page", "0"], 4),
        (["search", "loom", "--page", "it's"], 4),
        (["search", "loom", "--from", "never"], 4),
        (["search", "loom", "--expand", "nobody", "--max-nodes", "0"], 4),
        (["search", "loom", "--recency", "-1"], 4),
        (["timeline"], 4),
        (["timeline", "--anchor", "md", "--before", "101"], 4),
        (["timeline", "--anchor", "md", "--page", "0"], 4),
        (["timeline", "--anchor", "nobody", "--page", "0"], 3),
        (["timeline", "--anchor", "nobody", "--to", "x", "--page", "0"], 4),
    ],
)
def test_plans_that_refuse(argv: list[str], status: int, root: Path, unsound: Path) -> None:
    """They refuse with the contract's error where the corpus is sound, and with the corpus's where it is not."""
    found, plan = same_three_ways(*argv, "--memory-root", str(root))
    assert found == status and "--refuse" in shlex.split(plan)
    found, plan = same_three_ways(*argv, "--memory-root", str(unsound))
    assert found == 4 and "--refuse" in shlex.split(plan)
    failure(shell(plan), 4, "integrity_error", "it's.md")


@pytest.mark.parametrize(
    "argv",
    [
        ["search", "loom", "--recency", "1e300"],  # found only while ranking
        ["search", "loom", "--expand", "nobody"],
        ["get", "nobody"],
        ["timeline", "--anchor", "nobody"],
        ["rebuild", "--from-canonical"],
        ["status"],
    ],
)
def test_what_stages_find_themselves(argv: list[str], root: Path, unsound: Path, tmp_path: Path) -> None:
    for folder in (root, unsound, tmp_path / "missing"):
        assert "--refuse" not in same_three_ways(*argv, "--memory-root", str(folder))[1]


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["bogus"],
        ["status", "extra"],
        ["status", "--bogus"],
        ["search", "loom", "--page", "1", "--page", "1"],
        ["search"],
        ["get"],
        ["get", *["a"] * 101],
        ["rebuild"],
        ["status", "--adapter", "nobody"],
        ["search", "loom", "--type"],
    ],
)
def test_a_bad_command_line_has_no_plan(argv: list[str]) -> None:
    assert same_three_ways(*argv) == (4, "")


def test_the_environment_gives_the_root(root: Path) -> None:
    """A plan without --memory-root finds the root as cortex does, when it is run."""
    env = environment(CORTEX_MEMORY_ROOT=str(root))
    plan = run("cortex-plan", "status")
    assert plan.stdout.startswith(b"cortex-scan |\n")
    assert shell(plan.stdout.decode(), env=env).stdout == run("cortex", "status", env=env).stdout


def test_how_a_plan_looks(root: Path) -> None:
    plan = run(
        "cortex-plan", "search", "loom vat", "--expand", "md", "--type", "it's", "--page", "2", "--adapter", "claude"
    )
    assert plan.stdout.decode() == (
        "cortex-scan |\n"
        "  cortex-strip |\n"
        "  cortex-select --valid |\n"
        "  cortex-expand md |\n"
        "  cortex-select --type 'it'\"'\"'s' |\n"
        "  cortex-rank 'loom vat' |\n"
        "  cortex-card |\n"
        "  cortex-envelope search --page 2\n"
    )
    plan = run("cortex-plan", "rebuild", "--from-canonical")
    assert shlex.split(plan.stdout.decode().replace(";", " ;")) == [
        "{", "cortex-scan", "|", "cortex-strip", "|", "cortex-digest", ";",
        "cortex-scan", "|", "cortex-strip", "|", "cortex-digest", ";", "}", "|", "cortex-envelope", "rebuild",
    ]  # fmt: skip


def test_a_plan_can_be_edited(root: Path) -> None:
    """A foreign stage put in between: the pipeline is the operator's own."""
    plan = run("cortex-plan", "search", "loom", "--memory-root", str(root)).stdout.decode()
    edited = plan.replace("cortex-select --valid", "cortex-select --valid | cortex-select --id md")
    assert edited != plan
    done = shell(edited)
    assert done.returncode == 0 and b'"total":1,' in done.stdout
