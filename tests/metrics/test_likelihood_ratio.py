"""Distances by likelihoods are those of the whole laws."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from scipy import stats

from neurise.metrics import kl, likelihood_ratio, total_variation
from neurise.space import Space

SPACE = Space(sites=2, states=3)
TRUTH = np.array([4, 3, 1, 1, 2, 5, 2, 1, 1]) / 20
"""Of which twenty rows can hold every configuration as often as it should occur."""
EVERY = np.repeat(np.arange(9), [4, 3, 1, 1, 2, 5, 2, 1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_means_over_the_truth_are_the_distances_of_the_laws(seed: int) -> None:
    model = np.asarray(oracles.random_law(SPACE, seed))
    found = likelihood_ratio(np.log(model[EVERY]), np.log(TRUTH[EVERY]))
    assert found.total_variation == pytest.approx(total_variation(model, TRUTH), abs=1e-12)
    assert found.kl == pytest.approx(kl(TRUTH, model), abs=1e-12)
    assert found.kl == pytest.approx(stats.entropy(TRUTH, model), abs=1e-12)
    assert (found.total_variation.floor, found.kl.floor) == (0, 0)


def test_errors_are_the_spread_over_new_rows() -> None:
    """Of 2000 samples of 400 rows each; the standard deviation itself is known to 1/√4000, of which 5 are allowed."""
    model, source = np.asarray(oracles.random_law(SPACE, 7)), np.random.default_rng(0)
    drawn = source.choice(9, (2000, 400), p=TRUTH)
    found = [likelihood_ratio(np.log(model[rows]), np.log(TRUTH[rows])) for rows in drawn]
    for own in zip(*found, strict=True):
        spread, told = np.std(own, ddof=1), np.sqrt(np.mean([value.error**2 for value in own]))
        assert told == pytest.approx(spread, rel=5 / 4000**0.5)
    exact = float(total_variation(model, TRUTH))
    assert np.mean([one.total_variation for one in found]) == pytest.approx(exact, abs=5 * 0.5 / (2000 * 400) ** 0.5)


def test_the_truth_is_at_no_distance() -> None:
    log = np.log(TRUTH[EVERY])
    found = likelihood_ratio(log, log)
    assert found.total_variation == 0
    assert found.total_variation.error == 0
    assert found.kl == 0


def test_what_a_model_finds_impossible() -> None:
    found = likelihood_ratio([-np.inf, np.log(0.5)], np.log([0.5, 0.5]))
    assert found.total_variation == 0.5
    assert found.kl == np.inf
    assert found.kl.error is None


@pytest.mark.parametrize(
    ("model", "truth", "words"),
    [
        ([0.0, 1.0], [0.0], r"shapes are \(2,\) and \(1,\)"),
        ([], [], r"shapes are \(0,\)"),
        ([np.nan], [-1.0], "log_model of row 0 is nan"),
        ([-1.0, -1.0], [-1.0, -np.inf], "log_truth of row 1 is -inf.*drawn from this law"),
        ([-1.0, 2.0], [-1.0, -1.0], "log_model of row 1 is 2.*it is 0 at most.*sign"),
        ([-1.0, -1.0], [3.0, -1.0], "log_truth of row 0 is 3.*normalised"),
    ],
)
def test_what_cannot_be_compared(model: list[float], truth: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        likelihood_ratio(model, truth)
