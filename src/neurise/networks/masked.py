"""A masked multilayer perceptron: all conditionals of a row in one cheap pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks
from neurise.networks._masked_walk import MaskedWalk
from neurise.networks.base import RowNetwork
from neurise.networks.parts.layers import WITH_GAPS, relative_one_hot
from neurise.networks.parts.walk import Walk
from neurise.space import Space


class Masks(NamedTuple):
    """Which weights of each kind of layer are there, (outputs, inputs) booleans."""

    first: Tensor
    hidden: Tensor
    last: Tensor
    direct: Tensor


class Masked(RowNetwork):
    r"""A residual perceptron whose weights are masked, so that the logits of site u depend on the sites after u alone (MADE).

    .. math::
        h_0 = b_0 + W x + L_y, \qquad h_l = h_{l-1} + b_l + V_l\,\mathrm{relu}(h_{l-1}), \qquad
        f = c + O\,\mathrm{relu}(h_{d-1}) + D x + M_y

    Hidden unit j looks at the sites from :math:`s_j = 1 + \lfloor j\,(q - 1)/\mathrm{width} \rfloor` on, in every layer:
    :math:`W_{ji}` is there for :math:`i \ge s_j`, :math:`V_{jk}` for :math:`s_k \ge s_j`, :math:`O_{uj}` for
    :math:`s_j > u`, and :math:`D_{ui}` for :math:`i > u`. Tokens are shown and answered for relative to the first state: a
    site has p − 1 features :math:`2\,(1[x = a] - 1/p)` and p − 1 outputs. A missing value has none of these features; with
    ``gaps`` it has a column of its own instead, in W and in D.

    Generating a row costs about as much as one pass: a step computes the units whose sites have just become known
    (:class:`~neurise.networks._masked_walk.MaskedWalk`).
    """

    options = ("gaps",)

    def __init__(
        self, space: Space, num_steps: int, *, width: int, depth: int, classes: int = 0, gaps: bool = False
    ) -> None:
        super().__init__()
        self.gaps = checks.flag("gaps", gaps)
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        columns = space.sites * (space.states - 1)
        self.first = nn.Parameter(torch.empty(width, columns))
        self.label = nn.Parameter(torch.empty(classes, width))
        self.biases = nn.ParameterList([nn.Parameter(torch.empty(width)) for _ in range(depth)])
        self.hidden = nn.ParameterList([nn.Parameter(torch.empty(width, width)) for _ in range(depth - 1)])
        self.last = nn.Parameter(torch.empty(columns, width))
        self.direct = nn.Parameter(torch.empty(columns, columns))
        self.offset = nn.Parameter(torch.empty(columns))
        self.label_offset = nn.Parameter(torch.empty(classes, columns))
        if gaps:
            self.first_gap = nn.Parameter(torch.empty(width, space.sites))
            self.direct_gap = nn.Parameter(torch.empty(columns, space.sites))

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights by what each unit looks at; the outputs start at zero, so that every conditional starts uniform."""
        masks = self.connections(torch.device("cpu"))
        for weight, mask in ((self.first, masks.first), *((weight, masks.hidden) for weight in self.hidden)):
            nn.init.normal_(weight, generator=generator)
            weight.data /= mask.sum(1, keepdim=True).clamp(min=1).sqrt()
        nn.init.normal_(self.label, generator=generator)
        gaps = (self.first_gap, self.direct_gap) if self.gaps else ()
        for zero in (*self.biases, self.last, self.direct, self.offset, self.label_offset, *gaps):
            nn.init.zeros_(zero)

    @classmethod
    def suited(cls, rows: int, space: Space, *, gpu: bool) -> dict[str, Any]:
        """Return settings that suit the size of the data: as many units as sites or more, small batches of whole rows."""
        width = max(128, min(1024, 64 * -(-space.sites // 32)))
        own: dict[str, Any] = {"width": width, "depth": 2, "members": 2 if rows * space.sites < 1e7 else 1}
        if gpu:
            return {**own, "batch_size": 512, "learning_rate": 4e-3, "steps": 4000}
        return {**own, "batch_size": 256, "learning_rate": 5e-3, "steps": 1500}

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits of every site of rows (n, sites), (n, sites, states)."""
        space, masks = self.space, self.connections(x.device)
        shown = relative_one_hot(x, space.states, self.first.dtype).flatten(-2)
        h = functional.linear(shown, self.first * masks.first, self.biases[0])
        offset: Tensor = self.offset
        if y is not None:
            h, offset = h + self.label[y], offset + self.label_offset[y]
        if self.gaps and x.dtype == WITH_GAPS:
            missing, each = (x >= space.states).to(shown.dtype), space.states - 1
            h = h + functional.linear(missing, self.first_gap * masks.first[:, ::each])
            offset = offset + functional.linear(missing, self.direct_gap * masks.direct[:, ::each])
        for weight, bias in zip(self.hidden, list(self.biases)[1:], strict=True):
            h = h + functional.linear(torch.relu(h), weight * masks.hidden, bias)
        logits = functional.linear(torch.relu(h), self.last * masks.last)
        logits = logits + functional.linear(shown, self.direct * masks.direct) + offset
        return functional.pad(logits.view(*x.shape, space.states - 1), (1, 0))

    def connections(self, device: torch.device) -> Masks:
        """Make the masks. They are made where they are used: a network has no buffers, and to compare is cheap."""
        sites = torch.arange(self.space.sites, device=device).repeat_interleave(self.space.states - 1)
        seen = 1 + torch.arange(self.width, device=device) * (self.space.sites - 1) // self.width
        seen = seen.clamp(
            max=self.space.sites - 1
        )  # the units of a single site have nothing to look at, and nobody looks
        return Masks(
            first=sites >= seen[:, None],
            hidden=seen >= seen[:, None],
            last=seen > sites[:, None],
            direct=sites > sites[:, None],
        )

    def units_from(self, site: int) -> int:
        """Return the first hidden unit that looks at no site before the given one."""
        if site >= self.space.sites:
            return self.width
        return max(0, -(-(site - 1) * self.width // max(1, self.space.sites - 1)))

    def bytes_per_row(self, *, training: bool) -> int:
        """Estimate the memory of one row: features, hidden layers and logits, and what the way back keeps of them."""
        columns = self.space.sites * self.space.states
        return (12 if training else 4) * (3 * columns + (self.depth + 2) * self.width)

    def walk(self, x: Tensor, y: Tensor | None, *, precision: str) -> Walk:
        """Follow rows (sites, n) from the last site to the first."""
        return MaskedWalk(self, x, y, precision=precision)
