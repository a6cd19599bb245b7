import itertools
import math

import numpy as np
import pytest
import torch
from real_data import real_file
from sklearn.metrics.pairwise import polynomial_kernel

from neurise.datasets import mnist
from neurise.metrics import _hamming, mmd
from neurise.metrics._kernels import find
from neurise.metrics.mmd import across, variance, within
from neurise.space import Space


def one_hot(rows: np.ndarray, states: int) -> np.ndarray:
    return np.eye(states)[rows].reshape(len(rows), -1)


def from_matrices(xx: np.ndarray, yy: np.ndarray, xy: np.ndarray) -> float:
    m, n = xy.shape
    first, second = xx[~np.eye(m, dtype=bool)], yy[~np.eye(n, dtype=bool)]
    return float(first.sum() / (m * (m - 1)) + second.sum() / (n * (n - 1)) - 2 * xy.mean())


def test_hand_worked_spins() -> None:
    # Two sites. ⟨x,x'⟩ = 2, so k = 8; ⟨y,y'⟩ = 0, so k = 1; x with y: 2 and 0, so k = 8 and 1.
    x, y = np.array([[1, 1], [1, 1]]), np.array([[1, 1], [1, -1]])
    assert mmd(x, y) == pytest.approx(8 + 1 - 2 * (8 + 1) / 2)


def test_hand_worked_exponential() -> None:
    x, y = np.array([[1, 1], [1, 1]]), np.array([[1, 1], [1, -1]])
    far = math.exp(-1 / (0.5 * 2))  # one of two sites differs
    assert mmd(x, y, kernel="exponential_hamming", bandwidth=0.5) == pytest.approx(1 + far - (1 + far))
    assert mmd(y, x[:, :1].repeat(2, 1) * -1, kernel="exponential_hamming", bandwidth=0.5) == pytest.approx(
        far + 1 - (far**2 + far)
    )


