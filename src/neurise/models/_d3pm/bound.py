"""The bound on the likelihood of a D3PM."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from neurise.batching import batches
from neurise.modeling.joint import Denoiser
from neurise.models._d3pm.steps import Steps

TIMES = 256
"""At most so many of the T times are looked at for one draw of a row's bound."""


@torch.no_grad()
def elbo(denoiser: Denoiser, steps: Steps, x: Tensor, y: Tensor | None, *, generator: Generator) -> Tensor:
    r"""One unbiased draw of the evidence lower bound of each row, in nats, (N,) float64, on the CPU.

    .. math::
        \log p(x_0) \ge -\mathrm{KL}\big(q(x_T \mid x_0) \,\|\, \text{pure noise}\big) - \sum_{t=1}^{T} L_t, \qquad
        L_t = \mathbb{E}_{q(x_t \mid x_0)}\,
          \mathrm{KL}\big(q(x_{t-1} \mid x_t, x_0) \,\|\, p_\theta(x_{t-1} \mid x_t)\big)

    Each divergence is summed exactly over tokens; :math:`x_t` is drawn. Where T is large the times are cut into strata: one
    time of each is drawn, and its term counts as often as the stratum has times.
    """
    device, strata = denoiser.device, min(TIMES, steps.num_steps)
    edges = torch.arange(strata + 1, device=device) * steps.num_steps // strata  # the times 1 + edge[k] … edge[k + 1]
    total = torch.zeros(len(x), dtype=torch.float64, device=device)
    x = x.to(device)
    for part in batches(len(x) * strata, denoiser.bytes_per_row):
        pair = torch.arange(part.start, part.stop, device=device)
        row, stratum = pair // strata, pair % strata
        size = edges[stratum + 1] - edges[stratum]
        place = torch.rand(len(pair), generator=generator, device=device) * size
        t = 1 + edges[stratum] + place.long().clamp(max=size - 1)
        x_0 = x[row]
        x_t = denoiser.corrupt(x_0, steps.keep[t].float(), generator=generator)
        logits = denoiser.network(t / steps.num_steps, x_t, None if y is None else y[row]).double()
        divergence = steps.divergence(steps.log_clean(logits, t, x_t), t, x_t, x_0)
        total.index_add_(0, row, size * torch.where(denoiser.varies, divergence, 0.0).sum(-1))
    impossible = (~denoiser.varies & (x != denoiser.constant)).any(-1)
    bound = -total - denoiser.total(steps.start_divergence())
    return torch.where(impossible, -torch.inf, bound).cpu()
