"""A network that answers for all sites at once, from all of them: the peers' backbone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neurise import checks
from neurise.networks.base import JointNetwork
from neurise.networks.parts.layers import Blocks, one_hot
from neurise.space import Space, possible

INPUTS = ("one_hot", "spins", "integers")


class JointMLP(JointNetwork):
    r"""(time, x, class label) → p numbers for every site, with the blocks, width and depth of :class:`SiteMLP`.

    ``depth`` blocks Linear → LayerNorm → SiLU of ``width`` units, then Linear → q·p. The first Linear is a sum of columns,

    .. math:: h = b + \sum_{i} W_{i, x_i} + \tau\,c + L_y, \qquad \tau = 2t - 1,

    with t in [0, 1] the time of the noise: 0 is data, 1 is noise. A token p is a masked site: its one-hot is all-zero.

    With other ``inputs`` a site is one number, :math:`\nu(x_i)\,W_i` in the place of :math:`W_{i, x_i}`: "spins" are
    :math:`\nu(a) = 2a/(p-1) - 1`, and 0 at a mask; "integers" are :math:`\nu(a) = 2a/p - 1`, also of the mask a = p.
    """

    def __init__(self, space: Space, *, width: int, depth: int, classes: int = 0, inputs: str = "one_hot") -> None:
        super().__init__()
        self.space, self.classes, self.inputs = space, classes, checks.one_of("inputs", inputs, INPUTS)
        columns = space.states if inputs == "one_hot" else 1
        self.token = nn.Parameter(torch.empty(space.sites * columns, width))
        self.time = nn.Parameter(torch.empty(width))
        self.label = nn.Parameter(torch.empty(classes, width))
        self.bias = nn.Parameter(torch.empty(width))
        self.hidden = Blocks(width, depth)
        self.output = nn.Linear(width, space.sites * space.states)

    @classmethod
    def least_numbers(cls, space: Space, num_steps: int, width: int, depth: int) -> int:
        """Count the tokens' first layer and the square layers after it."""
        return width * (space.sites * space.states + (depth - 1) * width)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights: the q tokens together weigh as much as the time or the label does, and the output starts at 0."""
        nn.init.normal_(self.token, std=self.space.sites**-0.5, generator=generator)
        for one in (self.time, self.label):
            nn.init.normal_(one, generator=generator)
        self.hidden.reset(generator)
        for zero in (self.bias, self.output.weight, self.output.bias):
            nn.init.zeros_(zero)

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return f(t, x), (..., sites, states), −∞ for states that a site does not have; t, y broadcast against rows of x."""
        tau = (2 * t - 1).to(self.time.dtype)
        context = self.bias + tau[..., None] * self.time
        if y is not None:
            context = context + self.label[y]
        h = self._shown(x) @ self.token + context
        output: Tensor = self.output(self.hidden(h))
        output = output.reshape(*output.shape[:-1], self.space.sites, self.space.states)
        return output if self.space.sizes is None else possible(output, self.space)

    def _shown(self, x: Tensor) -> Tensor:
        """Return what the first layer is shown of tokens, (..., inputs)."""
        states, dtype = self.space.states, self.token.dtype
        if self.inputs == "one_hot":
            return one_hot(x, states, dtype).flatten(-2)
        if self.inputs == "integers":
            return 2 * x.to(dtype) / states - 1
        return (2 * x.to(dtype) / max(states - 1, 1) - 1).masked_fill(x == states, 0.0)
