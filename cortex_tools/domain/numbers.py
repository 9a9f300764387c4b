"""Numbers as JavaScript prints and rounds them (sections 9 and 10)."""

from __future__ import annotations


def js_number(value: float) -> str:
    """`value` in the shortest form that reads back the same; no exponent from 1e-6 up to 1e21.

    Raises ValueError for what JSON cannot hold (NaN, infinities).
    """
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("not a finite number")
    if value == 0:
        return "0"
    digits, point = _shortest(abs(value))
    if 0 < point <= 21:
        body = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        power = point - 1
        body = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{'+' if power > 0 else '-'}{abs(power)}"
    return "-" + body if value < 0 else body


def _shortest(value: float) -> tuple[str, int]:
    """The shortest decimal digits of `value`, and where its point stands: 0.DIGITS times 10 to that power."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + (fraction if fraction != "0" else "")
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    return stripped.rstrip("0"), point - (len(digits) - len(stripped))


def round6(value: float) -> float:
    """`value` to 6 decimals, half away from zero on the exact binary value; -0 as 0."""
    # Only an odd multiple of 1/128 lies exactly between two such decimals: 2 * 10**6 = 2**7 * 5**6.
    scaled_128 = abs(value) * 128.0  # without its sign: the remainder of a negative number is rounded
    if scaled_128 < 2.0**53 and scaled_128 % 2 == 1.0:
        twice = int(scaled_128) * 15_625  # value * 10**6 * 2, an odd number
        rounded = float(f"{(twice + 1) // 2}e-6")
        return -rounded if value < 0 else rounded
    return float(f"{value:.6f}") + 0.0
