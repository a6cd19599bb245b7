"""Maximum mean discrepancy."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise.estimate import Estimate
from neurise.metrics import _kernels
from neurise.metrics._hamming import tiles, tiles_within
from neurise.metrics._kernels import Kernel
from neurise.metrics._rows import some, tokens

LEAST_FOR_ERROR = 4
"""Rows a set needs for a standard error: with three, every symmetric matrix without diagonal is a sum of row effects."""


class Pairs(NamedTuple):
    """The kernel over many pairs of rows, split into a mean, an effect of either row, and what depends on both."""

    mean: Tensor  # ()
    rows: Tensor  # (m,), sums to zero
    columns: Tensor  # (n,), the same as rows within one set
    interaction: Tensor  # (), variance of what depends on both


def mmd(
    samples: Any,
    reference: Any,
    *,
    kernel: str = "polynomial",
    bandwidth: float | None = None,
    other: Any = None,
    seed: int = 0,
    alphabet: Any = None,
) -> Estimate:
    r"""Squared maximum mean discrepancy, without bias; dimensionless.

    .. math:: \mathrm{MMD}^2 = \frac{\sum_{i \ne j} k(x_i, x_j)}{m(m-1)} + \frac{\sum_{i \ne j} k(y_i, y_j)}{n(n-1)}
       - \frac{2}{mn} \sum_{ij} k(x_i, y_j)

    It can be slightly negative. ``kernel`` is ``"polynomial"``, :math:`(\tfrac1q \langle x, y\rangle + 1)^3` on spins (on
    one-hot rows where there are more than two symbols), or ``"exponential_hamming"``, :math:`\exp(-d_H/(bq))`, with the
    ``bandwidth`` b = 0.25 unless given. The cube sees correlations of up to three sites, the exponential all of them.

    The error is the standard error over both sets, for four rows or more in each: the root of :func:`variance`, or of its part
    that equal laws have too (:func:`variance_of_equal_laws`) where that is larger. The floor is the
    score of as many rows of ``other`` against the reference; without ``other`` it is 0, the mean over pairs of sets from
    one law.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> found = neurise.metrics.mmd(first, second)
    >>> abs(found) < 5 * found.error                             # two samples of one law: 0
    True
    """
    given = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, least=2, **given)
    x, y, *rest = known.sets
    space = known.space
    similarity = _kernels.find(kernel, space, bandwidth)
    xx, xy = within(x, space.states, similarity), across(x, y, space.states, similarity)
    yy = within(y, space.states, similarity)
    error = None
    if min(len(x), len(y)) >= LEAST_FOR_ERROR:
        error = float(torch.maximum(variance(xx, yy, xy), variance_of_equal_laws(xx, yy, xy)).sqrt())
    floor = 0.0
    if rest:
        z = some(rest[0], len(x), seed)
        zz, zy = within(z, space.states, similarity), across(z, y, space.states, similarity)
        floor = float(zz.mean + yy.mean - 2 * zy.mean)
    return Estimate(float(xx.mean + yy.mean - 2 * xy.mean), error=error, floor=floor)


def within(x: Tensor, states: int, kernel: Kernel) -> Pairs:
    r"""Split the kernel over the pairs :math:`i \ne j` of one set, by least squares.

    With :math:`d_i` the mean of row i over :math:`j \ne i` less the mean of all, the effects are
    :math:`\alpha_i = \tfrac{m-1}{m-2} d_i`, and the squares that they leave over, summed over :math:`i \ne j`, have
    :math:`m(m-3)` degrees of freedom.
    """
    m = len(x)
    sums, squares = x.new_zeros(m, dtype=torch.float64), x.new_zeros((), dtype=torch.float64)
    for rows, columns, agreement in tiles_within(x, states):
        values = kernel(agreement)
        if rows == columns:
            values.fill_diagonal_(0)
            squares += values.square().sum()
        else:
            squares += 2 * values.square().sum()
            sums[columns] += values.sum(dim=0)
        sums[rows] += values.sum(dim=1)
    mean = sums.sum() / (m * (m - 1))
    deviation = sums / (m - 1) - mean
    effects = deviation * ((m - 1) / max(m - 2, 1))
    left = squares - m * (m - 1) * mean**2 - 2 * (m - 1) * (deviation * effects).sum()
    return Pairs(mean, effects, effects, left.clamp(min=0) / max(m * (m - 3), 1))


def across(x: Tensor, y: Tensor, states: int, kernel: Kernel) -> Pairs:
    """Split the kernel over all pairs of a row of x and a row of y: the two-way analysis of variance."""
    m, n = len(x), len(y)
    rows_sum, columns_sum = x.new_zeros(m, dtype=torch.float64), x.new_zeros(n, dtype=torch.float64)
    squares = x.new_zeros((), dtype=torch.float64)
    for rows, columns, agreement in tiles(x, y, states):
        values = kernel(agreement)
        rows_sum[rows] += values.sum(dim=1)
        columns_sum[columns] += values.sum(dim=0)
        squares += values.square().sum()
    mean = rows_sum.sum() / (m * n)
    first, second = rows_sum / n - mean, columns_sum / m - mean
    left = squares - m * n * mean**2 - n * first.square().sum() - m * second.square().sum()
    return Pairs(mean, first, second, left.clamp(min=0) / ((m - 1) * (n - 1)))


def variance(xx: Pairs, yy: Pairs, xy: Pairs) -> Tensor:
    r"""Estimate, without bias, the variance of the squared discrepancy over both sets.

    By Hoeffding's decomposition the statistic is a sum of uncorrelated parts: with :math:`\zeta` the variance of what the
    kernel has of both rows, and :math:`a(x) = E\,k(x, X) - E\,k(x, Y)`, :math:`b(y) = E\,k(y, Y) - E\,k(X, y)`,

    .. math:: \frac4m \mathrm{Var}\, a + \frac4n \mathrm{Var}\, b
       + \frac{2\zeta_{xx}}{m(m-1)} + \frac{2\zeta_{yy}}{n(n-1)} + \frac{4\zeta_{xy}}{mn}.

    Only the last three are left where the two laws are the same (:func:`variance_of_equal_laws`). The variance of the estimated
    effects exceeds Var a by their own noise, :math:`\zeta_{xx}/(m-2) + \zeta_{xy}/n`, which is taken off; so it can be
    negative for few rows.
    """
    m, n = len(xx.rows), len(yy.rows)
    a = (xx.rows - xy.rows).var() - xx.interaction / (m - 2) - xy.interaction / n
    b = (yy.rows - xy.columns).var() - yy.interaction / (n - 2) - xy.interaction / m
    return 4 * a / m + 4 * b / n + variance_of_equal_laws(xx, yy, xy)


def variance_of_equal_laws(xx: Pairs, yy: Pairs, xy: Pairs) -> Tensor:
    r"""Estimate the variance that is left where both laws are the same; what it is at least.

    .. math:: \frac{2\zeta_{xx}}{m(m-1)} + \frac{2\zeta_{yy}}{n(n-1)} + \frac{4\zeta_{xy}}{mn}

    The estimate of all of :func:`variance` is often below it there, and even negative, where the model is as good as the data.
    """
    m, n = len(xx.rows), len(yy.rows)
    both = xx.interaction / (m * (m - 1)) + yy.interaction / (n * (n - 1))
    return 2 * both + 4 * xy.interaction / (m * n)
