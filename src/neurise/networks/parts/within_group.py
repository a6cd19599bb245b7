"""Resolve the sites of a group one after another, on what is known of the group as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise.networks.parts.attention import norm
from neurise.networks.parts.layers import ALIGNED

EMBEDDED = 0.1
"""Standard deviation of what a token, a site or a label adds at the start."""
OWN = 0.02
"""That of a token at one site, beside what it adds at all sites: sites begin alike, and part where the data say so."""


class Tokens(nn.Module):
    """What tokens add, (places, group · states, width): a table that all groups share, and one of each group's own."""

    def __init__(self, places: int, tokens: int, width: int) -> None:
        super().__init__()
        self.every = nn.Parameter(torch.empty(tokens, width))
        self.own = nn.Parameter(torch.empty(places, tokens, width))

    def reset(self, generator: torch.Generator) -> None:
        """Draw the tables."""
        nn.init.normal_(self.every, std=EMBEDDED, generator=generator)
        nn.init.normal_(self.own, std=OWN, generator=generator)

    def table(self, dtype: torch.dtype) -> Tensor:
        """Return the sum of both."""
        return (self.own + self.every).to(dtype)


class WithinGroup(nn.Module):
    r"""One hidden layer on what is known of group g, and on the tokens of the group that are generated before site u.

    .. math::
        k_u = P\,h_g + S_u + \sum_{i \in g,\ i > u} T_{i, x_i}, \qquad
        k_u \to \mathrm{norm}\bigl(k_u + D\,\mathrm{GELU}(U\,\mathrm{norm}(k_u))\bigr)
    """

    def __init__(self, states: int, places: int, group: int, width: int, inner: int) -> None:
        super().__init__()
        self.group, self.states = group, states
        self.project = nn.Parameter(torch.empty(inner, width))
        self.site = nn.Parameter(torch.empty(places * group, inner))
        self.token = Tokens(places, group * states, inner)
        self.before_hidden = nn.Parameter(torch.empty(inner))
        self.up = nn.Parameter(torch.empty(2 * inner, inner))
        self.down = nn.Parameter(torch.empty(inner, 2 * inner))
        self.last = nn.Parameter(torch.empty(inner))

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        for matrix in (self.project, self.up, self.down):
            nn.init.normal_(matrix, std=matrix.shape[1] ** -0.5, generator=generator)
        self.token.reset(generator)
        nn.init.normal_(self.site, std=EMBEDDED, generator=generator)
        for scale in (self.before_hidden, self.last):
            nn.init.ones_(scale)

    def forward(self, h: Tensor, tokens: Tensor) -> Tensor:
        """Return what the output layers of all sites read, (n, places · group, inner).

        ``h`` (n, places, width) is what is known of each group, ``tokens`` (n, places, group · states) their one-hot.
        """
        resolver = self.resolver(h.dtype)
        # The tokens of a group before each of its sites: one product, whose columns are zero for the others.
        order = torch.arange(self.group, device=h.device)
        before = order.repeat_interleave(self.states)[:, None] < order  # (group · states, group)
        columns = resolver.token[:, :, None] * before[..., None]  # (places, group · states, group, inner)
        seen = by_place(tokens, columns.flatten(2)).view(*tokens.shape[:2], self.group, -1)
        known = resolver.begin(h)[:, :, None] + seen
        return resolver.resolved(known.flatten(1, 2) + resolver.site)

    def resolver(self, dtype: torch.dtype) -> Resolver:
        """Return the weights in the numbers to compute with."""
        rest = (self.site, self.project, self.before_hidden, self.up, self.down, self.last)
        return Resolver(self.token.table(dtype), *(part.to(dtype) for part in rest))


@dataclass(frozen=True)
class Resolver:
    """The weights of :class:`WithinGroup` in the numbers to compute with, and what is done with them."""

    token: Tensor  # (places, group · states, inner)
    site: Tensor  # (places · group, inner)
    project: Tensor  # (inner, width)
    before_hidden: Tensor  # (inner,)
    up: Tensor  # (2 · inner, inner)
    down: Tensor  # (inner, 2 · inner)
    last: Tensor  # (inner,)

    def begin(self, h: Tensor) -> Tensor:
        """Return what all sites of a group know, (..., inner)."""
        return functional.linear(h, self.project)

    def resolved(self, known: Tensor) -> Tensor:
        """Run the hidden layer, (..., inner)."""
        units = functional.gelu(functional.linear(norm(known, self.before_hidden), self.up))
        return norm(known + functional.linear(units, self.down), self.last)


def by_place(rows: Tensor, weights: Tensor) -> Tensor:
    """Multiply each place by a matrix of its own, (n, places, k) by (places, k, outputs) to (n, places, outputs).

    Both are filled up with zeros to columns of :data:`ALIGNED`: two outputs per site would be no fast product.
    """
    k, outputs = weights.shape[1:]
    if k % ALIGNED:
        rows = functional.pad(rows, (0, -k % ALIGNED))
    if k % ALIGNED or outputs % ALIGNED:
        weights = functional.pad(weights, (0, -outputs % ALIGNED, 0, -k % ALIGNED))
    return torch.bmm(rows.transpose(0, 1), weights)[..., :outputs].transpose(0, 1).contiguous()
