"""Fixtures for all tests."""

from __future__ import annotations

import errno
import shutil
import signal
import sys
import sysconfig
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support import BIN, PACKAGE, SAMPLE

# Whoever runs the tests in the background has these ignored, and a child would inherit that; the tests send them.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """On macOS names are UTF-8, or there is no such file: what such names do cannot be tested there."""
    try:
        return (yield)
    except OSError as error:
        if sys.platform != "darwin" or error.errno != errno.EILSEQ:
            raise
        pytest.skip("a name that is not UTF-8 cannot be had here")


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """The tests run what is installed; a checkout that is not would test something else."""
    assert (BIN / "cortex").exists(), f"cortex is not installed in {BIN}: run make test"
    homes = {BIN.resolve().parent, Path(sysconfig.get_path("purelib")).resolve()}
    assert PACKAGE.parent.resolve() in homes, f"the tests import {PACKAGE}, not what {BIN}/cortex runs: run make test"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy of the sample corpus that a test may change."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "sample"))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run the documents' examples in: the sample corpus lies where a checkout has it."""
    (tmp_path / "cortex_tools").mkdir()
    shutil.copytree(SAMPLE, tmp_path / "cortex_tools" / "sample")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CORTEX_MEMORY_ROOT", "cortex_tools/sample")
    return tmp_path
