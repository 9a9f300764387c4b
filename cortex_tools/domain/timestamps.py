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
        minute_ms = _HOUR_MS[text[10:13]] + _MINUTE_MS[text[13:16]]
        return midnight + minute_ms + _SECOND_MS[text[16:19]] + _REST_MS[text[19:]]
    except KeyError:
        time = _time_ms(text[10:])
        return None if time is None else midnight + time


# The parts of a time of day, as they are written, in ms: looking them up costs a quarter of taking them apart.
_HOUR_MS = {f"T{hour:02d}": hour * 3_600_000 for hour in range(24)}
_MINUTE_MS = {f":{minute:02d}": minute * 60_000 for minute in range(60)}
_SECOND_MS = {f":{second:02d}": second * 1_000 for second in range(60)}
_REST_MS = {"Z": 0}  # what stands behind the seconds, as far as it has been seen: a fraction, `Z` or an offset
_MOST_RESTS = 4096


def _time_ms(text: str) -> int | None:
    """Milliseconds that `Thh:mm[:ss[.fraction]]` with its `Z` or `+hh:mm` adds to midnight UTC."""
    hour_ms, minute_ms = _HOUR_MS.get(text[:3]), _MINUTE_MS.get(text[3:6])
    if hour_ms is None or minute_ms is None:
        return None
    if text[6:7] != ":":
        zone_ms = _zone_ms(text[6:])
        return None if zone_ms is None else hour_ms + minute_ms + zone_ms
    second_ms, rest_ms = _SECOND_MS.get(text[6:9]), _rest_ms(text[9:])
    if second_ms is None or rest_ms is None:
        return None
    return hour_ms + minute_ms + second_ms + rest_ms


def _rest_ms(text: str) -> int | None:
    """Milliseconds of `[.fraction]` and `Z` or `+hh:mm`, remembered; None where it is none."""
    point, fraction_ms = 0, 0
    if text[:1] == ".":
        point = len(text) - (1 if text[-1] == "Z" else 6)
        fraction = text[1:point]
        if not 1 <= len(fraction) <= 9 or not fraction.isdigit() or not fraction.isascii():
            return None
        fraction_ms = int((fraction + "00")[:3])
    zone_ms = _zone_ms(text[point:])
    if zone_ms is None:
        return None
    if len(_REST_MS) >= _MOST_RESTS:
        _REST_MS.clear()
    _REST_MS[text] = fraction_ms + zone_ms
    return fraction_ms + zone_ms


def _zone_ms(text: str) -> int | None:
    """Milliseconds from local time to UTC: 0 for `Z`, less than 0 east of Greenwich; None where it is no offset."""
    if text == "Z":
        return 0
    hour_ms, minute_ms = _HOUR_MS.get("T" + text[1:3]), _MINUTE_MS.get(text[3:])
    if hour_ms is None or minute_ms is None or text[0] not in "+-":
        return None
    return hour_ms + minute_ms if text[0] == "-" else -hour_ms - minute_ms


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


_UNSEEN = -1  # no midnight lies a millisecond before 1970
_MIDNIGHT: dict[str, int | None] = {}  # the notes of a corpus share their days


def _remembered(date: str) -> int | None:
    if len(_MIDNIGHT) >= 4096:
        _MIDNIGHT.clear()
    midnight = _MIDNIGHT[date] = _midnight_ms(date)
    return midnight


def _midnight_ms(date: str) -> int | None:
    """Milliseconds since 1970 of the first moment of `YYYY-MM-DD`, UTC; None where there is no such day."""
    if date[:8] not in _MONTHS:
        if len(_MONTHS) >= 4096:
            _MONTHS.clear()
        _MONTHS[date[:8]] = _month(date[:8])
    month, day = _MONTHS[date[:8]], date[8:]
    if month is None or len(day) != 2 or not day.isdigit() or not day.isascii():
        return None
    first, days = month
    return (first + int(day) - 1) * DAY_MS if 1 <= int(day) <= days else None


# Of each `YYYY-MM-` that has been seen: the days from 1970 to its first, and how many it has; None where it is none.
_MONTHS: dict[str, tuple[int, int] | None] = {}


def _month(text: str) -> tuple[int, int] | None:
    digits = text[:4] + text[5:7]
    if len(text) != 8 or text[4] != "-" or text[7] != "-" or not digits.isdigit() or not digits.isascii():
        return None
    year, month = int(text[:4]), int(text[5:7])
    if year < 100 or not 1 <= month <= 12:
        return None
    leap = _is_leap(year)
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    days += _DAYS_BEFORE_MONTH[month - 1] + (leap and month > 2)
    return days - _EPOCH_DAY, _MONTH_DAYS[month - 1] + (leap and month == 2)


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
