"""Lower bounds on log-likelihoods, where labels are known and where they are summed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from neurise import shown


class Elbo(NamedTuple):
    """A lower bound on each row's log-likelihood, in nats, and the standard error of its Monte Carlo estimate."""

    value: np.ndarray  # (N,)
    standard_error: np.ndarray  # (N,)

    def __repr__(self) -> str:
        return shown.record(self)


def bound(
    estimate: Callable[[Tensor | None], np.ndarray], terms: Sequence[tuple[Tensor | None, float]], draws: int
) -> Elbo:
    r"""Average ``draws`` estimates of a bound; where there are several labels, bound the sum over them.

    ``estimate(label)`` draws the bound of each row given the label, (N,). Over labels of probability :math:`\pi_y` the bound is
    :math:`\sum_y w_y (\log \pi_y + \mathrm{elbo}_y - \log w_y)`. Any weights w give one; good ones are estimated from draws of
    their own, so that the estimate stays unbiased.
    """
    if draws < 2:
        raise ValueError(f"a standard error needs at least two draws, got draws={draws}")

    def estimates(label: Tensor | None) -> np.ndarray:
        return np.stack([estimate(label) for _ in range(draws)])  # (draws, N)

    if len(terms) == 1:
        values = estimates(terms[0][0])
    else:
        log_prior = np.log([weight for _, weight in terms])[:, None, None]
        pilot = (log_prior + np.stack([estimates(label) for label, _ in terms])).mean(axis=1)  # (classes, N)
        with np.errstate(invalid="ignore"):
            log_w = pilot - np.logaddexp.reduce(pilot, axis=0)
        joint = log_prior + np.stack([estimates(label) for label, _ in terms])
        with np.errstate(invalid="ignore"):
            shares = np.exp(log_w)[:, None] * (joint - log_w[:, None])
        values = np.where(log_w[:, None] > -np.inf, shares, 0.0).sum(axis=0)
        values[:, np.isneginf(pilot).all(axis=0)] = -np.inf  # a row that no label can give
    with np.errstate(invalid="ignore"):
        return Elbo(values.mean(axis=0), values.std(axis=0, ddof=1) / draws**0.5)
