"""Mean log-likelihood of rows in a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from neurise import holdings
from neurise.alphabet import as_matrix
from neurise.estimate import Estimate
from neurise.metrics._weights import Weights

LogLaw = Callable[[Any], Any] | np.ndarray
"""Log-probability of each row in the data's own law, (N,) nats, or the function that gives it."""


class HasLikelihood(Protocol):
    """A model that gives the log-probability of a row."""

    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        """Return the log-likelihood of each row in nats, (N,)."""


class Likelihood(NamedTuple):
    """A mean log-likelihood in two units."""

    nats: Estimate  # a row; higher is better
    bits_per_site: Estimate  # with the sign turned; lower is better
    impossible: int  # rows of probability zero, which make the mean infinite


def log_likelihood(
    model: HasLikelihood, X: Any, y: Any = None, *, weights: Any = None, pmf_log_prob: LogLaw | None = None
) -> Likelihood:
    r"""Mean log-likelihood :math:`\sum_k w_k \log p(x_k \mid y_k) / \sum_k w_k` in nats per row, and in bits per site.

    Bits per site are :math:`-\mathrm{nats} / (q \log 2)`. ``model`` offers ``log_prob``; one without an exact likelihood raises
    NotImplementedError (see :func:`elbo`). Without y, a model with labels sums over them. ``weights`` are counts or
    importances of the rows.

    **Floor.** The mean score of the same rows in the data's own law, ``pmf_log_prob(X)`` or its values, where that is known:
    a perfect model's. With labels it has to be the law given the labels. A model may pass it on few rows, by chance.

    **Error.** Standard error of the mean over new rows; importances count as :math:`(\sum w)^2/\sum w^2` rows.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> neurise.metrics.log_likelihood(neurise.Independent().fit(X), X).bits_per_site
    1 ± 0 bits
    """
    X, y, weights = in_hand(model, X, y, weights)
    return summary(model.log_prob(X, y), X, weights, pmf_log_prob)


def in_hand(model: Any, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Open what holds rows, such as counts or a data set: rows, labels for a model that has some, and weights."""
    if isinstance(X, np.ndarray | Tensor):
        return X, y, weights
    space, schema = getattr(model, "space_", None), getattr(model, "schema_", None)
    held = holdings.opened(X, sites=getattr(space, "sites", None))
    labels = held.y if y is None and getattr(schema, "labels", None) is not None else y
    return held.X, labels, held.weights if weights is None else weights


def summary(values: Any, X: Any, weights: Any, pmf_log_prob: LogLaw | None) -> Likelihood:
    """Average one log-likelihood per row."""
    n, sites = as_matrix(X, "X").shape
    masses = Weights.of(weights, n, "weights")
    scores = _checked(values, n, "the model")
    mean, error = masses.mean(scores)
    own = pmf_log_prob(X) if callable(pmf_log_prob) else pmf_log_prob
    floor = None if own is None else masses.mean(_checked(own, n, "pmf_log_prob"))[0]
    unit = sites * math.log(2)
    bits = Estimate(
        -mean / unit,
        error=None if error is None else error / unit,
        floor=None if floor is None else -floor / unit,
        units="bits",
    )
    impossible = int(((scores == -np.inf) & (masses.masses > 0)).sum())
    return Likelihood(Estimate(mean, error=error, floor=floor, units="nats"), bits, impossible)


def _checked(values: Any, n: int, what: str) -> np.ndarray:
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape != (n,):
        raise ValueError(f"{what} gave log-probabilities of shape {scores.shape} for {n:,} rows")
    if np.isnan(scores).any():
        raise ValueError(f"{what} gave nan for row {int(np.isnan(scores).argmax())}")
    return scores
