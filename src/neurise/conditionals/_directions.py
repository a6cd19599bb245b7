"""The directions in which the rows of data vary most."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neurise.energies.regressions import Sample

ROUNDS = 12
"""Products with the covariance in which the directions are found."""


def directions_of(data: Sample, count: int) -> Tensor:
    """Find the directions in which features vary most, (columns, count), of the length of a row of ones.

    A subspace is multiplied by the covariance and made orthonormal, round after round.
    """
    columns = data.features.shape[1]
    count, mean = min(count, columns), data.weight @ data.features
    if not count:
        return data.features.new_zeros(columns, 0)

    def times_covariance(axes: Tensor) -> Tensor:
        seen = data.features @ axes - mean @ axes
        return data.features.T @ (data.weight[:, None] * seen)  # seen is centred, so that features need not be

    axes = torch.randn(columns, count, generator=torch.Generator().manual_seed(0)).to(mean)
    for _ in range(ROUNDS):
        axes = torch.linalg.qr(times_covariance(axes))[0]
    turned: Tensor = torch.linalg.eigh(axes.T @ times_covariance(axes))[1]
    return axes @ turned * math.sqrt(columns)
