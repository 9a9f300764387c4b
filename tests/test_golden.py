"""Every golden case three ways: the installed `cortex`, the library, and the shell pipeline of cortex-plan."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.domain.jsontext import json_text
from cortex_tools.library import run_cortex
from tests.golden import cases
from tests.support import SCHEMAS, environment, run, shell

SCHEMA = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "lifeos-cortex-v1.schema.json").read_text()))
COMMANDS = ("status", "search", "timeline", "get", "export", "rebuild")


class Corpus:
    """One golden corpus on disk, and its cases with $ROOT filled in."""

    def __init__(self, name: str, folder: Path) -> None:
        golden = cases.load(name)
        self.root = os.path.realpath(folder / "root")
        self.home = folder / "home"
        self.home.mkdir()
        self.cases: list[dict[str, Any]] = golden["cases"]
        cases.materialise(golden["corpus"], Path(self.root))

    def argv(self, case: dict[str, Any]) -> list[str]:
        return [argument.replace("$ROOT", self.root) for argument in case["args"]]

    def env(self, case: dict[str, Any]) -> dict[str, str]:
        given = {name: value.replace("$ROOT", self.root) for name, value in case.get("env", {}).items()}
        return environment(HOME=str(self.home), **given)

    def differences(self, answer: Any) -> list[str]:
        """What differs when `answer(case)` gives (status, line), with the case it differs in."""
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(answer, self.cases))
        found = []
        for case, (status, line) in zip(self.cases, answers, strict=True):
            SCHEMA.validate(json.loads(line))
            wrong = cases.difference(case, status, line, self.root)
            if wrong:
                found.append(f"{[argument[:60] for argument in case['args']]}: {wrong}")
        return found


@pytest.fixture(params=cases.NAMES)
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Corpus:
    return Corpus(request.param, tmp_path)


def test_there_are_all_of_them() -> None:
    assert len(cases.NAMES) == 71
    assert sum(len(cases.load(name)["cases"]) for name in cases.NAMES) == 556


def test_installed_command(corpus: Corpus) -> None:
    def answer(case: dict[str, Any]) -> tuple[int, str]:
        done = run("cortex", *corpus.argv(case), env=corpus.env(case))
        assert done.stderr == b""
        return done.returncode, done.stdout.decode()

    assert corpus.differences(answer) == []


def test_library(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CORTEX_"):
            monkeypatch.delenv(name)

    def answer(case: dict[str, Any]) -> tuple[int, str]:
        status, envelope = run_cortex(corpus.argv(case))
        return status, _line(envelope)

    for case in corpus.cases:  # one by one: the environment is the process's
        with monkeypatch.context() as patch:
            for name, value in case.get("env", {}).items():
                patch.setenv(name, value.replace("$ROOT", corpus.root))
            wrong = cases.difference(case, *answer(case), corpus.root)
            assert wrong == "", case["args"]


def test_shell_pipeline(corpus: Corpus) -> None:
    """What cortex-plan prints gives the same bytes and statuses; a bad command line has no plan, the same failure."""

    def answer(case: dict[str, Any]) -> tuple[int, str]:
        argv, env = corpus.argv(case), corpus.env(case)
        plan = run("cortex-plan", *argv, env=env)
        if plan.returncode:
            assert not plan.stdout.startswith(b"cortex-scan")
            return plan.returncode, plan.stdout.decode()
        done: subprocess.CompletedProcess[bytes] = shell(plan.stdout.decode(), env=env)
        # Failures are to be the same to the byte, too: the library's answer is the one to compare with.
        if done.returncode and "env" not in case:
            assert done.stdout.decode() == _line(run_cortex(argv)[1])
        return done.returncode, done.stdout.decode()

    reading = [case for case in corpus.cases if case["args"] and case["args"][0] in COMMANDS]
    corpus.cases = reading
    assert corpus.differences(answer) == []


def _line(envelope: dict[str, Any]) -> str:
    """The envelope as the command line prints it: scores read back as floats are the only numbers to care for."""
    return _dump(envelope) + "\n"


def _dump(value: Any) -> str:
    from cortex_tools.domain.numbers import js_number

    if isinstance(value, float):
        return js_number(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{_dump(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dump, value)) + "]"
    return json_text(value)
