"""Timestamps: the grammar of section 6, milliseconds against datetime, and how an anchor's date is written."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex_tools.domain.timestamps import format_ms, parse_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)

GOOD = {
    "1970-01-01": 0,
    "1970-01-02": 86_400_000,
    "1969-12-31": -86_400_000,
    "0100-01-01": -59_011_459_200_000,
    "9999-12-31": 253_402_214_400_000,
    "2024-02-29": 1_709_164_800_000,
    "2000-02-29": 951_782_400_000,
    "2024-01-01T10:20Z": 1_704_104_400_000,
    "2024-01-01T10:20:30Z": 1_704_104_430_000,
    "2024-01-01T10:20:30.5Z": 1_704_104_430_500,
    "2024-01-01T10:20:30.05Z": 1_704_104_430_050,
    "2024-01-01T10:20:30.005Z": 1_704_104_430_005,
    "2024-01-01T10:20:30.123456789Z": 1_704_104_430_123,
    "2024-01-01T10:20:30.000999999Z": 1_704_104_430_000,
    "2024-01-01T10:20:30.999999999Z": 1_704_104_430_999,
    "2024-01-01T23:59:59.999Z": 1_704_153_599_999,
    "2024-01-01T00:00+00:00": 1_704_067_200_000,
    "2024-01-01T00:00-00:00": 1_704_067_200_000,
    "2024-01-01T10:20+05:30": 1_704_084_600_000,
    "2024-01-01T10:20:30.5-08:00": 1_704_133_230_500,
    "2024-01-01T00:00+23:59": 1_703_980_860_000,
    "2024-01-01T00:00-23:59": 1_704_153_540_000,
    # Before 1970 the millisecond is cut off the digits, not rounded towards zero on the scale.
    "1969-12-31T23:59:59.0009Z": -1_000,
    "1969-12-31T23:59:59.9999Z": -1,
}

BAD = [
    "",
    " ",
    "2024",
    "2024-01",
    "2024-1-1",
    "20240101",
    "2024/01/01",
    "24-01-01",
    "02024-01-01",
    "12024-01-01",
    "+2024-01-01",
    "-2024-01-01",
    "2024-01-01 ",
    " 2024-01-01",
    "2024-01-01\n",
    "2024-01-01T10:20Z\n",
    "\ufeff2024-01-01",
    # No such day.
    "0099-12-31",
    "0000-01-01",
    "2024-00-01",
    "2024-13-01",
    "2024-01-00",
    "2024-01-32",
    "2024-04-31",
    "2023-02-29",
    "1900-02-29",
    "2100-02-29",
    "2024-02-30",
    # No zone, or a zone without a time.
    "2024-01-01T10:20",
    "2024-01-01T10:20:30",
    "2024-01-01T10:20:30.5",
    "2024-01-01Z",
    "2024-01-01+01:00",
    "2024-01-01T",
    "2024-01-01TZ",
    "2024-01-01T10Z",
    "2024-01-01T1020Z",
    "2024-01-01T1:20Z",
    "2024-01-01T10:2Z",
    "2024-01-01T10:20:3Z",
    "2024-01-01T10:20:Z",
    # Out of range.
    "2024-01-01T24:00Z",
    "2024-01-01T24:00:00Z",
    "2024-01-01T10:60Z",
    "2024-01-01T10:20:60Z",
    "2024-01-01T10:20+24:00",
    "2024-01-01T10:20+00:60",
    # Fractions.
    "2024-01-01T10:20:30.Z",
    "2024-01-01T10:20:30.1234567890Z",
    "2024-01-01T10:20:30,5Z",
    "2024-01-01T10:20.5Z",
    # Zones.
    "2024-01-01T10:20+0100",
    "2024-01-01T10:20+01",
    "2024-01-01T10:20+1:00",
    "2024-01-01T10:20+01:0",
    "2024-01-01T10:20 Z",
    "2024-01-01T10:20ZZ",
    "2024-01-01T10:20Z+01:00",
    "2024-01-01T10:20+01:00Z",
    "2024-01-01T10:20UTC",
    "2024-01-01T10:20\u221201:00",
    # Letters in the wrong case, another separator, digits that are not ASCII.
    "2024-01-01t10:20Z",
    "2024-01-01T10:20z",
    "2024-01-01 10:20Z",
    "\u0662\u0660\u0662\u0664-01-01",
    "2024-01-0\uff11",
    "2024-01-01T10:20:30.\u0665Z",
    "2024-01-01T1\u0660:20Z",
    "yesterday",
    "2024-01-01T10:20Z 2024-01-02",
]


@pytest.mark.parametrize(("text", "ms"), GOOD.items())
def test_good(text: str, ms: int) -> None:
    assert parse_ms(text) == ms


@pytest.mark.parametrize("text", BAD)
def test_bad(text: str) -> None:
    assert parse_ms(text) is None


TIMES = st.datetimes(datetime(100, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999))
OFFSETS = st.integers(-(23 * 60 + 59), 23 * 60 + 59)


@given(TIMES, OFFSETS, st.integers(0, 10))
@settings(max_examples=250, deadline=None, database=None)
def test_against_datetime(moment: datetime, offset: int, precision: int) -> None:
    """Every precision: 0 to 9 digits of fraction, 10 stands for no seconds at all."""
    digits = f"{moment.microsecond:06d}789"[: min(precision, 9)]
    text = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment.hour:02d}:{moment.minute:02d}"
    shown = moment.replace(second=0, microsecond=0)
    if precision < 10:
        text += f":{moment.second:02d}" + (f".{digits}" if digits else "")
        shown = moment.replace(microsecond=int(digits[:3].ljust(3, "0")) * 1000)
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
    wanted = (shown.replace(tzinfo=UTC) - EPOCH) // MS
    assert parse_ms(text + "Z") == wanted
    assert parse_ms(text + zone) == wanted - offset * 60_000


@given(st.dates(date(100, 1, 1), date(9999, 12, 31)))
@settings(max_examples=200, deadline=None, database=None)
def test_a_bare_date_is_midnight(day: date) -> None:
    assert parse_ms(day.isoformat()) == (day - EPOCH.date()).days * 86_400_000


def by_datetime(text: str) -> int | None:
    """The contract's words once more, with datetime to judge the calendar."""
    shape = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?", text, re.ASCII)
    if shape is None:
        return None
    day, clock, rest, zone = shape.groups()
    seconds, _, fraction = (rest or ":00").partition(".")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{seconds}.{fraction.ljust(3, '0')[:3]}")
        # An offset of its own: datetime itself would refuse 00:60 only as a fault of the whole.
        sign = -1 if zone and zone[0] == "-" else 1
        hours, minutes = (0, 0) if zone in (None, "Z") else (int(zone[1:3]), int(zone[4:6]))
        if minutes > 59:
            return None
        timezone(timedelta(hours=hours, minutes=minutes))
    except ValueError:
        return None
    if moment.year < 100:
        return None
    return (moment.replace(tzinfo=UTC) - EPOCH) // MS - sign * (hours * 60 + minutes) * 60_000


