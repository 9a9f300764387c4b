"""What is imported: nothing slow on the path of a successful read, and between packages only one way."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support import BIN, PACKAGE, SAMPLE, environment, shell

# Each costs more than a small search, or is imported by one that does.
SLOW = {
    "typer", "click", "rich", "pydantic", "ijson", "jsonschema", "dataclasses", "typing", "inspect", "pathlib",
    "subprocess", "argparse", "asyncio", "importlib.resources", "concurrent", "multiprocessing", "logging", "tempfile",
}  # fmt: skip


def imported(*argv: str | Path, input: bytes = b"") -> set[str]:
    """The modules that Python imports for a command, and their packages."""
    name, *rest = argv
    command = [sys.executable, "-X", "importtime", BIN / name if name != "-c" else "-c", *rest]
    done = subprocess.run(command, input=input, capture_output=True, env=environment(), timeout=60)
    assert done.returncode == 0, done
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr.decode(), re.MULTILINE)
    assert len(names) > 10
    return set(names) | {name.partition(".")[0] for name in names}


@pytest.fixture(scope="module")
def at_start() -> set[str]:
    """What the interpreter itself imports here before the first line of ours, by .pth files and the like."""
    return imported("-c", "pass")


@pytest.fixture(scope="module")
def stream() -> bytes:
    return shell(f"cortex-scan --memory-root '{SAMPLE}' | cortex-strip").stdout


READS = {
    "search": ["loom", "--type", "idea", "--from", "2020-01-01", "--recency", "1", "--expand", "idea-tension-logger"],
    "get": ["idea-tension-logger"],
    "export": ["idea-tension-logger"],
    "status": [],
    "timeline": ["--anchor", "2024-06-01", "--before", "3"],
    "rebuild": ["--from-canonical"],
}


@pytest.mark.parametrize("command", READS)
def test_a_successful_read_imports_nothing_slow(command: str, at_start: set[str]) -> None:
    modules = imported("cortex", command, *READS[command], "--memory-root", SAMPLE, "--adapter", "claude")
    assert "cortex_tools.driver.run" in modules
    assert modules & SLOW - at_start == set()
    assert "cortex_tools.driver.writes" not in modules and "cortex_tools.contract.executables" not in modules
    assert "cortex_tools.stages.executable" not in modules
    assert "xxhash" not in modules  # nothing crosses a pipe that would have to be sealed


@pytest.mark.parametrize("command", READS)
def test_a_plan_imports_nothing_slow(command: str, at_start: set[str]) -> None:
    modules = imported("cortex-plan", command, *READS[command])
    assert "cortex_tools.driver.shell" in modules and modules & SLOW - at_start == set()


STAGES = {
    "cortex-select": ["--valid", "--type", "idea"],
    "cortex-rank": ["loom"],
    "cortex-window": ["--anchor", "2024-06-01"],
    "cortex-expand": ["idea-tension-logger"],
    "cortex-digest": [],
    "cortex-card": [],
    "cortex-through": ["cat"],
    "cortex-envelope": ["status"],
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_nothing_slow(stage: str, stream: bytes, at_start: set[str]) -> None:
    modules = imported(stage, *STAGES[stage], input=stream)
    assert "cortex_tools.stages.executable" in modules and modules & SLOW - at_start == set()


def test_the_first_two_stages_import_nothing_slow(at_start: set[str]) -> None:
    assert imported("cortex-scan", "--memory-root", SAMPLE) & SLOW - at_start == set()
    listing = shell(f"cortex-scan --memory-root '{SAMPLE}'").stdout
    assert imported("cortex-strip", input=listing) & SLOW - at_start == set()


def test_the_library_imports_nothing_slow(at_start: set[str]) -> None:
    program = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import cortex_tools.library"
    modules = imported("-c", program)
    assert "cortex_tools.library" in modules and modules & SLOW - at_start == set()


def test_this_file_would_notice(at_start: set[str]) -> None:
    assert {"typing", "dataclasses"} & imported("-c", "import dataclasses, typing") - at_start
    assert "typer" in imported("cortex", "--help")


# Between packages.

LAYERS = ["contract", "domain", "files", "streams", "stages", "driver"]
# Found by path, not by importing: a module that nothing imports yet counts, too.
MODULES = sorted(path for layer in LAYERS for path in (PACKAGE / layer).rglob("*.py"))


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """The modules of ours that a file names in imports, each with whether it is imported along with the file.

    What stands in a function is not, nor what stands under `if TYPE_CHECKING`; both are given all the
    same, since they show which way knowledge flows.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    later = {id(inner) for outer in ast.walk(tree) if _runs_later(outer) for inner in ast.walk(outer)}
    found = []
    for statement in ast.walk(tree):
        names: list[str] = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: imports are absolute"
            # `from cortex_tools.domain import values` imports a module, or only a name out of one.
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        found += [(name, id(statement) not in later) for name in names if name.split(".")[0] == "cortex_tools"]
    return found


def _runs_later(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    """contract <- domain <- files <- streams <- stages <- driver."""
    own = LAYERS.index(path.relative_to(PACKAGE).parts[0])
    for name, at_once in imports(path):
        layer = name.split(".")[1]
        if layer in LAYERS:
            assert LAYERS.index(layer) <= own, f"{name} lies above {LAYERS[own]}"
        elif layer == "manual":
            assert not at_once, "the manual is imported only once help is asked for"
            assert own >= LAYERS.index("stages")
        elif layer != "__version__":
            # Packages beside the chain may know all of it; of the chain only the upper end knows them.
            assert layer != "library" and own >= LAYERS.index("stages"), (
                f"{name} is nothing that {LAYERS[own]} may know"
            )


def test_the_contract_imports_nothing_but_itself() -> None:
    for path in (PACKAGE / "contract").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in ast.walk(tree):
            if isinstance(statement, ast.ImportFrom):
                assert statement.module == "__future__" or str(statement.module).startswith("cortex_tools.contract")
            assert not isinstance(statement, ast.Import)


def test_the_domain_touches_no_file_and_no_process() -> None:
    """Pure functions: nothing that opens, runs, waits or asks the environment."""
    for path in (PACKAGE / "domain").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in ast.walk(tree):
            if isinstance(statement, ast.Import):
                outside = {alias.name for alias in statement.names}
                assert not outside & {"os", "sys", "io", "subprocess", "time", "socket", "signal"}, path
            if isinstance(statement, ast.Call) and isinstance(statement.func, ast.Name):
                assert statement.func.id not in ("open", "print", "input", "exec", "eval"), path


def test_no_import_goes_in_a_circle() -> None:
    modules = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in MODULES}
    edges = {
        module: {name if name in modules else name.rpartition(".")[0] for name, at_once in imports(path) if at_once}
        for module, path in modules.items()
    }
    assert sum(map(len, edges.values())) > len(edges)
    while leaves := [module for module, targets in edges.items() if not targets & set(edges)]:
        for module in leaves:
            del edges[module]
    assert edges == {}
