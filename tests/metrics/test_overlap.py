import itertools

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance

from neurise.metrics import _hamming, overlap
from neurise.metrics.overlap import _Laws


def all_overlaps(rows: np.ndarray, states: int) -> np.ndarray:
    agree = np.array([np.mean(first == second) for first, second in itertools.combinations(rows, 2)])
    return (states * agree - 1) / (states - 1)


def test_hand_worked_spins() -> None:
    samples = np.array([[1, 1], [1, 1], [-1, 1]])  # overlaps 1, 0, 0
    reference = np.array([[1, 1], [-1, -1]])  # overlap −1
    result = overlap(samples, reference)
    np.testing.assert_allclose(result.values, [-1, 0, 1])
    np.testing.assert_allclose(result.law, [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(result.reference_law, [1, 0, 0])
    assert result.wasserstein == pytest.approx(4 / 3)  # all mass moves from −1, a third of it twice as far
    assert result.total_variation == pytest.approx(1)
    assert result.mean == pytest.approx(1 / 3)
    assert result.square == pytest.approx(1 / 3)
    assert result.mean.floor == result.reference_mean == -1
    assert result.square.floor == result.reference_square == 1


@pytest.mark.parametrize("states", [2, 3])
def test_laws_are_those_of_all_pairs(states: int) -> None:
    rng = np.random.default_rng(states)
    x, y = rng.integers(0, states, (40, 5)), rng.integers(0, 2, (35, 5))  # more rows than groups, of unequal size
    result = overlap(x, y, alphabet=range(states))
    first, second = all_overlaps(x, states), all_overlaps(y, states)
    for law, found in ((result.law, first), (result.reference_law, second)):
        expected = [np.mean(np.isclose(found, value)) for value in result.values]
        np.testing.assert_allclose(law, expected, atol=1e-12)
    assert result.wasserstein == pytest.approx(wasserstein_distance(first, second))
    assert result.mean == pytest.approx(first.mean())
    assert result.square == pytest.approx((first**2).mean())
    assert result.reference_mean == pytest.approx(second.mean())
    assert result.total_variation == pytest.approx(0.5 * np.abs(result.law - result.reference_law).sum())


def test_the_error_is_the_jackknife_over_rows() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 3, (12, 4)), rng.integers(0, 3, (9, 4))  # fewer rows than groups: each row is one

    def left_out(rows: np.ndarray) -> list[np.ndarray]:
        return [all_overlaps(np.delete(rows, i, axis=0), 3) for i in range(len(rows))]

    def variance(scores: list[float]) -> float:
        n = len(scores)
        return (n - 1) / n * sum((score - sum(scores) / n) ** 2 for score in scores)

    result = overlap(x, y)
    first, second = all_overlaps(x, 3), all_overlaps(y, 3)
    assert result.mean.error == pytest.approx(variance([law.mean() for law in left_out(x)]) ** 0.5)
    expected = variance([wasserstein_distance(law, second) for law in left_out(x)])
    expected += variance([wasserstein_distance(first, law) for law in left_out(y)])
    assert result.wasserstein.error == pytest.approx(expected**0.5)


def test_a_group_is_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hamming, "TILE", 5)  # several tiles, not in step with the groups
    monkeypatch.setattr(_hamming, "TILE_BYTES", 5 * 100)
    x = np.random.default_rng(8).integers(0, 3, (12, 4))
    laws = _Laws(torch.tensor(x, dtype=torch.uint8), 3, groups=4)

    def law(rows: np.ndarray) -> np.ndarray:
        agree = [np.sum(first == second) for first, second in itertools.combinations(rows, 2)]
        return np.bincount(agree, minlength=5) / len(agree)

    np.testing.assert_allclose(laws.law, law(x))
    for g, left in enumerate(laws.without_each):
        np.testing.assert_allclose(left, law(np.delete(x, slice(3 * g, 3 * g + 3), axis=0)))


def mixture(n: int, rng: np.random.Generator, sites: int = 12) -> np.ndarray:
    """Rows with a magnetisation of their own, so that they differ in how they overlap with the rest."""
    lean = 1 / (1 + np.exp(-1.5 * rng.normal(size=(n, 1))))
    return np.where(rng.random((n, sites)) < lean, 1, -1)


def test_errors_and_floors_cover_repeated_draws() -> None:
    rng, runs = np.random.default_rng(5), 80
    alone = [overlap(mixture(60, rng), mixture(90, rng)) for _ in range(runs)]
    beside = [overlap(mixture(60, rng), mixture(90, rng), other=mixture(60, rng)) for _ in range(runs)]
    squares = [result.square for result in alone]
    # A standard deviation from 80 draws is good to 1/√160 = 8 %, and the bar from 32 groups to 1/√62 = 13 %: four of
    # the first, the second being averaged away, and a tenth for what is left of the second order.
    assert np.sqrt(np.mean([value.error**2 for value in squares])) == pytest.approx(np.std(squares), rel=0.42)
    for field in ("wasserstein", "total_variation"):
        values = [getattr(result, field) for result in alone + beside]
        spread = np.std(values) / runs**0.5
        perfect = np.mean([getattr(result, field).floor for result in beside])
        assert perfect == pytest.approx(np.mean(values), abs=5 * spread)  # the model is perfect
        estimated = np.mean([value.floor for value in values[:runs]])
        assert np.mean(values) - 5 * spread < estimated < 2**0.5 * np.mean(values) + 5 * spread


def test_fewer_pairs_take_fewer_rows() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, (30, 4))
    few = overlap(x, y, pairs=10, seed=1)
    np.testing.assert_allclose(few.law * 10, np.round(few.law * 10))  # five rows, ten pairs
    assert float(few.wasserstein) == float(overlap(x, y, pairs=10, seed=1).wasserstein)
    full = overlap(x, y, pairs=30 * 29 // 2)
    np.testing.assert_array_equal(full.law, overlap(x, y).law)


def test_two_rows_have_no_error_and_no_floor() -> None:
    rows = np.array([[0, 1], [1, 1]])
    result = overlap(rows, rows)
    assert result.wasserstein == 0
    assert result.wasserstein.error is None
    assert result.wasserstein.floor is None


def test_tensors_are_rows_too() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 3, (8, 4)), rng.integers(0, 3, (9, 4))
    assert overlap(torch.tensor(x), torch.tensor(y))[:6] == overlap(x, y)[:6]


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    for pairs in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="pairs must be a whole number"):
            overlap(rows, rows, pairs=pairs)
    with pytest.raises(ValueError, match="samples has 1 row"):
        overlap(rows[:1], rows)
    with pytest.raises(ValueError, match="2 sites, and reference has 3"):
        overlap(rows, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="not in the alphabet"):
        overlap(rows, rows + 1, alphabet=[0, 1])
    with pytest.raises(ValueError, match="reference"):
        overlap(rows, np.empty((0, 2), int))
