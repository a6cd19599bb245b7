"""Planned denoising on a small space: the true planner and denoiser, wrong ones, and every way to noise a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import oracles
import torch
from torch import Tensor, nn

from neurise.models._ddpd.objective import Example, PlannedDenoiser, PlannedObjective
from neurise.noise.uniform import Uniform
from neurise.space import Space


class Truth(NamedTuple):
    """What a row says of the noise, by sums over all clean rows and all sets of redrawn sites."""

    zeta: np.ndarray  # (size, sites): P(site i was redrawn | x)
    mu: np.ndarray  # (size, sites, states): P(x_0,i = a | x, site i was redrawn)


def chance(x: tuple[int, ...], redrawn: tuple[bool, ...], clean: tuple[int, ...], m: float, states: int) -> float:
    """P(x, z | x_0)."""
    return math.prod(m / states if gone else (1 - m) * (a == b) for a, gone, b in zip(x, redrawn, clean, strict=True))


def truth(law: np.ndarray, space: Space, m: float) -> Truth:
    every = oracles.configurations(space)
    zeta, mu = np.zeros((space.size, space.sites)), np.zeros((space.size, space.sites, space.states))
    for place, x in enumerate(every):
        total = 0.0
        for weight, clean in zip(law, every, strict=True):
            for redrawn in subsets(space.sites):
                share = weight * chance(x, redrawn, clean, m, space.states)
                total += share
                for site in range(space.sites):
                    if redrawn[site]:
                        mu[place, site, clean[site]] += share
        zeta[place] = mu[place].sum(-1) / total
        mu[place] /= mu[place].sum(-1, keepdims=True)
    return Truth(zeta, mu)


def subsets(sites: int) -> Iterator[tuple[bool, ...]]:
    """Every set of redrawn sites."""
    return itertools.product((False, True), repeat=sites)


class ExactPlan(nn.Module):
    r"""What perfect networks say: :math:`-\log\,p\,\pi_i(x_i)` of the token that a site holds, and :math:`\log \pi_i`.

    :math:`\pi_i` is the law of a site before the noise, given what the other sites hold after it. Of tokens that a site does
    not hold the planner says nonsense.
    """

    def __init__(self, law: np.ndarray, space: Space) -> None:
        super().__init__()
        self.law, self.space = torch.tensor(law), space

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        clean = self.space.configurations().long()  # (size, sites)
        noised = t.double().expand(len(x))[:, None, None]
        match = (x.long()[:, None] == clean) * (1 - noised) + noised / self.space.states  # (n, size, sites)
        pi = torch.zeros(*x.shape, self.space.states, dtype=torch.float64)
        for site in range(self.space.sites):
            others = [other for other in range(self.space.sites) if other != site]
            weight = match[..., others].prod(-1) * self.law
            pi[:, site].index_add_(1, clean[:, site], weight)
        pi = pi / pi.sum(-1, keepdim=True)
        own = -torch.log(self.space.states * pi.gather(-1, x.long()[..., None]))
        held = x.long()[..., None] == torch.arange(self.space.states)
        return torch.stack([torch.where(held, own, 7.0), pi.log()], dim=-3)


class AnyPlan(nn.Module):
    """Wrong networks: any numbers for every row, the same at all times."""

    def __init__(self, space: Space, seed: int = 3, scale: float = 1.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (space.size, 2, space.sites, space.states)
        self.table = nn.Parameter(scale * torch.randn(shape, generator=generator, dtype=torch.float64))
        self.space = space

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        return self.table[self.space.index(x)]


def objective(network: nn.Module, space: Space) -> PlannedObjective:
    return PlannedObjective(PlannedDenoiser(network, Uniform(space), torch.full((space.sites,), -1), width=1))


def exact(law: np.ndarray, space: Space) -> PlannedObjective:
    """Make an objective whose networks know the truth."""
    return objective(ExactPlan(law, space), space)


def share(m: float) -> Tensor:
    return torch.tensor([m], dtype=torch.float64)


def all_examples(law: np.ndarray, space: Space, v: float) -> tuple[Example, Tensor]:
    """Every clean row, noised in every way to one time, and how likely each is."""
    rows, weights = [], []
    for weight, clean in zip(law, oracles.configurations(space), strict=True):
        for redrawn in subsets(space.sites):
            for x in oracles.configurations(space):
                rows.append((x, redrawn, clean))
                weights.append(weight * chance(x, redrawn, clean, v**2, space.states))
    x, redrawn, clean = (torch.tensor(part) for part in zip(*rows, strict=True))
    return Example(share(v).expand(len(x)), x, redrawn, None, clean), torch.tensor(weights, dtype=torch.float64)
