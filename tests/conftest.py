"""Fixtures for all tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import BIN, SAMPLE


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """The tests run what is installed; a checkout that is not would test something else."""
    assert (BIN / "cortex").exists(), f"cortex is not installed in {BIN}: run make test"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy of the sample corpus that a test may change."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
