"""Effective temperatures: against weighted least squares, and by a known law at another temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurise
from neurise import structure
from neurise.structure.temperature import effective_temperature

SITES = 5


def pairs(seed: int, slope: float, *, scatter: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Programmed couplings, learnt ones with errors of known size, and these."""
    rng = np.random.default_rng(seed)
    told, noise, errors = (np.triu(rng.normal(size=(SITES, SITES)), 1) for _ in range(3))
    errors = np.abs(errors) * 0.1 + 0.02
    learnt = slope * told + scatter * np.triu(errors, 1) * noise
    return told + told.T, learnt + learnt.T, np.triu(errors, 1) + np.triu(errors, 1).T


def test_the_slope_is_that_of_weighted_least_squares() -> None:
    told, learnt, errors = pairs(0, 0.7)
    above = np.triu_indices(SITES, 1)
    root = 1 / errors[above]
    solved, residual, *_ = np.linalg.lstsq((told[above] * root)[:, None], learnt[above] * root, rcond=None)
    found = effective_temperature(learnt, errors, told)
    assert found.slope == pytest.approx(solved[0], rel=1e-12)
    assert found.scatter == pytest.approx(np.sqrt(residual[0] / 9), rel=1e-9)
    assert found.pairs == 10
    assert (found.value, found.value_error) == pytest.approx((1 / found.slope, found.error / found.slope**2))


def test_the_error_is_how_much_the_slope_varies_and_grows_with_the_scatter() -> None:
    for scatter in (1.0, 3.0):
        found = [effective_temperature(*reversed_two(pairs(seed, 0.7, scatter=scatter))) for seed in range(400)]
        pulls = np.array([(one.slope - 0.7) / one.error for one in found])
        # A mean of 400 squares of variance 2 (more where the error itself is estimated from nine residuals) is 1 ± 0.1;
        # widening alone, and never narrowing, makes it at most 1.
        assert 0.5 < (pulls**2).mean() < 1.6


def reversed_two(three: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    told, learnt, errors = three
    return learnt, errors, told


def test_a_dictionary_a_matrix_and_a_data_set_are_the_same() -> None:
    data = neurise.datasets.edwards_anderson(side=2, seed=1, J=0.5)  # each pair is coupled twice
    matrix = np.zeros((4, 4))
    by_name: dict[Any, float] = {}
    for (i, j), J in zip(data.edges.tolist(), data.couplings, strict=True):
        matrix[i, j] += J
        matrix[j, i] += J
        by_name["abcd"[i], "abcd"[j]] = by_name.get(("abcd"[i], "abcd"[j]), 0.0) + J
    learnt, errors = 0.5 * matrix, np.full((4, 4), 0.1)
    expected = effective_temperature(learnt, errors, matrix)
    assert expected.slope == pytest.approx(0.5)
    assert effective_temperature(learnt, errors, data) == expected
    assert effective_temperature(learnt, errors, by_name, labels="abcd") == expected


class Known:
    """A law as a model."""

    def __init__(self, data: Any) -> None:
        self.log_prob = lambda X: -data.energy(X)


def test_a_law_that_is_warmer_than_programmed_has_its_temperature() -> None:
    """Couplings of 0.4 that were programmed as 1: the slope is 0.4, and its error that of counting 2,000 rows."""
    law = neurise.datasets.edwards_anderson(side=3, seed=0, J=0.4)
    X = law.sample(2000, seed=0)
    told = {(int(i), int(j)): J / 0.4 for (i, j), J in zip(law.edges, law.couplings, strict=True)}
    found = structure.recover(Known(law), X, programmed=told)
    assert found.temperature is not None
    assert found.temperature.slope == pytest.approx(0.4)
    edges = tuple(law.edges.T)
    assert found.temperature.error == pytest.approx((1 / found.errors[edges] ** 2).sum() ** -0.5)
    assert found.to_dict()["temperature"]["slope"] == found.temperature.slope
    again = structure.recover(Known(law), law, programmed=told).temperature
    assert again is not None
    assert again.slope == pytest.approx(0.4)


def test_errors_of_fields_are_those_of_counting() -> None:
    r"""Of a spin that is up in n p of n rows, h = ½ log(p/(1 − p)) has the error ½ [n p (1 − p)]^(−½)."""
    h = np.array([0.2, -0.5, 1.0])
    law = neurise.datasets.ising(np.zeros((0, 2), dtype=int), np.zeros(0), h)
    found = structure.recover(Known(law), law.sample(500, seed=0))
    up = 1 / (1 + np.exp(-2 * h))
    np.testing.assert_allclose(found.fields, h, atol=1e-9)
    np.testing.assert_allclose(found.field_errors, 0.5 / np.sqrt(500 * up * (1 - up)))


@pytest.mark.parametrize(
    ("programmed", "message"),
    [
        ({(0, 9): 1.0}, r"programmed has the key \(0, 9\); keys are pairs of the sites 0, 1, 2, 3, 4"),
        ({(0, 1): np.nan}, r"programmed has nan at \(0, 1\)"),
        ({(0, 0): 1.0}, "between two sites"),
        (np.zeros((2, 2)), r"must be a symmetric matrix of \(5, 5\)"),
        (np.triu(np.ones((5, 5))), "must be a symmetric matrix"),
        (np.zeros((5, 5)), "none of the 0 programmed couplings"),
        ("couplings", "a data set, a matrix or a dictionary by pairs, got str"),
        (neurise.datasets.hypergraph(5, threes=1, fours=1), "has no couplings"),
        (neurise.datasets.edwards_anderson(2), "has 4 sites; the structure has 5"),
    ],
)
def test_mistakes(programmed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        effective_temperature(np.ones((5, 5)), np.ones((5, 5)), programmed)


def test_it_warns_where_most_programmed_couplings_were_not_seen() -> None:
    told = np.triu(np.ones((4, 4)), 1)
    learnt = np.where(np.arange(16).reshape(4, 4) == 1, 1.7, 0.0)
    with pytest.warns(UserWarning, match="5 of 6 programmed couplings were not learnt"):
        effective_temperature(learnt + learnt.T, np.full((4, 4), 0.1), told + told.T)
    rounded = learnt + np.where(learnt == 0, 1e-17, 0.0)  # as ratios of probabilities leave it
    with pytest.warns(UserWarning, match="5 of 6 programmed couplings were not learnt"):
        effective_temperature(rounded + rounded.T, np.full((4, 4), 0.1), told + told.T)


def test_it_warns_where_couplings_have_no_error() -> None:
    """As those that a graph was found without."""
    told = np.triu(np.ones((4, 4)), 1)
    errors = np.full((4, 4), 0.1)
    errors[0, 1:] = errors[1:, 0] = np.nan
    with pytest.warns(UserWarning, match="3 of 6 programmed couplings were not learnt"):
        effective_temperature(np.ones((4, 4)), errors, told + told.T)
