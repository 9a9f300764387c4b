"""Manual pages: sound roff, all that is declared, and examples that come out as they must be typed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS, Command
from cortex_tools.manual import overview, pages, roff
from cortex_tools.manual.statuses import statuses
from tests.support import SAMPLE, environment, shell

PAGES = pages.files()
FORMATTERS = {
    "mandoc": ["mandoc", "-Tutf8", "-Owidth=300"],
    "groff": ["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=300n", "-rHY=0", "-Kutf8"],
}


def declared(path: str) -> Command | None:
    """What a page is about; None for the overview."""
    name = Path(path).stem
    if name in EXECUTABLES:
        return EXECUTABLES[name]
    return COMMANDS.get(name.removeprefix("cortex-"))


def rendered(formatter: str, source: str) -> str:
    if shutil.which(formatter) is None:
        pytest.skip(f"{formatter} is not installed")
    done = subprocess.run(FORMATTERS[formatter], input=source.encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    return re.sub(".\b", "", done.stdout.decode())


def test_everything_has_a_page() -> None:
    names = {Path(path).name for path in PAGES}
    assert names == {
        *(f"{name}.1" for name in EXECUTABLES),
        *(f"cortex-{name}.1" for name in COMMANDS),
        "cortex-tools.7",
    }
    for path, source in PAGES.items():
        assert f".TH {Path(path).stem.upper()} {path[-1]} ".replace("-", r"\-") in source


@pytest.mark.parametrize("path", PAGES)
def test_no_formatter_complains(path: str, tmp_path: Path) -> None:
    commands = [["mandoc", "-Tlint", "-Wall"], ["groff", "-man", "-ww", "-Tutf8", "-z"]]
    present = [command for command in commands if shutil.which(command[0])]
    if not present:
        pytest.skip("neither mandoc nor groff is installed")
    page = tmp_path / Path(path).name
    page.write_text(PAGES[path])
    for command in present:
        done = subprocess.run([*command, page], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_all_that_is_declared(path: str, formatter: str) -> None:
    text = rendered(formatter, PAGES[path])
    headings = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
        assert heading in headings or (path.endswith("7") and heading in ("SYNOPSIS", "OPTIONS"))
    lines = [line.strip() for line in text.splitlines()]
    command = declared(path)
    if command is None:
        for _, typed in overview.STEPS:
            assert "\n".join(typed.split("\n    ")) in "\n".join(lines)
        for name, one in EXECUTABLES.items():
            assert f"{name}(1)" in lines and roff.sentence(one.summary) in lines
        return
    assert f"{Path(path).stem} - {command.summary}" in lines
    assert all(example in lines for example in command.examples), "an example that cannot be pasted"
    own = [table for key, table in SUBCOMMANDS.items() if key.split()[0] == command.name]
    for option in [option for table in (command, *own) for option in table.options.values()]:
        assert any(line.split()[:1] == [option.name] for line in lines), option.name
    for status, meaning in statuses(command).items():
        assert re.search(rf"^ +{status} +{re.escape(meaning)}", text, re.MULTILINE)


@pytest.mark.parametrize("path", PAGES)
def test_see_also_leads_to_pages(path: str) -> None:
    names = re.findall(r"\\fB([\w\\-]+)\\fR\(([17])\)", PAGES[path])
    known = {Path(page).name for page in PAGES} | {"jq.1"}
    assert names and {f"{name}.{number}".replace(r"\-", "-") for name, number in names} <= known


AWKWARD = """.TH begins like a request
'quoted' and "double" and `grave`
a\\back \\fBslash\\fR \\n \\e \\" no comment
--option -x - -- a-b 10^3 ~/x $HOME %d #1 \\&
é 好 — … U+FEFF
.
'"""


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_awkward_text_comes_out_as_it_is(formatter: str) -> None:
    page = pages.head("awkward", 1) + roff.section("NAME") + "awkward \\- text\n" + roff.section("EXAMPLES")
    text = rendered(formatter, page + roff.example(AWKWARD))
    body = text[text.index("EXAMPLES") :].splitlines()[1:]
    assert [line.strip() for line in body if line.strip()][:-1] == [line for line in AWKWARD.split("\n") if line]


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_prose_may_begin_with_anything(formatter: str) -> None:
    words = "'".join([""] * 3) + " .dot \\x " + "word .x 'y " * 40
    page = pages.head("awkward", 1) + roff.section("NAME") + "awkward \\- text\n" + roff.section("DESCRIPTION")
    text = " ".join(rendered(formatter, page + roff.paragraph(words)).split())
    assert " ".join(words.split()) in text


def test_the_overview_grows_pipelines_that_run(tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    said = {}
    for question, typed in overview.STEPS:
        done = shell(f"set -e; {typed}", env=environment(CORTEX_MEMORY_ROOT=str(SAMPLE)), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b""), typed
        said[question] = done.stdout.decode()
        assert said[question] and '"kind":"error"' not in said[question] and "null" not in said[question].split()
    assert "idea-tension-logger" in said["That was for a program. For the eye, the best three:"]
    assert said["Which notes are linked to most?"].split()[1] == "company-lancadeira-coop"
