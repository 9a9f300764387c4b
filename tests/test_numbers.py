"""Numbers as section 10 prints them and section 9 rounds them: tables, exact fractions, and JavaScript itself."""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex_tools.domain.numbers import js_number, round6

PRINTED = {
    0.0: "0",
    1.0: "1",
    -1.0: "-1",
    10.0: "10",
    0.1: "0.1",
    -0.25: "-0.25",
    1.5: "1.5",
    0.3: "0.3",
    0.1 + 0.2: "0.30000000000000004",
    123456.789012: "123456.789012",
    1e-6: "0.000001",
    1.5e-6: "0.0000015",
    0.00001234: "0.00001234",
    9.999999e-7: "9.999999e-7",
    1e-7: "1e-7",
    -1.25e-7: "-1.25e-7",
    1e16: "10000000000000000",
    123456789012345680.0: "123456789012345680",
    1e20: "100000000000000000000",
    999999999999999900000.0: "999999999999999900000",
    1e21: "1e+21",
    -1.5e21: "-1.5e+21",
    1.7976931348623157e308: "1.7976931348623157e+308",
    5e-324: "5e-324",
    2.2250738585072014e-308: "2.2250738585072014e-308",
    9007199254740992.0: "9007199254740992",
}


def node(script: str, data: Any) -> Any:
    """What JavaScript makes of `data`: `script` is the body of a function of it.  One process a batch."""
    program = f"const main = data => {{{script}}};" + (
        "console.log(JSON.stringify(main(JSON.parse(require('fs').readFileSync(0, 'utf8')))))"
    )
    done = subprocess.run(
        ["node", "-e", program], input=json.dumps(data).encode(), capture_output=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.mark.parametrize(("value", "text"), PRINTED.items())
def test_printed(value: float, text: str) -> None:
    assert js_number(value) == text


def test_minus_zero_is_zero() -> None:
    assert js_number(-0.0) == "0"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_hold(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        js_number(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=500, deadline=None, database=None)
def test_reads_back_the_same(value: float) -> None:
    text = js_number(value)
    assert float(text) == value
    assert float(json.loads(text)) == value
    assert ("e" in text) == (value != 0 and not 1e-6 <= abs(value) < 1e21)


def doubles() -> list[float]:
    """Doubles of every size: random bits, the neighbours of powers of ten and of two, and likely scores."""
    chance = random.Random(20240601)
    values = [struct.unpack(">d", chance.randbytes(8))[0] for _ in range(6000)]
    for power in range(-30, 30):
        for near in (10.0**power, 2.0**power, 5.0 * 10.0**power, 9.5 * 10.0**power):
            values += [near, math.nextafter(near, 0), math.nextafter(near, math.inf), -near]
    values += [chance.uniform(0, 40) for _ in range(6000)]
    values += [round(chance.uniform(0, 40), 6) for _ in range(2000)]
    values += [float(chance.randrange(2**60)) for _ in range(2000)]
    values += [(2 * chance.randrange(-(2**45), 2**45) + 1) / 128 for _ in range(2000)]
    return [value for value in values if math.isfinite(value)]


def as_bits(values: list[float]) -> list[str]:
    """Values on their way to JavaScript as bits, so that no reading or printing of decimals is trusted."""
    return [struct.pack(">d", value).hex() for value in values]


READ = "const read = hex => Buffer.from(hex, 'hex').readDoubleBE(0);"


@needs_node
def test_printed_as_javascript_prints() -> None:
    values = doubles()
    assert [js_number(value) for value in values] == node(
        READ + "return data.map(x => String(read(x)))", as_bits(values)
    )


def half_away(value: float) -> float:
    """Rounding to 6 decimals by the words of section 9, on the exact value."""
    nearest = math.floor(abs(Fraction(value)) * 10**6 + Fraction(1, 2))
    rounded = float(Fraction(nearest, 10**6))
    return 0.0 if nearest == 0 else math.copysign(rounded, value)


def same(one: float, other: float) -> bool:
    return struct.pack(">d", one) == struct.pack(">d", other)


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-50, 50),
        st.integers(-(10**12), 10**12).map(lambda n: (2 * n + 1) / 128),
        st.integers(-(10**9), 10**9).map(lambda n: (2 * n + 1) / 2e6),
    )
)
@example(-0.0078125)
@settings(max_examples=800, deadline=None, database=None)
def test_rounds_like_the_exact_fraction(value: float) -> None:
    for near in (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)):
        if math.isfinite(near):
            assert same(round6(near), half_away(near)), near


def test_rounding_of_many() -> None:
    wrong = [value for value in doubles() if not same(round6(value), half_away(value))]
    assert wrong == []


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1 / 128, 0.007813),  # 0.0078125
        (-1 / 128, -0.007813),
        (3 / 128, 0.023438),  # 0.0234375
        (5 / 128, 0.039063),  # Python's round() gives 0.039062
        (1 + 5 / 128, 1.039063),
        (2.0000005, 2.000001),  # the double lies above the decimal
        (1.0000015, 1.000001),  # the double lies below it
        (0.0000005, 0.0),  # 4.99…e-7
        (math.nextafter(0.0000005, 1), 0.000001),
        (-0.0, 0.0),
        (-1e-9, 0.0),
        (-0.0000004, 0.0),
        (1e22, 1e22),
        (4096 + 1 / 128, 4096.007813),
    ],
)
def test_ties_and_zero(value: float, rounded: float) -> None:
    assert same(round6(value), rounded)


def test_a_tie_shows_that_pythons_own_rounding_is_another() -> None:
    assert round(5 / 128, 6) != round6(5 / 128)


@needs_node
def test_rounds_like_javascript() -> None:
    """toFixed, too, takes the larger of two equally near decimals, of the exact value."""
    values = [value for value in doubles() if abs(value) < 1e21]
    expected = node(READ + "return data.map(x => Number(read(x).toFixed(6)) || 0)", as_bits(values))
    assert [round6(value) for value in values] == [float(number) for number in expected]
