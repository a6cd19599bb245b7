"""Exact answers on spaces small enough to enumerate.

A law is a vector of p^q probabilities, first site most significant (:class:`neurise.space.Space`). Nothing here is
estimated: the law of a sampler is found by pushing the whole vector through its kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from neurise.conditionals.base import Conditionals
from neurise.exact_conditionals import ExactConditionals
from neurise.laws import as_law, distance
from neurise.noise.base import SiteNoise
from neurise.space import Space

__all__ = ["Bound", "ExactConditionals", "bound", "chain_law", "conditional", "law", "noised", "product_law", "swept"]

BUDGET = {"cpu": 2**28, "cuda": 2**32}
"""Bytes that one batch of contexts may take."""


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


class Chain(Sampler, Protocol):
    """What the theorem needs: a model that runs a round-robin chain backwards."""

    @property
    def conditionals(self) -> Conditionals:
        """Return the conditionals that drive the reverse chain, over sites in the order in which they are noised."""


class Bound(NamedTuple):
    """The theorem's quantities: TV(law, pmf) ≤ δ_T + T η + γ."""

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
    """
    space = model.space_
    space.require_enumerable()
    begin = None
    if start is not None:
        wider = Space(space.sites, space.states + 1) if len(start) != space.size and _has_mask(model) else space
        begin = _to_chain(as_law(start, wider.size, "start"), wider, model.order_)
    parts = [weight * model.chain_law(label, begin, sweeps) for label, weight in model.label_terms(y)]
    return _to_user(torch.stack(parts).sum(0) if len(parts) > 1 else parts[0], space, model.order_)


@torch.no_grad()
def chain_law(
    conditionals: Conditionals,
    label: Tensor | None = None,
    start: Tensor | None = None,
    *,
    sweeps: Mapping[int, int] | None = None,
) -> Tensor:
    r"""Law of the reverse chain, :math:`\nu_t = K_t\,\nu_{t+1}` for t = T−1 … 0, from its own start or from another law.

    ``sweeps`` says how many sweeps follow at which times. Where noise has a symbol of its own, laws on the way are over
    (p + 1)^q configurations, and ``start`` may be over these or over the p^q of the data.
    """
    noise, sweeps = conditionals.noise, sweeps or {}
    on_the_way = Space(noise.space.sites, noise.tokens)  # with the noise's own symbol, where it has one
    on_the_way.require_enumerable()
    inside = (slice(0, noise.space.states),) * noise.space.sites  # configurations of the data among these
    if start is None:
        current = _start(noise).to(conditionals.device)
    elif len(start) == on_the_way.size:
        current = start.to(conditionals.device, torch.float64, copy=True)
    else:
        current = torch.zeros(on_the_way.size, dtype=torch.float64, device=conditionals.device)
        current.view([noise.tokens] * noise.space.sites)[inside] = start.view([noise.space.states] * noise.space.sites)
    for t in reversed(range(noise.num_steps)):
        _push(conditionals, t, t % noise.space.sites, current, label)
        if sweeps.get(t):
            current = swept(conditionals.clean, current, label, t=t, sweeps=sweeps[t])
    return current.view([noise.tokens] * noise.space.sites)[inside].reshape(-1)


def _start(noise: SiteNoise) -> Tensor:
    return product_law([noise.start_law()] * noise.space.sites)


def _has_mask(model: Any) -> bool:
    return hasattr(model, "conditionals") and model.conditionals.noise.tokens > model.space_.states


def product_law(sites: Sequence[Tensor]) -> Tensor:
    """Law of independent sites, first site most significant."""
    joint = torch.ones(1, dtype=torch.float64)
    for site in sites:
        joint = (joint[:, None] * site).flatten()
    return joint


@torch.no_grad()
def swept(
    conditionals: Conditionals, law: Tensor, label: Tensor | None = None, *, t: int = 0, sweeps: int = 1
) -> Tensor:
    r"""Law after sweeps at time t: :math:`\nu(x) \to \mu_t(x_u \mid x_{-u})\,\nu(x_{-u})`, site by site, the last one first."""
    current, noise = law.clone(), conditionals.noise
    first = min(t, noise.space.sites) if noise.is_hard else 0
    for _ in range(sweeps):
        for u in reversed(range(first, noise.space.sites)):
            _push(conditionals, t, u, current, label, heat_bath=True)
    return current


def noised(pmf: Any, noise: SiteNoise, t: int) -> Tensor:
    r"""Law :math:`\mu_t` of :math:`X_t` when :math:`X_0 \sim` pmf, (p^q,) float64, or ((p + 1)^q,) where noise has a mask.

    Each site is noised by itself.
    """
    current = as_law(pmf, noise.space.size, "pmf")
    for site, visits in enumerate(noise.visits(torch.tensor(t)).tolist()):
        split = current.view(noise.tokens**site, noise.space.states, -1)
        current = noise.spread(split.transpose(1, 2), visits).transpose(1, 2).flatten()
    return current


def conditional(pmf: Any, space: Space, site: int) -> Tensor:
    r"""Conditional :math:`\mu(x_u = a \mid x_{-u})` of one site, (p^u, p, p^{q−1−u}): sites before, the site, sites after.

    A context of probability zero has none; it is given the uniform one.
    """
    split = as_law(pmf, space.size, "pmf").view(space.states**site, space.states, -1)
    context = split.sum(dim=1, keepdim=True)
    return torch.where(context > 0, split / context, 1 / space.states)


@torch.no_grad()
def bound(model: Chain, pmf: Any, start: Any = None, *, y: Any = None) -> Bound:
    r"""Evaluate both sides of the paper's theorem, :math:`\mathrm{TV}(\hat\mu_0, \mu_0) \le \delta_T + T\eta + \gamma`.

    :math:`\delta_T = \mathrm{TV}(\mu_T, \pi)`, where π is the law that the chain starts from by itself, uniform or masks; η is
    the largest TV, over steps and states, between the learnt and the true reverse kernel; γ = TV(start, π) for another
    start. In a context of probability zero any kernel reverses the chain, so the learnt one is taken as the true one there.
    The law is that of the chain without sweeps.
    """
    conditionals = model.conditionals
    noise, space = conditionals.noise, conditionals.noise.space
    target = as_law(pmf, space.size, "pmf").to(conditionals.device)
    in_chain = _to_chain(target, space, model.order_)
    terms = model.label_terms(y)
    if len(terms) > 1:
        raise ValueError("the theorem is about one reverse chain; a model with labels has one for each: give y")
    tokens = torch.arange(noise.tokens, device=conditionals.device)
    truth, eta = ExactConditionals(in_chain, noise), 0.0
    for t in range(noise.num_steps):
        site = t % space.sites
        mass = noised(in_chain, noise, t).view(noise.tokens**site, noise.tokens, -1).sum(1)
        for before, after, learnt in _contexts(conditionals, t, site, terms[0][0]):
            known = truth.table(t, site)[before, :, after].transpose(1, 2)  # (before, after, states)
            true = torch.where(mass[before, after][..., None] > 0, known, learnt)
            step = torch.tensor([t], device=conditionals.device)
            kernels = [noise.reverse(law.log()[..., None, :], tokens, step).exp() for law in (learnt, true)]
            eta = max(eta, float(0.5 * (kernels[0] - kernels[1]).abs().sum(dim=-1).max()))
    own = _start(noise).to(conditionals.device)
    delta = distance(noised(in_chain, noise, noise.num_steps), own)
    gamma = 0.0 if start is None else distance(as_law(start, len(own), "start").to(own.device), own)
    tv = distance(law(model, y, start=start, sweeps=0), target)
    return Bound(delta, eta, gamma, noise.num_steps, delta + noise.num_steps * eta + gamma, tv)


def _push(
    conditionals: Conditionals, t: int, site: int, current: Tensor, label: Tensor | None, *, heat_bath: bool = False
) -> None:
    """Replace the law of X_{t+1} by that of X_t, in place; or that of X_t by what redrawing a site makes of it."""
    noise = conditionals.noise
    split = current.view(noise.tokens**site, noise.tokens, -1)
    for before, after, learnt in _contexts(conditionals, t, site, label):
        block = split[before, :, after].transpose(1, 2)
        pushed = noise.push_redraw(block, learnt) if heat_bath else noise.push(block, learnt, t)
        split[before, :, after] = pushed.transpose(1, 2)


def _contexts(
    conditionals: Conditionals, t: int, site: int, label: Tensor | None
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Evaluate the conditional of a site at time t in every context, in batches: (before, after, (before, after, states)).

    A context is (what stands before the site, what stands after it). Where all sites of one side are hidden, one
    evaluation serves for all of that side: with hard noise the last cycle costs p^q evaluations instead of q p^q.
    """
    space, device = Space(conditionals.noise.space.sites, conditionals.noise.tokens), conditionals.device
    step, place = (torch.tensor([number], device=device) for number in (t, site))
    hidden = conditionals.hidden(step)[0]
    left, right = Space(site, space.states) if site else None, space.sites - 1 - site
    counts = [space.states**site, space.states**right]
    blind = [bool(hidden[:site].all()), bool(hidden[site + 1 :].all())]
    seen = [1 if blind[side] else counts[side] for side in (0, 1)]
    rows = max(1, BUDGET[device.type if device.type in BUDGET else "cpu"] // conditionals.bytes_per_row)
    after_size = min(seen[1], rows)
    before_size = min(seen[0], max(1, rows // after_size))
    for b in range(0, seen[0], before_size):
        for a in range(0, seen[1], after_size):
            shape = (min(before_size, seen[0] - b), min(after_size, seen[1] - a))
            x = torch.zeros((*shape, space.sites), dtype=torch.uint8, device=device)
            if left is not None:
                x[:, :, :site] = left.configurations(b, b + shape[0], device=device)[:, None]
            if right:
                x[:, :, site + 1 :] = Space(right, space.states).configurations(a, a + shape[1], device=device)
            flat = conditionals.log_conditional(step, place, x.flatten(0, 1), label)
            learnt = torch.softmax(flat.double(), dim=-1).view(*shape, -1)
            yield (
                slice(None) if blind[0] else slice(b, b + shape[0]),
                slice(None) if blind[1] else slice(a, a + shape[1]),
                learnt,
            )


def _to_user(current: Tensor, space: Space, order: Sequence[int]) -> Tensor:
    """Rearrange a law over places of the order to one over the user's sites."""
    if list(order) == list(range(space.sites)):
        return current
    places = np.argsort(order).tolist()
    return current.view([space.states] * space.sites).permute(places).reshape(-1)


def _to_chain(current: Tensor, space: Space, order: Sequence[int]) -> Tensor:
    """Undo :func:`_to_user`."""
    if list(order) == list(range(space.sites)):
        return current
    return current.view([space.states] * space.sites).permute(list(order)).reshape(-1)
