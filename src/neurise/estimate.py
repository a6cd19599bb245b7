"""A number with what makes it mean something: its standard error, and the score of real data."""

from __future__ import annotations

from typing import Any, Self


class Estimate(float):
    """A float that also knows its standard error and its floor.

    ``floor`` is what real data of the same size scores under the same conditions: the best that a perfect model can be
    expected to do. Either is None where it does not exist.
    """

    error: float | None
    floor: float | None
    units: str

    def __new__(cls, value: float, *, error: float | None = None, floor: float | None = None, units: str = "") -> Self:
        """Make an estimate of a value."""
        estimate = super().__new__(cls, value)
        estimate.error = None if error is None else float(error)
        estimate.floor = None if floor is None else float(floor)
        estimate.units = units
        return estimate

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Say how a copy is made."""
        return (float(self),), {"error": self.error, "floor": self.floor, "units": self.units}

    def __repr__(self) -> str:
        spread = "" if self.error is None else f" ± {self.error:.2g}"
        units = f" {self.units}" if self.units else ""
        floor = "" if self.floor is None else f" (floor {self.floor:.4g})"
        return f"{float(self):.4g}{spread}{units}{floor}"

    __str__ = __repr__
