"""Trials and instances are separate sources of spread, and methods are compared on the cells that they share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from neurise.experiments.parts.spread import Situation, _quantile, over_instances, over_trials, paired, share_of


def values(table: np.ndarray) -> dict[Situation, float]:
    """Make values of a table, (instances, trials)."""
    return {Situation(i, t): float(table[i, t]) for i in range(table.shape[0]) for t in range(table.shape[1])}


def test_hand_worked() -> None:
    found = values(np.array([[1.0, 3.0], [10.0, 14.0]]))
    assert over_trials(found) == pytest.approx(math.sqrt((2 + 8) / 2))
    assert over_instances(found) == pytest.approx(10 / math.sqrt(2))
    assert over_trials(values(np.array([[1.0], [2.0]]))) is None
    assert over_instances(values(np.array([[1.0, 2.0]]))) is None


@pytest.mark.parametrize(("hits", "runs"), [(0, 1), (0, 20), (1, 20), (10, 20), (20, 20), (3, 7), (200, 300)])
def test_intervals_of_shares_are_those_of_clopper_and_pearson(hits: int, runs: int) -> None:
    expected = stats.binomtest(hits, runs).proportion_ci(0.95, method="exact")
    found = share_of(hits, runs)
    assert (found.hits, found.runs) == (hits, runs)
    assert found.low == pytest.approx(expected.low, abs=1e-8)
    assert found.high == pytest.approx(expected.high, abs=1e-8)


@pytest.mark.parametrize("freedom", [1, 2, 5, 10, 11, 20, 50, 500])
def test_quantiles_are_those_of_students_law(freedom: int) -> None:
    assert _quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-3)


@pytest.mark.parametrize(("instances", "trials", "over"), [(1, 4, "trials"), (5, 3, "instances"), (2, 5, "trials")])
def test_intervals_hold_the_true_difference_as_often_as_they_say(instances: int, trials: int, over: str) -> None:
    source, runs, held = np.random.default_rng(0), 2000, 0
    for _ in range(runs):
        shared = source.normal(0, 5, (instances, trials))  # what the cells do to every method
        # Over instances methods differ by more on some than on others; of one or two instances only these are meant.
        own = source.normal(0, 1, (instances, 1)) if over == "instances" else 0
        noise = source.normal(0, 1, (2, instances, trials))
        found = paired(values(shared + 0.3 + own + noise[0]), values(shared + noise[1]))
        assert found is not None
        assert found.over == over
        held += abs(found.mean - 0.3) <= found.half
    assert abs(held / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


def test_only_shared_cells_count() -> None:
    first, second = values(np.array([[1.0, 2.0, 9.0]])), values(np.array([[0.0, 1.5]]))
    found = paired(first, second)
    assert found is not None
    assert found.mean == pytest.approx(0.75)
    assert paired(first, {Situation(7, 0): 1.0}) is None
