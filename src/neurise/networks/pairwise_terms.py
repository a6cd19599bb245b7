"""The terms of a pairwise model as logits, and several networks whose logits are added."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise.networks.base import SiteNetwork
from neurise.networks.parts.layers import one_hot, own, seen_one_hot, visible_one_hot
from neurise.networks.parts.plan import Layers, Plan, View
from neurise.space import Space


class PairwiseTerms(SiteNetwork):
    r"""Logits that are linear in the visible sites, :math:`f_a(t, u, x) = B_{ua} + \sum_{i\ \mathrm{visible}} A_{ua, i x_i}`.

    These are the conditionals of a pairwise model, which a network beside them need not learn then. ``clean`` gives the
    steps at t = 0, where a corrector may ask for any site, terms of their own.
    """

    options = ("clean",)
    takes_stretches = True

    pair: nn.Parameter
    bias: nn.Parameter
    clean_pair: nn.Parameter
    clean_bias: nn.Parameter

    def __init__(
        self, space: Space, num_steps: int, *, width: int = 0, depth: int = 0, classes: int = 0, clean: bool = False
    ) -> None:
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.clean, sites, states = clean, space.sites, space.states
        shapes = {"pair": (sites, states, sites * states), "bias": (sites, states)}
        if clean:
            shapes |= {f"clean_{name}": shape for name, shape in shapes.items()}
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def reset(self, generator: torch.Generator) -> None:
        """Set all terms to zero."""
        for term in self.parameters():
            nn.init.zeros_(term)

    def forward(
        self,
        t: Tensor,
        u: Tensor,
        x: Tensor,
        hidden: Tensor,
        y: Tensor | None = None,
        after: Tensor | None = None,
    ) -> Tensor:
        """Sum the terms of the sites u over the visible tokens, (..., states)."""
        add = self._sum if after is None else partial(self._sum_stretch, after=after)
        logits = add(self.pair, self.bias, u, x, hidden)
        if not self.clean:
            return logits
        return torch.where((t == 0)[..., None], add(self.clean_pair, self.clean_bias, u, x, hidden), logits)

    def _sum(self, pair: Tensor, bias: Tensor, u: Tensor, x: Tensor, hidden: Tensor) -> Tensor:
        visible = visible_one_hot(x, u, hidden, self.space.states, pair.dtype)
        if u.numel() == 1:
            return visible @ pair[u.reshape(())].T + bias[u.reshape(())]
        # The terms of all sites, of which one is picked: to gather a matrix per example would take far more memory.
        return own(visible @ pair.flatten(0, 1).T, u, self.space) + one_hot(u, len(bias), bias.dtype) @ bias

    def _sum_stretch(self, pair: Tensor, bias: Tensor, u: Tensor, x: Tensor, hidden: Tensor, after: Tensor) -> Tensor:
        r"""Sum the terms of a stretch of questions, (n, K, states), by one product per row.

        .. math::
            f_k = B_{u_k} + \sum_{i\ \mathrm{visible}} A_{u_k, i x_i} - \sum_{j \le k} A_{u_k, u_j a_j}
            + \sum_{j < k} A_{u_k, u_j b_j}
        """
        sites, states = self.space.sites, self.space.states
        row = seen_one_hot(x, hidden, states, pair.dtype) @ pair.flatten(0, 1).T
        place = u[..., None].expand(*u.shape, states)
        total = row.view(-1, sites, states).gather(1, place) + functional.embedding(u, bias)
        before = x.gather(-1, u).long().masked_fill(hidden.gather(-1, u), states)
        earlier = torch.ones(u.shape[-1], u.shape[-1], dtype=torch.bool, device=u.device).tril()
        total = total - self._between(pair, u, before, earlier)
        return total + self._between(pair, u, after, earlier.tril(-1)) if after.shape[-1] else total

    def _between(self, pair: Tensor, u: Tensor, tokens: Tensor, which: Tensor) -> Tensor:
        """Sum the terms of sites u_k with the tokens of the sites u_j, over those j that ``which`` (k, j) says, (n, K, states)."""
        states = self.space.states
        place = u * states + tokens.clamp(max=states - 1)
        terms = pair[u[..., :, None], :, place[..., None, :]]  # (n, K, K, states)
        return (terms * (which & (tokens < states)[..., None, :])[..., None]).sum(-2)

    @torch.no_grad()
    def plan(self, view: View) -> Plan | None:
        """Lay the terms of the chain, or those of the clean conditionals, out for a walk.

        The step at t = 0 has the clean terms also in the chain. A plan has one set of terms for all cycles, so that there is
        none where later cycles ask the same site with the others.
        """
        if not self.clean:
            return pairwise_plan(view, self.pair.detach(), self.bias.detach())
        if view.sweep:
            return pairwise_plan(view, self.clean_pair.detach(), self.clean_bias.detach())
        if view.cycles > 1:
            return None
        pair, bias = self.pair.detach().clone(), self.bias.detach().clone()
        pair[0], bias[0] = self.clean_pair[0], self.clean_bias[0]
        return pairwise_plan(view, pair, bias)


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


class Sum(SiteNetwork):
    """Several networks whose logits are added: a first term that is known, and a network for the rest."""

    def __init__(self, parts: Sequence[SiteNetwork]) -> None:
        super().__init__()
        first = parts[0]
        self.space, self.num_steps, self.classes = first.space, first.num_steps, first.classes
        self.width, self.depth = sum(part.width for part in parts), max(part.depth for part in parts)
        self.parts = nn.ModuleList(parts)
        self.any_site = all(part.any_site for part in parts)  # type: ignore[misc]
        self.takes_stretches = all(part.takes_stretches for part in parts)  # type: ignore[misc]

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights of each part in turn."""
        for part in self._parts():
            part.reset(generator)

    def forward(
        self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None = None, *after: Tensor | None
    ) -> Tensor:
        """Add the logits of all parts, (..., states)."""
        first, *others = self._parts()
        logits: Tensor = first(t, u, x, hidden, y, *after)
        for part in others:
            logits = logits + part(t, u, x, hidden, y, *after)
        return logits

    def plan(self, view: View) -> Plan | None:
        """Add the plans of all parts, if each has one."""
        plans = list[Plan]()
        for part in self._parts():
            plan = part.plan(view)
            if plan is None:
                return None
            plans.append(plan)
        return added(plans)

    def description(self) -> dict[str, Any]:
        """Describe each part."""
        return {"sum": [part.description() for part in self._parts()]}

    def _parts(self) -> list[SiteNetwork]:
        return list(self.parts)  # type: ignore[arg-type]


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
