"""Exact samples and log Z by elimination, and tempering, against enumeration and against an independent program."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import oracles
import pytest
import torch
from chi_square import FAILURE, assert_drawn_from, assert_means
from scipy import stats

from neurise.dataset import Dataset
from neurise.datasets import edwards_anderson
from neurise.energies import elimination as _elimination
from neurise.energies import elimination_order as _elimination_order
from neurise.energies.elimination import Elimination
from neurise.interactions import Interactions
from neurise.mcmc import parallel_tempering


def ising_model(sites: int, chance: float, seed: int) -> Interactions:
    """Random couplings and fields on a random graph."""
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(sites), 2) if rng.random() < chance]
    return Interactions.ising(np.array(edges).reshape(-1, 2), rng.normal(size=len(edges)), rng.normal(size=sites))


def tables_model(sites: int, states: int, seed: int) -> Interactions:
    """A star whose middle comes first in the sites' order and late in a good one, and tables without any symmetry."""
    rng = np.random.default_rng(seed)
    edges = np.array([(0, i) for i in range(1, sites)] + [(2, 1)])
    return Interactions(edges, rng.normal(size=(len(edges), states, states)), rng.normal(size=(sites, states)))


def brute_force(model: Interactions) -> tuple[np.ndarray, float]:
    """Law and log Z by explicit loops."""
    weights = []
    for x in oracles.configurations(model.space):
        total = sum(table[x[i], x[j]] for (i, j), table in zip(model.edges, model.tables, strict=True))
        weights.append(math.exp(total + sum(model.fields[site, token] for site, token in enumerate(x))))
    return np.array(weights) / sum(weights), math.log(sum(weights))


MODELS = {
    "sparse": lambda: ising_model(8, 0.3, 0),
    "complete": lambda: ising_model(8, 1.0, 1),
    "in pieces": lambda: ising_model(9, 0.1, 2),
    "three states": lambda: tables_model(6, 3, 3),
    "five states": lambda: tables_model(4, 5, 4),
}


@pytest.mark.parametrize("choose", [_elimination_order._own_order, _elimination_order._MinFill])
@pytest.mark.parametrize("name", MODELS)
def test_elimination_in_any_order(choose: Any, name: str) -> None:
    model = MODELS[name]()
    law, log_z = brute_force(model)
    plan = _elimination_order._plan(model, choose)
    assert plan is not None
    assert sorted(plan.order) == list(range(model.sites))
    elimination = Elimination(model, plan)
    assert elimination.log_z == pytest.approx(log_z, rel=1e-12)
    rows = elimination.draw(100_000, np.random.default_rng(0))
    assert_drawn_from(model.space.index(torch.from_numpy(rows)).numpy(), law)


def test_min_fill_finds_the_width_of_a_tree_and_of_a_ring() -> None:
    for graph, width in ((nx.balanced_tree(2, 6), 1), (nx.cycle_graph(50), 2)):
        plan = _elimination_order.find_plan(
            Interactions.ising(np.array(graph.edges), np.ones(len(graph.edges)), np.zeros(len(graph)))
        )
        assert plan is not None
        assert plan.width == width


def test_elimination_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ising_model(9, 0.4, 0)
    plan = _elimination_order.find_plan(model)
    assert plan is not None
    exact = Elimination(model, plan)
    monkeypatch.setattr(_elimination, "DOUBLE", 0)
    single = Elimination(model, plan)
    assert single.log_z == exact.log_z  # log Z stays in double precision
    for one, two in zip(single.kept, exact.kept, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, two, rtol=2**-24, atol=1e-30)


