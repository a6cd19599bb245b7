r"""Empirical laws from which the reverse chain may start, in the place of the uniform one.

The paper's corollary allows any start and charges :math:`\gamma = \mathrm{TV}(\text{start}, \text{uniform})` for it. What a
start truly costs is at most :math:`\mathrm{TV}(\text{start}, \mu_T)`: a start that is nearer to :math:`\mu_T` than the uniform
law can make the output better, although its γ makes the bound worse.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from neurise import exact
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space


def empirical(rows: Tensor, space: Space) -> Tensor:
    r"""Law of a row chosen at random, :math:`\frac1N \sum_i \delta_{x_i}`, (p^q,) float64; rows are (N, sites) tokens.

    >>> import neurise
    >>> import torch
    >>> neurise.theory.empirical(torch.tensor([[0, 0], [0, 0], [1, 1], [0, 1]]), neurise.Space(2, 2)).tolist()
    [0.5, 0.25, 0.0, 0.25]
    """
    space.require_enumerable()
    counts = torch.bincount(space.index(rows), minlength=space.size)
    return counts.double() / len(rows)


def empirical_starts(rows: Tensor, noise: RoundRobin, *, generator: Generator) -> dict[str, Tensor]:
    r"""Three starts that N rows of tokens, in the order of the noise, allow beside the uniform law; (p^q,) each, by name.

    - ``noised rows``: every row is noised once, :math:`\frac1N \sum_i \delta_{X_T^i}`. Its distance from :math:`\mu_T` is
      that of N samples.
    - ``fresh noise``: each start takes a row at random and noises it anew, :math:`\frac1N \sum_i P(X_T \mid X_0 = x_i)`, so that
      only the rows are finite in number and not their noise.
    - ``uniform draws``: N draws of pure noise, the example of the paper's corollary.

    >>> import torch
    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> rows = torch.tensor([[0, 0], [1, 1], [0, 1]])
    >>> list(theory.empirical_starts(rows, noise, generator=torch.Generator().manual_seed(0)))
    ['noised rows', 'fresh noise', 'uniform draws']
    """
    final = torch.full((len(rows),), noise.num_steps)
    return {
        "noised rows": empirical(noise.corrupt(rows, final, generator=generator), noise.space),
        "fresh noise": exact.noised(empirical(rows, noise.space), noise, noise.num_steps),
        "uniform draws": empirical(noise.start(len(rows), generator=generator), noise.space),
    }


def expected_gamma(space: Space, n: int) -> float:
    r"""What γ of n draws of uniform noise is at most, on average: :math:`\mathbb{E}\,\gamma \le \tfrac12\sqrt{(p^q - 1)/n}`.

    Each of the p^q shares has variance :math:`\mu(1 - \mu)/n` with :math:`\mu = p^{-q}`, and a mean deviation of at most its root
    (Berend and Kontorovich, 2012). A bound above 1 says nothing.
    """
    if n < 1:
        raise ValueError(f"n must be positive, got {n}")
    return 0.5 * math.sqrt((space.size - 1) / n)
