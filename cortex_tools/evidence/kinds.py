"""What a value of an evidence row may be: JSON's types, judged strictly."""

from __future__ import annotations

import math

from cortex_tools.domain.timestamps import parse_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_whole(value: Any) -> bool:
    """A whole number of at least 0; JSON's 3.0 is one, true is none."""
    if type(value) is float:
        return value >= 0 and value.is_integer()
    return type(value) is int and value >= 0


def is_finite(value: Any) -> bool:
    """A finite number; an integer too large for a double is none, and neither is true."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False


def is_duration(value: Any) -> bool:
    """A finite number of at least 0."""
    return is_finite(value) and bool(value >= 0)


def is_text(value: Any) -> bool:
    """A string with something in it."""
    return isinstance(value, str) and bool(value.strip())


def time_ms(value: Any) -> int | None:
    """Milliseconds since 1970 of a timestamp, None for anything else."""
    return parse_ms(value) if isinstance(value, str) else None
