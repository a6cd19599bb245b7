"""Energies of samples, where the couplings of the data are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from neurise.batching import batches
from neurise.estimate import Estimate
from neurise.metrics._rows import matrix_of, tokens

RESAMPLES = 200
"""Bootstrap sets: enough for a standard error good to a twentieth."""


class EnergyComparison(NamedTuple):
    """The energies of samples beside those of real rows."""

    mean: Estimate  # of the samples
    spread: Estimate  # standard deviation over the samples
    reference_mean: Estimate
    reference_spread: Estimate
    difference: Estimate  # of the means, in standard errors
    wasserstein: Estimate  # between the two laws of energies


def energy(
    samples: Any,
    reference: Any,
    energy_function: Callable[[np.ndarray], Any],
    *,
    other: Any = None,
    seed: int = 0,
    alphabet: Any = None,
) -> EnergyComparison:
    r"""Compare the energies of samples with those of real rows, in the units of the energy (kT for :math:`\mu \propto e^{-E}`).

    ``energy_function`` gives the energies, (n,), of rows, (n, sites), as ``Dataset.energy`` does. With mean
    :math:`\bar E`, standard deviation s, and distribution function F of the energies of n samples, and
    :math:`\bar E', s', F'` those of N real rows,

    .. math:: z = \frac{\bar E - \bar E'}{\sqrt{s^2/n + s'^2/N}}, \qquad W_1 = \int |F(e) - F'(e)|\, de.

    The errors of means and standard deviations are analytic, z has the standard error 1, and that of :math:`W_1` is by
    bootstrap of both sets. The floor is the score of as many rows of ``other``. Without it, mean and spread of the
    reference, z = 0, and for :math:`W_1` its mean over pairs of sets, of n and N, drawn again from the reference. Rows are
    taken to be independent.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> abs(neurise.metrics.energy(first, second, data.energy).difference) < 5    # in standard errors
    True
    """
    given = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    tokens(alphabet, least=2, **given)
    energies = {name: _energies(rows, energy_function, name) for name, rows in given.items()}
    x, y = energies["samples"], energies["reference"]
    rng = np.random.default_rng(seed)
    distance, error, floor = _wasserstein(x, y, rng)
    mean, spread, score = y.mean(), y.std(ddof=1), 0.0
    if other is not None:
        z = rng.permutation(energies["other"])[: len(x)]
        mean, spread, score = z.mean(), z.std(ddof=1), _standardised(z, y)
        floor = float(_gap(*_histograms(z, y)))
    return EnergyComparison(
        *_moments(x, mean, spread),
        *_moments(y, None, None),
        Estimate(_standardised(x, y), error=1.0, floor=score, units="standard errors"),
        Estimate(distance, error=error, floor=floor, units="energy"),
    )


def _energies(rows: Any, energy_function: Callable[[np.ndarray], Any], name: str) -> np.ndarray:
    """Energies of the rows, checked."""
    matrix = matrix_of(rows, name)
    values = np.asarray(energy_function(matrix), dtype=float)
    if values.shape != (len(matrix),):
        raise ValueError(
            f"the energy function gives {values.shape} for the {len(matrix)} rows of {name}: one a row is needed"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"the energy of row {row} of {name} is {values[row]}; energies must be finite")
    return values


def _moments(values: np.ndarray, mean: float | None, spread: float | None) -> tuple[Estimate, Estimate]:
    r"""Mean and standard deviation; the error of the latter is :math:`\sqrt{(m_4 - s^4)/n}\,/\,2s`."""
    n, s = len(values), float(values.std(ddof=1))
    fourth = float(((values - values.mean()) ** 4).mean())
    wobble = math.sqrt(max(fourth - s**4, 0.0) / n) / (2 * s) if s > 0 else 0.0
    return (
        Estimate(values.mean(), error=s / math.sqrt(n), floor=mean, units="energy"),
        Estimate(s, error=wobble, floor=spread, units="energy"),
    )


def _standardised(x: np.ndarray, y: np.ndarray) -> float:
    """Difference of means in standard errors."""
    difference = float(x.mean() - y.mean())
    error = math.sqrt(float(x.var(ddof=1)) / len(x) + float(y.var(ddof=1)) / len(y))
    if error == 0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / error


def _histograms(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All energies that occur, and how often each does in either set."""
    values, place = np.unique(np.concatenate([x, y]), return_inverse=True)
    first = np.bincount(place[: len(x)], minlength=len(values))
    return values, first, np.bincount(place[len(x) :], minlength=len(values))


def _gap(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Area between the distribution functions of two histograms, (..., values) each."""
    gap = np.cumsum(first / first.sum(-1, keepdims=True) - second / second.sum(-1, keepdims=True), axis=-1)
    return np.asarray(np.abs(gap[..., :-1]) @ np.diff(values))


def _wasserstein(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The distance of two sets, its bootstrap error, and its mean between two sets drawn from the second."""
    values, first, second = _histograms(x, y)
    n, N = len(x), len(y)
    again, null = np.empty(RESAMPLES), np.empty(RESAMPLES)
    for part in batches(RESAMPLES, 32 * len(values)):
        size = part.stop - part.start
        again[part] = _gap(values, rng.multinomial(n, first / n, size), rng.multinomial(N, second / N, size))
        null[part] = _gap(values, rng.multinomial(n, second / N, size), rng.multinomial(N, second / N, size))
    return float(_gap(values, first, second)), float(again.std(ddof=1)), float(null.mean())
