"""Exact likelihood where it exists, and the evidence lower bound everywhere; whole, and site by site."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from neurise.batching import MEMORY_BUDGET, batches
from neurise.conditionals.base import Conditionals


@torch.no_grad()
def log_prob(conditionals: Conditionals, x: Tensor, y: Tensor | None = None) -> Tensor:
    r"""Exact log-likelihood of each row in nats, (N,) float64, on the CPU.

    .. math:: \log p(x) = \sum_{u=0}^{q-1} \log \mathrm{softmax}\,f(t = u, u, x_{>u})_{x_u}

    Sites are generated from the last to the first, each from those after it (hard noise; sites before u are hidden). It is
    the likelihood of the chain without sweeps.
    """
    return torch.cat([terms.sum(1) for terms in _log_terms(conditionals, x, y)])


@torch.no_grad()
def log_terms(conditionals: Conditionals, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Return the terms of :func:`log_prob`, the log-probability of each site given those after it, (N, sites) float64."""
    return torch.cat(list(_log_terms(conditionals, x, y)))


def _log_terms(conditionals: Conditionals, x: Tensor, y: Tensor | None) -> Iterator[Tensor]:
    device = conditionals.device
    for rows in conditionals.blocks(len(x), cached=True):
        block, labels = x[rows].to(device), None if y is None else y[rows].to(device)
        log_conditionals = conditionals.log_conditionals(block, labels)  # (n, sites, states)
        yield log_conditionals.gather(-1, block.long()[..., None]).squeeze(-1).double().cpu()


@torch.no_grad()
def elbo(conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    r"""One unbiased draw of the evidence lower bound of each row, in nats, (N,) float64, on the CPU.

    .. math::
        \log p(x_0) \ge -\mathrm{KL}(X_T \mid x_0 \,\|\, \text{start})
        - \sum_{t=0}^{T-1} \mathbb{E}_{X_{t+1} \mid x_0}\,
          \mathrm{KL}\big(q(X_{t,u} \mid x_0, X_{t+1}) \,\|\, P_\theta(X_{t,u} \mid X_{t+1})\big)

    Each divergence is over the tokens of one site and summed exactly; only :math:`X_{t+1}` is drawn, in one shot, on paths
    that end where the chain may start (:meth:`SiteNoise.pinned`). It bounds the likelihood of the chain without sweeps.
    """
    return -_divergences(conditionals, x, y, generator).sum(1) - conditionals.noise.start_divergence()


@torch.no_grad()
def elbo_terms(conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Return the terms of :func:`elbo`, the steps of each site together, (N, sites) float64; all bear the same of the start."""
    start = conditionals.noise.start_divergence() / conditionals.noise.space.sites
    return -_divergences(conditionals, x, y, generator) - start


def _divergences(conditionals: Conditionals, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
    """Draw the divergences of all steps, and add up those of each site, (N, sites) float64."""
    noise, device = conditionals.noise, conditionals.device
    total = torch.zeros(len(x), noise.space.sites, dtype=torch.float64)
    for rows, steps in _blocks(len(x), noise.num_steps, conditionals):
        clean, labels = x[rows].to(device), None if y is None else y[rows].to(device)
        t = torch.arange(steps.start, steps.stop, device=device)[:, None]  # (S, 1)
        u = noise.site(t)
        shape = (len(t), len(clean))
        after = (t + 1).expand(shape).reshape(-1)
        later = noise.pinned(clean.repeat(len(t), 1), after, generator=generator).reshape(*shape, -1)  # (S, R, sites)
        at_u = u[..., None].expand(*shape, 1)
        x_u = later.gather(-1, at_u).squeeze(-1)
        x_0u = clean.expand(*shape, -1).gather(-1, at_u).squeeze(-1)
        log_step = noise.reverse(conditionals.log_conditional(t, u, later, labels), x_u, t).double()
        bridge = noise.bridge(x_0u, x_u, t)
        divergence = torch.where(bridge > -torch.inf, bridge.exp() * (bridge - log_step), 0.0).sum(-1)
        total[rows] = total[rows].index_add(1, u.flatten().cpu(), divergence.T.cpu())
    return total


def _blocks(rows: int, steps: int, conditionals: Conditionals) -> list[tuple[slice, slice]]:
    """Cut rows × steps evaluations into blocks that fit the memory budget: whole rows where possible."""
    size = conditionals.bytes_per_row
    return [
        (row_slice, step_slice)
        for row_slice in batches(rows, size * min(steps, max(1, MEMORY_BUDGET // size)))
        for step_slice in batches(steps, size * (row_slice.stop - row_slice.start))
    ]
