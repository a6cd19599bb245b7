"""A lower bound on the likelihood of score entropy discrete diffusion."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from neurise.batching import batches
from neurise.modeling.joint import Denoiser
from neurise.models._sedd.schedule import Schedule
from neurise.models._sedd.score import Score

LEVELS = 64
"""Levels of noise at which one draw of the bound looks at a row."""


@torch.no_grad()
def elbo(
    denoiser: Denoiser, score: Score, schedule: Schedule, x: Tensor, y: Tensor | None, *, generator: Generator
) -> Tensor:
    r"""One unbiased draw of the bound of each row, in nats, (N,) float64, on the CPU.

    .. math::
        -\log p(x_0) \le \int_0^{\sigma_1} \mathbb{E}_{x_\sigma \mid x_0}\, L(\ell_\theta, x_\sigma, x_0)\, d\sigma
        + \mathrm{KL}(x_{\sigma_1} \mid x_0 \,\|\, \text{start}), \qquad \sigma_1 = \sigma(t = 1),

    with L the score entropy summed over sites: the divergence between the paths of the noise given :math:`x_0` and those of
    the reverse process in continuous time, which the sampler follows the closer the more steps it takes. It is a bound
    because nothing is cut off. There is data at σ = 0 alone; where there is less noise than at t = 0, the network is asked
    at t = 0. Of absorbing noise a part is not yet masked at t = 1, where the reverse process has masks alone; the
    paths are therefore taken under the condition that all is masked by then. This leaves the rates of their reversal as they
    are, so the integral stays the same but for its weights, and the divergence at the end is 0 instead of infinite.

    One level of noise is drawn in each of ``LEVELS`` equal parts of the draw that also serves the training.
    """
    device, varies = denoiser.device, denoiser.varies
    end = schedule.sigma(torch.ones(1, dtype=torch.float64, device=device))
    clean = torch.zeros_like(end)
    total = torch.zeros(len(x), dtype=torch.float64)
    for rows in batches(len(x), denoiser.bytes_per_row):
        x_0, labels = x[rows].to(device), None if y is None else y[rows].to(device)
        loss = torch.zeros(len(x_0), dtype=torch.float64, device=device)
        for level in range(LEVELS):
            # In (0, 1], for at σ = 0 a weight of zero meets an infinite loss.
            place = 1 - torch.rand(len(x_0), generator=generator, device=device, dtype=torch.float64)
            sigma, x_t, weight = score.noised(denoiser, x_0, (level + place) / LEVELS, clean, end, generator=generator)
            output = score.form.usable(denoiser.network(schedule.time(sigma), x_t, labels).double())
            entropy = score.entropy(output, sigma, x_t, x_0)
            loss += weight * (entropy * varies).sum(-1) / LEVELS
        bound = -loss - denoiser.total(score.start_divergence(end))
        impossible = ((x_0 != denoiser.constant) & ~varies).any(-1)  # what never varied is never anything else
        total[rows] = torch.where(impossible, -torch.inf, bound).cpu()
    return total
