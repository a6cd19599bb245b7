"""Exact answers on spaces small enough to enumerate.

A law is a vector of p^q probabilities, first site most significant (:class:`neurise.space.Space`). Nothing here is
estimated: the law of a sampler is found by pushing the whole vector through its kernels.

>>> import neurise
>>> neurise.exact.law(neurise.Independent().fit([[0, 0], [1, 1]])).tolist()
[0.25, 0.25, 0.25, 0.25]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from neurise.chain_law import (
    chain_law,
    conditional,
    contexts,
    in_order,
    noised,
    on_the_way,
    out_of_order,
    padded,
    product_law,
    split_at,
    start_law,
    swept,
)
from neurise.conditionals.base import Conditionals
from neurise.exact_conditionals import ExactConditionals
from neurise.laws import as_law, distance
from neurise.space import Space

__all__ = ["Bound", "ExactConditionals", "bound", "chain_law", "conditional", "law", "noised", "product_law", "swept"]


class Sampler(Protocol):
    """What the exact tools need of a fitted model."""

    @property
    def space_(self) -> Space:
        """Return how many sites and states there are."""

    @property
    def order_(self) -> Sequence[int]:
        """Return the user's site at each place of the model's own order."""

    def label_terms(self, y: Any) -> list[tuple[Tensor | None, float]]:
        """Return the labels to condition on, (1,) tensors, and the probability of each."""

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Return the law of its samples given a label, over its own order of sites; see :func:`chain_law`."""


class ReverseChain(Sampler, Protocol):
    """What the theorem needs: a model that runs a round-robin chain backwards."""

    @property
    def conditionals(self) -> Conditionals:
        """Return the conditionals that drive the reverse chain, over sites in the order in which they are noised."""


class Bound(NamedTuple):
    """The theorem's quantities: TV(law, pmf) ≤ δ_T + T η + γ.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.NeurISE(width=8, members=1, steps=20).fit(data.sample(500, seed=0), verbose=False)
    >>> found = neurise.exact.bound(model, data.pmf)
    >>> found.tv <= found.bound, found.T
    (True, 4)
    """

    delta_T: float
    eta: float
    gamma: float
    T: int
    bound: float
    tv: float


@torch.no_grad()
def law(model: Sampler, y: Any = None, *, start: Any = None, sweeps: Any = None) -> Tensor:
    """Law of ``model.sample``, (p^q,) float64 on the model's device. Labels are mixed by their frequency unless y is given.

    ``start`` is a law to start a reverse chain from, in the place of its own, over p^q configurations, or over (p + 1)^q
    where the noise has a symbol of its own, token p. ``sweeps`` are those of ``sample``, by default what ``fit`` chose.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Independent().fit(data.sample(100, seed=0))
    >>> law = neurise.exact.law(model)
    >>> law.shape, round(float(law.sum()), 6)
    (torch.Size([16]), 1.0)
    """
    space = model.space_
    space.require_enumerable()
    begin = None
    if start is not None:
        wider = Space(space.sites, space.states + 1) if len(start) != space.size and _has_mask(model) else space
        begin = in_order(as_law(start, wider.size, "start"), _of_sites(wider, model.order_), model.order_)
    parts = [weight * model.chain_law(label, begin, sweeps) for label, weight in model.label_terms(y)]
    return out_of_order(torch.stack(parts).sum(0) if len(parts) > 1 else parts[0], space, model.order_)


def _of_sites(space: Space, order: Sequence[int]) -> Space:
    """Return the space of the user's sites for that of the places of an order."""
    return space.in_order([list(order).index(site) for site in range(space.sites)])


def _has_mask(model: Any) -> bool:
    return hasattr(model, "conditionals") and model.conditionals.noise.tokens > model.space_.states


@torch.no_grad()
def bound(model: ReverseChain, pmf: Any, start: Any = None, *, y: Any = None) -> Bound:
    r"""Evaluate both sides of the paper's theorem, :math:`\mathrm{TV}(\hat\mu_0, \mu_0) \le \delta_T + T\eta + \gamma`.

    :math:`\delta_T = \mathrm{TV}(\mu_T, \pi)`, where π is the law that the chain starts from by itself, uniform or masks; η is
    the largest TV, over steps and states, between the learnt and the true reverse kernel; γ = TV(start, π) for another
    start. In a context of probability zero any kernel reverses the chain, so the learnt one is taken as the true one there.
    The law is that of the chain without sweeps.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.NeurISE(width=8, members=1, steps=20).fit(data.sample(500, seed=0), verbose=False)
    >>> found = neurise.exact.bound(model, data.pmf)
    >>> found.tv <= found.bound, found.T
    (True, 4)
    """
    conditionals = model.conditionals
    noise, space = conditionals.noise, conditionals.noise.space
    target = as_law(pmf, space.size, "pmf").to(conditionals.device)
    in_chain = in_order(target, _of_sites(space, model.order_), model.order_)
    terms = model.label_terms(y)
    if len(terms) > 1:
        raise ValueError("the theorem is about one reverse chain; a model with labels has one for each: give y")
    whole = on_the_way(noise)
    truth, eta = ExactConditionals(in_chain, noise), 0.0
    for t in range(noise.num_steps):
        site = t % space.sites
        mass = split_at(noised(in_chain, noise, t), whole, site).sum(1)
        tokens = torch.arange(whole.digits[site], device=conditionals.device)
        for before, after, learnt in contexts(conditionals, t, site, terms[0][0]):
            known = truth.table(t, site)[before, :, after].transpose(1, 2)  # (before, after, states)
            true = torch.where(mass[before, after][..., None] > 0, known, learnt)
            step = torch.tensor([t], device=conditionals.device)
            log_laws = [padded(law, space.states).log()[..., None, :] for law in (learnt, true)]
            kernels = [noise.reverse(log_law, tokens, step).exp() for log_law in log_laws]
            eta = max(eta, float(0.5 * (kernels[0] - kernels[1]).abs().sum(dim=-1).max()))
    own = start_law(noise).to(conditionals.device)
    delta = distance(noised(in_chain, noise, noise.num_steps), own)
    gamma = 0.0 if start is None else distance(as_law(start, len(own), "start").to(own.device), own)
    tv = distance(law(model, y, start=start, sweeps=0), target)
    return Bound(delta, eta, gamma, noise.num_steps, delta + noise.num_steps * eta + gamma, tv)
