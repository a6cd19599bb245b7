"""How much noise there is at a time: the schedules of score entropy discrete diffusion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

LOG_LINEAR_END = 0.999
"""Share of the sites that log-linear noise has touched at t = 1."""
SIGMA_MIN, SIGMA_MAX = 1e-4, 20.0


class Schedule(Protocol):
    r"""Total noise :math:`\sigma(t)`, rising with t in [0, 1]: a site is untouched with probability :math:`e^{-\sigma}`."""

    def sigma(self, t: Tensor) -> Tensor:
        """Return the total noise at times t."""

    def rate(self, t: Tensor) -> Tensor:
        """Return its derivative."""

    def time(self, sigma: Tensor) -> Tensor:
        """Return the time at which the noise is sigma; 0 where it is less than at any time."""


@dataclass(frozen=True)
class LogLinear:
    r""":math:`\sigma(t) = -\log(1 - ct)` with c = 0.999: the share of sites that were touched grows evenly with t."""

    def sigma(self, t: Tensor) -> Tensor:
        """Return −log(1 − ct)."""
        return -torch.log1p(-LOG_LINEAR_END * t)

    def rate(self, t: Tensor) -> Tensor:
        """Return c / (1 − ct)."""
        return LOG_LINEAR_END / (1 - LOG_LINEAR_END * t)

    def time(self, sigma: Tensor) -> Tensor:
        """Return (1 − e^−σ) / c."""
        return -torch.expm1(-sigma) / LOG_LINEAR_END


@dataclass(frozen=True)
class Geometric:
    r""":math:`\sigma(t) = \sigma_{\min}^{1-t}\,\sigma_{\max}^t` from 10⁻⁴ to 20: by the same factor in equal times."""

    def sigma(self, t: Tensor) -> Tensor:
        """Return σ_min^(1−t) σ_max^t."""
        return SIGMA_MIN * torch.exp(t * math.log(SIGMA_MAX / SIGMA_MIN))

    def rate(self, t: Tensor) -> Tensor:
        """Return σ log(σ_max / σ_min)."""
        return self.sigma(t) * math.log(SIGMA_MAX / SIGMA_MIN)

    def time(self, sigma: Tensor) -> Tensor:
        """Return log(σ / σ_min) / log(σ_max / σ_min), or 0 below σ_min."""
        return (torch.log(sigma / SIGMA_MIN) / math.log(SIGMA_MAX / SIGMA_MIN)).clamp(min=0)
