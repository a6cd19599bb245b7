"""The record that every kind of data is turned into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Holding:
    """Rows, and what belongs to them: what ``fit``, ``score``, ``log_prob`` and the metrics take in the place of an array."""

    X: Any  # (N, sites)
    y: Any = None  # (N,)
    weights: np.ndarray | None = None  # (N,) counts or importances
    validation: Any = None  # (X, y, weights) to stop a training by
    symbols: np.ndarray | None = None  # all that are known of, where rows may lack some
    name: str = "X"  # for errors

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        total = "" if self.weights is None else f", counted {float(np.sum(self.weights)):,.6g} times"
        return f"<{len(self):,} rows of {np.shape(self.X)[-1]} sites{total}>"
