"""Masked diffusion on a small space: the true prediction under any schedules, and every way to mask a row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from neurise.modeling.joint import Denoiser
from neurise.noise.absorbing import Absorbing
from neurise.space import Space


def exponents(space: Space, spread: float) -> Tensor:
    """Any exponents between 1/spread and spread, logarithms."""
    drawn = torch.rand(space.sites, space.states, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return torch.log(torch.tensor(spread, dtype=torch.float64)) * (2 * drawn - 1)


class ExactMasks(nn.Module):
    """log P(x_0,i = a | x_t) at masked sites, where a token a is masked by time t = v^power with probability t^w_a."""

    def __init__(self, law: Tensor, space: Space, log_w: Tensor, power: float) -> None:
        super().__init__()
        self.law, self.space, self.log_w, self.power = law, space, log_w, power

    def forward(self, v: Tensor | None = None, x: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        if v is None or x is None:
            return self.log_w
        clean = self.space.configurations().long()  # (size, sites)
        log_t = (self.power * v.double().log()).expand(len(x))
        log_masked = self.log_w.exp()[torch.arange(self.space.sites), clean] * log_t[:, None, None]  # (n, size, sites)
        shown = torch.where(x.long()[:, None] == clean, torch.log1p(-log_masked.exp()), -torch.inf)
        likelihood = torch.where((x == self.space.states)[:, None], log_masked, shown).sum(-1)
        joint = (likelihood + self.law.log()).softmax(-1)
        one_hot = nn.functional.one_hot(clean, self.space.states).double()
        return torch.einsum("nc,cia->nia", joint, one_hot).log()


class AnyPrediction(nn.Module):
    """A wrong prediction: a random table over masked states, the same at all times; and exponents that can be learnt."""

    def __init__(self, space: Space, log_w: Tensor) -> None:
        super().__init__()
        tokens = space.states + 1
        generator = torch.Generator().manual_seed(3)
        shape = (tokens**space.sites, space.sites, space.states)
        self.table = nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))
        self.log_w = nn.Parameter(log_w.clone())
        self.place = tokens ** torch.arange(space.sites)

    def forward(self, v: Tensor | None = None, x: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        return self.log_w if x is None else self.table[(x.long() * self.place).sum(-1)]


def denoiser(network: nn.Module, space: Space) -> Denoiser:
    return Denoiser(network, Absorbing(space), torch.full((space.sites,), -1), width=1)


def subsets(sites: int) -> Iterator[tuple[bool, ...]]:
    """Every set of masked sites."""
    return itertools.product((False, True), repeat=sites)
