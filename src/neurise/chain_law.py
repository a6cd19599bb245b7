"""Laws of a reverse chain, of its noised data and of single sites, as vectors over all configurations of a small space.

A law is a vector of p^q probabilities, first site most significant (:class:`neurise.space.Space`). Nothing here is
estimated: the law of a sampler is found by pushing the whole vector through its kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from neurise.conditionals.base import Conditionals
from neurise.laws import as_law
from neurise.noise.base import SiteNoise
from neurise.space import Space

BUDGET = {"cpu": 2**28, "cuda": 2**32}
"""Bytes that one batch of contexts may take."""


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

    >>> import neurise
    >>> from neurise.noise.round_robin import RoundRobin
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> noise = RoundRobin(data.space, keep_prob=0.5, cycles=2)
    >>> law = neurise.exact.chain_law(neurise.exact.ExactConditionals(data.pmf, noise))
    >>> law.shape, round(float(law.sum()), 6)
    (torch.Size([16]), 1.0)
    """
    noise, sweeps = conditionals.noise, sweeps or {}
    whole = on_the_way(noise)
    whole.require_enumerable()
    inside = tuple(slice(0, states) for states in noise.space.digits)  # configurations of the data among these
    if start is None:
        current = start_law(noise).to(conditionals.device)
    elif len(start) == whole.size:
        current = start.to(conditionals.device, torch.float64, copy=True)
    else:
        current = torch.zeros(whole.size, dtype=torch.float64, device=conditionals.device)
        current.view(whole.digits)[inside] = start.to(current).view(noise.space.digits)
    for t in reversed(range(noise.num_steps)):
        _push(conditionals, t, t % noise.space.sites, current, label)
        if sweeps.get(t):
            current = swept(conditionals.clean, current, label, t=t, sweeps=sweeps[t])
    return current.view(whole.digits)[inside].reshape(-1)


def on_the_way(noise: SiteNoise) -> Space:
    """Return the space of all that a chain passes: that of the data, or p + 1 tokens per site where noise has a mask."""
    return noise.space if noise.tokens == noise.space.states else Space(noise.space.sites, noise.tokens)


def start_law(noise: SiteNoise) -> Tensor:
    """Return the law that a reverse chain starts from, over all configurations on the way."""
    sites = noise.start_law().expand(noise.space.sites, -1)
    return product_law([law[:states] for law, states in zip(sites, on_the_way(noise).digits, strict=True)])


def product_law(sites: Sequence[Tensor]) -> Tensor:
    """Law of independent sites, first site most significant.

    >>> import neurise
    >>> import torch
    >>> neurise.exact.product_law([torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])]).tolist()
    [0.125, 0.375, 0.125, 0.375]
    """
    joint = torch.ones(1, dtype=torch.float64)
    for site in sites:
        joint = (joint[:, None] * site).flatten()
    return joint


@torch.no_grad()
def swept(
    conditionals: Conditionals, law: Tensor, label: Tensor | None = None, *, t: int = 0, sweeps: int = 1
) -> Tensor:
    r"""Law after sweeps at time t: :math:`\nu(x) \to \mu_t(x_u \mid x_{-u})\,\nu(x_{-u})`, site by site, the last one first.

    >>> import neurise
    >>> import torch
    >>> from neurise.noise.round_robin import RoundRobin
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> noise = RoundRobin(data.space, keep_prob=0.5, cycles=2)
    >>> oracle, law = neurise.exact.ExactConditionals(data.pmf, noise), torch.as_tensor(data.pmf)
    >>> bool(torch.allclose(neurise.exact.swept(oracle, law), law))        # sweeps keep the law
    True
    """
    current, noise = law.clone(), conditionals.noise
    first = min(t, noise.space.sites) if noise.is_hard else 0
    for _ in range(sweeps):
        for u in reversed(range(first, noise.space.sites)):
            _push(conditionals, t, u, current, label, heat_bath=True)
    return current


def noised(pmf: Any, noise: SiteNoise, t: int) -> Tensor:
    r"""Law :math:`\mu_t` of :math:`X_t` when :math:`X_0 \sim` pmf, (p^q,) float64, or ((p + 1)^q,) where noise has a mask.

    Each site is noised by itself.

    >>> import neurise
    >>> from neurise.noise.round_robin import RoundRobin
    >>> noise = RoundRobin(neurise.Space(2, 2), keep_prob=0.0, cycles=1)
    >>> neurise.exact.noised([1.0, 0.0, 0.0, 0.0], noise, 1).tolist()     # the first site is noise now
    [0.5, 0.0, 0.5, 0.0]
    """
    current, digits = as_law(pmf, noise.space.size, "pmf"), on_the_way(noise).digits
    for site, visits in enumerate(noise.visits(torch.tensor(t)).tolist()):
        split = current.view(math.prod(digits[:site]), noise.space.digits[site], -1)
        current = noise.spread(split.transpose(1, 2), visits).transpose(1, 2).flatten()
    return current


