"""Help and examples of every executable, command and subcommand: complete, and pasted as they stand they work."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from cortex_tools.contract.options import COMMANDS
from cortex_tools.manual import help as manual
from cortex_tools.manual.statuses import statuses
from tests.examples import TOPICS, VERDICTS, make_place
from tests.support import environment, failure, run, shell


def shown(topic: str, capfd: pytest.CaptureFixture[str]) -> str:
    executable, _, word = topic.partition(" ")
    assert manual.show(executable, ["--help", *([word] if word else [])]) == 0
    text, errors = capfd.readouterr()
    assert errors == "" and "\x1b" not in text, "no colour where standard output is no terminal"
    return text


@pytest.mark.parametrize("topic", TOPICS)
def test_help_says_all_that_is_declared(
    topic: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    text, declared = shown(topic, capfd), TOPICS[topic]
    assert re.search(rf"^\W*Usage:\s+{topic}\b", text, re.MULTILINE)
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())
    for part in (declared.summary, declared.reads, declared.writes):
        assert part and part[1:] in words
    everywhere = [] if topic.startswith("cortex ") else ["--help", "--version"]
    for option in [*declared.options, *everywhere]:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{option} is not in the help"
    lines = [line.strip() for line in text.splitlines()]
    examples = lines[lines.index("Examples:") + 1 : lines.index("Exit status:")]
    assert len(declared.examples) >= 2 and [line for line in examples if line] == list(declared.examples)
    told = lines[lines.index("Exit status:") + 1 :]
    for status, meaning in statuses(declared).items():
        assert f"{status}  {meaning}" in told


# One for each way in which executables start.
@pytest.mark.parametrize(
    "name", ["cortex", "cortex-plan", "cortex-rank", "cortex-envelope", "cortex-write", "cortex-health"]
)
def test_help_at_the_door(name: str) -> None:
    done = run(name, "--help", env=environment(COLUMNS="80"))
    assert (done.returncode, done.stderr) == (0, b"") and f"Usage: {name} ".encode() in done.stdout


# What an example is about, where that is not in the sample corpus or one of a row of steps.
_LABELS = 'cortex-benchmark label "loom" --expect idea-open-dobby > labels.jsonl'
_REPORT = (
    "mkdir BENCHMARKS; cortex-benchmark --labels labels.jsonl | tee report.json > BENCHMARKS/cortex-benchmark-v1-1.json"
)
BEFORE = {"cortex-benchmark": _LABELS, "cortex-benchmark plot": f"{_LABELS}; {_REPORT}"}


@pytest.mark.parametrize("topic", TOPICS)
def test_examples_can_be_pasted(topic: str, tmp_path: Path) -> None:
    place, declared = make_place(tmp_path), TOPICS[topic]
    before = shell(BEFORE.get(topic, ":"), env=place.env(), cwd=place.folder)
    assert (before.returncode, before.stderr) == (0, b"")
    for example in declared.examples:
        for tool in ("jq", "dot"):
            if tool in shlex.split(example) and shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")
        if "cortex-benchmark plot" in example:
            pytest.importorskip("matplotlib")
        done = shell(f"set -e; {example}", env=place.env(), cwd=place.folder)
        assert done.returncode in VERDICTS.get(topic, (0,)), (example, done)
        assert done.stderr == b"" or "--labels" in example, (example, done)  # which says what it appended
        said = done.stdout.decode()
        if written := re.search(r"(?:>>?|--labels) *(\S+)$", example):
            said += (place.folder / written[1]).read_text()
        assert said and '"kind":"error"' not in said and '"ok":false' not in said, (example, said)
        # A filter that also takes lines that it is not about shows null for them.
        assert "null" not in said.splitlines(), (example, said)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_after_a_command_tells_where_it_stands(name: str) -> None:
    """The contract has no such option; who asks so is told how to ask."""
    failure(run("cortex", name, "--help"), 4, "invalid_input", f"cortex --help {name}")
