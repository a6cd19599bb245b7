"""Axes: from values to places, and where the ticks stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neurise.report._numbers import power_of_ten

PLAIN = range(-3, 4)
"""Powers of ten that are written out."""
FEW = 3
"""So many ticks of an axis have a name at least."""
NAMED = ((1,), (1, 2, 5), tuple(range(1, 10)))
"""Digits whose ticks are named, from axes of many powers of ten to those of few."""


@dataclass(frozen=True)
class Axis:
    """Where a value lies between 0 and 1; None where it cannot be shown."""

    low: float
    high: float
    log: bool
    categories: tuple[Any, ...] = ()

    def place(self, value: Any) -> float | None:
        """Return the place of a value, 0 at the beginning of the axis and 1 at its end."""
        if self.categories:
            return (self.categories.index(value) + 0.5) / len(self.categories)
        if self.log:
            return None if value <= 0 else (math.log10(value) - math.log10(self.low)) / self._length
        return float((value - self.low) / self._length)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places and what is written there; an empty text is a small tick."""
        if self.categories:
            return [((number + 0.5) / len(self.categories), str(name)) for number, name in enumerate(self.categories)]
        found = _log_ticks(self.low, self.high) if self.log else _even_ticks(self.low, self.high)
        placed = [(self.place(value), text) for value, text in found]
        return [(place, text) for place, text in placed if place is not None and -1e-9 <= place <= 1 + 1e-9]

    @property
    def _length(self) -> float:
        return math.log10(self.high) - math.log10(self.low) if self.log else self.high - self.low


def axis(values: Sequence[Any], *, log: bool, from_zero: bool = False) -> Axis:
    """Make an axis that holds all values; a logarithmic one is even where nothing is positive."""
    if any(not isinstance(value, int | float) for value in values):
        return Axis(0, 1, False, tuple(dict.fromkeys(values)))
    shown = [float(value) for value in values if value > 0] if log else [float(value) for value in values]
    if log and not shown:
        return axis(values, log=False)
    low, high = min(shown), max(shown)
    if log:
        margin = max(0.04 * (math.log10(high) - math.log10(low)), 0.05) if high > low else 0.5
        return Axis(low / 10**margin, high * 10**margin, True)
    margin = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
    return Axis(0.0 if from_zero and low >= 0 else low - margin, high + margin, False)


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Name powers of ten; where these are few, name digits between them too, and on a very short axis even steps."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = 1 + len(powers) // 8
    values = [(digit, power) for power in powers for digit in range(1, 10)]
    for digits in NAMED:
        named = [digit in digits and power % every == 0 for digit, power in values]
        if (
            sum(name and low <= digit * 10.0**power <= high for name, (digit, power) in zip(named, values, strict=True))
            >= FEW
        ):
            return [
                (digit * 10.0**power, _power(digit, power) if name else "")
                for name, (digit, power) in zip(named, values, strict=True)
            ]
    return _even_ticks(low, high)


def _power(digit: int, power: int) -> str:
    if power in PLAIN:
        return f"{digit * 10**power:,}" if power >= 0 else f"{digit * 10.0**power:.{-power}f}"
    return power_of_ten(power) if digit == 1 else f"{digit}×{power_of_ten(power)}"


def _even_ticks(low: float, high: float) -> list[tuple[float, str]]:
    rough = (high - low) / 6
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [(number * step, f"{number * step:.6g}") for number in range(first, math.floor(high / step + 1e-9) + 1)]
