"""Every executable as its own first example calls it: arguments and standard input, in a place where examples work.

Nothing here names an executable that the declaration does not: a new one is called by its example, too.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS
from tests.governed import IDEA, PROPOSAL, write
from tests.support import SAMPLE, environment, shell

PROPOSAL_ID = "prop_0123456789ab"
SNAPSHOT = "PRINCIPAL_MEMORY__2026-01-31T08-00-00-000Z.md"
# Exit statuses that are a verdict about the notes, where there are more than 0.
VERDICTS = {"cortex-health": (0, 1, 2)}
TOPICS = {**EXECUTABLES, **{f"cortex {name}": one for name, one in COMMANDS.items()}, **SUBCOMMANDS}


class Place(NamedTuple):
    """A folder with what the examples speak of: `item.json`, a memory root with a queued proposal, a snapshot."""

    folder: Path
    memory: Path

    def env(self, **changes: str | None) -> dict[str, str]:
        return environment(**{"CORTEX_MEMORY_ROOT": str(self.memory), "HOME": str(self.folder), **changes})


class Call(NamedTuple):
    """One executable at work: its arguments, and what it reads from standard input where it reads that."""

    name: str
    arguments: list[str]
    input: bytes | None


def make_place(folder: Path) -> Place:
    place = Place(folder, folder / "memory")
    shutil.copytree(SAMPLE, place.memory)
    (folder / "item.json").write_text(json.dumps(IDEA))
    (folder / "proposal.json").write_text(json.dumps(PROPOSAL))
    style = place.memory / "USER/PRINCIPAL/WRITINGSTYLE.md"
    style.parent.mkdir(parents=True)
    style.write_text("Style.\n")
    write(place.memory, PROPOSAL)
    queue = place.memory / "OBSERVABILITY/pending-proposals.jsonl"
    row = json.loads(queue.read_text())
    queue.write_text(json.dumps({**row, "id": PROPOSAL_ID}) + "\n")
    snapshot = place.memory / "OBSERVABILITY/memory-snapshots" / SNAPSHOT
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(place.memory / "PRINCIPAL_MEMORY.md", snapshot)
    return place


def call(name: str, place: Place) -> Call:
    """The executable as the first example that has it calls it; what stands before it in the pipeline is run."""
    for example in EXECUTABLES[name].examples:
        before: list[list[str]] = []
        for words in _stages(example):
            if words[0] == name:
                return _call(before, words, place)
            before.append(words)
    raise AssertionError(f"no example of {name} calls it")


def upstream(name: str) -> str:
    """The pipeline that feeds the executable in its first example, empty where it starts one."""
    before = []
    for words in _stages(EXECUTABLES[name].examples[0]):
        if words[0] == name:
            break
        before.append(" ".join(words))
    return " | ".join(before)


def _stages(example: str) -> list[list[str]]:
    """The words of each stage of a pipeline, quoted as they are."""
    lexer = shlex.shlex(example, posix=False, punctuation_chars="|<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    stages: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def _call(before: list[list[str]], words: list[str], place: Place) -> Call:
    given = None
    if before:
        done = shell(" | ".join(" ".join(stage) for stage in before), env=place.env(), cwd=place.folder)
        assert (done.returncode, done.stderr) == (0, b""), done
        given = done.stdout
    arguments: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "<":
            given = (place.folder / next(rest)).read_bytes()
        elif word in (">", ">>"):
            next(rest)
        else:
            arguments += shlex.split(word)
    return Call(words[0], arguments, given)
