"""cortex-plan for command lines that nobody would write: every word reaches its stage as it was given."""

from __future__ import annotations

import itertools
import json
import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.grammar import Arguments, parse
from cortex_tools.contract.options import COMMANDS
from cortex_tools.driver.plan import Plan, Step, plan_for
from cortex_tools.driver.request import parse_request
from cortex_tools.driver.shell import render
from tests.support import environment, failure, note, row, run, write_corpus

SHELLS = [name for name in ("sh", "dash", "bash") if shutil.which(name)]
AWKWARD = [
    "it's", "''", '"', "a\nb", "\n", "a\n", "$HOME", "${x}", "$(id)", "`id`", "\\", "a\\", "\\'", "!!", "-n",
    "-", "-e x", "*", "~", "~root", "a b", " ", "|", "cortex-rank", ";", "&&", "#", "{", "}", "é", "日本語",
    "\U0001f600", "\u202e", "%s", "%%", "\\n", "\t", "\x7f", "\x1b[0m", "=", "A=b", "<x", ">x", "(", "[a-z]",
    "?", "1", "if", "\r\n", "'\"'\"'", "\udcff",
]  # fmt: skip
CHARACTERS = st.sampled_from(list("ab01'\"$`\\\n\r\t *?[]{}()<>|&;#~!%=-_/.,é日\U0001f600\x01\x7f"))
VALUES = st.one_of(
    st.sampled_from(AWKWARD), st.text(CHARACTERS, min_size=1, max_size=10), st.text(min_size=1, max_size=6)
)
WORDS = VALUES.filter(lambda value: not value.startswith("--") and "\0" not in value)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Command lines of every command that the grammar takes, whatever their values are worth."""
    name = draw(st.sampled_from(sorted(COMMANDS)))
    command = COMMANDS[name]
    _, least, most = command.positionals
    words = [[word] for word in draw(st.lists(WORDS | st.just(""), min_size=least, max_size=min(most, 5)))]
    options = [option for option in command.options.values() if option.name not in ("--adapter", "--from-canonical")]
    for option in draw(st.lists(st.sampled_from(options), max_size=5, unique=True)):
        usual = {"count": st.sampled_from(["1", "007", "x"]), "time": st.sampled_from(["2024-01-01", "never"])}
        values = usual.get(option.kind, WORDS) if draw(st.booleans()) else WORDS
        words.append([option.name, draw(values)] if option.values else [option.name])
    if name == "rebuild":
        words.append(["--from-canonical"])
    if draw(st.booleans()):
        words.append(["--adapter", "codex"])
    return [name, *itertools.chain.from_iterable(draw(st.permutations(words)))]


def plan_of(argv: list[str]) -> Plan | None:
    try:
        return plan_for(parse_request(argv))
    except CortexError:
        return None


def steps_of(plan: Plan) -> list[Step]:
    """All that a plan's pipeline runs but printf."""
    if plan.passes == 0:
        return [*plan.steps, plan.envelope]
    scan = Step("cortex-scan", Arguments({} if plan.root is None else {"--memory-root": plan.root}, []))
    return [scan, Step("cortex-strip", Arguments({}, [])), *plan.steps] * plan.passes + [plan.envelope]


def given_to(step: Step) -> tuple[str, dict[str, object], list[str]]:
    """What a stage finds on its command line: one value of a repeatable option is a list of one."""
    declared = EXECUTABLES[step.name].options
    options: dict[str, object] = {}
    for name, value in step.arguments.options.items():
        options[name] = [value] if declared[name].repeatable and isinstance(value, str) else value
    return step.name, options, step.arguments.positionals


def commands_in(words: list[str]) -> list[list[str]]:
    """The simple commands of a pipeline, split at its operators; none of its words is one of them."""
    found: list[list[str]] = [[]]
    for word in words:
        if word in ("|", ";", "{", "}"):
            found.append([])
        else:
            found[-1].append(word)
    return [command for command in found if command]


