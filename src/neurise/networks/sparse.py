"""One small network per site that looks at a few other sites, its parents; all sites in one batched product."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks
from neurise.deadline import Work
from neurise.energies import parents
from neurise.energies.frontier import frontier
from neurise.energies.parents import Parents
from neurise.networks.base import RowNetwork
from neurise.networks.parts.layers import WITH_GAPS
from neurise.networks.parts.walk import Walk
from neurise.rows import Rows
from neurise.space import Space

SIDES = ("after", "both")
"""Among which sites the parents of a site are: those after it, as in the chain, or all others, as sweeps need them."""

MANY_ROWS = 10_000
"""Rows from which on perceptrons may learn fast."""
FEW_EVALUATIONS = 5
"""Of a run with so many rows. The linear start has almost the best likelihood, but what is drawn from it drifts away from the
data: on 2,084 qubits its samples are 4.5 nats less likely than test reads, with trained perceptrons as likely."""
SEVERAL = 10
"""Rows per site below which several networks, each with parents of its own, answer together on a GPU."""
FEW_PARENTS = 4
"""Of more parents each has smaller first weights, so that perceptrons of many are not steeper than those of few."""


class Sparse(RowNetwork):
    r"""Logits of each site from its parents P(u), a linear part and a small perceptron of ``width`` units:

    .. math:: f_u(x, y) = b_{uy} + \sum_{i \in P(u)} A_{u,i} \phi(x_i)
              + V_u \,\mathrm{silu}\Bigl(c_{uy} + \sum_{i \in P(u)} W_{u,i} \phi(x_i)\Bigr) + d_{uy} .

    The features φ are x − ½ for two states, else the one-hot minus 1/p. A site has at most ``parents`` parents, found before the
    training (:mod:`neurise.energies.parents`) together with A and b, which stay; V and d start at zero.
    """

    options = ("parents", "sides")
    takes_graph = True
    starts_from_rows = True

    chosen: nn.Parameter

    def __init__(
        self,
        space: Space,
        num_steps: int,
        *,
        width: int,
        depth: int = 1,
        classes: int = 0,
        parents: int = 32,
        sides: str = "after",
    ) -> None:
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.parents, self.sides = parents, checks.one_of("sides", sides, SIDES)
        self.looks_both_ways = sides == "both"
        sites, states, kinds = space.sites, space.states, max(1, classes)
        self.features = 1 if states == 2 else states
        inputs = parents * self.features
        # Numbers of sites, −1 where there are fewer.
        self.chosen = nn.Parameter(torch.empty(sites, parents, dtype=torch.int64), requires_grad=False)
        # The linear part is solved for, and stays: decay would pull it away, and the perceptron can add what is missing.
        self.linear = nn.Parameter(torch.empty(sites, inputs, self.features), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(sites, kinds, self.features), requires_grad=False)
        self.first = nn.Parameter(torch.empty(sites, inputs, width))
        self.shift = nn.Parameter(torch.empty(sites, kinds, width))
        self.head = nn.Parameter(torch.empty(sites, width, self.features))
        self.offset = nn.Parameter(torch.empty(sites, kinds, self.features))

    @classmethod
    def suited(cls, rows: int, space: Space, *, gpu: bool) -> Mapping[str, Any]:
        """Return sizes for networks of a few parents each. The decay is the perceptrons' alone: what was solved for stays."""
        rate = 1e-2 if rows >= MANY_ROWS else 2e-3  # few rows are soon learnt by heart
        members = 4 if gpu and rows < SEVERAL * space.sites else 1
        steps = 2000 if gpu else 500
        # Perceptrons of a few parents learn their rows by heart where there is more time than that.
        pace: dict[str, Any] = {"batch_size": 512 if gpu else 256, "steps": steps, "most_steps": steps}
        if rows >= MANY_ROWS:
            pace["evaluations"] = FEW_EVALUATIONS
        return {"width": 32, "depth": 1, "members": members, **pace, "learning_rate": rate, "weight_decay": 0.3}

    def reset(self, generator: torch.Generator) -> None:
        """Draw the perceptrons; without parents every conditional is uniform."""
        nn.init.constant_(self.chosen, -1)
        nn.init.normal_(self.first, std=1.0, generator=generator)
        nn.init.normal_(self.shift, std=0.5, generator=generator)
        for zero in (self.linear, self.bias, self.head, self.offset):
            nn.init.zeros_(zero)

    @torch.no_grad()
    def begin(self, rows: Rows, held: Rows | None, varies: Tensor, work: Work, near: Tensor | None = None) -> Parents:
        """Find the parents of every site, and the linear part.

        They are among the sites after it, or all others. With a graph they are those that can be needed at all
        (:func:`neurise.energies.frontier.frontier`), or the neighbours, all of them as far as there is room.
        """
        place, every = torch.arange(self.space.sites, device=varies.device), varies & varies[:, None]
        allowed, most = every & (place[:, None] < place), int(self.parents)
        if near is not None:
            allowed = frontier(near.to(varies.device) & every)
        if self.looks_both_ways:
            allowed = every & (place[:, None] != place) & (True if near is None else near.to(varies.device))
        everyone = self.looks_both_ways and near is not None and int(allowed.sum(1).max()) <= most
        return parents.of_rows(
            rows,
            held,
            self.space.states,
            allowed,
            classes=self.classes,
            most=None if everyone else most,
            work=work,
        )

    @torch.no_grad()
    def take(self, found: Parents) -> None:
        """Look at these parents; the perceptrons are steeper the fewer there are."""
        count = found.sites.shape[1]
        self.chosen[:, :count] = found.sites
        self.linear[:, : count * self.features] = found.weight.flatten(1, 2)
        self.bias.copy_(found.bias)
        crowd = (found.sites >= 0).sum(1).clamp(min=FEW_PARENTS)
        self.first.mul_((FEW_PARENTS / crowd).sqrt()[:, None, None])

    def bytes_per_row(self, *, training: bool) -> int:
        """Features of all parents, and a hidden layer per site."""
        each = self.parents * self.features * 8 + (12 if training else 4) * self.width + 16 * self.features
        return 4 * self.space.sites * each // 4 * (2 if training else 1)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits of every site of rows (n, sites), (n, sites, states)."""
        seen = self.seen(x)  # (sites, n, inputs)
        both = torch.bmm(seen, torch.cat([self.linear, self.first], dim=2))
        linear, hidden = both[..., : self.features], both[..., self.features :]
        kind = slice(1) if y is None else y
        linear, hidden = linear + (self.bias + self.offset)[:, kind], hidden + self.shift[:, kind]
        logits = (linear + torch.bmm(functional.silu(hidden), self.head.to(hidden.dtype))).transpose(0, 1)
        return logits if self.features > 1 else functional.pad(logits, (1, 0))

    def looked_at(self) -> Tensor:
        """Return which sites (columns) are parents of each site."""
        found = torch.zeros(self.space.sites, self.space.sites + 1, dtype=torch.bool, device=self.chosen.device)
        last = torch.where(self.chosen >= 0, self.chosen, self.space.sites)
        return found.scatter_(1, last, True)[:, :-1]

    def seen(self, x: Tensor) -> Tensor:
        """Return the features of every site's parents, (sites, n, inputs)."""
        tokens = x.T[self.chosen.clamp(min=0)].transpose(1, 2)  # (sites, n, parents)
        there = (self.chosen >= 0)[:, None]
        if x.dtype == WITH_GAPS:
            there = there & (tokens < self.space.states)  # a gap has no features
        if self.features == 1:
            return (tokens.to(self.linear.dtype) - 0.5) * there
        states = torch.arange(self.features, device=x.device)
        hot = (tokens[..., None] == states).to(self.linear.dtype) - 1 / self.features
        return (hot * there[..., None]).flatten(2)

    def walk(self, x: Tensor, y: Tensor | None, *, precision: str) -> Walk | None:
        """Follow rows by asking each site's own parents."""
        return SparseWalk(self, x, y)

    @cached_property
    def _parents(self) -> list[Tensor]:
        """The parents of each site. Found once: to count them is to wait for the device, which a recording must not."""
        return [own[own >= 0] for own in self.chosen.detach()]


