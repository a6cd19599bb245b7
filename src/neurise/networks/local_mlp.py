"""One small network per step, all of them run as one batched computation."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks
from neurise.networks.base import SiteNetwork
from neurise.networks.parts.layers import visible_one_hot
from neurise.space import Space


class LocalMLP(SiteNetwork):
    """T separate networks of the paper's blocks, each with an output layer of its own; network t answers for step t alone.

    Inputs are arranged as S groups of R rows that share their step, so that every layer is one batched product
    (S, R, in) · (S, in, out). One step per example is S = batch, R = 1; one step for a whole batch is S = 1.
    """

    any_site = False  # network t has only ever seen site t mod q
    options = ("residual",)

    def __init__(
        self, space: Space, num_steps: int, *, width: int, depth: int, classes: int = 0, residual: bool = False
    ) -> None:
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.residual = checks.flag("residual", residual)
        inputs = [space.sites * space.states + classes] + [width] * (depth - 1)
        self.weights = nn.ParameterList([nn.Parameter(torch.empty(num_steps, size, width)) for size in inputs])
        self.biases = nn.ParameterList([nn.Parameter(torch.empty(num_steps, 1, width)) for _ in inputs])
        self.scales = nn.ParameterList([nn.Parameter(torch.empty(num_steps, 1, width)) for _ in inputs])
        self.shifts = nn.ParameterList([nn.Parameter(torch.empty(num_steps, 1, width)) for _ in inputs])
        self.output = nn.Parameter(torch.empty(num_steps, width, space.states))
        self.output_bias = nn.Parameter(torch.empty(num_steps, 1, space.states))

    @classmethod
    def least_numbers(cls, space: Space, num_steps: int, width: int, depth: int) -> int:
        """Count a network per step: its first layer, and the square ones after it."""
        return num_steps * width * (space.sites * space.states + (depth - 1) * width)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights; the output starts at zero, so that every conditional starts uniform."""
        for layer, weight in enumerate(self.weights):
            fan_in = self.space.sites if layer == 0 else weight.shape[1]
            nn.init.normal_(weight, std=fan_in**-0.5, generator=generator)
        for scale in self.scales:
            nn.init.ones_(scale)
        for zero in (*self.biases, *self.shifts, self.output, self.output_bias):
            nn.init.zeros_(zero)

    def forward(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits of step t's own network, (..., states)."""
        h = visible_one_hot(x, u, hidden, self.space.states, self.output.dtype)
        if self.classes:
            if y is None:
                raise ValueError("a network with classes needs labels")
            label = functional.one_hot(y, self.classes).to(h.dtype)
            h = torch.cat([h, label.expand(*h.shape[:-1], self.classes)], dim=-1)
        leading = h.shape[:-1]
        steps = t.reshape(-1)  # (S,): a step per example, or one step for each group of R examples
        h = h.reshape(len(steps), -1, h.shape[-1])  # (S, R, in)
        layers = zip(self.weights, self.biases, self.scales, self.shifts, strict=True)
        for layer, (weight, bias, scale, shift) in enumerate(layers):
            block = torch.baddbmm(bias[steps], h, weight[steps])
            block = functional.silu(functional.layer_norm(block, block.shape[-1:]) * scale[steps] + shift[steps])
            h = h + block if self.residual and layer else block
        logits = torch.baddbmm(self.output_bias[steps], h, self.output[steps])
        return logits.reshape(*leading, self.space.states)
