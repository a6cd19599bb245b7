"""Copying is caught, and chance is not taken for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import neurise
from neurise.metrics import _hamming, privacy


def law(n: int, seed: int, *, sites: int = 8) -> np.ndarray:
    """Draw rows of three symbols, the first of them likely: many rows are equal by chance."""
    return np.random.default_rng(seed).choice(3, (n, sites), p=[0.8, 0.15, 0.05])


def test_hand_worked_case() -> None:
    training = np.array([[0, 0, 0, 0], [2, 1, 1, 1]])
    synthetic = np.array([[0, 0, 0, 0], [0, 1, 2, 2], [2, 1, 0, 1], [2, 1, 1, 1]])  # distances 0, 3, 1, 0
    held_back = np.array([[1, 2, 2, 0], [0, 0, 0, 1]])  # distances 3, 1
    found = privacy(synthetic, training, held_back)
    assert found.distance == pytest.approx(1 / 4)  # of four sites, one on average
    assert found.distance.floor == pytest.approx(2 / 4)
    assert found.nearer == pytest.approx(1 / 4)
    ours, its = np.std([0, 3, 1, 0], ddof=1) / 2, np.std([3, 1], ddof=1) / math.sqrt(2)
    assert found.distance.error == pytest.approx(ours / 4)
    assert found.nearer.error == pytest.approx(math.hypot(ours, its) / 4)
    assert found.copies_beyond_chance == found.copies == 0.5
    # Two of four copies, and none of two, which counts as one of four.
    assert found.copies_beyond_chance.error == pytest.approx(math.sqrt(0.25 / 4 + 0.25 * 0.75 / 2))
    assert found.nearer.floor == found.copies_beyond_chance.floor == 0


def test_distances_are_those_of_scipy_whatever_the_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hamming, "TILE", 8)  # several tiles, the last ones not full
    monkeypatch.setattr(_hamming, "TILE_BYTES", 8 * 100)
    synthetic, training, held_back = law(40, 0), law(25, 1), law(30, 2)
    found = privacy(synthetic, training, held_back)
    near = [cdist(rows, training, "hamming").min(axis=1) for rows in (synthetic, held_back)]
    assert found.distance == pytest.approx(near[0].mean())
    assert found.nearer == pytest.approx(near[1].mean() - near[0].mean())
    assert found.copies_beyond_chance == pytest.approx((near[0] == 0).mean() - (near[1] == 0).mean())


def test_a_memoriser_is_caught_and_the_marginals_are_not() -> None:
    training, held_back = law(400, 3, sites=30), law(400, 4, sites=30)
    memorised = privacy(neurise.Memorize().fit(training).sample(300, seed=0), training, held_back)
    assert memorised.copies == 1
    assert memorised.distance == 0
    assert memorised.copies_beyond_chance > 0.9  # of 30 sites, hardly a row repeats itself
    assert memorised.nearer > 10 * memorised.nearer.error
    drawn = neurise.Independent().fit(training).sample(300, seed=0)  # the law is a product: nothing better is there
    independent = privacy(drawn, training, held_back)
    for found in (independent.nearer, independent.copies_beyond_chance):
        assert abs(found) < 4 * found.error


def test_rows_that_were_held_back_score_zero_within_the_error() -> None:
    """Over repeated draws the differences scatter around zero as their errors say."""
    scores = []
    for seed in range(100):
        found = privacy(law(200, 3 * seed), law(150, 3 * seed + 1), law(250, 3 * seed + 2))
        assert found.copies > 0.1  # copies by chance there are
        scores.append(
            [found.nearer / found.nearer.error, found.copies_beyond_chance / found.copies_beyond_chance.error]
        )
    # The mean of 100 standard scores is known to 0.1, their spread to 1/√200 = 7 %: four of these.
    np.testing.assert_allclose(np.mean(scores, axis=0), 0, atol=0.4)
    np.testing.assert_allclose(np.std(scores, axis=0), 1, atol=0.28)


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="held_back has 1 row"):
        privacy(rows, rows, rows[:1])
    with pytest.raises(ValueError, match="2 sites, and held_back has 3"):
        privacy(rows, rows, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="letters"):
        privacy(rows, np.array([["a", "b"]]), rows)
