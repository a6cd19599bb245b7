"""How far a law is from a known one, by likelihoods alone: no sum over all configurations, and no floor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from neurise.estimate import Estimate

ROUNDING = 1e-6
"""What the logarithm of a probability may be above 0."""


class Ratio(NamedTuple):
    """Distances of a model's law ν from the law μ that the rows were drawn from."""

    total_variation: Estimate
    kl: Estimate


def likelihood_ratio(log_model: Any, log_truth: Any) -> Ratio:
    r"""Total variation and KL divergence by log-likelihoods of fresh rows of the truth, (n,) each, in nats.

    .. math::
        \tfrac12 \sum_x |\nu(x) - \mu(x)| = \mathbb{E}_{x \sim \mu} \max\Bigl(0,\ 1 - \frac{\nu(x)}{\mu(x)}\Bigr),
        \qquad \mathrm{KL}(\mu \,\|\, \nu) = \mathbb{E}_{x \sim \mu} \log \frac{\mu(x)}{\nu(x)} .

    ``log_model`` is what a model with an exact likelihood says of rows that were drawn from the known law, and ``log_truth``
    what that law says. The rows must be fresh: on those that a model has learnt from both come out too small.

    **Floor.** 0: both means are unbiased, and every term of a perfect model is 0. The KL divergence of a good model may come
    out slightly negative.

    **Error.** The standard error of the mean over the rows. A model that finds some rows impossible has an infinite divergence,
    without an error.

    >>> import numpy as np
    >>> import neurise
    >>> neurise.metrics.likelihood_ratio(np.log([0.5, 0.5, 0.5]), np.log([0.25, 0.5, 0.625])).total_variation
    0.06667 ± 0.067 (floor 0)
    """
    model, truth = (np.asarray(given, dtype=np.float64) for given in (log_model, log_truth))
    if model.ndim != 1 or model.shape != truth.shape or not len(model):
        raise ValueError(
            f"likelihood_ratio needs a number per row from both laws; their shapes are {model.shape} and {truth.shape}"
        )
    for what, given, wrong in (
        ("log_model", model, np.isnan(model) | (model > ROUNDING)),
        ("log_truth", truth, ~np.isfinite(truth) | (truth > ROUNDING)),
    ):
        if wrong.any():
            place = int(wrong.argmax())
            hint = "; the rows must be drawn from this law" if what == "log_truth" else ""
            if given[place] > 0:
                hint = "; it is 0 at most: give log-probabilities with their sign, of laws that are normalised"
            raise ValueError(f"{what} of row {place} is {given[place]}, which is no log-likelihood{hint}")
    lacking = np.clip(-np.expm1(np.minimum(model - truth, 0.0)), 0.0, 1.0)
    total_variation = Estimate(lacking.mean(), error=_error(lacking), floor=0.0)
    if (model == -np.inf).any():
        return Ratio(total_variation, Estimate(math.inf, floor=0.0, units="nats"))
    return Ratio(
        total_variation, Estimate((truth - model).mean(), error=_error(truth - model), floor=0.0, units="nats")
    )


def _error(terms: np.ndarray) -> float | None:
    return float(terms.std(ddof=1)) / math.sqrt(len(terms)) if len(terms) > 1 else None
