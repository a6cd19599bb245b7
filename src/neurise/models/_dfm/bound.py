"""Lower bounds on a likelihood that are an integral over the times of a noise."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from neurise.batching import batches
from neurise.modeling.joint import Denoiser

BOUND_TIMES = 64
"""At so many times, one in each of as many strata, a draw of the bound looks at each row."""

Integrand = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""``f(v, rows, labels)`` → one unbiased draw of the loss of each row as a density in v, (n,)."""


@torch.no_grad()
def integrated(
    denoiser: Denoiser, integrand: Integrand, x: Tensor, y: Tensor | None, *, generator: Generator
) -> Tensor:
    r"""One unbiased draw of :math:`-\int_0^1 \mathbb{E}\,f(v)\,dv` of each row, (N,) float64, on the CPU.

    A row that differs from the data at a site that never varied is impossible, −∞.
    """
    device, parts = denoiser.device, []
    for rows in batches(len(x), denoiser.bytes_per_row):
        clean, labels = x[rows].to(device), None if y is None else y[rows].to(device)
        total = torch.zeros(len(clean), dtype=torch.float64, device=device)
        for stratum in range(BOUND_TIMES):
            uniform = torch.rand(len(clean), dtype=torch.float64, generator=generator, device=device)
            total -= integrand((stratum + 1 - uniform) / BOUND_TIMES, clean, labels) / BOUND_TIMES
        impossible = (denoiser.varies.logical_not() & (clean != denoiser.constant)).any(-1)
        parts.append(total.masked_fill(impossible, -torch.inf).cpu())
    return torch.cat(parts)
