r"""Rows as regressions see them, and what a regression of every site on all others has found.

The logits of site u are linear in the features of other sites, :math:`f_u(x) = b_u + \sum_i A_{u,i}\, \phi(x_i)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from neurise.rows import Rows, are_counts

MOST_NUMBERS = 2**28
"""Rows beyond so many numbers are left out: these many tell enough about pairs."""


@dataclass(frozen=True)
class Sample:
    """Rows as the regressions see them. Two states are one number, x − ½, and one outcome, the log-odds of token 1."""

    features: Tensor  # (n, sites · O), centred over the alphabet
    target: Tensor  # (n, sites, O)
    weight: Tensor  # (n,), sums to 1
    count: Tensor  # (n,): how many observations each row stands for
    place: Tensor  # (n,): which of the rows they are, on the CPU

    @property
    def outcomes(self) -> int:
        """O: how many logits a site has, which is also how many features."""
        return self.target.shape[-1]


@dataclass(frozen=True)
class Fit:
    """Weights (fitted sites · O, sites · O) and biases (fitted sites · O)."""

    weight: Tensor
    bias: Tensor


def sample_of(rows: Rows, states: int, device: torch.device) -> Sample:
    """Write rows of tokens as features and targets, on a device."""
    most = max(1, MOST_NUMBERS // (rows.x.shape[1] * states))
    # Evenly over all; float32 would not tell rows beyond 2^24 apart.
    place = torch.linspace(0, len(rows) - 1, min(len(rows), most), dtype=torch.float64).round().long()
    x = rows.x.cpu()[place].to(device)
    weight = count = torch.ones(len(x), dtype=torch.float64)
    if rows.weights is not None:
        weight = rows.weights.cpu()[place].double()
        count = weight if are_counts(weight) else count
    count = count.float().to(device)
    weight = (weight / weight.sum()).float().to(device)
    if states == 2:
        return Sample(x.float() - 0.5, x.float()[..., None], weight, count, place)
    target = functional.one_hot(x.long(), states).float()
    return Sample((target - 1 / states).flatten(1), target, weight, count, place)
