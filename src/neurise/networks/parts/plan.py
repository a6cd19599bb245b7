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
from neurise.space import Space


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
    binary: bool  # two states: a site has one feature and one output
    cycles: int  # that differ: one where earlier ones see nothing, or where time stands still
    times: Tensor  # (cycles, sites): of each step
    sees: Tensor  # (sites, sites): whether step u looks at site i


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

    def within(self, space: Space) -> Plan:
        """Return the plan with −∞ for the states that a site does not have: whoever draws from it never draws them."""
        allowed = space.allowed(self.offset.device)
        return replace(self, offset=self.offset.masked_fill(~allowed[:, -self.offset.shape[-1] :], -torch.inf))
