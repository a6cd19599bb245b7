"""Sums of products of spins against explicit loops."""

import itertools

import numpy as np
import pytest

from neurise.walsh import moments_of, place_of, values_of

SITES = 4


def products() -> np.ndarray:
    """∏ σ of every set (columns) at every configuration (rows)."""
    table = np.ones((2**SITES, 2**SITES))
    for row, spins in enumerate(itertools.product([-1, 1], repeat=SITES)):
        for column, members in enumerate(itertools.product([0, 1], repeat=SITES)):
            for spin, member in zip(spins, members, strict=True):
                table[row, column] *= spin if member else 1
    return table


def test_values_and_moments_are_sums_over_all_sets_and_configurations() -> None:
    vector = np.random.default_rng(0).normal(size=2**SITES)
    kept = vector.copy()
    np.testing.assert_allclose(values_of(vector), products() @ vector, atol=1e-12)
    np.testing.assert_allclose(moments_of(vector), products().T @ vector, atol=1e-12)
    np.testing.assert_array_equal(vector, kept)


def test_the_first_site_is_the_most_significant() -> None:
    assert [place_of(SITES, [site]) for site in range(SITES)] == [8, 4, 2, 1]
    assert place_of(SITES, (0, 3)) == 9
    with pytest.raises(ValueError, match="2\\^sites values; got 12"):
        values_of(np.zeros(12))
