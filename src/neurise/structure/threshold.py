"""Choose the interactions that are present by an automatic threshold on their strengths."""

from __future__ import annotations

import math

import numpy as np

SPLIT = 0.75
"""Share of the variance that two groups must explain. Scores that are noise alone, the absolute values of a Gaussian, reach 0.66
when they are cut in the best place; a Gaussian cloud of equal couplings reaches 0.64."""
ERRORS = 4.0
"""Standard errors that a coupling must be away from zero, where there are no two groups: one pair in 16,000 by chance."""
EQUAL = 1e-6
"""Relative spread below which scores are one group, and score below which they are rounding."""


def two_groups(scores: np.ndarray) -> float | None:
    r"""Cut scores in two groups, (n,), and return the threshold half way between them; None where there are no two.

    The cut is the one that leaves the least variance within the groups (two means). It explains a share
    :math:`\eta = 1 - V_\text{within}/V_\text{total}` of the variance; below 0.75, the scores are called one group.
    """
    ranked = np.sort(scores)
    if len(ranked) < 2 or ranked[-1] - ranked[0] <= EQUAL * ranked[-1] or ranked[-1] <= EQUAL:
        return None
    below = np.arange(1, len(ranked))  # how many scores lie below each cut
    sums, total = ranked.cumsum()[:-1], ranked.sum()
    mean_below, mean_above = sums / below, (total - sums) / (len(ranked) - below)
    between = below * (len(ranked) - below) / len(ranked) ** 2 * (mean_above - mean_below) ** 2
    cut = int(between.argmax())
    if between[cut] < SPLIT * ranked.var():
        return None
    return float(ranked[cut] + ranked[cut + 1]) / 2


def select(scores: np.ndarray, errors: np.ndarray, threshold: float | None) -> tuple[np.ndarray, float | None, str]:
    """Say which of the pairs interact, (n,) booleans, by which threshold, and by which rule.

    The rule is a threshold that is given; else the middle between two groups of scores; else, where the scores do not fall in
    two groups (no pair interacts, or all do), each score against four times its own standard error. A NaN is no edge.
    """
    known = np.isfinite(scores)
    if threshold is not None:
        if not isinstance(threshold, int | float | np.floating) or not 0 <= threshold < math.inf:
            raise ValueError(f"threshold must be a number, not negative, got {threshold!r}")
        return known & (np.where(known, scores, 0) > threshold), float(threshold), "given"
    found = two_groups(scores[known])
    if found is not None:
        return known & (np.where(known, scores, 0) > found), found, "two groups"
    bar = np.maximum(ERRORS * np.where(known, errors, 0), EQUAL)
    return known & (np.where(known, scores, 0) > bar), None, "four standard errors"
