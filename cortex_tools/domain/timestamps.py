"""Timestamps: the contract's grammar, and milliseconds since 1970 (section 6)."""

from __future__ import annotations

import re
from functools import lru_cache

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:Z|([+-])([0-9]{2}):([0-9]{2})))?"
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_EPOCH_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
DAY_MS = 86_400_000


def parse_ms(text: str) -> int | None:
    """Milliseconds since 1970 of a timestamp, digits beyond the millisecond cut off; None if it is none.

    A bare date is midnight UTC.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    date, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    midnight = _midnight_ms(date)
    if hour is None or midnight is None:
        return midnight
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    ms = midnight + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000
    if fraction:
        ms += int((fraction + "00")[:3])
    if sign:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            return None
        offset = int(offset_hour) * 3_600_000 + int(offset_minute) * 60_000
        ms += offset if sign == "-" else -offset
    return ms


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@lru_cache(maxsize=4096)  # the notes of a corpus share their days
def _midnight_ms(date: str) -> int | None:
    year, month, day = int(date[:4]), int(date[5:7]), int(date[8:])
    if year < 100 or not 1 <= month <= 12:
        return None
    leap = _is_leap(year)
    if not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    days += _DAYS_BEFORE_MONTH[month - 1] + (leap and month > 2) + day - 1
    return (days - _EPOCH_DAY) * DAY_MS


def format_ms(ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; a year beyond 9999 as `+010000`."""
    days, rest = divmod(ms, DAY_MS)
    year, month, day = _civil(days + _EPOCH_DAY)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, millis = divmod(rest, 1_000)
    shown = f"{year:04d}" if year <= 9999 else f"+{year:06d}"
    return f"{shown}-{month:02d}-{day:02d}T{hours:02d}:{minutes:02d}:{seconds:02d}.{millis:03d}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the day that lies `days` after 0001-01-01 (proleptic Gregorian)."""
    cycles, days = divmod(days, 146_097)
    centuries = min(days // 36_524, 3)
    days -= centuries * 36_524
    fours, days = divmod(days, 1_461)
    years = min(days // 365, 3)
    days -= years * 365
    year = cycles * 400 + centuries * 100 + fours * 4 + years + 1
    leap = _is_leap(year)
    month = 12
    while days < _DAYS_BEFORE_MONTH[month - 1] + (leap and month > 2):
        month -= 1
    return year, month, days - _DAYS_BEFORE_MONTH[month - 1] - (leap and month > 2) + 1