def conditional(pmf: Any, space: Space, site: int) -> Tensor:
    r"""Conditional :math:`\mu(x_u = a \mid x_{-u})` of one site, (p^u, p, p^{q−1−u}): sites before, the site, sites after.

    A context of probability zero has none; it is given the uniform one.

    >>> import neurise
    >>> law = [0.1, 0.4, 0.2, 0.3]                         # of two sites: 00, 01, 10, 11
    >>> neurise.exact.conditional(law, neurise.Space(2, 2), site=1).squeeze(-1).round(decimals=2).tolist()
    [[0.2, 0.8], [0.4, 0.6]]
    """
    split = split_at(as_law(pmf, space.size, "pmf"), space, site)
    context = split.sum(dim=1, keepdim=True)
    return torch.where(context > 0, split / context, 1 / space.digits[site])


def split_at(law: Tensor, space: Space, site: int) -> Tensor:
    """View a law as (what stands before a site, the site, what stands after it)."""
    return law.view(math.prod(space.digits[:site]), space.digits[site], -1)


def out_of_order(law: Tensor, space: Space, order: Sequence[int]) -> Tensor:
    """Rearrange a law over places of an order to one over the sites, ``order`` being the site at each place.

    ``space`` is that of the places.
    """
    places = [0] * len(order)
    for place, site in enumerate(order):
        places[site] = place
    return in_order(law, space, places)


def in_order(law: Tensor, space: Space, order: Sequence[int]) -> Tensor:
    """Undo :func:`out_of_order`: rearrange a law over sites to one over places of an order."""
    if list(order) == list(range(space.sites)):
        return law
    return law.view(space.digits).permute(list(order)).reshape(-1)


def padded(law: Tensor, states: int) -> Tensor:
    """Give a law over the states that a site has a zero for each of the others, (..., states)."""
    return functional.pad(law, (0, states - law.shape[-1]))


def _push(
    conditionals: Conditionals, t: int, site: int, current: Tensor, label: Tensor | None, *, heat_bath: bool = False
) -> None:
    """Replace the law of X_{t+1} by that of X_t, in place; or that of X_t by what redrawing a site makes of it."""
    noise = conditionals.noise
    split = split_at(current, on_the_way(noise), site)
    for before, after, learnt in contexts(conditionals, t, site, label):
        block = split[before, :, after].transpose(1, 2)
        if block.shape[-1] == noise.space.states + 1:  # laws on the way have a place for every token
            learnt = padded(learnt, noise.space.states)
        pushed = noise.push_redraw(block, learnt) if heat_bath else noise.push(block, learnt, t)
        split[before, :, after] = pushed.transpose(1, 2)


def contexts(
    conditionals: Conditionals, t: int, site: int, label: Tensor | None
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Evaluate the conditional of a site at time t in every context, in batches: (before, after, (before, after, states)).

    States are those that the site has. A context is (what stands before the site, what stands after it). Where all sites of
    one side are hidden, one evaluation serves for all of that side: with hard noise the last cycle costs p^q evaluations
    instead of q p^q.
    """
    space, device = on_the_way(conditionals.noise), conditionals.device
    states = conditionals.noise.space.digits[site]
    step, place = (torch.tensor([number], device=device) for number in (t, site))
    hidden = conditionals.hidden(step)[0]
    left, right = (space.part(*ends) if ends[0] < ends[1] else None for ends in ((0, site), (site + 1, space.sites)))
    counts = [1 if side is None else side.size for side in (left, right)]
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
            if right is not None:
                x[:, :, site + 1 :] = right.configurations(a, a + shape[1], device=device)
            flat = conditionals.log_conditional(step, place, x.flatten(0, 1), label)
            learnt = torch.softmax(flat.double(), dim=-1).view(*shape, -1)[..., :states]
            yield (
                slice(None) if blind[0] else slice(b, b + shape[0]),
                slice(None) if blind[1] else slice(a, a + shape[1]),
                learnt,
            )
