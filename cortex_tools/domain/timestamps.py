"""Timestamps: the contract's grammar, and milliseconds since 1970 (section 6)."""

from __future__ import annotations

_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_EPOCH_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
DAY_MS = 86_400_000


def parse_ms(text: str) -> int | None:
    """Milliseconds since 1970 of a timestamp, digits beyond the millisecond cut off; None if it is none.

    A bare date is midnight UTC.
    """
    midnight = _MIDNIGHT.get(text[:10], _UNSEEN)
    if midnight is _UNSEEN:
        midnight = _remembered(text[:10])
    if midnight is None or len(text) == 10:
        return midnight
    try:
        return midnight + _MINUTE_MS[text[10:16]] + _SECOND_MS[text[16:19]] + _REST_MS[text[19:]]
    except KeyError:
        time = _time_ms(text[10:])
        return None if time is None else midnight + time


def _time_ms(text: str) -> int | None:
    """Milliseconds that `Thh:mm[:ss[.fraction]]` with its `Z` or `+hh:mm` adds to midnight UTC.

    Remembers the parts of a time with seconds, so that `parse_ms` puts the next together at a quarter of the cost.
    """
    if not text.isascii():
        return None
    whole = text
    if text[-1] == "Z":
        text, offset = text[:-1], 0
    else:
        minutes = _hours_minutes(text[-5:])
        if minutes is None or text[-6:-5] not in ("+", "-"):
            return None
        offset = minutes if text[-6] == "-" else -minutes
        text = text[:-6]
    minutes = _hours_minutes(text[1:6])
    if minutes is None or text[0] != "T":
        return None
    minute_ms, rest_ms = minutes * 60_000, offset * 60_000
    if len(text) == 6:
        return minute_ms + rest_ms
    seconds, point, fraction = text[7:].partition(".")
    if text[6] != ":" or len(seconds) != 2 or not seconds.isdigit() or seconds > "59":
        return None
    if point:
        if not 1 <= len(fraction) <= 9 or not fraction.isdigit():
            return None
        rest_ms += int((fraction + "00")[:3])
    if len(_REST_MS) >= 4096:
        _REST_MS.clear()
    _MINUTE_MS[whole[:6]], _SECOND_MS[whole[6:9]], _REST_MS[whole[9:]] = minute_ms, int(seconds) * 1_000, rest_ms
    return minute_ms + int(seconds) * 1_000 + rest_ms


def _hours_minutes(text: str) -> int | None:
    """The minutes of an `hh:mm`; None where it is none."""
    hours, minutes = text[:2], text[3:]
    if len(text) != 5 or text[2] != ":" or not hours.isdigit() or not minutes.isdigit():
        return None
    if hours > "23" or minutes > "59":
        return None
    return int(hours) * 60 + int(minutes)


# Parts of times that have been seen in timestamps, in ms: `Thh:mm` (at most the 1,440 that there are),
# `:ss` (60), and what comes behind, a fraction and `Z` or the offset.
_MINUTE_MS: dict[str, int] = {}
_SECOND_MS: dict[str, int] = {}
_REST_MS: dict[str, int] = {}


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


_UNSEEN = -1  # no midnight lies a millisecond before 1970
_MIDNIGHT: dict[str, int | None] = {}  # the notes of a corpus share their days


def _remembered(date: str) -> int | None:
    if not date.isascii():
        return None
    if len(_MIDNIGHT) >= 4096:
        _MIDNIGHT.clear()
    midnight = _MIDNIGHT[date] = _midnight_ms(date)
    return midnight


def _midnight_ms(date: str) -> int | None:
    """Milliseconds since 1970 of the first moment of `YYYY-MM-DD`, UTC; None where there is no such day."""
    digits = date[:4] + date[5:7] + date[8:]
    if len(date) != 10 or date[4] != "-" or date[7] != "-" or not digits.isdigit():
        return None
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
