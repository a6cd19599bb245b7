import numpy as np
import pytest
import torch

from neurise.metrics import total_variation


def test_hand_worked_laws() -> None:
    assert total_variation(np.array([0.5, 0.5]), np.array([0.8, 0.2])) == pytest.approx(0.3)
    assert total_variation(torch.tensor([1.0, 0.0]), np.array([0.0, 1.0])) == 1.0


def test_hand_worked_samples() -> None:
    rows = np.array([[0, 0], [0, 1], [0, 1], [2, 2]])  # two sites, three states
    pmf = np.zeros(9)
    pmf[[0, 1, 3]] = [0.25, 0.25, 0.5]  # 00, 01, 10
    assert total_variation(rows, pmf, alphabet=[0, 1, 2]) == pytest.approx(0.5 * (0.25 + 0.5 + 0.25))


def test_letters_and_order_of_the_alphabet() -> None:
    rows, pmf = np.array([["b"], ["b"], ["a"], ["b"]]), np.array([0.25, 0.75])
    assert total_variation(rows, pmf) == 0
    assert total_variation(rows, pmf, alphabet="ba") == pytest.approx(0.5)


def test_a_missing_symbol_is_asked_for() -> None:
    with pytest.raises(ValueError, match="alphabet="):
        total_variation(np.ones((3, 2), int), np.full(4, 0.25))


def test_what_is_no_law_is_refused() -> None:
    with pytest.raises(ValueError, match="sums to"):
        total_variation(np.array([0.5, 0.5]), np.array([0.9, 0.9]))
    with pytest.raises(ValueError, match="2 entries"):
        total_variation(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.5]))
