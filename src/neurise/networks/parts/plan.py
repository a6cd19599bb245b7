r"""What a walk over sites needs to know of a network, so that a step costs O(width) in the first layer.

With two states the column of a token is :math:`W_{i,x_i} = W_{i,0} + x_i\,(W_{i,1} - W_{i,0})`: the first term does not
depend on x and moves into the context of the step, and what is left is a number times one column. So a site has one
*feature*, its token, and one output, the log-odds of token 1. With more states it has p features and p outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    binary: bool  # two states: a site has one feature and one output
    cycles: int  # that differ: one where earlier ones see nothing, or where time stands still
    times: Tensor  # (cycles, sites): of each step
    sees: Tensor  # (sites, sites): whether step u looks at site i


def view_of(noise: SiteNoise, looked_at: Tensor, *, hides_erased: bool, sweep: bool) -> View:
    """Find what the steps of a chain, or those of a sweep, look at."""
    sites = torch.arange(noise.space.sites, device=looked_at.device)
    grows = noise.is_hard and hides_erased and not sweep
    cycles = 1 if grows or sweep else noise.cycles
    first = torch.arange(cycles, device=sites.device)[:, None] * len(sites)
    times = first + (torch.zeros_like(sites) if sweep else sites)
    sees = (sites[:, None] < sites if grows else sites[:, None] != sites) & looked_at
    return View(noise, grows, sweep, looked_at, noise.space.states == 2, cycles, times, sees)


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


def added(plans: Sequence[Plan], weights: Sequence[float] | None = None) -> Plan:
    """Add the logits of plans of one view, each times its weight."""
    layers, offset, pair = list[tuple[float, Layers]](), torch.zeros_like(plans[0].offset), None
    for place, plan in enumerate(plans):
        factor = 1.0 if weights is None else weights[place]
        if factor == 0:  # what has no weight need not be computed
            continue
        for weight, part in plan.layers:
            layers.append((factor * weight, part))
        offset = offset + factor * plan.offset
        if plan.pair is not None:
            pair = factor * plan.pair if pair is None else pair + factor * plan.pair
    return Plan(tuple(layers), offset, pair)


def pairwise_plan(view: View, pair: Tensor, bias: Tensor) -> Plan:
    """Make a plan of pairwise terms (sites, states, sites · states) and fields (sites, states)."""
    sites, states = view.noise.space.sites, view.noise.space.states
    terms = pair.view(sites, states, sites, states) * view.sees[:, None, :, None]
    offset = bias
    if view.binary:
        terms = terms[:, 1:] - terms[:, :1]
        offset = bias[:, 1:] - bias[:, :1] + terms[..., 0].sum(-1)
        terms = terms[..., 1:] - terms[..., :1]
    return Plan((), offset, terms)
