"""The paper's spin glass: its two presets, and the rule from seed to instance."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from chi_square import assert_drawn_from

from neurise.datasets import edwards_anderson


def instance(side: int, seed: int, preset: str, J: float = 1.2, h: float = 0.05) -> tuple[Any, np.ndarray, np.ndarray]:
    """The rule, written a second time."""
    edges = []
    for site in range(side * side):
        row, column = site // side, site % side
        right, down = row * side + (column + 1) % side, (row + 1) % side * side + column
        if preset == "paper" or column + 1 < side:
            edges.append((site, right))
        if preset == "paper" or row + 1 < side:
            edges.append((site, down))
    rng = np.random.default_rng(seed)
    couplings = rng.choice([-J, J], len(edges))
    return edges, couplings * (1 if preset == "paper" else 2), rng.choice([-h, h], side * side)


@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize(("side", "seed"), [(5, 0), (3, 7), (2, 1), (12, 4)])
def test_rule_from_seed_to_instance(side: int, seed: int, preset: str) -> None:
    data = edwards_anderson(side, seed, preset)
    edges, couplings, fields = instance(side, seed, preset)
    assert data.edges.tolist() == [list(edge) for edge in edges]
    assert np.array_equal(data.couplings, couplings)
    assert np.array_equal(data.fields, fields)
    assert data.space.sites == side * side
    assert data.shape == (side, side)


def test_presets_are_two_models() -> None:
    paper, released = edwards_anderson(5), edwards_anderson(5, preset="released")
    assert len(paper.couplings) == 50
    assert len(released.couplings) == 40
    assert set(np.abs(paper.couplings)) == {1.2}
    assert set(np.abs(released.couplings)) == {2.4}
    assert set(np.abs(released.fields)) == {0.05}
    assert all(abs(i - j) in (1, 5) for i, j in released.edges.tolist())


def test_strengths_are_the_user_s() -> None:
    data = edwards_anderson(3, J=0.7, h=0.2)
    assert set(np.abs(data.couplings)) == {0.7}
    assert set(np.abs(data.fields)) == {0.2}


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_pmf_against_explicit_loops(preset: str) -> None:
    edges, couplings, fields = instance(3, 2, preset)
    weights = []
    for sigma in itertools.product([-1, 1], repeat=9):
        total = sum(J * sigma[i] * sigma[j] for (i, j), J in zip(edges, couplings, strict=True))
        weights.append(math.exp(total + sum(h * spin for h, spin in zip(fields, sigma, strict=True))))
    data = edwards_anderson(3, 2, preset)
    np.testing.assert_allclose(data.pmf, np.array(weights) / sum(weights), rtol=1e-12)
    assert data.info["log_z"] == pytest.approx(math.log(sum(weights)), rel=1e-12)


def test_side_two_couples_each_pair_twice() -> None:
    data = edwards_anderson(2, seed=0)
    assert len(data.couplings) == 8
    pairs = sorted(tuple(sorted(edge)) for edge in data.edges.tolist())
    assert pairs == [(0, 1), (0, 1), (0, 2), (0, 2), (1, 3), (1, 3), (2, 3), (2, 3)]


@pytest.mark.parametrize("sampler", ["enumerate", "exact"])
@pytest.mark.parametrize("preset", ["paper", "released"])
def test_samples_against_the_pmf(sampler: str, preset: str) -> None:
    data = edwards_anderson(3, 0, preset, sampler=sampler)
    rows = data.sample(200_000, seed=0)
    assert_drawn_from(((rows > 0) @ 2 ** np.arange(9)[::-1]).astype(np.int64), data.pmf)


@pytest.mark.parametrize("side", [4, 5])
def test_log_z_by_elimination_and_by_enumeration(side: int) -> None:
    from neurise.enumeration import pairwise_law
    from neurise.interactions import Interactions

    data = edwards_anderson(side, seed=6)
    _, log_z = pairwise_law(Interactions.ising(data.edges, data.couplings, data.fields))
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"side": 1}, "side must be a whole number, at least 2, got 1"),
        ({"side": 2.5}, "side must be a whole number, at least 2, got 2.5"),
        ({"preset": "papr"}, "preset must be 'paper' or 'released', got 'papr'"),
        ({"J": math.nan}, "J must be finite, got nan"),
        ({"h": math.inf}, "h must be finite, got inf"),
        ({"sampler": "quantum"}, "sampler must be one of .* got 'quantum'"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edwards_anderson(**wrong)
