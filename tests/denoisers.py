"""The true posterior of a small law, in the place of a network that predicts all sites at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from neurise.modeling.joint import Denoiser, Noise
from neurise.space import Space


class ExactPosterior(nn.Module):
    r"""log P(x_0,i = a | x_t) for every site i and token a, (n, sites, states): what cross-entropy would find in the end.

    ``keep(t)`` is the probability that a site is still what it was at time 0.
    """

    def __init__(self, pmf: Tensor, space: Space, noise: Noise, keep: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.pmf, self.space, self.noise, self.keep = pmf.double(), space, noise, keep

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        clean = self.space.configurations().long()  # (size, sites)
        keep = self.keep(t.double()).expand(len(x))
        kernel = self.noise.kernel(keep)  # (n, tokens, tokens)
        rows = torch.arange(len(x))[:, None, None]
        # likelihood[n, c] = P(x_t = x_n | x_0 = c)
        likelihood = kernel[rows, clean[None], x.long()[:, None]].prod(-1)
        joint = likelihood * self.pmf
        joint = joint / joint.sum(-1, keepdim=True)
        one_hot = nn.functional.one_hot(clean, self.space.states).double()  # (size, sites, states)
        return torch.einsum("nc,cia->nia", joint, one_hot).log()


def exact(pmf: Tensor, noise: Noise, keep: Callable[[Tensor], Tensor]) -> Denoiser:
    """Make a denoiser that knows the truth."""
    constant = torch.full((noise.space.sites,), -1)
    return Denoiser(ExactPosterior(pmf, noise.space, noise, keep), noise, constant, width=1)