@given(argv=command_lines())
@settings(max_examples=150, deadline=None)
def test_every_stage_is_given_what_the_plan_says(argv: list[str]) -> None:
    """Read back by Python's shell lexer and the grammar of each stage."""
    plan = plan_of(argv)
    if plan is None:
        return
    text = render(plan)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;{}")
    lexer.whitespace_split, lexer.commenters = True, ""
    quoted = _protected(text)
    assert quoted.count("|\n") == quoted.count("|")  # one stage a line
    if any(mark in "".join(argv) for mark in "|;{}"):
        return  # the lexer does not tell a quoted operator from a plain one; the shells below do
    commands = commands_in(list(lexer))
    if plan.payload is not None:
        assert commands.pop(0) == ["printf", "%s", plan.payload]
    read = [(name, parse(EXECUTABLES[name], rest)) for name, *rest in commands]
    assert [(name, parsed.options, parsed.positionals) for name, parsed in read] == list(map(given_to, steps_of(plan)))


def _protected(text: str) -> str:
    """`text` without what stands in single quotes, or is the one quote between two of them."""
    return "".join(text.replace("'\"'\"'", "").split("'")[::2])


# The shells themselves, with stages that only tell what they were given.

_STUB = '#!/bin/sh\ncat\nprintf \'%s\\0\' "$#" "${0##*/}" "$@"\n'


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which every stage is a stub; printf stays the shell's own."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in EXECUTABLES:
        (folder / name).write_text(_STUB)
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}", "x": "never"}


def told(data: bytes) -> list[list[bytes]]:
    """What the stubs told: each its name and arguments, in the order of the pipeline."""
    words = data.split(b"\0")[:-1]
    found = []
    while words:
        number = int(words[0])
        found.append(words[1 : number + 2])
        words = words[number + 2 :]
    return found


def words_of(step: Step) -> list[bytes]:
    words = [step.name, *step.arguments.positionals]
    for name, value in step.arguments.options.items():
        if value is True:
            words.append(name)
        elif name == "--refuse":
            words += [name, *step.arguments.texts(name)]
        else:
            words += itertools.chain.from_iterable(
                (name, one) for one in ([value] if isinstance(value, str) else value)
            )
    return [os.fsencode(word) for word in words]


def random_lines(number: int) -> list[list[str]]:
    """Command lines out of awkward words alone, the same in every run."""
    chance = random.Random(8)

    def word() -> str:
        return chance.choice(AWKWARD) if chance.random() < 0.6 else "".join(chance.choices("'\"$`\\\n -|;{}#é日", k=5))

    lines = [["get", *AWKWARD], ["rebuild", "--from-canonical", "--memory-root", "it's\n$HOME"]]
    while len(lines) < number:
        at = ["--memory-root", word()]
        lines += [
            ["search", f"loom {word()}", "--type", word(), "--session", word(), "--expand", word(), *at],
            ["timeline", "--anchor", word(), "--source", word(), *at],
            ["export", word(), "", word(), word()],
            ["remember", word() + word(), "--adapter", "claude", "--allow-write", *at],
            ["search", word()],
        ]
    return lines


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_hand_every_word_on(shell: str, stubs: dict[str, str]) -> None:
    seen = 0
    for argv in random_lines(30):
        plan = plan_of(argv)
        if plan is None:
            continue
        seen += 1
        text = render(plan)
        done = subprocess.run(
            [shell, "-c", os.fsencode(text)], env=stubs, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b""), text
        output = done.stdout
        if plan.payload is not None:
            payload = os.fsencode(plan.payload)
            assert output.startswith(payload), text
            output = output[len(payload) :]
        assert told(output) == list(map(words_of, steps_of(plan))), text
    assert seen > 20


# The whole of it: bytes and status of the command.


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ids = [identifier for identifier in AWKWARD if identifier.isprintable() and identifier.strip()]
    rows = [row(one, related=[other], type=other) for one, other in zip(ids, ids[1:] + ids[:1], strict=True)]
    return write_corpus(tmp_path_factory.mktemp("plan") / "a'b $HOME", {"a.jsonl": "".join(rows), "-n.md": note("md")})


