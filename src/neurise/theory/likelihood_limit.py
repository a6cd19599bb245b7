r"""How near N rows lead to a law if its family is known: the limit of maximum likelihood.

The estimate of the parameters θ of an exponential family scatters about the truth by :math:`\delta \sim N(0, F^{-1}/N)`, with F
the Fisher information, the covariance of the features φ. To first order the law moves by
:math:`\mu(x)\, s(x)^\top \delta`, with the score :math:`s = \varphi - E\varphi`, and

.. math:: E\,\mathrm{TV} \simeq \tfrac12 \sqrt{\tfrac{2}{\pi}}\; E_{x \sim \mu} \sqrt{s(x)^\top F^{-1} s(x) / N}
   \;\le\; \sqrt{\tfrac{d}{2 \pi N}} \approx 0.4 \sqrt{d / N},

the last by Jensen's inequality, since :math:`E\, s^\top F^{-1} s = d`, the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from neurise.walsh import moments_of, place_of, values_of


@dataclass(frozen=True)
class LikelihoodLimit:
    """What the best estimate in a family reaches on average.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> limit = neurise.theory.likelihood_limit(data.pmf, neurise.theory.pairs_family(4, data.edges))
    >>> limit.tv(4000) / limit.tv(1000)          # four times the rows, half the error
    0.5
    """

    parameters: int
    rate: float  # total variation times √N, for many rows

    def tv(self, rows: float) -> float:
        """Return the expected total variation of N rows; the formula is for many rows, and a distance is at most 1."""
        return min(1.0, self.rate / math.sqrt(rows))

    def ceiling(self, rows: float) -> float:
        """Return the bound 0.4 √(d/N), which needs no law."""
        return min(1.0, math.sqrt(self.parameters / (2 * math.pi * rows)))


def pairs_family(sites: int, edges: Iterable[Sequence[int]] | None = None) -> list[tuple[int, ...]]:
    """List the features of a pairwise family of spins: a field per site, and a coupling per edge (or per pair).

    >>> import neurise
    >>> neurise.theory.pairs_family(3, [(0, 1)])
    [(0,), (1,), (2,), (0, 1)]
    """
    pairs = combinations(range(sites), 2) if edges is None else {tuple(sorted(map(int, edge))) for edge in edges}
    return [(site,) for site in range(sites)] + sorted((i, j) for i, j in pairs)


def likelihood_limit(law: np.ndarray, family: Sequence[Sequence[int]]) -> LikelihoodLimit:
    r"""Compute the limit exactly, for a law of spins, (2^q,), in a family of products :math:`\varphi_T = \prod_{i \in T}\sigma_i`.

    Products of features are features: :math:`\varphi_S \varphi_T = \varphi_{S \triangle T}`. So the Fisher information is made of
    moments, and :math:`s^\top F^{-1} s` is a sum of few products, whose values at all configurations take q·2^q additions.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> limit = neurise.theory.likelihood_limit(data.pmf, neurise.theory.pairs_family(4, data.edges))
    >>> limit.parameters, limit.tv(1000) < limit.ceiling(1000)
    (8, True)
    """
    sites = len(law).bit_length() - 1
    places = np.array([place_of(sites, term) for term in family])
    if len(np.unique(places)) < len(places) or (places == 0).any():
        raise ValueError("the features of a family must be different products of at least one spin each")
    moments = moments_of(law)
    both = places[:, None] ^ places  # the place of the product of two features
    mean = moments[places]
    fisher = moments[both] - np.outer(mean, mean)
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(fisher))
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "the law determines not all parameters of the family: its Fisher information is singular"
        ) from error
    inverse = inverse.T @ inverse
    coefficients = np.zeros(len(law))
    np.add.at(coefficients, both, inverse)
    np.add.at(coefficients, places, -2 * inverse @ mean)
    coefficients[0] += mean @ inverse @ mean
    length = np.sqrt(values_of(coefficients).clip(min=0.0))  # rounding may leave it below zero
    return LikelihoodLimit(len(places), 0.5 * math.sqrt(2 / math.pi) * float(law @ length))
