"""Samples against an exact law, with a threshold that follows from the law of χ²."""

from __future__ import annotations

import numpy as np
from scipy import stats

FAILURE = 1e-6
"""Chance that a right sampler is called wrong."""
MIN_EXPECTED = 10.0
"""Expected count of a cell from which the law of χ² holds well."""


def assert_drawn_from(places: np.ndarray, law: np.ndarray) -> None:
    """Check independent places of a law, by Pearson's χ² over cells that are pooled until each expects enough."""
    counts = np.bincount(places, minlength=len(law)).astype(float)
    assert len(counts) == len(law)
    assert counts[law == 0].sum() == 0, "something of probability zero was drawn"
    counts, expected = counts[law > 0], law[law > 0] * len(places)
    order = np.argsort(expected)
    cell = np.minimum((expected[order].cumsum() // MIN_EXPECTED), 1e9).astype(int)
    _, cell = np.unique(cell, return_inverse=True)  # a cell ends where the running sum passes a multiple
    pooled, observed = (np.bincount(cell, values[order]) for values in (expected, counts))
    if pooled[-1] < MIN_EXPECTED:  # the rest at the end
        pooled, observed = (np.append(values[:-2], values[-2:].sum()) for values in (pooled, observed))
    assert len(pooled) > 1, "everything is one cell: draw more"
    statistic = ((observed - pooled) ** 2 / pooled).sum()
    assert statistic <= stats.chi2.isf(FAILURE, len(pooled) - 1)


def assert_means(groups: np.ndarray, exact: np.ndarray) -> None:
    """Check means of (groups, quantities) against exact values: the groups are independent, what is inside a group is not.

    Each quantity's mean over the groups follows Student's law with groups − 1 degrees of freedom (a group is a mean of many
    rows and thus nearly normal); the chance of failure is shared out among the quantities.
    """
    number, quantities = groups.shape
    error = groups.std(axis=0, ddof=1) / np.sqrt(number)
    assert (np.abs(groups.mean(axis=0) - exact) <= stats.t.isf(FAILURE / 2 / quantities, number - 1) * error).all()