@given(
    st.sampled_from([text for text in GOOD if len(text) > 10] + ["2024-02-28", "2024-12-31", "0100-01-01"]),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("0123456789-:TZ+. \nz\u0661")), min_size=1, max_size=3),
)
@example("2024-02-29", [(3, "3")])
@settings(max_examples=600, deadline=None, database=None)
def test_near_misses(text: str, changes: list[tuple[int, str]]) -> None:
    for at, char in changes:
        at %= len(text)
        text = text[:at] + char + text[at + 1 :]
    assert parse_ms(text) == by_datetime(text)


FORMATTED = {
    0: "1970-01-01T00:00:00.000Z",
    -1: "1969-12-31T23:59:59.999Z",
    1_704_104_430_005: "2024-01-01T10:20:30.005Z",
    253_402_300_799_999: "9999-12-31T23:59:59.999Z",
    253_402_300_800_000: "+010000-01-01T00:00:00.000Z",
    -59_011_459_200_001: "0099-12-31T23:59:59.999Z",
}


@pytest.mark.parametrize(("ms", "text"), FORMATTED.items())
def test_format(ms: int, text: str) -> None:
    assert format_ms(ms) == text


def test_offsets_reach_beyond_both_ends() -> None:
    """The earliest and the latest moment that a timestamp can name."""
    first, last = parse_ms("0100-01-01T00:00+23:59"), parse_ms("9999-12-31T23:59:59.999-23:59")
    assert first is not None and format_ms(first) == "0099-12-31T00:01:00.000Z"
    assert last is not None and format_ms(last) == "+010000-01-01T23:58:59.999Z"


@given(TIMES)
@settings(max_examples=250, deadline=None, database=None)
def test_format_against_datetime(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    ms = (moment.replace(tzinfo=UTC) - EPOCH) // MS
    assert format_ms(ms) == moment.isoformat(timespec="milliseconds") + "Z"
    assert parse_ms(format_ms(ms)) == ms


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_format_against_javascript() -> None:
    """Every day of some years, leap years of each kind among them, and both ends."""
    days = [(date(year, 1, 1) - EPOCH.date()).days for year in (100, 400, 1600, 1900, 1999, 2000, 2023, 2024, 9999)]
    moments = [(day + n) * 86_400_000 + n * 86_399 for day in days for n in range(-2, 368)]
    script = "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(ms => new Date(ms).toISOString())))"
    done = subprocess.run(["node", "-e", script, json.dumps(moments)], capture_output=True, check=True, timeout=60)
    assert [format_ms(ms) for ms in moments] == json.loads(done.stdout)
