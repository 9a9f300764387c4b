"""docs/cookbook.md is run, and every byte of what it shows is compared."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.documents import Fence, commands, fences, names_program, session
from tests.support import SOURCE

COOKBOOK = SOURCE / "docs" / "cookbook.md"
BLOCKS = fences([COOKBOOK], "console")
TEXT = COOKBOOK.read_text(encoding="utf-8")


def optional() -> list[str]:
    """The programs of which the document says that a block that names one is left out where it is missing."""
    listed = re.search(r"that is not everywhere: ((?:`[\w-]+` ?)+)", TEXT)
    assert listed is not None
    return re.findall(r"`([\w-]+)`", listed[1])


def check(block: Fence, folder: Path) -> None:
    """Run a block and compare: what stands below a command is all that it writes, where nothing stands, nothing."""
    listed = commands(block.text)
    for (command, shown), output in zip(listed, session([one[0] for one in listed], folder), strict=True):
        assert output == "".join(f"{line}\n" for line in shown), command


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_recipe_writes_exactly_what_it_shows(block: Fence, workplace: Path) -> None:
    missing = [name for name in optional() if names_program(name, block.text) and not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    check(block, workplace)


@pytest.mark.parametrize("altered", ["alteres\n", "altered \n", "", "altered\nmore\n", "…\n"])
def test_an_altered_output_is_noticed(altered: str, workplace: Path) -> None:
    check(Fence(COOKBOOK, "console", "$ echo altered\naltered\n", 1), workplace)
    with pytest.raises(AssertionError):
        check(Fence(COOKBOOK, "console", f"$ echo altered\n{altered}", 1), workplace)


def test_every_question_has_an_answer_that_is_run() -> None:
    questions = re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]
    assert len(questions) >= 15
    for question in questions:
        title = question.splitlines()[0]
        assert title.endswith("?"), title
        blocks = re.findall(r"```console\n(.*?)```", question, re.DOTALL)
        assert any(shown for block in blocks for _, shown in commands(block)), f"{title}: no output is shown"


def test_every_program_named_as_optional_is_used() -> None:
    assert [name for name in optional() if not any(names_program(name, block.text) for block in BLOCKS)] == []