@pytest.mark.parametrize("shell", [name for name in SHELLS if name != "sh"])
@pytest.mark.parametrize(
    "argv",
    [
        ["search", "loom `id`\n'$HOME'", "--type", "$(id)", "--expand", "it's"],
        ["get", "-n", "${x}", "日本語", "-n"],
        ["timeline", "--anchor", "\\'", "--source", "\n"],
        ["search", "'\n"],
    ],
)
def test_both_shells_answer_as_the_command(shell: str, argv: list[str], root: Path) -> None:
    argv = [*argv, "--memory-root", str(root)]
    direct, plan = run("cortex", *argv), run("cortex-plan", *argv)
    assert plan.returncode == 0
    done = subprocess.run([shell, "-c", plan.stdout], env=environment(), capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (direct.returncode, direct.stdout)


# Writes: the payload of the command line is in the plan.

GRANTED = ["--adapter", "claude", "--allow-write"]
IDEA = json.dumps({"type": "idea", "title": 'It\'s "so"', "content": "100 %s\\n $HOME `id` é\n"}, ensure_ascii=False)


def both(argv: list[str | bytes], shell: str, folder: Path, input: bytes = b"") -> tuple[int, bytes]:
    """Status and output, the same by the command and by its plan, each on a root of its own."""
    at = [[*argv, "--memory-root", folder / name] for name in ("one", "two")]
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
    direct, plan = run("cortex", *at[0], input=input), run("cortex-plan", *at[1])
    assert (plan.returncode, plan.stderr) == (0, b"")
    done = subprocess.run([shell, "-c", plan.stdout], input=input, env=environment(), capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (direct.returncode, direct.stdout)
    names = [sorted(path.relative_to(folder / name) for path in (folder / name).rglob("*")) for name in ("one", "two")]
    assert names[0] == names[1]
    return direct.returncode, plan.stdout


@pytest.mark.parametrize("shell", [name for name in SHELLS if name != "sh"])
def test_a_write_writes_its_payload(shell: str, tmp_path: Path) -> None:
    status, plan = both(["remember", IDEA, *GRANTED], shell, tmp_path)
    assert status == 0 and plan.startswith(b"printf %s '{") and plan.count(b" |\n") == 2
    (written,) = (tmp_path / "two").rglob("*.md")
    assert "100 %s\\n $HOME `id` é" in written.read_text()


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["remember", "-", *GRANTED], 0),
        (["remember", "{", *GRANTED], 4),
        (["remember", "", *GRANTED], 4),
        (["remember", "-x", *GRANTED], 4),
        (["propose", b'{"type":"\xff"}', *GRANTED], 4),
        (["propose", IDEA, *GRANTED], 5),
        (["remember", IDEA], 5),
        (["remember", IDEA, "--adapter", "claude"], 5),
        (["propose", "'\n", "--allow-write"], 5),
        (["remember", "-"], 5),
    ],
)
def test_writes_that_fail_and_standard_input(argv: list[str | bytes], status: int, tmp_path: Path) -> None:
    found, plan = both(argv, "sh", tmp_path, input=IDEA.encode() if "-" in argv else b"never read")
    assert found == status and plan.startswith(b"cortex-write" if "-" in argv else b"printf %s ")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["remember"], "write_refused"),
        (["remember", "{}", "{}"], "write_refused"),
        (["propose", *GRANTED], "invalid_input"),
        (["propose", "-", "-", *GRANTED], "invalid_input"),
    ],
)
def test_a_write_of_no_or_several_payloads_has_no_plan(argv: list[str], code: str) -> None:
    plan, direct = run("cortex-plan", *argv), run("cortex", *argv)
    assert (plan.returncode, plan.stdout) == (direct.returncode, direct.stdout)
    failure(plan, 5 if code == "write_refused" else 4, code)


def test_a_root_that_is_not_utf8(tmp_path: Path) -> None:
    for argv in (["status"], ["search", "loom"]):
        at = [*argv, "--memory-root", os.fsencode(tmp_path) + b"/\xff'"]
        direct, plan = run("cortex", *at), run("cortex-plan", *at)
        assert (plan.returncode, plan.stderr) == (0, b"") and b"\xff" in plan.stdout
        done = subprocess.run(["sh", "-c", plan.stdout], env=environment(), capture_output=True, timeout=120)
        assert (done.returncode, done.stdout) == (direct.returncode, direct.stdout) and direct.returncode == 4
