"""The Potts glass against explicit loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from chi_square import assert_drawn_from, assert_means

from neurise.datasets import potts
from neurise.interactions import Interactions
from neurise.mcmc import parallel_tempering


def instance(side: int, states: int, seed: int, J: float = 1.2, h: float = 0.05) -> tuple[Any, np.ndarray, np.ndarray]:
    """The rule from seed to instance, written a second time."""
    edges = []
    for site in range(side * side):
        row, column = site // side, site % side
        edges += [(site, row * side + (column + 1) % side), (site, (row + 1) % side * side + column)]
    rng = np.random.default_rng(seed)
    return edges, rng.choice([-J, J], len(edges)), rng.choice([-h, h], (side * side, states))


def brute_force(side: int, states: int, seed: int, **strengths: float) -> tuple[np.ndarray, float]:
    edges, couplings, fields = instance(side, states, seed, **strengths)
    weights = []
    for x in itertools.product(range(states), repeat=side * side):
        total = 0.0
        for (i, j), J in zip(edges, couplings, strict=True):
            total += J * (x[i] == x[j])
        for site, token in enumerate(x):
            total += fields[site, token]
        weights.append(math.exp(total))
    return np.array(weights) / sum(weights), math.log(sum(weights))


@pytest.mark.parametrize(("side", "states", "seed"), [(2, 3, 0), (2, 5, 3), (3, 2, 1)])
def test_pmf_against_explicit_loops(side: int, states: int, seed: int) -> None:
    data = potts(side, states, seed, h=0.4)
    law, log_z = brute_force(side, states, seed, h=0.4)
    np.testing.assert_allclose(data.pmf, law, rtol=1e-12)
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-12)


def test_the_paper_s_three_by_three() -> None:
    data = potts()
    assert (data.space.sites, data.space.states) == (9, 3)
    np.testing.assert_allclose(data.pmf, brute_force(3, 3, 0)[0], rtol=1e-12)


@pytest.mark.parametrize(("side", "states", "seed"), [(2, 3, 0), (3, 4, 5)])
def test_rule_from_seed_to_instance(side: int, states: int, seed: int) -> None:
    data = potts(side, states, seed)
    edges, couplings, fields = instance(side, states, seed)
    assert data.edges.tolist() == [list(edge) for edge in edges]
    assert np.array_equal(data.couplings, couplings)
    assert np.array_equal(data.fields, fields)
    assert set(np.abs(data.couplings)) == {1.2}
    assert set(np.abs(data.fields).ravel()) == {0.05}
    assert data.symbols.tolist() == list(range(states))


def test_side_two_couples_each_pair_twice() -> None:
    pairs = sorted(tuple(sorted(edge)) for edge in potts(2).edges.tolist())
    assert pairs == [(0, 1), (0, 1), (0, 2), (0, 2), (1, 3), (1, 3), (2, 3), (2, 3)]


@pytest.mark.parametrize("sampler", ["enumerate", "exact"])
@pytest.mark.parametrize(("side", "states"), [(2, 3), (3, 3)])
def test_samples_against_the_pmf(side: int, states: int, sampler: str) -> None:
    data = potts(side, states, seed=1, h=0.5, sampler=sampler)
    rows = data.sample(300_000, seed=0)
    places = data.space.index(torch.from_numpy(rows)).numpy()
    assert_drawn_from(places, data.pmf)


def test_beyond_enumeration_rows_are_exact_and_tempering_agrees() -> None:
    data = potts(4, 4, seed=2, h=0.3)
    assert data.pmf is None
    assert data.info["sampler"] == "exact"
    rows = data.sample(200_000, seed=0)
    model = Interactions.potts(data.edges, data.couplings, data.fields)
    result = parallel_tempering(model, 32 * 200, groups=32, generator=torch.Generator().manual_seed(0))
    assert result.diagnostics.mixed
    first, second = data.edges.T
    # The exact rows' own error, at most √(¼/200,000) = 0.0011, is made part of the groups' by giving each group the mean of
    # its own share of the rows: differences of independent pairs.
    exact = np.stack([(part[:, first] == part[:, second]).mean(axis=0) for part in np.split(rows, 32)])
    tempered = (result.rows.numpy()[:, :, first] == result.rows.numpy()[:, :, second]).mean(axis=1)
    assert_means(tempered - exact, np.zeros(len(first)))


def test_energy() -> None:
    data = potts(2, 3, seed=4, h=0.4)
    edges, couplings, fields = instance(2, 3, 4, h=0.4)
    for x in oracles.configurations(data.space)[::7]:
        total = sum(J * (x[i] == x[j]) for (i, j), J in zip(edges, couplings, strict=True))
        total += sum(fields[site, token] for site, token in enumerate(x))
        assert data.energy(np.array([x])) == pytest.approx(-total)
    with pytest.raises(ValueError, match=r"X has 3 at row 0, column 1; the symbols of potts\(.*\) are 0, 1, 2"):
        data.energy(np.array([[0, 3, 0, 0]]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"side": 1}, "side must be a whole number, at least 2, got 1"),
        ({"states": 1}, "states must be a whole number from 2 to 256, got 1"),
        ({"states": 257}, "states must be a whole number from 2 to 256, got 257"),
        ({"states": 2.5}, "states must be a whole number from 2 to 256, got 2.5"),
        ({"J": math.inf}, "J must be finite, got inf"),
        ({"h": math.nan}, "h must be finite, got nan"),
        ({"side": 9, "sampler": "enumerate"}, r"3\^81 configurations, too many to enumerate"),
        ({"side": 9, "sampler": "exact"}, "too wide to eliminate"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        potts(**wrong)
