"""Weights of rows: counts of equal observations, or importances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neurise.alphabet import as_array


@dataclass(frozen=True)
class Weights:
    """A mass for each row. Whole numbers are counts; anything else is an importance."""

    masses: np.ndarray  # (n,) float64

    @classmethod
    def of(cls, given: Any, n: int, what: str) -> Weights:
        """Check the weights of n rows; without any, every row counts once."""
        if given is None:
            return cls(np.ones(n))
        masses = np.asarray(as_array(given, what), dtype=np.float64)
        if masses.shape != (n,):
            raise ValueError(f"{what} must give one number for each of the {n:,} rows; the shape is {masses.shape}")
        wrong = ~np.isfinite(masses) | (masses < 0)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(f"{what} has {masses[place]} at position {place}; weights are finite and not negative")
        if not masses.any():
            raise ValueError(f"{what} are all zero: no row counts")
        return cls(masses)

    @cached_property
    def counted(self) -> bool:
        """Whether the weights are counts of equal observations."""
        return bool((self.masses == np.round(self.masses)).all())

    @cached_property
    def size(self) -> float:
        r"""How many observations the rows are worth: their number, or Kish's :math:`(\sum w)^2 / \sum w^2`."""
        total = float(self.masses.sum())
        return total if self.counted else total**2 / float((self.masses**2).sum())

    def mean(self, values: np.ndarray) -> tuple[float, float | None]:
        """Weighted mean of one value per row, and its standard error where there are enough rows for one."""
        present = self.masses > 0
        values, masses = values[present], self.masses[present]
        total = masses.sum()
        mean = float((masses * values).sum() / total)
        if not math.isfinite(mean) or self.size <= 1:
            return mean, None
        variance = float((masses * (values - mean) ** 2).sum() / total)
        return mean, math.sqrt(variance / (self.size - 1))
