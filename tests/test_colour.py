"""Colour: on a terminal that wants it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import Place, make_place
from tests.support import run
from tests.terminals import on_terminal

SHOW = (
    ["cortex", "--help"],
    ["cortex-rank", "--help"],
    ["cortex-health"],
    ["cortex-proposals", "list"],
    ["cortex-check"],
)
COLOURED = ("--help", "cortex-health")
PLAIN = {
    "NO_COLOR": {"TERM": "xterm-256color", "NO_COLOR": "1"},
    "NO_COLOR, whatever else": {"TERM": "xterm-256color", "NO_COLOR": "1", "FORCE_COLOR": "1"},
    "a dumb terminal": {"TERM": "dumb"},
    "no kind of terminal": {"TERM": None},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("colour"))


@pytest.mark.parametrize("argv", SHOW, ids=" ".join)
def test_colour_on_a_terminal_that_wants_it(argv: list[str], place: Place) -> None:
    _, sent = on_terminal(argv, place.env(TERM="xterm-256color", NO_COLOR=None), output_too=True)
    assert (b"\x1b[" in sent) == (argv[-1] in COLOURED)


@pytest.mark.parametrize("case", PLAIN)
@pytest.mark.parametrize("argv", SHOW, ids=" ".join)
def test_no_colour_where_it_is_not_wanted(argv: list[str], case: str, place: Place) -> None:
    _, sent = on_terminal(argv, place.env(**{"NO_COLOR": None, **PLAIN[case]}), output_too=True)
    assert sent and b"\x1b" not in sent


@pytest.mark.parametrize("argv", SHOW, ids=" ".join)
def test_no_colour_in_a_pipe(argv: list[str], place: Place, tmp_path: Path) -> None:
    done = run(*argv, env=place.env(TERM="xterm-256color", FORCE_COLOR="1", NO_COLOR=None))
    assert done.stdout and b"\x1b" not in done.stdout + done.stderr
