"""Noise on all sites at once: each site is kept, or becomes a uniform token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.space import Space


@dataclass(frozen=True)
class Uniform:
    r"""Every site independently keeps its token with probability α, else is redrawn uniformly:

    .. math:: Q_\alpha[a, b] = \alpha\,\delta_{ab} + (1 - \alpha)/p, \qquad Q_\alpha Q_\beta = Q_{\alpha\beta}.

    A method owns the schedule: how α falls with its time from 1 (data) to 0 (noise). Where sites have alphabets of their own, p
    is the size of the site's.
    """

    space: Space

    @property
    def tokens(self) -> int:
        """How many tokens a noised site may hold: p."""
        return self.space.states

    def corrupt(self, x_0: Tensor, keep: Tensor, *, generator: Generator) -> Tensor:
        """Noise each row of x_0 (n, sites) to its own level ``keep`` (n,)."""
        kept = torch.rand(x_0.shape, generator=generator, device=x_0.device) < keep[:, None]
        return torch.where(kept, x_0, self.start(len(x_0), generator=generator))

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states of pure noise."""
        return self.space.uniform(n, generator=generator)

    def start_law(self) -> Tensor:
        """Law of a site of pure noise, (tokens,) float64, on the CPU; (sites, tokens) where they differ."""
        if self.space.sizes is not None:
            allowed = self.space.allowed()
            return allowed / allowed.sum(1, keepdim=True, dtype=torch.float64)
        return torch.full((self.tokens,), 1 / self.tokens, dtype=torch.float64)

    def kernel(self, keep: Tensor) -> Tensor:
        """Q[a, b] from token a to token b, (..., tokens, tokens), for levels ``keep`` (...)."""
        level = keep[..., None, None]
        same = torch.eye(self.tokens, dtype=keep.dtype, device=keep.device)
        return level * same + (1 - level) / self.tokens
