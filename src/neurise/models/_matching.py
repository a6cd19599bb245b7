r"""Closing the loop: conditionals that are right where the model is, not only where the data are.

An autoregressive model learns every conditional from sites of the data, and when it generates, it is given sites of its own. Small
errors of 2000 conditionals add up along the way: means and correlations drift. So the chain is run once more, step by step, and
before a site is drawn, its conditional is given the least change with which the sites drawn so far and this one have the moments
of the data (:mod:`neurise.training.moments`): those with the sites that its pairwise terms look at, and with the directions in
which the data vary most. The changes are linear in the visible sites, so they are pairwise terms like those that are there.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from neurise.conditionals import NetworkConditionals
from neurise.networks._committee import Committee
from neurise.sampling import _plan
from neurise.sampling._plan import Plan
from neurise.sampling.categorical import draw, uniforms
from neurise.sampling.incremental import Walk
from neurise.training import moments
from neurise.training.batches import Rows
from neurise.training.pairwise import expanded
from neurise.training.regressions import Fit, Sample, sample_of

DRAWS = 2**14
"""Rows that are generated to match with."""
SHRINK = 2.5e-3
"""λ. Weights stay below a few, and moments of a few percent are matched to a tenth: see docs/quality.md."""
DIRECTIONS = 20
MOST_COLUMNS = 2**13
"""Features up to which directions are looked for: their second moments are a matrix of so many rows."""
GOLDEN = (5**0.5 - 1) / 2


@torch.no_grad()
def match(
    conditionals: NetworkConditionals,
    rows: Rows,
    *,
    generator: Generator,
    draws: int = DRAWS,
    shrink: float = SHRINK,
    directions: int = DIRECTIONS,
) -> None:
    """Change the pairwise terms of autoregressive conditionals so that what they generate has the moments of the rows."""
    plans = _plan.make(conditionals)
    space, device = conditionals.noise.space, conditionals.device
    data = sample_of(rows, space.states, device)
    labels = None if rows.y is None else rows.spread(draws, generator=torch.Generator().manual_seed(0))[1]
    loop = Loop(plans, data, conditionals.constant, _directions(data, directions), draws, labels)
    for u in reversed(range(space.sites)):
        loop.step(u, shrink, generator)
    _add(conditionals.network, Fit(loop.weight, loop.bias), space.sites, space.states)


class Loop:
    """The chain on its way: rows of the model and of the data, and what they have along the directions so far."""

    def __init__(
        self,
        plans: list[Plan],
        data: Sample,
        constant: Tensor,
        axes: Tensor,
        draws: int,
        labels: Tensor | None,
    ) -> None:
        sites, self.inner = data.target.shape[1], data.outcomes
        self.data, self.axes = data, axes
        self.looked_at, self.constant = _looked_at(plans).cpu(), constant.tolist()
        start = torch.zeros(sites, draws, dtype=torch.uint8, device=axes.device)
        y = None if labels is None else labels.to(axes.device)
        self.walks = [Walk(plan, plan.context[0], plan.known[0], start, y) for plan in plans]
        self.features = data.features.new_zeros(draws, sites * self.inner)  # of the rows drawn, as the data have theirs
        self.along, self.data_along = (
            part.new_zeros(len(part), axes.shape[1]) for part in (self.features, data.features)
        )
        self.weight = axes.new_zeros(sites * self.inner, sites * self.inner)
        self.bias = axes.new_zeros(sites * self.inner)

    def step(self, u: int, shrink: float, generator: Generator) -> None:
        """Match the conditional of site u, and draw it."""
        logits = torch.stack([walk.logits(u) for walk in self.walks]).mean(0).to(self.features.dtype)
        if self.constant[u] >= 0:
            token = torch.full((len(logits),), self.constant[u], device=logits.device)
        else:
            token = drawn_evenly(logits + self._matched(u, logits, shrink), generator)
        for walk in self.walks:
            walk.put(u, token.to(walk.x.dtype))
        own = slice(u * self.inner, (u + 1) * self.inner)
        self.features[:, own] = self._encoded(token)
        self.along += self.features[:, own] @ self.axes[own]
        self.data_along += self.data.features[:, own] @ self.axes[own]

    def _matched(self, u: int, logits: Tensor, shrink: float) -> Tensor:
        """Find the change of the conditional of site u, write it down, and return what it adds, (n, O)."""
        sites = torch.nonzero(self.looked_at[u, u + 1 :]).flatten() + u + 1
        columns = (sites[:, None] * self.inner + torch.arange(self.inner)).flatten().to(logits.device)
        # Like a spin's, the feature of a direction has a standard deviation of a half.
        spread = (self.data.weight @ self.data_along.pow(2) - (self.data.weight @ self.data_along).pow(2)).clamp(min=0)
        scale = torch.where(spread > 1e-12, 0.5 / spread.clamp(min=1e-12).sqrt(), 0.0)
        seen, known = (
            torch.cat([part.new_ones(len(part), 1), part[:, columns], along * scale], dim=1)
            for part, along in ((self.features, self.along), (self.data.features, self.data_along))
        )
        wanted = known.T @ (self.data.weight[:, None] * self.data.target[:, u])
        found = moments.correction(logits, seen, wanted, shrink=shrink)
        bias, pairs, along = found[:1], found[1 : 1 + len(columns)], found[1 + len(columns) :]
        lines, after = slice(u * self.inner, (u + 1) * self.inner), (u + 1) * self.inner
        self.weight[lines, after:] = (self.axes[after:] @ (scale[:, None] * along)).T
        self.weight[lines, columns] += pairs.T
        self.bias[lines] = bias[0]
        return seen @ found

    def _encoded(self, token: Tensor) -> Tensor:
        """Features of tokens, as :func:`sample_of` has them, (n, features)."""
        if self.inner == 1:
            return token[:, None].to(self.features) - 0.5
        return (token[:, None] == torch.arange(self.inner, device=token.device)).to(self.features) - 1 / self.inner


def drawn_evenly(logits: Tensor, generator: Generator) -> Tensor:
    """Draw tokens from logits (n, O), with levels that are spread evenly over rows whose laws are alike, (n,) tokens.

    Each row's draw follows its own law; together they have less of the noise that the next steps would be matched to.
    """
    full = torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits
    law = torch.log_softmax(full.double(), dim=-1)
    place = torch.arange(len(law), device=law.device, dtype=torch.float64)
    tokens = torch.arange(law.shape[-1], device=law.device, dtype=torch.float64)
    order = (law.exp() @ tokens).argsort(stable=True)
    level = torch.empty_like(place)
    level[order] = (place * GOLDEN + uniforms(1, generator=generator)) % 1
    return draw(law, level)


def _looked_at(plans: list[Plan]) -> Tensor:
    """Which sites (columns) the pairwise terms of each site look at, in any of the networks, (sites, sites)."""
    found = torch.stack([plan.pair.abs().amax((1, 3)) > 0 for plan in plans if plan.pair is not None])
    return found.any(0)


def _directions(data: Sample, count: int) -> Tensor:
    """The directions in which features vary most, (columns, count), of the length of a row of ones."""
    columns = data.features.shape[1]
    if columns > MOST_COLUMNS or not count:
        return data.features.new_zeros(columns, 0)
    centred = data.features - data.weight @ data.features
    axes: Tensor = torch.linalg.eigh(centred.T @ (data.weight[:, None] * centred))[1]
    return axes[:, -min(count, columns) :] * math.sqrt(columns)


def _add(network: torch.nn.Module, change: Fit, sites: int, states: int) -> None:
    """Add a change to the pairwise terms of every network, so that their mean changes by it."""
    terms = expanded(change, sites, states)
    members = network.members if isinstance(network, Committee) else dict(network.named_parameters())
    members["pair"].add_(terms.pair)
    members["pair_bias"].add_(terms.bias)
    if "clean_pair" in members:  # step 0 is both: it sees everything
        members["clean_pair"].select(-3, 0).add_(terms.pair[0])
        members["clean_pair_bias"].select(-2, 0).add_(terms.bias[0])
