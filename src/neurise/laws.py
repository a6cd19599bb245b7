"""Laws as vectors of probabilities: checking them, and the distance between two."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

TOLERANCE = 1e-6
"""How far from 1 a law may sum: far above rounding in float32, far below any figure of interest."""


def as_law(values: Any, size: int, what: str) -> Tensor:
    """Check that an array is a law on ``size`` configurations, and give it as float64."""
    given = values if isinstance(values, Tensor) else np.asarray(values)
    if isinstance(given, np.ndarray) and given.dtype.kind not in "biuf":
        raise ValueError(f"{what} holds values of type {given.dtype}; probabilities are numbers")
    # By numpy first: torch knows neither all of its types nor other orders of bytes.
    vector = given.to(torch.float64) if isinstance(given, Tensor) else torch.from_numpy(given.astype(np.float64))
    if vector.shape != (size,):
        raise ValueError(f"{what} must have {size:,} entries, one a configuration; its shape is {tuple(vector.shape)}")
    wrong = ~torch.isfinite(vector) | (vector < 0)
    if bool(wrong.any()):
        place = int(wrong.int().argmax())
        raise ValueError(f"{what} has {float(vector[place])} at index {place}; probabilities are finite, not negative")
    if abs(float(vector.sum()) - 1) > TOLERANCE:
        raise ValueError(f"{what} sums to {float(vector.sum()):.8g}, not to 1")
    return vector


def distance(first: Tensor, second: Tensor) -> float:
    r"""Total variation distance of two laws, :math:`\tfrac12 \sum_x |\mu(x) - \nu(x)|`."""
    return 0.5 * float((first - second).abs().sum())
