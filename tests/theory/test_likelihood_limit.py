"""The limit of maximum likelihood against explicit sums, and against fits to simulated rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from neurise.datasets import edwards_anderson, ising
from neurise.theory.likelihood_limit import likelihood_limit, pairs_family

SITES = 4
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)]
FAMILIES = {"pairs": pairs_family(SITES), "graph": pairs_family(SITES, EDGES), "more": [(0,), (1,), (0, 1, 2), (2, 3)]}


def features(family: list[tuple[int, ...]]) -> np.ndarray:
    rows = [[math.prod(x[i] for i in term) for term in family] for x in itertools.product([-1, 1], repeat=SITES)]
    return np.array(rows, dtype=float)


def law() -> np.ndarray:
    pmf = ising(EDGES, [0.5, -0.7, 0.4, 0.6, -0.3], [0.3, -0.2, 0.1, 0.4]).pmf
    assert pmf is not None
    return pmf


@pytest.mark.parametrize("name", FAMILIES)
def test_the_formula_against_explicit_sums(name: str) -> None:
    mu, phi = law(), features(FAMILIES[name])
    score = phi - mu @ phi
    fisher = sum(p * np.outer(s, s) for p, s in zip(mu, score, strict=True))
    inverse = np.linalg.inv(fisher)
    expected = sum(p * math.sqrt(s @ inverse @ s) for p, s in zip(mu, score, strict=True)) / math.sqrt(2 * math.pi)
    found = likelihood_limit(mu, FAMILIES[name])
    assert found.parameters == len(FAMILIES[name])
    assert found.rate == pytest.approx(expected, rel=1e-10)
    assert found.tv(1e6) == pytest.approx(expected / 1000)
    assert found.tv(1e6) <= found.ceiling(1e6) == pytest.approx(0.3989 * math.sqrt(len(FAMILIES[name]) / 1e6), rel=1e-3)
    assert found.tv(1e-3) == found.ceiling(1e-3) == 1


@pytest.mark.parametrize("name", ["pairs", "graph"])
def test_fits_to_simulated_rows_are_as_far_from_the_truth(name: str) -> None:
    """Newton's method with exact moments, 400 samples of 4,000 rows: their mean has a standard error of about 1 %."""
    mu, phi = law(), features(FAMILIES[name])
    rows, rng, distances = 4000, np.random.default_rng(0), []
    for counts in rng.multinomial(rows, mu, size=400):
        theta = np.zeros(phi.shape[1])
        for _ in range(12):
            fitted = np.exp(phi @ theta)
            fitted /= fitted.sum()
            mean = fitted @ phi
            covariance = (phi * fitted[:, None]).T @ phi - np.outer(mean, mean)
            theta += np.linalg.solve(covariance, counts @ phi / rows - mean)
        assert np.abs(counts @ phi / rows - mean).max() < 1e-9
        distances.append(0.5 * np.abs(fitted - mu).sum())
    error = np.std(distances, ddof=1) / math.sqrt(len(distances))
    # The formula is the leading term: what follows is smaller by about √(d/N) = 0.05 squared.
    assert abs(np.mean(distances) - likelihood_limit(mu, FAMILIES[name]).tv(rows)) < 4 * error


def test_families_of_the_paper_s_lattice() -> None:
    data = edwards_anderson(side=3, seed=0)
    assert len(pairs_family(25)) == 325
    assert len(pairs_family(25, edwards_anderson(side=5).edges)) == 75
    dense, sparse = (likelihood_limit(data.pmf, pairs_family(9, edges)) for edges in (None, data.edges))
    assert sparse.parameters == 27 < dense.parameters == 45
    assert sparse.rate < dense.rate


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(ValueError, match="different products"):
        likelihood_limit(law(), [(0,), (0,)])
    stiff = np.zeros(16)
    stiff[[0, 15]] = 0.5
    with pytest.raises(ValueError, match="singular"):
        likelihood_limit(stiff, pairs_family(SITES))
