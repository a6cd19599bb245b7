"""Mean lower bound on the log-likelihood of rows in a model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from neurise.estimate import Estimate
from neurise.metrics._weights import Weights
from neurise.metrics.log_likelihood import LogLaw, in_hand, summary


class HasBound(Protocol):
    """A model that bounds the log-probability of a row from below."""

    def elbo(self, X: Any, y: Any = None, *, seed: int | None = None) -> Any:
        """Return ``value`` and ``standard_error``, (N,) each, in nats."""


class Bound(NamedTuple):
    """A mean lower bound in two units."""

    nats: Estimate  # a row; higher is better
    bits_per_site: Estimate  # with the sign turned; lower is better
    impossible: int  # rows whose bound is minus infinity
    monte_carlo: float | None  # nats: the part of the error that more draws would remove


def elbo(
    model: HasBound,
    X: Any,
    y: Any = None,
    *,
    weights: Any = None,
    pmf_log_prob: LogLaw | None = None,
    seed: int | None = 0,
    draws: int | None = None,
) -> Bound:
    r"""Mean lower bound :math:`\sum_k w_k \mathrm{elbo}(x_k) / \sum_k w_k \le` log-likelihood, in nats per row and bits per site.

    ``model`` offers ``elbo``, which draws by ``seed``, and ``draws`` times where that is given. Bits per site are
    :math:`-\mathrm{nats} / (q \log 2)`, an upper bound. ``weights`` are counts or importances of the rows.

    **Floor.** The mean log-likelihood of the same rows in the data's own law, ``pmf_log_prob(X)``, where that is known. A
    perfect model reaches it only if its bound is tight.

    **Error.** Standard error of the mean over new rows and new draws. ``monte_carlo`` is the share of the draws,
    :math:`\sqrt{\sum_k w_k^2 s_k^2} / \sum_k w_k`, with s the standard errors that the model gives.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.NeurISE(keep_prob=0.5, cycles=2, width=4, members=1, steps=5).fit(X, verbose=False)
    >>> neurise.metrics.elbo(model, X).nats < 0
    True
    """
    options = {} if draws is None else {"draws": draws}
    X, y, weights = in_hand(model, X, y, weights)
    bound = model.elbo(X, y, seed=seed, **options)
    result = summary(bound.value, X, weights, pmf_log_prob)
    masses = Weights.of(weights, len(bound.value), "weights").masses
    noise = float(np.linalg.norm((masses * np.asarray(bound.standard_error))[masses > 0]) / masses.sum())
    return Bound(*result, monte_carlo=noise if math.isfinite(noise) else None)
