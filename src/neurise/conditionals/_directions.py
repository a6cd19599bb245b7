"""The directions in which the rows of data vary most."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neurise.energies.regressions import Sample

ROUNDS = 12
"""Products with the covariance in which the directions are found."""
LEAST = 1e-6
"""The share of the largest variance that a direction has at least. In the others nothing varies but the rounding of sums in
float32, which comes to a tenth of it."""


def directions_of(data: Sample, count: int) -> Tensor:
    """Find the directions in which features vary most, (columns, count), of the length of a row of ones.

    A subspace is multiplied by the covariance and made orthonormal, round after round. Where the features vary in fewer
    directions, as those of a few different rows do, the others are 0.
    """
    columns = data.features.shape[1]
    count, mean = min(count, columns), data.weight @ data.features
    if not count:
        return data.features.new_zeros(columns, 0)

    def times_covariance(axes: Tensor) -> Tensor:
        seen = data.features @ axes - mean @ axes
        seen = seen - data.weight @ seen  # what rounding left of the mean
        return data.features.T @ (data.weight[:, None] * seen)  # seen is centred, so that features need not be

    axes = torch.randn(columns, count, generator=torch.Generator().manual_seed(0)).to(mean)
    for _ in range(ROUNDS):
        axes = torch.linalg.qr(times_covariance(axes))[0]
    variance, turned = torch.linalg.eigh(axes.T @ times_covariance(axes))
    found: Tensor = axes @ turned * (variance > LEAST * variance.amax()) * math.sqrt(columns)
    return found
