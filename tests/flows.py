"""Discrete flow matching with the true posterior of a small law in the place of its network."""

from __future__ import annotations

import oracles
import torch
from denoisers import ExactPosterior
from torch import Tensor, nn

from neurise.modeling.joint import Denoiser
from neurise.models.dfm import SOURCES
from neurise.space import Space


class ExactContext(nn.Module):
    """The true log-posterior, less what a site's own token says under uniform noise: what a perfect network gives."""

    def __init__(self, law: Tensor, space: Space, source: str, exponent: float) -> None:
        super().__init__()
        self.space, self.source, self.exponent = space, source, exponent
        self.posterior = ExactPosterior(law, space, SOURCES[source](space), self.keep)

    def keep(self, t: Tensor) -> Tensor:
        return (1 - t) ** self.exponent

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        log_p: Tensor = self.posterior(t, x)
        if self.source == "mask":
            return log_p
        kernel = self.posterior.noise.kernel(self.keep(t).expand(len(x)))  # [from, to]
        rows = torch.arange(len(x))[:, None]
        return log_p - kernel.transpose(1, 2)[rows, x.long()].log()


def exact(law: Tensor, space: Space, source: str, exponent: float = 2.0) -> Denoiser:
    """Make a denoiser that knows the truth."""
    network = ExactContext(law, space, source, exponent)
    return Denoiser(network, SOURCES[source](space), torch.full((space.sites,), -1), width=1)


def random_law(space: Space, *, zeros: float = 0.0) -> Tensor:
    return torch.tensor(oracles.random_law(space, 0, zeros=zeros))
