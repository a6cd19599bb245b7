"""How fast the noise forgets the data: δ against the number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from neurise.laws import as_law, distance
from neurise.noise.base import SiteNoise
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space


def noised_laws(pmf: Any, noise: SiteNoise) -> Iterator[Tensor]:
    r"""The laws :math:`\mu_0, \dots, \mu_T` of the noised data, (p^q,) float64 each, one forward step after the other.

    .. math:: \mu_{t+1}(x) = \varepsilon\,\mu_t(x) + \frac{1-\varepsilon}{p} \sum_a \mu_t(x_u = a, x_{-u}), \qquad u = t \bmod q

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> [mu.round(decimals=3).tolist() for mu in theory.noised_laws(law, noise)][:2]
    [[0.4, 0.1, 0.1, 0.4], [0.325, 0.175, 0.175, 0.325]]
    """
    space = noise.space
    space.require_enumerable()
    current = as_law(pmf, space.size, "pmf")
    yield current
    for t in range(noise.num_steps):
        split = current.view(space.states ** (t % space.sites), space.states, -1)
        mixed = noise.keep_prob * split + (1 - noise.keep_prob) * split.mean(dim=1, keepdim=True)
        current = mixed.flatten()
        yield current


def delta_curve(pmf: Any, space: Space, keep_prob: float, cycles: int) -> Tensor:
    r"""Distances :math:`\delta_t = \mathrm{TV}(\mu_t, \text{uniform})` for t = 0 … T, (T + 1,) float64.

    >>> import neurise
    >>> curve = neurise.theory.delta_curve([1.0, 0.0, 0.0, 0.0], neurise.Space(2, 2), keep_prob=0.5, cycles=1)
    >>> curve.tolist()
    [0.75, 0.5, 0.3125]
    """
    noise = RoundRobin(space, keep_prob, cycles)
    uniform = torch.full((space.size,), 1 / space.size, dtype=torch.float64)
    return torch.tensor([distance(mu.cpu(), uniform) for mu in noised_laws(pmf, noise)], dtype=torch.float64)


def delta_ceiling(space: Space, keep_prob: float, cycles: int) -> Tensor:
    r"""What :math:`\delta_t` cannot exceed whatever the data are, (T + 1,) float64:

    .. math:: \delta_t \le 1 - \prod_i \bigl(1 - \varepsilon^{v_i(t)}\bigr)

    With the probability of the product every site has been redrawn at least once, and then the state is uniform.

    >>> import neurise
    >>> neurise.theory.delta_ceiling(neurise.Space(2, 2), keep_prob=0.5, cycles=1).tolist()
    [1.0, 1.0, 0.75]
    """
    noise = RoundRobin(space, keep_prob, cycles)
    visits = noise.visits(torch.arange(noise.num_steps + 1)).double()  # (T + 1, sites)
    return 1 - (1 - keep_prob**visits).prod(dim=-1)
