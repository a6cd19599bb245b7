import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from neurise.metrics import kde
from neurise.metrics.kde import _chosen, _moved
from neurise.space import Space


def log_density(x: np.ndarray, samples: np.ndarray, bandwidth: float, states: int) -> np.ndarray:
    sites = x.shape[1]
    d = np.rint(sites * cdist(x, samples, "hamming"))
    kernel = (sites - d) * math.log(1 - bandwidth) + d * math.log(bandwidth / (states - 1))
    return np.asarray(logsumexp(kernel, axis=1) - math.log(len(samples)))


def test_hand_worked_case() -> None:
    # Distances of (0, 0) from the samples are 0 and 1, those of (2, 2) both 2; λ/(p−1) = 0.2.
    result = kde(np.array([[0, 0], [1, 0]]), np.array([[0, 0], [2, 2]]), bandwidth=0.4)
    densities = [(0.6**2 + 0.6 * 0.2) / 2, 0.2**2]
    assert result.log_density == pytest.approx(np.log(densities).mean())
    assert result.log_density.units == "nats"
    assert result.log_density.floor is None
    assert result.bandwidth == pytest.approx(0.4)


@pytest.mark.parametrize("states", [2, 3])
def test_the_density_sums_to_one(states: int) -> None:
    samples = np.random.default_rng(0).integers(0, states, (6, 4))
    space = np.array(list(itertools.product(range(states), repeat=4)))
    # The mean of log p̂ over all rows but one and over all rows gives log p̂ of the one left out.
    every = kde(samples, space, bandwidth=0.3, alphabet=range(states)).log_density * len(space)
    densities = [
        every
        - kde(samples, np.delete(space, i, axis=0), bandwidth=0.3, alphabet=range(states)).log_density
        * (len(space) - 1)
        for i in range(len(space))
    ]
    assert np.exp(densities).sum() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("states", [2, 3])
def test_bandwidth_is_the_best_by_leave_one_out(states: int) -> None:
    rng = np.random.default_rng(states)
    samples = np.where(rng.random((40, 6)) < 0.8, 0, rng.integers(0, states, (40, 6)))
    reference = np.where(rng.random((30, 6)) < 0.8, 0, rng.integers(0, states, (30, 6)))

    def left_out(bandwidth: float) -> float:
        others = [np.delete(samples, i, axis=0) for i in range(len(samples))]
        return -np.mean([log_density(samples[i : i + 1], rest, bandwidth, states)[0] for i, rest in enumerate(others)])

    best = minimize_scalar(left_out, bounds=(1e-4, (states - 1) / states), method="bounded", options={"xatol": 1e-7})
    result = kde(samples, reference, alphabet=range(states))
    assert result.bandwidth == pytest.approx(best.x, rel=1e-3)  # the last grid is finer than 1e-3 in log λ
    expected = log_density(reference, samples, result.bandwidth, states)
    assert result.log_density == pytest.approx(expected.mean(), rel=1e-9)
    # Both parts of the error: over the reference, and over the samples through their shares of the density.
    d = np.rint(6 * cdist(reference, samples, "hamming"))
    lam = result.bandwidth
    share = ((1 - lam) ** (6 - d) * (lam / (states - 1)) ** d / np.exp(expected)[:, None]).mean(axis=0)
    error = math.sqrt(expected.var(ddof=1) / len(expected) + share.var(ddof=1) / len(share))
    known = kde(samples, reference, alphabet=range(states), bandwidth=lam).log_density
    assert known.error == pytest.approx(error, rel=1e-6)


def test_far_rows_do_not_underflow() -> None:
    rng = np.random.default_rng(3)
    samples, far = rng.integers(0, 2, (5, 3000)), rng.integers(0, 2, (4, 3000))
    result = kde(samples, far, bandwidth=1e-4)  # densities near e^−14000
    assert result.log_density == pytest.approx(log_density(far, samples, 1e-4, 2).mean(), rel=1e-9)


