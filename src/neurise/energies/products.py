r"""Maximum likelihood of laws of spins whose energy is a sum of products of any sets of sites.

.. math:: \mu_\theta(\sigma) = \exp\Bigl(\sum_T \theta_T \prod_{i \in T} \sigma_i - \log Z\Bigr)

All sums are exact: one Walsh transform writes the law out, another gives its moments :math:`m_T` of all sets
(:mod:`neurise.walsh`). The product of two features is a feature again, so that the Fisher information is read off the moments,

.. math:: F_{ST} = m_{S \triangle T} - m_S m_T .

As on a graph (:mod:`neurise.energies.maximum_likelihood`), parameters are a priori normal with variance 1/c, and Newton's method
ends when the moments are off by a small share of their standard errors. The objective is concave: a step is halved until it rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neurise import walsh
from neurise.energies.maximum_likelihood import ENOUGH, FIELDS, ROUNDS
from neurise.rows import Rows

COUPLINGS = 1.0
"""The penalty c of all products but the fields."""
HALVED = 30
"""How often a step is halved before the top is taken to be reached."""

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Observed:
    """What rows of spins say: the mean of the product over every set of sites, and how many rows there are."""

    sites: int
    moments: np.ndarray  # (2^sites,)
    count: float  # N

    @classmethod
    def of(cls, rows: Rows, count: float) -> Observed:
        """Count rows of tokens 0 and 1, with their weights."""
        sites = rows.x.shape[1]
        weights = None if rows.weights is None else rows.weights.double().cpu().numpy()
        law = np.bincount(places(rows.x.cpu().numpy()), weights, minlength=1 << sites).astype(np.float64)
        return cls(sites, walsh.moments_of(law / law.sum()), count)


@dataclass(frozen=True, eq=False)
class ProductFit:
    """A law of products, at the top of its penalised likelihood."""

    sites: int
    sets: Sets  # the fields of all sites first
    theta: np.ndarray  # (sets,)
    value: float  # mean log-likelihood of the rows, without the penalty
    log_law: np.ndarray  # (2^sites,)
    moments: np.ndarray  # (2^sites,): of all sets
    count: float  # N

    @cached_property
    def masks(self) -> np.ndarray:
        """The place of each set among the moments, (sets,)."""
        return masks_of(self.sites, self.sets)

    @cached_property
    def fisher(self) -> np.ndarray:
        """The Fisher information of the parameters, (sets, sets)."""
        return self.between(self.masks)

    @cached_property
    def covariance(self) -> np.ndarray:
        r"""The covariance of the estimate given the sets, :math:`(N F + c)^{-1}`."""
        return np.asarray(np.linalg.inv(self.count * self.fisher + np.diag(penalty(self.sets))))

    def between(self, others: np.ndarray) -> np.ndarray:
        """Return the covariance of the products over other sets with those of the law, (others, sets)."""
        own = self.moments[self.masks]
        return np.asarray(self.moments[others[:, None] ^ self.masks] - np.outer(self.moments[others], own))

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of rows of tokens, (n,)."""
        return np.asarray(self.log_law[places(x)])


def fit(data: Observed, sets: Sets, start: np.ndarray | None = None) -> ProductFit:
    """Maximise the penalised likelihood over the parameters of some sets."""
    masks, weight = masks_of(data.sites, sets), penalty(sets) / data.count
    mean = data.moments[masks]

    def at(theta: np.ndarray) -> ProductFit:
        coefficients = np.zeros(1 << data.sites)
        coefficients[masks] = theta
        energy = walsh.values_of(coefficients)
        high = energy.max()
        log_z = high + np.log(np.exp(energy - high).sum())
        log_law = energy - log_z
        moments = walsh.moments_of(np.exp(log_law))
        return ProductFit(data.sites, sets, theta, float(theta @ mean - log_z), log_law, moments, data.count)

    def height(found: ProductFit) -> float:
        return found.value - 0.5 * float(weight @ found.theta**2)

    found = at(np.zeros(len(sets)) if start is None else start)
    for _ in range(ROUNDS):
        gradient = mean - found.moments[masks] - weight * found.theta
        step = np.linalg.solve(found.fisher + np.diag(weight), gradient)
        rise = float(step @ gradient)
        if data.count * rise <= ENOUGH**2 * len(sets):
            break
        for _ in range(HALVED):
            further = at(found.theta + step)
            if height(further) >= height(found) + 1e-4 * rise:
                break
            step, rise = step / 2, rise / 2
        else:
            break
        found = further
    return found


def penalty(sets: Sets) -> np.ndarray:
    """Return the penalty c of each parameter, (sets,)."""
    return np.array([FIELDS if len(own) == 1 else COUPLINGS for own in sets])


def masks_of(sites: int, sets: Sets) -> np.ndarray:
    """Return the place of each set among all, (sets,)."""
    return np.array([walsh.place_of(sites, own) for own in sets], dtype=np.int64)


def places(x: np.ndarray) -> np.ndarray:
    """Return the place of each row of tokens 0 and 1 among all configurations, (n,)."""
    return np.asarray(x.astype(np.int64) @ (1 << np.arange(x.shape[1])[::-1]))
