import numpy as np
import pytest

from neurise.metrics import cross_correlation
from neurise.metrics.cross_correlation import correlations


def test_spins_are_multiplied() -> None:
    rows = np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, 1, 1]])
    np.testing.assert_allclose(correlations(rows), rows.T @ rows / 4)


def test_zeros_and_ones_count_as_spins() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (50, 3))
    np.testing.assert_allclose(correlations(rows), correlations(2 * rows - 1))


def test_larger_alphabets_count_agreement() -> None:
    rows = np.array([[0, 0, 2], [1, 0, 1], [2, 2, 2], [0, 1, 2]])
    expected = [[np.mean(rows[:, i] == rows[:, j]) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(correlations(rows), expected)


def test_hand_worked_error() -> None:
    error = cross_correlation(np.array([[1, 1, 1], [-1, -1, 1]]), np.array([[1, 1, 1], [1, -1, 1]]))
    # C_01: 1 against 0; C_02: 0 against 1; C_12: 0 against 0.
    assert error.mean_abs == pytest.approx(2 / 3)
    assert error.rms == pytest.approx((2 / 3) ** 0.5)
    assert error.frobenius == pytest.approx(4**0.5 / 9)


def test_the_alphabet_is_that_of_both() -> None:
    first, second = np.array([[0, 1], [1, 0]]), np.array([[0, 2], [2, 1]])
    assert cross_correlation(first, second).mean_abs == 0  # never equal in either


def test_widths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 sites and the reference has 3"):
        cross_correlation(np.ones((2, 2), int), np.ones((2, 3), int))
    with pytest.raises(ValueError, match="two sites"):
        cross_correlation(np.ones((2, 1), int), np.ones((2, 1), int))
