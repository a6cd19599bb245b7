"""The network of masked diffusion with learnt schedules."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from neurise.networks.joint_mlp import JointMLP
from neurise.space import Space


class ScheduledMLP(JointMLP):
    r"""A :class:`JointMLP` that also holds the exponents of the masking schedules, one per site and token.

    .. math:: w_{i,a} = c^{\tanh \theta_{i,a}} \in (1/c,\ c), \qquad c = \text{spread},

    all of them 1 at the start.
    """

    def __init__(self, space: Space, *, spread: float, width: int, depth: int, classes: int = 0) -> None:
        super().__init__(space, width=width, depth=depth, classes=classes)
        self.spread = spread
        self.bend = nn.Parameter(torch.empty(space.sites, space.states))

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights, and let all schedules be the same."""
        super().reset(generator)
        nn.init.zeros_(self.bend)

    def forward(self, t: Tensor | None = None, x: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        """Return f(t, x), (..., sites, states); asked without a state, log w, (sites, states)."""
        if t is None or x is None:
            return math.log(self.spread) * self.bend.tanh()
        return super().forward(t, x, y)
