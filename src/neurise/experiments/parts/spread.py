"""Where numbers vary: over trials of one instance, and over instances; and which of two is better on the same cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping
from typing import NamedTuple

T_975 = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of Student's law: 95 % lie within so many standard errors, by degrees of freedom."""
FEWEST_INSTANCES = 3
"""Instances from which on their spread is what an interval is made of."""


class Situation(NamedTuple):
    """What two methods must share to be compared in pairs: all parameters but the method, and the seed of the trial."""

    instance: Hashable
    seed: int


Values = Mapping[Situation, float]


class Difference(NamedTuple):
    """A mean difference on the cells that both have, half the width of its 95 % interval, and what the interval is over."""

    mean: float
    half: float
    over: str

    @property
    def is_told_apart(self) -> bool:
        """Whether the interval does not hold zero."""
        return abs(self.mean) > self.half


class Share(NamedTuple):
    """How many of so many independent runs something holds for, and the 95 % interval of its probability."""

    hits: int
    runs: int
    low: float
    high: float


def share_of(hits: int, runs: int) -> Share:
    r"""Return the interval of Clopper and Pearson: both tails of the binomial law have 2.5 % at its ends.

    .. math:: P(K \ge k \mid p_{\mathrm{low}}) = P(K \le k \mid p_{\mathrm{high}}) = 0.025
    """
    return Share(hits, runs, _below(hits, runs), 1 - _below(runs - hits, runs))


def _below(hits: int, runs: int) -> float:
    """Return the probability at which so many hits or more are seen in 2.5 % of all cases; 0 for no hits."""
    low, high = 0.0, 1.0 if hits else 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        tail = sum(math.comb(runs, k) * middle**k * (1 - middle) ** (runs - k) for k in range(hits, runs + 1))
        low, high = (middle, high) if tail < 0.025 else (low, middle)
    return low


def over_trials(values: Values) -> float | None:
    r"""Return the standard deviation over trials of one instance, pooled over instances.

    .. math:: \sqrt{\frac{\sum_i \sum_t (v_{it} - \bar v_i)^2}{n - I}}
    """
    groups = _by_instance(values)
    freedom = len(values) - len(groups)
    if freedom < 1:
        return None
    squares = sum((value - statistics.fmean(group)) ** 2 for group in groups for value in group)
    return math.sqrt(squares / freedom)


def over_instances(values: Values) -> float | None:
    """Return the standard deviation of the means of instances; None of one instance."""
    means = [statistics.fmean(group) for group in _by_instance(values)]
    return statistics.stdev(means) if len(means) > 1 else None


def paired(first: Values, second: Values) -> Difference | None:
    r"""Compare two methods on the cells that both have, by their differences :math:`d = a - b` cell by cell.

    With three instances or more the interval is over instances, :math:`\bar d \pm t_{I-1}\, s_I / \sqrt I` with the means of
    instances; with fewer it is over trials, and says something of these instances alone. None where nothing varies that could
    tell.
    """
    differences = {place: value - second[place] for place, value in first.items() if place in second}
    groups = _by_instance(differences)
    if len(groups) >= FEWEST_INSTANCES:
        means = [statistics.fmean(group) for group in groups]
        half = _quantile(len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
        return Difference(statistics.fmean(means), half, "instances")
    spread, freedom = over_trials(differences), len(differences) - len(groups)
    if spread is None:
        return None
    return Difference(
        statistics.fmean(differences.values()),
        _quantile(freedom) * spread / math.sqrt(len(differences)),
        "trials",
    )


def _by_instance(values: Values) -> list[list[float]]:
    groups: dict[Hashable, list[float]] = {}
    for place, value in values.items():
        groups.setdefault(place.instance, []).append(value)
    return list(groups.values())


def _quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's law; beyond ten degrees of freedom to within 0.1 %, by an expansion in 1/ν."""
    if freedom < len(T_975):
        return T_975[freedom]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
