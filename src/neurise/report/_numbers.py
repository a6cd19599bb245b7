"""Numbers as a reader wants them."""

from __future__ import annotations

import math

MOST_DIGITS = 4
"""Of a mean, however small its spread is: that of two or three trials says no more."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(value: float | None, digits: int = 3) -> str:
    """Write a number with so many digits: 0.0123, 1.5×10⁻⁶, 12,000; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if -4 <= power < digits:
        text = f"{value:.{digits}g}" if "e" not in f"{value:.{digits}g}" else f"{value:.{digits - 1 - power}f}"
        return text.replace("-", "−")
    if 0 <= power < 7:
        return f"{round(value, digits - 1 - power):,.0f}".replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}×{power_of_ten(int(exponent))}".replace("-", "−")


def as_printed(value: float | None) -> str:
    """Write a number with the digits that it was printed with, and no more."""
    if value is None:
        return "–"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{float(mantissa):g}×{power_of_ten(int(exponent))}".replace("-", "−")


def with_spread(mean: float | None, spread: float | None) -> str:
    """Write a mean and its standard deviation to the same decimal place, if that is not too far."""
    if mean is None:
        return "–"
    if spread is None or not spread > 0:
        return readable(mean)
    power = math.floor(math.log10(abs(mean))) if mean else math.floor(math.log10(spread))
    if -4 <= power < 4:
        decimals = max(0, min(1 - math.floor(math.log10(spread)), MOST_DIGITS - 1 - power))
        seen = f"{spread:.{decimals}f}" if round(spread, decimals) else readable(spread, 2)
        return f"{mean:.{decimals}f} ± {seen}".replace("-", "−")
    scale = 10.0 ** max(power, -300)  # a power that is no float's would be zero
    return f"({mean / scale:.2f} ± {spread / scale:.2f})×{power_of_ten(power)}".replace("-", "−")


def power_of_ten(exponent: int) -> str:
    """Write 10 to a power."""
    return f"10{str(exponent).translate(SUPERSCRIPTS)}"


def counted(number: int, thing: str) -> str:
    """Count things: 1 cell, 2 cells, 12,000 cells."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
