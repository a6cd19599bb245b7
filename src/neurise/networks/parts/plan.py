r"""What a walk over sites needs to know of a network, so that a step costs O(width) in the first layer.

With two states the column of a token is :math:`W_{i,x_i} = W_{i,0} + x_i\,(W_{i,1} - W_{i,0})`: the first term does not
depend on x and moves into the context of the step, and what is left is a number times one column. So a site has one
*feature*, its token, and one output, the log-odds of token 1. With more states it has p features and p outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from neurise.noise.base import SiteNoise


@dataclass(frozen=True)
class View:
    """Which sites a step of the reverse chain, or of a sweep at time 0, looks at.

    ``grows``: hard noise hides what it erased, so that step u sees the sites after u only, each of which was drawn in
    this cycle. Otherwise a step sees all sites but its own. Sites that are not ``looked_at`` are never seen.
    """

    noise: SiteNoise
    grows: bool
    sweep: bool
    looked_at: Tensor  # (sites,) booleans

    @property
    def binary(self) -> bool:
        """Whether a site has one feature and one output."""
        return self.noise.space.states == 2

    @property
    def cycles(self) -> int:
        """How many cycles differ: one where earlier ones see nothing, or where time stands still."""
        return 1 if self.grows or self.sweep else self.noise.cycles

    def times(self) -> Tensor:
        """Return the time of each step, (cycles, sites)."""
        sites = torch.arange(self.noise.space.sites, device=self.looked_at.device)
        first = torch.arange(self.cycles, device=sites.device)[:, None] * len(sites)
        return first + (torch.zeros_like(sites) if self.sweep else sites)

    def sees(self) -> Tensor:
        """Return whether step u looks at site i, (sites, sites)."""
        sites = torch.arange(self.noise.space.sites, device=self.looked_at.device)
        others = sites[:, None] < sites if self.grows else sites[:, None] != sites
        return others & self.looked_at


@dataclass(frozen=True)
class Layers:
    """A multilayer perceptron whose first layer is a sum of columns, one per visible token."""

    context: Tensor  # (cycles, sites, width): bias, site and time, and W_{i,0} of the visible sites where states = 2
    columns: Tensor  # (sites, features, width)
    label: Tensor  # (classes, width)
    scales: list[Tensor]  # depth times (width,)
    shifts: list[Tensor]
    weights: list[Tensor]  # depth − 1 times (width, width)
    biases: list[Tensor]
    eps: float
    residual: bool
    head: Tensor  # (1 or sites, outputs, width)

    def map(self, change: Callable[[Tensor], Tensor]) -> Layers:
        """Return the layers with every tensor changed."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changed[field.name] = change(value)
            elif isinstance(value, list):
                changed[field.name] = [change(part) for part in value]
        return replace(self, **changed)


@dataclass(frozen=True)
class Plan:
    r"""Logits of step u: :math:`\sum_k w_k\,\mathrm{MLP}_k(u, x) + A_u x + b_u`. Linear terms of all parts are one."""

    layers: tuple[tuple[float, Layers], ...]
    offset: Tensor  # (sites, outputs)
    pair: Tensor | None  # (sites, outputs, sites, features), zero where a step does not look

    def times(self, factor: float) -> Plan:
        """Multiply the logits."""
        layers = tuple((factor * weight, part) for weight, part in self.layers)
        return Plan(layers, factor * self.offset, None if self.pair is None else factor * self.pair)

    def plus(self, other: Plan) -> Plan:
        """Add the logits of another plan of the same view."""
        pairs = [pair for pair in (self.pair, other.pair) if pair is not None]
        total = pairs[0] + pairs[1] if len(pairs) == 2 else next(iter(pairs), None)
        return Plan(self.layers + other.layers, self.offset + other.offset, total)


def pairwise_plan(view: View, pair: Tensor, bias: Tensor) -> Plan:
    """Make a plan of pairwise terms (sites, states, sites · states) and fields (sites, states)."""
    sites, states = view.noise.space.sites, view.noise.space.states
    terms = pair.view(sites, states, sites, states) * view.sees()[:, None, :, None]
    offset = bias
    if view.binary:
        terms = terms[:, 1:] - terms[:, :1]
        offset = bias[:, 1:] - bias[:, :1] + terms[..., 0].sum(-1)
        terms = terms[..., 1:] - terms[..., :1]
    return Plan((), offset, terms)