class SparseWalk(Walk):
    """Rows as features, of which a step gathers those of one site's parents."""

    def __init__(self, network: Sparse, x: Tensor, y: Tensor | None) -> None:
        self.network, self.y = network, y
        self.rows = x.to(network.linear.dtype) - 0.5 if network.features == 1 else x.long()

    def logits(self, u: int) -> Tensor:
        """Evaluate the network of site u, (n, outputs)."""
        own, network = self.network._parents[u], self.network
        seen = self._features(self.rows.index_select(0, own))  # (n, inputs)
        kind = 0 if self.y is None else self.y
        count = seen.shape[1]
        bias = network.bias[u, kind] + network.offset[u, kind]
        linear = torch.addmm(bias.expand(len(seen), -1), seen, network.linear[u, :count])
        hidden = torch.addmm(network.shift[u, kind].expand(len(seen), -1), seen, network.first[u, :count])
        return torch.addmm(linear, functional.silu(hidden), network.head[u])

    def put(self, u: int, token: Tensor) -> None:
        """Write the tokens down."""
        self.rows[u] = token.to(self.rows.dtype) - 0.5 if self.network.features == 1 else token.long()

    def _features(self, tokens: Tensor) -> Tensor:
        if self.network.features == 1:
            return tokens.T
        states = torch.arange(self.network.features, device=tokens.device)
        hot = (tokens.T[..., None] == states).to(self.network.linear.dtype) - 1 / self.network.features
        return hot.flatten(1)
