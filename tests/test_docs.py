"""The documentation is run, not trusted: examples, links, options, tables.

Conventions of README.md and docs/*.md:

- A fence tagged `console` is run, as one POSIX shell session, in a folder that holds cortex_tools/sample and with
  CORTEX_MEMORY_ROOT set to it.  A line that starts with `$ ` is a command, the lines up to the next one are what
  it writes to standard output; `…` in a line stands for any text.  Every command must exit with 0 (one that is to
  fail shows its status with echo); where no output is shown, that is all.  Commands that need jq are left
  out where there is none.
  docs/cookbook.md is stricter: tests/test_cookbook.py.
- A fence tagged `python` is run, as a doctest where it holds `>>>`.
- The fence tagged `jsonl` in docs/streams.md holds one line of each kind.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
import shutil
import typing
from pathlib import Path

import pytest

from cortex_tools.contract import limits
from cortex_tools.contract.executables import EXECUTABLES, SUBCOMMANDS
from cortex_tools.contract.options import COMMANDS
from cortex_tools.manual import help as manual
from cortex_tools.streams import items, lines
from tests.documents import DOCS, FENCE, Fence, commands, fences, matches, names_program, session
from tests.support import PACKAGE, SOURCE, run

HERE = SOURCE
PLAIN = [document for document in DOCS if document.name != "cookbook.md"]

EVERYWHERE = {"--help", "--version"}
COMMON = {"--memory-root", "--adapter"}
# Options of programs that are not ours, where a document shows how to use them together.
FOREIGN: set[str] = {"--pipe", "--recstart", "--arg", "--ijsonl", "--otsv", "--nl", "--pk", "--silent"}

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def table(document: str, heading: str) -> list[list[str]]:
    """The cells of the first table below `heading`, without its head."""
    below = (HERE / "docs" / document).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    assert below, f"{document} has no {heading}"
    rows = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert rows is not None
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[0].splitlines()[2:]]


@pytest.mark.parametrize("block", fences(PLAIN, "console"), ids=lambda block: block.name)
def test_console_blocks_show_what_happens(block: Fence, workplace: Path) -> None:
    listed = [one for one in commands(block.text) if shutil.which("jq") or not names_program("jq", one[0])]
    if not listed:
        pytest.skip("jq is not installed")
    for (command, shown), output in zip(listed, session([one[0] for one in listed], workplace), strict=True):
        if shown:
            written = output.splitlines()
            assert len(written) == len(shown), f"{command}: {output}"
            for expected, line in zip(shown, written, strict=True):
                assert matches(expected, line), f"{command}\nshown:   {expected}\nwritten: {line}"


@pytest.mark.parametrize("block", fences(DOCS, "python"), ids=lambda block: block.name)
def test_python_blocks_run(block: Fence, workplace: Path) -> None:
    if ">>>" not in block.text:
        exec(compile(block.text, block.name, "exec"), {})
        return
    parsed = doctest.DocTestParser().get_doctest(block.text, {}, block.name, block.name, 0)
    assert parsed.examples
    said: list[str] = []
    outcome = doctest.DocTestRunner().run(parsed, out=said.append)
    assert outcome.failed == 0, "".join(said)


def test_the_stream_lines_shown_are_lines_of_every_kind() -> None:
    (block,) = (fence for fence in fences(DOCS, "jsonl") if fence.name.startswith("streams.md"))
    shown = [lines.decode(line.encode(), "the example") for line in block.text.splitlines()]
    assert {item.kind for item in shown} == {kind.kind for kind in typing.get_args(items.Item)}
    rows = table("streams.md", "## Lines")
    assert [row[0] for row in rows] == [f"`{item.kind}`" for item in shown]
    for row, line in zip(rows, block.text.splitlines(), strict=True):
        for field in json.loads(line):
            assert field == "kind" or re.search(rf"\b{field}\b", row[1]), f"{row[0]} does not tell of {field}"


def test_every_executable_and_command_is_documented() -> None:
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCS)
    missing = [name for name in EXECUTABLES if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
    missing += [name for name in COMMANDS if f"`cortex {name}" not in text and f"`{name}`" not in text]
    assert not missing


def test_relative_links_lead_somewhere() -> None:
    dead = []
    for document in DOCS:
        for target in _LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            file = document.parent / path if path else document
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                dead.append(f"{document.name}: {target}")
    assert not dead


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", [*EXECUTABLES, *(f"cortex {name}" for name in COMMANDS)])
def test_help_tells_of_every_option(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    executable, _, command = name.partition(" ")
    assert manual.show(executable, ["--help", command] if command else ["--help"]) == 0
    text = capfd.readouterr().out
    declared = COMMANDS[command] if command else EXECUTABLES[executable]
    for option in [*declared.options, *EVERYWHERE]:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{name} --help does not tell of {option}"


@pytest.mark.parametrize("name", EXECUTABLES)
def test_every_executable_answers_version(name: str) -> None:
    done = run(name, "--version")
    assert done.returncode == 0 and done.stdout.startswith(f"{name} ".encode()), done


@pytest.mark.parametrize("document", DOCS, ids=lambda document: document.name)
def test_no_document_invents_an_option(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    known = EVERYWHERE | FOREIGN
    for declared in [*COMMANDS.values(), *EXECUTABLES.values(), *SUBCOMMANDS.values()]:
        known |= set(declared.options)
    assert set(_OPTION.findall(text)) <= known
    for code in re.findall(r"^(?: {4}|\$ ).*$|`[^`\n]+`", text, re.MULTILINE):
        for part in re.split(r"\\?\||;|&|\$\(|`|#", code):
            names = re.findall(r"(?<![\w./-])cortex(?:-[a-z-]+)?(?![\w/.-])", part)
            if names and names[0] in EXECUTABLES:
                wrong = set(_OPTION.findall(part)) - _options_of(names[0], part)
                assert not wrong, f"{part.strip()}: no such option: {wrong}"


def _options_of(name: str, words: str) -> set[str]:
    """The options that a command line of the executable `name` may hold."""
    allowed = EVERYWHERE | FOREIGN | set(EXECUTABLES[name].options)
    for command in (*COMMANDS.values(), *SUBCOMMANDS.values()):
        last = command.name.split()[-1]
        takes_commands = name in ("cortex", "cortex-plan", "cortex-log-retrieval") or command.name.startswith(name)
        if takes_commands and re.search(rf"\b{last}\b", words):
            allowed |= set(command.options)
    return allowed


def test_the_tables_of_options_are_those_of_the_code() -> None:
    for names, _, shown in table("contract.md", "## Options and the order of checks"):
        for name in re.findall(r"`(\w+)`", names):
            assert set(_OPTION.findall(shown)) == set(COMMANDS[name].options) - COMMON, name
    stages = table("streams.md", "## Stages")
    for row in stages:
        name = row[0].strip("`").split()[0]
        assert set(_OPTION.findall(row[-1])) == set(EXECUTABLES[name].options), name


def test_the_table_of_bounds_is_that_of_the_code() -> None:
    shown = {row[0]: (row[1], row[2] if len(row) > 2 else "") for row in table("contract.md", "### Bounds")}
    for option in {name: option for command in COMMANDS.values() for name, option in command.options.items()}.values():
        if option.kind == "count":
            bounds, default = next(value for cell, value in shown.items() if f"`{option.name}`" in cell)
            assert (bounds, default) == (f"{option.low:,} to {option.high:,}", f"{option.default:,}"), option.name
    for cell, number in {
        "files of the corpus": limits.CORPUS_FILES,
        "one file": limits.FILE_BYTES,
        "the corpus": limits.CORPUS_BYTES,
        "records": limits.RECORDS,
        "payload of a write": limits.PAYLOAD_BYTES,
        "query": limits.QUERY_UNITS,
        "IDs of `get` and `export`": limits.IDS,
    }.items():
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", shown[cell][0]), cell


def test_packages_import_only_what_the_table_allows() -> None:
    for cell, _, shown in table("streams.md", "## Packages"):
        package = cell.strip("`")
        allowed = {package, ""} | set(re.findall(r"\w+", shown))
        modules = list((PACKAGE / package).rglob("*.py"))
        assert modules, f"there is no package {package}"
        for module in modules:
            for name in _imports(module):
                assert name in allowed, f"{module.relative_to(PACKAGE)} imports {name}"


def _imports(module: Path) -> set[str]:
    """The packages of ours that a module imports, anywhere in it; `` for the top package itself."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] if "." in name else "" for name in names if name.split(".")[0] == "cortex_tools"}
    return found