def test_polynomial_kernel_is_that_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hamming, "TILE", 4)  # several tiles, the last ones not full
    monkeypatch.setattr(_hamming, "TILE_BYTES", 4 * 100)
    rng = np.random.default_rng(0)
    for states, encode in ((2, lambda rows: 2.0 * rows - 1), (3, lambda rows: one_hot(rows, 3))):
        x, y = rng.integers(0, states, (11, 5)), rng.integers(0, states, (6, 5))
        a, b = encode(x), encode(y)
        expected = from_matrices(
            *(polynomial_kernel(u, v, degree=3, gamma=1 / 5, coef0=1) for u, v in ((a, a), (b, b), (a, b)))
        )
        assert mmd(x, y, alphabet=range(states)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("states", [2, 3])
def test_exponential_kernel_by_loops(states: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, states, (7, 5)), rng.integers(0, states, (6, 5))
    kernel = [
        np.array(
            [[math.exp(-sum(a != b for a, b in zip(u, v, strict=True)) / (0.3 * 5)) for v in second] for u in first]
        )
        for first, second in ((x, x), (y, y), (x, y))
    ]
    value = mmd(x, y, kernel="exponential_hamming", bandwidth=0.3, alphabet=range(states))
    assert value == pytest.approx(from_matrices(*kernel), rel=1e-12)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("kernel", ["polynomial", "exponential_hamming"])
def test_value_and_squared_error_are_unbiased(kernel: str, same: bool) -> None:
    """Over every pair of sets of four and five rows from two laws on three configurations, by their probabilities."""
    space = Space(sites=2, states=3)
    similarity = find(kernel, space, None)
    support = torch.tensor([[0, 1], [1, 1], [2, 0]], dtype=torch.uint8)
    p = np.array([0.5, 0.3, 0.2])
    r = p if same else np.array([0.1, 0.3, 0.6])
    matrix = similarity(_hamming.agreements(support, support, 3)).numpy()

    def sets(n: int, law: np.ndarray) -> list[tuple[tuple[int, ...], float]]:
        found = []
        for places in itertools.combinations_with_replacement(range(3), n):
            counts = [places.count(k) for k in range(3)]
            ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
            found.append((places, float(ways * np.prod(law**counts))))
        return found

    mean = square = estimated = 0.0
    for (first, p_first), (second, p_second) in itertools.product(sets(4, p), sets(5, r)):
        x, y = support[list(first)], support[list(second)]
        xx, yy, xy = within(x, 3, similarity), within(y, 3, similarity), across(x, y, 3, similarity)
        value, chance = float(xx.mean + yy.mean - 2 * xy.mean), p_first * p_second
        mean += chance * value
        square += chance * value**2
        estimated += chance * float(variance(xx, yy, xy))
    truth = p @ matrix @ p + r @ matrix @ r - 2 * p @ matrix @ r
    assert mean == pytest.approx(truth, abs=1e-12)
    assert estimated == pytest.approx(square - mean**2, rel=1e-10)


def test_the_error_covers_repeated_draws() -> None:
    rng = np.random.default_rng(2)
    runs = 150
    values, errors = [], []
    for _ in range(runs):
        x, y = rng.random((60, 5)) < 0.5, rng.random((80, 5)) < 0.7
        result = mmd(x.astype(int), y.astype(int), alphabet=[0, 1])
        values.append(float(result))
        errors.append(result.error)
    # A standard deviation from 150 draws is good to 1/√300 = 6 %; four of these, and a tenth for heavier tails.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values), rel=0.35)


def test_the_floor_is_the_score_of_other_rows() -> None:
    rng = np.random.default_rng(3)
    x, y, z = (rng.integers(0, 2, (n, 6)) for n in (20, 30, 12))
    assert mmd(x, y).floor == 0
    assert mmd(x, y, other=z).floor == pytest.approx(float(mmd(z, y)))
    fewer = mmd(x[:5], y, other=z, seed=4)
    assert fewer.floor == mmd(x[:5], y, other=z, seed=4).floor
    assert fewer.floor != pytest.approx(float(mmd(z, y)))  # five of the twelve


def test_tensors_and_symbols_make_no_difference() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 2, (9, 4)), rng.integers(0, 2, (8, 4))
    expected = mmd(x, y)
    assert mmd(torch.tensor(2 * x - 1), torch.tensor(2 * y - 1)) == expected
    assert mmd(np.array(["a", "b"])[x], np.array(["a", "b"])[y]) == expected


def test_few_rows_have_no_error() -> None:
    rows = np.array([[0, 1], [1, 1], [0, 0]])
    assert mmd(rows, rows).error is None
    assert mmd(rows[[0, 1, 2, 0]], rows[[0, 1, 2, 1]]).error is not None


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="unknown kernel 'cubic'; there are: polynomial, exponential_hamming"):
        mmd(rows, rows, kernel="cubic")
    with pytest.raises(ValueError, match="has no bandwidth"):
        mmd(rows, rows, bandwidth=0.1)
    for bandwidth in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="bandwidth must be a positive number"):
            mmd(rows, rows, kernel="exponential_hamming", bandwidth=bandwidth)
    with pytest.raises(ValueError, match="2 sites, and reference has 3"):
        mmd(rows, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="samples has 1 row; at least 2"):
        mmd(rows[:1], rows)
    with pytest.raises(ValueError, match="other has 1 row"):
        mmd(rows, rows, other=rows[:1])
    with pytest.raises(ValueError, match="not in the alphabet"):
        mmd(rows, rows + 1, alphabet=[0, 1])
    with pytest.raises(ValueError, match="letters"):
        mmd(rows, np.array([["a", "b"], ["b", "b"]]))
    with pytest.raises(ValueError, match="samples"):
        mmd(np.empty((0, 2), int), rows)


def test_mnist_training_images_against_test_images() -> None:
    real_file("mnist/train-images-idx3-ubyte.gz")
    data, rng, scores = mnist(), np.random.default_rng(0), []
    assert data.train is not None
    assert data.test is not None
    for digit in range(10):
        train, test = data.train[data.labels == digit], data.test[data.test_labels == digit]
        scores.append(mmd(train[rng.choice(len(train), 1000, replace=False)], test))
    assert 0.007 < np.mean(scores) < 0.009
