"""Reading and running the fenced blocks of README.md and docs/*.md."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import SOURCE, environment, shell

DOCS = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "\x01"


class Fence:
    """A fenced block: its tag, its text and where it stands."""

    def __init__(self, document: Path, tag: str, text: str, line: int) -> None:
        self.tag = tag
        self.text = text
        self.name = f"{document.name}:{line}"


def fences(documents: list[Path], *tags: str) -> list[Fence]:
    found = []
    for document in documents:
        text = document.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match[1] in tags:
                found.append(Fence(document, match[1], match[2], text.count("\n", 0, match.start()) + 1))
    return found


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it shows.

    `> ` directly below a command goes on with it; below a line of output it is output.
    """
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
            continue
        assert found, f"a console block begins with a command, not with {line!r}"
        command, shown = found[-1]
        if line.startswith("> ") and not shown:
            found[-1] = (f"{command}\n{line[2:]}", shown)
        else:
            shown.append(line)
    return found


def matches(shown: str, line: str) -> bool:
    """Whether `line` is what `shown` says, where `…` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), line) is not None


def names_program(program: str, text: str) -> bool:
    """Whether `program` stands in `text` as a word of its own."""
    return re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w./-])", text) is not None


def session(typed: list[str], folder: Path) -> list[str]:
    """What each of the commands writes, typed one after the other into one shell; all must exit with 0."""
    script = "".join(f"{command}\nprintf '\\n{_MARK}%d\\n' $?\n" for command in typed)
    done = shell(script, env=environment(CORTEX_MEMORY_ROOT="cortex_tools/sample", LC_ALL="C"), cwd=folder)
    results = re.findall(rf"(.*?)\n{_MARK}(\d+)\n", done.stdout.decode(), re.DOTALL)
    assert len(results) == len(typed), done
    for command, (output, status) in zip(typed, results, strict=True):
        assert status == "0", f"{command}: {output}{done.stderr.decode()}"
    return [output for output, _ in results]
