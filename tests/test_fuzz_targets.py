"""The fuzz targets on some inputs each, and on every input that was once a finding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz_targets import TARGETS, inputs

# What a long search found, by target.
FINDINGS: list[tuple[str, bytes]] = []


@pytest.mark.parametrize(("name", "data"), FINDINGS)
def test_what_was_a_finding_once(name: str, data: bytes) -> None:
    TARGETS[name].run(data)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_hold_and_all_but_a_few_are_taken(name: str) -> None:
    taken = [TARGETS[name].run(seed) for seed in TARGETS[name].seeds]
    assert sum(taken) >= len(taken) - 1


@pytest.mark.parametrize("name", TARGETS)
def test_some_inputs_hold(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=150, deadline=None)
    @given(st.one_of(inputs(target), inputs(target), st.binary(max_size=60)))
    def holds(data: bytes) -> None:
        target.run(data)

    holds()
