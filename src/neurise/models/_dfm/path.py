"""The probability path of discrete flow matching, and how its samplers walk along it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

EVEN_POWER = {"mask": 1.0, "uniform": 1.5}
"""How 1 − κ falls along an even grid, by source. Several sites that jump in one step do not see each other, and that is the
whole error of a step. Under a mask the chance of two such jumps is the square of a step of κ: equal steps are best. Under
uniform noise late jumps mostly lead a token to itself, and the power was found with the exact posterior: of 1, 3/2 and 2 it is
never far from the best."""


@dataclass(frozen=True)
class Path:
    r"""Each site holds the data with probability κ, and noise otherwise:

    .. math:: \kappa_s = s^n, \qquad s = 1 - t,

    where s is the method's own time and t that of the network: 0 is data. Everything is written in terms of the noised
    share 1 − κ, which is small where accuracy matters.
    """

    source: str
    exponent: float

    def time(self, noised: Tensor) -> Tensor:
        """Return the time t at which the share ``noised`` of the sites is noise, accurate for small shares."""
        return -torch.expm1(torch.log1p(-noised) / self.exponent)


@dataclass(frozen=True)
class JumpWalk:
    r"""Steps along a path. In each, every site draws :math:`x_1 \sim \hat p(\cdot \mid x_s)` and jumps to it with probability

    .. math::
        \frac{\kappa_{s+h} - \kappa_s}{1 - \kappa_s} \ \text{(the integrated hazard)} \qquad\text{or}\qquad
        1 - \exp\!\Big(\!-\frac{h\,\dot\kappa_s}{1 - \kappa_s}\Big) \ \text{(Euler)},

    and with certainty in the last one. With one site the integrated hazard is exact, whatever the number of steps.
    """

    path: Path
    num_steps: int
    jump: str
    grid: str

    def noised(self, step: int) -> float:
        """1 − κ before a step; steps count down, and −1 is the end."""
        left = (step + 1) / self.num_steps
        if self.grid == "time":
            return 1 - math.pow(1 - left, self.path.exponent)
        return math.pow(left, EVEN_POWER[self.path.source])

    def jump_probability(self, step: int, after: float) -> float:
        """Return the probability that a site jumps in a step to where the share ``after`` of the sites is noise."""
        before = self.noised(step)
        if step == 0:
            return 1.0
        if self.jump == "hazard":
            return (before - after) / before
        exponent = self.path.exponent
        s, later = ((1 - noised) ** (1 / exponent) for noised in (before, after))
        if s == 0 and exponent < 1:
            return 1.0  # the rate at the start is infinite
        return -math.expm1(-(later - s) * exponent * s ** (exponent - 1) / before)
