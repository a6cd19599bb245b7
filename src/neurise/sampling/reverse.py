"""The one reverse loop: the reference that every faster form is tied to."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from neurise.batching import batches
from neurise.conditionals import Conditionals
from neurise.sampling.categorical import draw, uniforms


def reverse(conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    r"""Run the chain from :math:`X_T` = x back to :math:`X_0`, (n, sites) tokens; one evaluation a step.

    Step t = T−1 … 0 replaces site u = t mod q by a draw from the Bayes kernel
    :math:`P(a \mid \tilde x) \propto k(\tilde x_u \mid a)\,\mu_t(a \mid x_{-u})`.
    """
    noise = conditionals.noise
    steps = torch.arange(noise.num_steps, device=x.device)
    x = x.clone()
    for t in reversed(range(noise.num_steps)):
        u = t % noise.space.sites
        step = steps[t : t + 1]  # a slice, not an element: indexing with one would wait for the device
        log_conditional = conditionals.log_conditional(step, noise.site(step), x, y)
        x[:, u] = draw(noise.reverse(log_conditional, x[:, u]), uniforms(len(x), generator=generator))
    return x


@torch.no_grad()
def sample(conditionals: Conditionals, n: int, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Draw n configurations, starting from uniform noise, in batches that fit the memory budget."""
    parts = []
    for rows in batches(n, conditionals.bytes_per_row):
        noise = conditionals.noise.start(rows.stop - rows.start, generator=generator)
        parts.append(reverse(conditionals, noise, None if y is None else y[rows], generator=generator).cpu())
    return torch.cat(parts)
