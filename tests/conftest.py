"""Fixtures for all tests."""

from __future__ import annotations

import shutil
import signal
import sysconfig
from pathlib import Path

import pytest

from tests.support import BIN, PACKAGE, SAMPLE

# Whoever runs the tests in the background has these ignored, and a child would inherit that; the tests send them.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)


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
