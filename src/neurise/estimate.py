"""A number with what makes it mean something: its standard error, and the score of real data."""

from __future__ import annotations

from typing import Any, Self


class Estimate(float):
    """A float that also knows its standard error and its floor.

    ``floor`` is what real data of the same size scores under the same conditions: the best that a perfect model can be
    expected to do. ``bias`` is how far the value lies above what it estimates on average, where it is biased and this can be
    told; ``corrected`` is the value without it. Each is None where it does not exist.
    """

    error: float | None
    floor: float | None
    units: str
    bias: float | None

    def __new__(
        cls,
        value: float,
        *,
        error: float | None = None,
        floor: float | None = None,
        units: str = "",
        bias: float | None = None,
    ) -> Self:
        """Make an estimate of a value."""
        estimate = super().__new__(cls, value)
        estimate.error = None if error is None else float(error)
        estimate.floor = None if floor is None else float(floor)
        estimate.units = units
        estimate.bias = None if bias is None else float(bias)
        return estimate

    @property
    def corrected(self) -> float | None:
        """The value less its bias; the interval ``corrected`` ± 2 ``error`` is the one to trust where there is a bias."""
        return None if self.bias is None else float(self) - self.bias

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Say how a copy is made."""
        return (float(self),), {"error": self.error, "floor": self.floor, "units": self.units, "bias": self.bias}

    def __repr__(self) -> str:
        spread = "" if self.error is None else f" ± {self.error:.2g}"
        units = f" {self.units}" if self.units else ""
        floor = "" if self.floor is None else f" (floor {self.floor:.4g})"
        return f"{float(self):.4g}{spread}{units}{floor}"

    __str__ = __repr__