def test_the_error_covers_repeated_draws() -> None:
    rng, runs = np.random.default_rng(4), 150
    results = [kde(rng.binomial(1, 0.2, (80, 4)), rng.binomial(1, 0.3, (60, 4)), bandwidth=0.1) for _ in range(runs)]
    values = [result.log_density for result in results]
    # A standard deviation from 150 draws is good to 1/√300 = 6 %: four of these, and a twentieth for second orders.
    assert np.sqrt(np.mean([value.error**2 for value in values])) == pytest.approx(np.std(values), rel=0.29)


def test_the_floor_is_the_score_of_other_rows() -> None:
    rng = np.random.default_rng(5)
    x, y, z = (rng.integers(0, 3, (n, 4)) for n in (20, 30, 10))
    assert kde(x, y, other=z).log_density.floor == pytest.approx(float(kde(z, y).log_density))
    bandwidth = kde(x, y, other=z, bandwidth=0.2).log_density.floor
    assert bandwidth == pytest.approx(float(kde(z, y, bandwidth=0.2).log_density))


def test_a_better_model_scores_higher() -> None:
    rng = np.random.default_rng(6)
    real, good = rng.binomial(1, 0.1, (100, 20)), rng.binomial(1, 0.1, (100, 20))
    poor, collapsed = rng.binomial(1, 0.5, (100, 20)), np.repeat(good[:1], 100, axis=0)
    scores = [kde(samples, real).log_density for samples in (good, poor, collapsed)]
    assert scores[0] > scores[1]
    assert scores[0] > scores[2]


def test_tensors_and_letters_are_rows_too() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 3, (8, 4)), rng.integers(0, 3, (9, 4))
    letters = np.array(["a", "b", "c"])
    assert kde(torch.tensor(x), torch.tensor(y)) == kde(x, y) == kde(letters[x], letters[y])


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    for bandwidth in (0.0, -0.1, 0.5, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"bandwidth must be between 0 and \(p−1\)/p = 0.5 for p = 2"):
            kde(rows, rows, bandwidth=bandwidth)
    assert kde(rows, rows, bandwidth=0.6, alphabet=[0, 1, 2]).bandwidth == pytest.approx(0.6)
    with pytest.raises(ValueError, match="one symbol only"):
        kde(np.ones((2, 2), int), np.ones((2, 2), int))
    with pytest.raises(ValueError, match="samples has 1 row"):
        kde(rows[:1], rows)
    with pytest.raises(ValueError, match="2 sites, and reference has 3"):
        kde(rows, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="not in the alphabet"):
        kde(rows, rows + 1, alphabet=[0, 1])


@pytest.mark.parametrize("states", [2, 3])
def test_each_sample_moves_the_fitted_bandwidth_as_far_as_weighing_it_more_does(states: int) -> None:
    """To first order, by differences: the best bandwidth with one sample weighing a little more."""
    rng = np.random.default_rng(states)
    samples = np.where(rng.random((12, 5)) < 0.7, 0, rng.integers(0, states, (12, 5)))
    space, x = Space(5, states), torch.from_numpy(samples).to(torch.uint8)
    log_odds = _chosen(x, space, None)
    distance = np.rint(5 * cdist(samples, samples, "hamming"))

    def best(weights: np.ndarray) -> float:
        def loss(theta: float) -> float:
            kernel = np.exp(distance * theta) / (1 + (states - 1) * math.exp(theta)) ** 5
            np.fill_diagonal(kernel, 0)
            # Each sees the others by their weights; these sum to n - w_i.
            density = kernel @ weights / (weights.sum() - weights)
            return -float(weights @ np.log(density))

        near = float(log_odds)
        return float(minimize_scalar(loss, bounds=(near - 1, near + 1), method="bounded", options={"xatol": 1e-10}).x)

    step, start = 1e-3, np.ones(12)
    moved = [(best(start + step * np.eye(12)[j]) - best(start - step * np.eye(12)[j])) / (2 * step) for j in range(12)]
    np.testing.assert_allclose(_moved(x, log_odds, space).numpy() / 12, moved, atol=2e-3 * np.abs(moved).max() + 1e-4)
