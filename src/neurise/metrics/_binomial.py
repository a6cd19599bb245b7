"""What n independent draws from a known law score against that law, on average: the floors of laws."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neurise.batching import batches

TERMS = ((0.01, 8), (1.0, 24), (8.0, 56), (64.0, 160))
r"""Up to which mean λ how many terms of a sum over counts matter: the rest has probability :math:`< 10^{-19}`."""
BYTES_PER_CELL = 2**8
"""Memory that a cell takes, with everything that is computed of it."""


def expected_distance(law: Tensor, n: int) -> float:
    r"""Mean total variation of n draws, :math:`\tfrac12 \sum_x E|K_x/n - \mu_x|`, :math:`K_x \sim \mathrm{Bin}(n, \mu_x)`; exact.

    De Moivre's closed form of the mean absolute deviation:
    :math:`E|K - n\mu| = 2 \nu \binom{n}{\nu} \mu^\nu (1-\mu)^{n-\nu+1}` with :math:`\nu = \lfloor n\mu \rfloor + 1`.
    """
    total = 0.0
    for piece in batches(len(law), BYTES_PER_CELL):
        mu = law[piece]
        rare = mu * n < 1  # ν = 1: most cells of a large space, and no factorials
        seldom = mu[rare]
        total += float((n * seldom * torch.exp(n * torch.log1p(-seldom))).sum())
        often = mu[~rare & (mu < 1)]
        nu = torch.floor(n * often) + 1
        log_ways = torch.lgamma(often.new_tensor(n + 1.0)) - torch.lgamma(nu + 1) - torch.lgamma(n - nu + 1)
        log_half = torch.log(nu) + log_ways + nu * torch.log(often) + (n - nu + 1) * torch.log1p(-often)
        total += float(torch.exp(log_half).sum())
    return total / n


def expected_divergence(law: Tensor, n: int) -> float:
    r"""Mean divergence of n draws in nats, :math:`\sum_x E[\tfrac{K_x}{n} \log \tfrac{K_x}{n\mu_x}]`.

    With :math:`E[K f(K)] = n\mu\, E f(1 + B)`, :math:`B \sim \mathrm{Bin}(n-1, \mu)`, a cell of mean :math:`\lambda = n\mu`
    gives :math:`\mu\,(E \log(1 + B) - \log\lambda)`. Up to λ = 64 this is summed over B; beyond, it is the expansion in 1/n,
    :math:`\tfrac{1-\mu}{2n} + \tfrac{1-\mu^2}{12 n^2 \mu} + \tfrac{1-\mu}{12 n^3\mu^2}`, whose error is below
    :math:`\lambda^{-3}/5n`.
    """
    total = 0.0
    for piece in batches(len(law), BYTES_PER_CELL):
        mu = law[piece]
        mu = mu[(mu > 0) & (mu < 1)]
        mean, lower = n * mu, 0.0
        for upper, terms in TERMS:
            cells = mu[(mean > lower) & (mean <= upper)]
            if len(cells):
                total += float((cells * (_mean_log(cells, n, terms) - torch.log(n * cells))).sum())
            lower = upper
        mu = mu[mean > lower]
        series = (1 - mu) / (2 * n) + (1 - mu**2) / (12 * n**2 * mu) + (1 - mu) / (12 * n**3 * mu**2)
        total += float(series.sum())
    return total


def _mean_log(mu: Tensor, n: int, terms: int) -> Tensor:
    """E log(1 + B) for B ~ Bin(n − 1, μ), by its first terms."""
    log_hit, log_miss = torch.log(mu), torch.log1p(-mu)
    total, log_ways = torch.zeros_like(mu), 0.0
    for k in range(1, min(terms, n - 1) + 1):
        log_ways += math.log((n - k) / k)  # of the binomial coefficient of n − 1 and k
        total += math.log1p(k) * torch.exp(log_ways + k * log_hit + (n - 1 - k) * log_miss)
    return total
