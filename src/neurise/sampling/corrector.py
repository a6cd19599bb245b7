r"""Glauber sweeps at a fixed time: the corrector of a predictor–corrector sampler.

A site is redrawn from its conditional given all the others, :math:`\mu_t(x_u \mid x_{-u})`, which leaves :math:`\mu_t` as it
is. What the reverse steps got wrong is pulled back towards the law that these conditionals belong to. They must have been
learnt at every site of that time: round-robin training alone visits one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Generator, Tensor

from neurise.batching import batches, budget_on
from neurise.conditionals import Conditionals
from neurise.sampling import _plan, graphs, incremental
from neurise.sampling.categorical import draw, uniforms


def sweep(
    conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, t: int = 0, generator: Generator
) -> Tensor:
    """Redraw every site of x (n, sites) once, the last one first, at time t. Sites that hold pure noise then are left out."""
    sites = conditionals.noise.space.sites
    places = torch.arange(sites, device=x.device)
    step = torch.full((1,), t, device=x.device)
    x = x.clone()
    level = uniforms(sites * len(x), generator=generator).view(sites, len(x))  # in the order of the steps
    first = min(t, sites) if conditionals.noise.is_hard else 0
    for number, u in enumerate(reversed(range(first, sites))):
        log_conditional = conditionals.log_conditional(step, places[u : u + 1], x, y)
        x[:, u] = draw(log_conditional, level[number])
    return x


@torch.no_grad()
def correct(
    conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, sweeps: int, generator: Generator
) -> Tensor:
    """Sweep rows (n, sites) at time 0, in batches that fit the memory budget; they end on the CPU."""
    if not sweeps:
        return x
    parts, once = [], _sweeper(conditionals, generator)
    for rows in batches(len(x), conditionals.bytes_per_row, budget_on(conditionals.device)):
        part, labels = x[rows].to(conditionals.device), None if y is None else y[rows].to(conditionals.device)
        for _ in range(sweeps):
            part = once(part, labels)
        parts.append(part.cpu())
    return torch.cat(parts)


def _sweeper(conditionals: Conditionals, generator: Generator) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Choose how to sweep at time 0: at O(width) a step for the first layer where the network has one to update."""
    if not _plan.supports(conditionals):
        return partial(sweep, conditionals, generator=generator)
    plans = _plan.make(conditionals, sweep=True)
    if graphs.available(conditionals.device):
        return partial(graphs.run, conditionals, plans, generator=generator)
    return partial(incremental.run, plans, generator=generator)
