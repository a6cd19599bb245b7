"""The network of discrete diffusion with planned denoising: two of them, side by side."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neurise.networks.joint_mlp import JointMLP
from neurise.space import Space


class PlannedMLP(nn.Module):
    """Two :class:`JointMLP` of one width: a planner, which has one output per site and token, and a denoiser.

    It has twice as many parameters as one of them, and asks both in one evaluation.
    """

    def __init__(self, space: Space, *, width: int, depth: int, classes: int = 0) -> None:
        super().__init__()
        self.planner = JointMLP(space, width=width, depth=depth, classes=classes)
        self.denoiser = JointMLP(space, width=width, depth=depth, classes=classes)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights of both; all outputs start at 0."""
        self.planner.reset(generator)
        self.denoiser.reset(generator)

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the outputs of the planner and of the denoiser, (..., 2, sites, states)."""
        return torch.stack([self.planner(t, x, y), self.denoiser(t, x, y)], dim=-3)