def oracle(data: Dataset) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Log Z, samples' energies, and exact means of spins and of coupled pairs by dwave-samplers' tree decomposition."""
    dimod = pytest.importorskip("dimod")
    samplers = pytest.importorskip("dwave.samplers")
    assert data.edges is not None
    assert data.fields is not None
    model = dimod.BinaryQuadraticModel({i: -h for i, h in enumerate(data.fields.tolist())}, {}, 0.0, "SPIN")
    for (i, j), J in zip(data.edges.tolist(), data.couplings.tolist(), strict=True):
        model.add_interaction(i, j, -J)
    found = samplers.TreeDecompositionSampler().sample(model, num_reads=2000, seed=1, marginals=True)
    means = np.array([2 * found.info["variable_marginals"][i] - 1 for i in range(data.space.sites)])
    pairs = []
    for i, j in data.edges.tolist():
        both = found.info["interaction_marginals"]
        table = both[(i, j)] if (i, j) in both else both[(j, i)]
        pairs.append(sum(s * t * p for (s, t), p in table.items()))
    return found.info["log_partition_function"], found.record.energy, means, np.array(pairs)


def check_moments(rows: np.ndarray, exact: np.ndarray) -> None:
    """Check means of independent products of spins: ±1 with mean m has variance 1 − m², and n of them are nearly normal."""
    error = np.sqrt((1 - exact**2) / len(rows))
    limit = stats.norm.isf(FAILURE / 2 / len(exact))
    assert (np.abs(rows.mean(axis=0) - exact) <= limit * error + 1 / len(rows)).all()


@pytest.mark.parametrize("side", [6, 8, pytest.param(10, marks=pytest.mark.slow)])
def test_elimination_against_an_independent_method(side: int) -> None:
    data = edwards_anderson(side, seed=3)
    log_z, energies, means, pairs = oracle(data)
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-10)
    rows = data.sample(20_000, seed=0)
    check_moments(rows.astype(float), means)
    first, second = data.edges.T
    check_moments(rows[:, first] * rows[:, second].astype(float), pairs)
    # Energies: Kolmogorov and Smirnov's distance of two samples. Equal energies must be equal to the last bit, because a tie
    # that rounding breaks the same way every time looks like a difference; ties themselves only lower the distance.
    assert stats.ks_2samp(data.energy(rows).round(6), energies.round(6)).pvalue > FAILURE


def test_five_by_five_pmf_against_elimination() -> None:
    data = edwards_anderson(5, seed=1)
    rows = data.sample(1000, seed=0)
    places = ((rows > 0) @ 2 ** np.arange(25)[::-1]).astype(np.int64)
    log_prob = -data.energy(rows) - data.info["log_z"]  # the pmf knows nothing of this log Z
    np.testing.assert_allclose(np.log(data.pmf[places]), log_prob, rtol=1e-10)
    assert data.pmf.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("side", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_tempering_against_exact_answers(side: int) -> None:
    data, groups = edwards_anderson(side, seed=3), 32
    _, _, means, pairs = oracle(data)
    model = Interactions.ising(data.edges, data.couplings, data.fields)
    result = parallel_tempering(model, groups * 120, groups=groups, generator=torch.Generator().manual_seed(0))
    assert result.diagnostics.mixed
    spins = 2.0 * result.rows.numpy() - 1
    first, second = data.edges.T
    assert_means(spins.mean(axis=1), means)
    assert_means((spins[:, :, first] * spins[:, :, second]).mean(axis=1), pairs)
    # The law of the energy, not only its mean: shares of rows below five levels. The groups give the error of the tempered
    # shares, √(p(1 − p)/n) is that of the shares of n exact rows, and Student's law with the groups' degrees of freedom
    # bounds the difference.
    exact = data.energy(data.sample(300_000, seed=0))
    levels = np.quantile(exact, [0.1, 0.3, 0.5, 0.7, 0.9]) + 1e-6  # between two energies, not at one
    shares = (-result.log_weight.numpy()[:, :, None] <= levels).mean(axis=1)
    expected = (exact[:, None] <= levels).mean(axis=0)
    error = np.sqrt(shares.var(axis=0, ddof=1) / groups + expected * (1 - expected) / len(exact))
    limit = stats.t.isf(FAILURE / 2 / len(levels), groups - 1)
    assert (np.abs(shares.mean(axis=0) - expected) <= limit * error).all()
    # And what the run says of itself is true: the groups' means do not scatter more than those of as many independent rows
    # as it claims to be worth.
    claimed = exact.var() / result.diagnostics.effective_rows
    shown = result.log_weight.numpy().mean(axis=1).var(ddof=1) / groups
    assert shown <= claimed * stats.chi2.isf(FAILURE, groups - 1) / (groups - 1)
