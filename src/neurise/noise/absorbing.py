"""Noise on all sites at once: each site is kept, or becomes a mask."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.space import Space


@dataclass(frozen=True)
class Absorbing:
    r"""Every site independently keeps its token with probability α, else becomes the mask, token p, and stays it:

    .. math:: Q_\alpha[a, b] = \alpha\,\delta_{ab} + (1 - \alpha)\,\delta_{bp}, \qquad Q_\alpha Q_\beta = Q_{\alpha\beta}.

    A method owns the schedule: how α falls with its time from 1 (data) to 0 (noise).
    """

    space: Space

    @property
    def tokens(self) -> int:
        """How many tokens a noised site may hold: p and the mask."""
        return self.space.states + 1

    def corrupt(self, x_0: Tensor, keep: Tensor, *, generator: Generator) -> Tensor:
        """Noise each row of x_0 (n, sites) to its own level ``keep`` (n,). Sixteen bits: with p = 256 the mask is token 256."""
        gone = torch.rand(x_0.shape, generator=generator, device=x_0.device) >= keep[:, None]
        return x_0.to(torch.int16).masked_fill(gone, self.space.states)

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Return n rows of masks."""
        shape = (n, self.space.sites)
        return torch.full(shape, self.space.states, dtype=torch.int16, device=generator.device)

    def start_law(self) -> Tensor:
        """Law of one site of pure noise, (tokens,) float64, on the CPU."""
        law = torch.zeros(self.tokens, dtype=torch.float64)
        law[-1] = 1
        return law

    def kernel(self, keep: Tensor) -> Tensor:
        """Q[a, b] from token a to token b, (..., tokens, tokens), for levels ``keep`` (...). The mask stays the mask."""
        level = keep[..., None, None]
        same = torch.eye(self.tokens, dtype=keep.dtype, device=keep.device)
        mask = same[-1].expand_as(same)
        return level * same + (1 - level) * mask
