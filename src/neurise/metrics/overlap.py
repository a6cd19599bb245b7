"""Overlaps of pairs of rows: the order parameter of spin glasses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise.estimate import Estimate
from neurise.metrics._hamming import tiles_within
from neurise.metrics._rows import some, tokens

GROUPS = 32
"""Parts into which a set is cut for its error: leaving out one part after the other gives it."""

SPLITS = 20
"""At most so often is the reference split in two for the floor."""

Functional = Callable[[np.ndarray, np.ndarray], float]


class OverlapComparison(NamedTuple):
    """The law of the overlap among samples, and that among real rows."""

    wasserstein: Estimate  # distance of the two laws, in units of the overlap
    total_variation: Estimate  # the same on the lattice of values
    mean: Estimate  # of the overlap of samples
    square: Estimate  # mean square overlap of samples
    reference_mean: Estimate
    reference_square: Estimate
    values: np.ndarray  # (sites + 1,), the overlaps that can occur
    law: np.ndarray  # (sites + 1,), probability of each among samples
    reference_law: np.ndarray  # (sites + 1,), among real rows


def overlap(
    samples: Any,
    reference: Any,
    *,
    pairs: int = 50_000_000,
    other: Any = None,
    seed: int = 0,
    alphabet: Any = None,
) -> OverlapComparison:
    r"""Compare the laws of the overlap between two independent rows of a set. Dimensionless.

    .. math:: Q(x, x') = \frac1q \sum_i \sigma_i \sigma'_i, \qquad \text{for any p:}\quad
       Q(x, x') = \frac{p\,a - 1}{p - 1}, \quad a = \frac1q \sum_i 1\{x_i = x'_i\}

    Each law P(Q) is the histogram over all pairs of rows of a set; where there are more than ``pairs``, over all pairs of
    as many of its rows, taken at random. Their distance is :math:`W_1 = \int |F - F'|\,dQ`, and
    :math:`\tfrac12 \sum_Q |P - P'|` on the lattice of values. The two laws themselves are part of the result.

    Errors come from leaving out one of 32 groups of rows at a time (jackknife), in both sets. The floor of the distances
    is the score of as many rows of ``other``. Without it, the reference is split at random into k and l rows, in the
    proportion of n and N, and the mean distance of the two is multiplied by :math:`\sqrt{(1/n + 1/N)/(1/k + 1/l)}`. This is
    right where rows differ in how they overlap with the rest, and up to √2 too high where they do not, as with
    independent spins (drawing again with replacement would be √3 too high there). Errors of distances near their floor are
    up to twice too wide. The floor of the moments is their value for ``other``, or for the reference.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> neurise.metrics.overlap(first, first).total_variation == 0
    True
    """
    given = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    if isinstance(pairs, bool) or pairs != int(pairs) or pairs < 1:
        raise ValueError(f"pairs must be a whole number, at least 1, got {pairs}")
    known = tokens(alphabet, least=2, **given)
    space, (x, y, *rest) = known.space, known.sets
    most = (1 + math.isqrt(1 + 8 * int(pairs))) // 2  # m(m−1)/2 ≤ pairs
    values = _values(space.sites, space.states)
    own, real = (_Laws(some(rows, most, seed), space.states) for rows in (x, y))
    distances: tuple[Functional, Functional] = (lambda p, r: _area(p - r, values), lambda p, r: _half(p - r))
    third = _Laws(some(rest[0], min(len(x), most), seed), space.states) if rest else None
    if third is None:
        n, total = own.rows, real.rows
        part = max(2, round(total * min(n, total) / (min(n, total) + total)))
        perfect, null = real, _splits(some(y, most, seed), part, space.states, int(pairs), seed)
        scale = math.sqrt((1 / n + 1 / total) / (1 / part + 1 / max(total - part, 1)))
    else:
        perfect, null, scale = third, [(third.law, real.law)], 1.0
    floors = [scale * float(np.mean([f(p, r) for p, r in null])) if null else None for f in distances]
    area, half = (
        Estimate(f(own.law, real.law), error=_distance_error(own, real, f), floor=floor)
        for f, floor in zip(distances, floors, strict=True)
    )
    mean, square = (_moment(own, v, float(perfect.law @ v)) for v in (values, values**2))
    real_mean, real_square = (_moment(real, v, None) for v in (values, values**2))
    return OverlapComparison(area, half, mean, square, real_mean, real_square, values, own.law, real.law)


class _Laws:
    """The law of the number of agreeing sites in one set, and the same with one group of rows left out."""

    def __init__(self, x: Tensor, states: int, groups: int = GROUPS) -> None:
        self.rows, groups, width = len(x), min(groups, len(x)), x.shape[1] + 1
        group = torch.arange(len(x), device=x.device) * groups // len(x)
        touching = np.zeros((groups, width))  # ordered pairs of different rows, the first of them in this group
        inside = np.zeros((groups, width))  # both of them
        for rows, columns, agreement in tiles_within(x, states):
            first, second, found = group[rows, None], group[columns], agreement.long()
            same = first == second
            ways = 1 if rows == columns else 2  # a tile above the diagonal stands for its mirror image too
            touching += _counts(first * width + found, touching.shape)
            inside += ways * _counts((first * width + found)[same], inside.shape)
            if ways == 2:
                touching += _counts(second * width + found, touching.shape)
        for counts in (touching, inside):
            counts[:, -1] -= np.bincount(group.cpu().numpy())  # a row with itself
        everything = touching.sum(axis=0)
        self.law = everything / everything.sum()
        left = everything - 2 * touching + inside  # (groups, sites + 1)
        # Of two rows, one group each, no pair is left.
        self.without_each = list(left / left.sum(axis=1, keepdims=True)) if groups > 2 else []


def _counts(places: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    """How often each place occurs, as a table."""
    return np.asarray(torch.bincount(places.ravel(), minlength=math.prod(shape)).cpu().numpy().reshape(shape))


def _values(sites: int, states: int) -> np.ndarray:
    """Overlaps for 0 … sites agreements."""
    p = max(states, 2)
    return np.asarray((p * np.arange(sites + 1) / sites - 1) / (p - 1))


def _area(difference: np.ndarray, values: np.ndarray) -> float:
    return float(np.abs(np.cumsum(difference)[:-1]) @ np.diff(values))


def _half(difference: np.ndarray) -> float:
    return 0.5 * float(np.abs(difference).sum())


def _jackknife(scores: list[float]) -> float:
    """Variance from the scores with one group left out."""
    return (len(scores) - 1) * float(np.var(scores)) if scores else math.nan


def _distance_error(own: _Laws, real: _Laws, functional: Functional) -> float | None:
    first = _jackknife([functional(law, real.law) for law in own.without_each])
    second = _jackknife([functional(own.law, law) for law in real.without_each])
    return None if math.isnan(first + second) else math.sqrt(first + second)


def _moment(counts: _Laws, values: np.ndarray, floor: float | None) -> Estimate:
    squared = _jackknife([float(law @ values) for law in counts.without_each])
    return Estimate(float(counts.law @ values), error=None if math.isnan(squared) else math.sqrt(squared), floor=floor)


def _splits(y: Tensor, size: int, states: int, pairs: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws of so many rows of a set and of the rest, split at random as often as the number of pairs allows."""
    if min(size, len(y) - size) < 2:
        return []
    times = min(max(2 * pairs // (size**2 + (len(y) - size) ** 2), 1), SPLITS)
    mixed = (some(y, len(y), seed + k) for k in range(times))
    return [(_Laws(z[:size], states, 1).law, _Laws(z[size:], states, 1).law) for z in mixed]
