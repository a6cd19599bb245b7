"""Plaquettes, hypergraphs and hidden spins against explicit loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from chi_square import assert_drawn_from

from neurise.datasets import edwards_anderson, hidden_spins, hypergraph, plaquette
from neurise.datasets._hidden_sums import HiddenSums
from neurise.datasets._products.products import SpinProducts

Terms = Sequence[tuple[int, ...]]


def brute_force(terms: Terms, strengths: np.ndarray, fields: np.ndarray) -> tuple[np.ndarray, float]:
    weights = []
    for spins in itertools.product([-1, 1], repeat=len(fields)):
        total = sum(h * s for h, s in zip(fields, spins, strict=True))
        for term, J in zip(terms, strengths, strict=True):
            product = J
            for site in term:
                product *= spins[site]
            total += product
        weights.append(math.exp(total))
    return np.array(weights) / sum(weights), math.log(sum(weights))


def squares(side: int, seed: int, *, wraps: bool, J: float, h: float) -> tuple[Terms, np.ndarray, np.ndarray]:
    """The rule from seed to instance, written a second time."""
    terms = []
    for site in range(side * side):
        row, column = site // side, site % side
        right, below = (column + 1) % side, (row + 1) % side
        if wraps or (right and below):
            terms.append((site, row * side + right, below * side + column, below * side + right))
    rng = np.random.default_rng(seed)
    return terms, rng.choice([-J, J], len(terms)), rng.choice([-h, h], side * side)


def random_terms(sites: int, seed: int, threes: int, fours: int) -> tuple[Terms, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    terms: list[tuple[int, ...]] = []
    for order, count in ((3, threes), (4, fours)):
        of_order: list[tuple[int, ...]] = []
        while len(of_order) < count:
            term = tuple(sorted(int(site) for site in rng.choice(sites, order, replace=False)))
            if term not in of_order:
                of_order.append(term)
        terms += of_order
    return terms, rng.choice([-0.6, 0.6], len(terms)), rng.choice([-0.4, 0.4], sites)


@pytest.mark.parametrize(("side", "wraps"), [(2, False), (3, False), (3, True)])
def test_plaquettes_against_explicit_loops(side: int, wraps: bool) -> None:
    data = plaquette(side, seed=4, wraps=wraps, J=0.9, h=0.3)
    law, log_z = brute_force(*squares(side, 4, wraps=wraps, J=0.9, h=0.3))
    np.testing.assert_allclose(data.pmf, law, rtol=1e-12)
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-12)
    assert len(data.info["terms"]) == (side**2 if wraps else (side - 1) ** 2)


@pytest.mark.parametrize(("sites", "threes", "fours"), [(7, 5, 6), (5, 10, 5), (6, 0, 3), (3, 1, 0)])
def test_hypergraphs_against_explicit_loops(sites: int, threes: int, fours: int) -> None:
    data = hypergraph(sites, seed=2, threes=threes, fours=fours, h=0.4)
    law, log_z = brute_force(*random_terms(sites, 2, threes, fours))
    np.testing.assert_allclose(data.pmf, law, rtol=1e-12)
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize("make", [lambda: plaquette(3, 1, h=0.3), lambda: hypergraph(8, 1, threes=6, fours=6, h=0.3)])
def test_energies_rows_and_conditionals_are_those_of_the_law(make: Callable[[], object]) -> None:
    data = make()
    everything = 2 * data.space.configurations().numpy().astype(int) - 1
    np.testing.assert_allclose(np.exp(-data.energy(everything) - data.info["log_z"]), data.pmf, rtol=1e-12)
    rows = data.sample(200_000, seed=0)
    assert_drawn_from(data.space.index(torch.from_numpy((rows + 1) // 2)).numpy(), data.pmf)
    model = SpinProducts(data.info["terms"], data.info["strengths"], data.info["fields"])
    law, x = data.pmf.reshape((2,) * data.space.sites), data.space.configurations()
    assert sorted(site for group in model.groups for site in group.tolist()) == list(range(data.space.sites))
    for group, sites in enumerate(model.groups):
        answer = model.logits(group, x).log_softmax(-1).exp().numpy()
        for k, site in enumerate(sites.tolist()):
            known = np.moveaxis(law / law.sum(axis=site, keepdims=True), site, -1)
            row = np.moveaxis(answer[:, k].reshape(*law.shape, 2)[..., 0], site, -1)[..., 0]
            np.testing.assert_allclose(row, known[..., 0], rtol=1e-10)
            other = {int(i) for term in model.terms if site in term for i in term} - {site}
            assert not other & set(sites.tolist())


def test_many_spins_come_from_chains(capsys: pytest.CaptureFixture[str]) -> None:
    data = hypergraph(27, threes=3, fours=3, J=0.3, sweeps=64)
    assert data.pmf is None
    assert data.info["log_z"] is None
    assert data.sample(20, seed=0).shape == (20, 27)
    assert "parallel tempering" in capsys.readouterr().err
    assert data.info["sampler"] == "tempering"


@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize(("side", "hidden"), [(3, 1 / 3), (3, 0.6), (3, 0.0), (2, 0.5)])
def test_hidden_spins_are_summed_over(side: int, hidden: float, preset: str) -> None:
    data = hidden_spins(side, 1, preset, hidden=hidden, J=0.8, h=0.3)
    whole = edwards_anderson(side, 1, preset, J=0.8, h=0.3)
    unseen = tuple(data.info["hidden"])
    assert len(unseen) == round(hidden * side**2)
    assert sorted([*unseen, *data.info["nodes"]]) == list(range(side**2))
    marginal = whole.pmf.reshape((2,) * side**2).sum(axis=unseen).ravel()
    np.testing.assert_allclose(data.pmf, marginal, rtol=1e-12)
    rows = 2 * data.space.configurations().numpy().astype(int) - 1
    np.testing.assert_allclose(np.exp(-data.energy(rows) - data.info["log_z"]), marginal, rtol=1e-10)
    drawn = data.sample(100_000, seed=0)
    assert_drawn_from(data.space.index(torch.from_numpy((drawn + 1) // 2)).numpy(), marginal)


def test_hidden_spins_beyond_enumeration_are_exact() -> None:
    """Eliminating the whole lattice and summing clusters are two ways to one number: Σ over visible spins of e^(−E) is Z."""
    data = hidden_spins(7, 0, J=0.4)
    assert data.pmf is None
    rows = data.sample(4000, seed=1)
    whole = edwards_anderson(7, 0, J=0.4)
    spins = np.zeros((4000, 49), dtype=np.int8)
    spins[:, data.info["nodes"]] = rows
    hidden = data.info["hidden"]
    clusters = HiddenSums(whole.edges, whole.couplings, whole.fields, np.array(data.info["nodes"])).clusters
    alone = next(cluster[0] for cluster in clusters if len(cluster) == 1)  # its conditional is a logistic function
    both = []
    for spin in (-1, 1):
        spins[:, hidden] = 1
        spins[:, alone] = spin
        both.append(whole.log_weight(spins))
    shown = np.array(sorted([*data.info["nodes"], *[site for site in hidden if site != alone]]))
    fewer = HiddenSums(whole.edges, whole.couplings, whole.fields, shown).log_weight(spins[:, shown])
    np.testing.assert_allclose(fewer, np.logaddexp(*both), rtol=1e-12)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="at least 3 where the lattice wraps"):
        plaquette(2)
    with pytest.raises(ValueError, match="threes is 11; 5 sites have 10 different terms of 3"):
        hypergraph(5, threes=11)
    with pytest.raises(ValueError, match="fours must be"):
        hypergraph(5, threes=1, fours=-1)
    with pytest.raises(ValueError, match="hidden must be a share"):
        hidden_spins(3, hidden=1.0)
    with pytest.raises(ValueError, match="leaves none of 4"):
        hidden_spins(2, hidden=0.99)
    with pytest.raises(ValueError, match="too wide to eliminate"):
        plaquette(sampler="exact")
    with pytest.raises(ValueError, match="X has 0 at row 0, column 1"):
        hidden_spins(3).energy([[1, 0, 1, 1, 1, 1]])
