"""Couplings and fields of a law, against averages over every configuration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import oracles
import pairwise_models
import pytest
import torch

from neurise import datasets, likelihood, structure
from neurise.exact import ExactConditionals
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = pairwise_models.SPACES
TIGHT = 1e-10


class KnownLaw:
    """Stands for a fitted model whose likelihood is a pmf."""

    def __init__(self, space: Space, pmf: np.ndarray) -> None:
        self.space, self.pmf = space, pmf

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf[self.space.index(torch.from_numpy(np.asarray(X))).numpy()])


class KnownConditionals:
    """Stands for a model that knows its conditionals and no likelihood."""

    def __init__(self, space: Space, pmf: np.ndarray) -> None:
        self.space = space
        self.tables = [oracles.conditional(space, pmf, site) for site in range(space.sites)]

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError("no partition function")

    def conditional(self, X: np.ndarray, site: int) -> np.ndarray:
        return self.tables[site][self.space.index(torch.from_numpy(np.asarray(X))).numpy()]


class Autoregressive:
    """Stands for hard noise learnt to perfection: a product of exact conditionals."""

    def __init__(self, space: Space, pmf: np.ndarray) -> None:
        self.chain = ExactConditionals(pmf, RoundRobin(space, 0.0, 1), hide_noised=True)

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        return likelihood.log_prob(self.chain, torch.from_numpy(np.asarray(X, dtype=np.uint8))).numpy()


def every_row(space: Space) -> np.ndarray:
    return np.array(oracles.configurations(space))


def projections(space: Space, log_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Zero-sum tables and fields of a pairwise log-law: means over all configurations with one and with two sites held."""
    rows, p, q = every_row(space), space.states, space.sites
    tables, fields = np.zeros((q, q, p, p)), np.zeros((q, p))
    for i in range(q):
        for a in range(p):
            fields[i, a] = log_law[rows[:, i] == a].mean() - log_law.mean()
    for i in range(q):
        for j in range(q):
            for a in range(p):
                for b in range(p):
                    if i != j:
                        both = log_law[(rows[:, i] == a) & (rows[:, j] == b)].mean()
                        tables[i, j, a, b] = both - fields[i, a] - fields[j, b] - log_law.mean()
    return tables, fields


@pytest.mark.parametrize("stand_in", [KnownLaw, KnownConditionals, Autoregressive])
@pytest.mark.parametrize("space", SPACES, ids=["spins", "three states"])
def test_a_pairwise_law_gives_back_its_tables_and_fields(space: Space, stand_in: Callable[..., Any]) -> None:
    _, edges, tables, fields = pairwise_models.random_model(space, seed=1)
    pmf = pairwise_models.law_of(space, edges, tables, fields)
    found = structure.recover(stand_in(space, pmf), every_row(space)[::2])
    expected_tables, expected_fields = projections(space, np.log(pmf))
    np.testing.assert_allclose(found.tables, expected_tables, atol=TIGHT)
    np.testing.assert_allclose(found.fields, expected_fields if space.states > 2 else expected_fields[:, 1], atol=TIGHT)


def test_one_row_is_context_enough_for_a_pairwise_law() -> None:
    space = SPACES[1]
    _, edges, tables, fields = pairwise_models.random_model(space, seed=2)
    pmf = pairwise_models.law_of(space, edges, tables, fields)
    rows = np.array([[2, 0, 1, 1], [0, 1, 2, 0]])  # the second only names all symbols
    found = structure.recover(KnownLaw(space, pmf), rows, rows=1)
    assert found.rows == 1
    np.testing.assert_allclose(found.tables, projections(space, np.log(pmf))[0], atol=TIGHT)


def test_an_ising_model_gives_back_its_couplings_and_fields() -> None:
    rng = np.random.default_rng(3)
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)])
    J, h = rng.choice([-1, 1], 6) * rng.uniform(0.8, 1.2, 6), rng.normal(size=5)
    data = datasets.ising(edges, J, h)
    law = KnownLaw(data.space, data.pmf)
    spins = type("Spins", (), {"log_prob": lambda self, X: law.log_prob((np.asarray(X) + 1) // 2)})()
    found = structure.recover(spins, data)
    for (i, j), coupling in zip(edges.tolist(), J, strict=True):
        assert found.couplings[i, j] == pytest.approx(coupling, abs=TIGHT)
        assert found.couplings[j, i] == found.couplings[i, j]
    np.testing.assert_allclose(found.fields, h, atol=TIGHT)
    assert found.edges.tolist() == sorted(sorted(edge) for edge in edges.tolist())
    np.testing.assert_allclose(found.scores, abs(found.couplings), atol=TIGHT)


@pytest.mark.parametrize("side", [2, 3])
def test_a_potts_model_gives_back_its_couplings(side: int) -> None:
    data = datasets.potts(side=side, states=3, seed=4)
    found = structure.recover(KnownLaw(data.space, data.pmf), data)
    expected = np.zeros((side**2, side**2))
    for (i, j), coupling in zip(data.edges.tolist(), data.couplings, strict=True):
        expected[i, j] += coupling  # side 2 couples a pair twice
        expected[j, i] += coupling
    np.testing.assert_allclose(found.couplings, expected, atol=TIGHT)
    np.testing.assert_allclose(found.fields, data.fields - data.fields.mean(axis=1, keepdims=True), atol=TIGHT)
    # A Potts table J 1{a = b} has the Frobenius norm |J| √(p − 1) in the zero-sum gauge.
    np.testing.assert_allclose(found.scores, abs(expected) * 2**0.5, atol=TIGHT)


def slowly(space: Space, pmf: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted means of tables and fields, and standard errors of the tables' norms, row by row."""
    log_law = dict(zip(oracles.configurations(space), np.log(np.maximum(pmf, 1e-300)), strict=True))
    p, q = space.states, space.sites
    tables, errors, fields = np.zeros((q, q, p, p)), np.zeros((q, q)), np.zeros((q, p))

    def centred(table: np.ndarray) -> np.ndarray:
        keep = np.eye(p) - 1 / p
        return keep @ table @ keep

    for i, j in combinations(range(q), 2):
        total = 0.0
        for x in rows.tolist():
            table = np.empty((p, p))
            for a in range(p):
                for b in range(p):
                    x[i], x[j] = a, b
                    table[a, b] = log_law[tuple(x)]
            if table.min() > -600:
                law = np.exp(table) / np.exp(table).sum()
                weight = 1 / (1 / law).sum()
                tables[i, j] += weight * centred(table)
                total += weight
        tables[i, j] /= total
        tables[j, i] = tables[i, j].T
        errors[i, j] = errors[j, i] = (1 - 1 / p) / total**0.5
    for i in range(q):
        total = 0.0
        for row in rows.tolist():
            values = np.array([log_law[(*row[:i], a, *row[i + 1 :])] for a in range(p)])
            if values.min() > -600:
                law = np.exp(values) / np.exp(values).sum()
                weight = 1 / (1 / law).sum()
                taken = sum(tables[i, j][:, row[j]] for j in range(q) if j != i)
                fields[i] += weight * (values - values.mean() - taken)
                total += weight
        fields[i] /= total
    return tables, errors, fields


@pytest.mark.parametrize(
    ("stand_in", "zeros"), [(KnownLaw, 0.0), (KnownLaw, 0.05), (KnownConditionals, 0.0)], ids=["law", "zeros", "sites"]
)
@pytest.mark.parametrize("space", SPACES, ids=["spins", "three states"])
def test_other_laws_are_averaged_over_the_rows_by_how_much_they_tell(
    space: Space, stand_in: Callable[..., Any], zeros: float
) -> None:
    pmf = oracles.random_law(space, seed=5, zeros=zeros)
    rows = every_row(space)[np.random.default_rng(6).integers(0, space.size, 60)]  # some of them several times
    found = structure.recover(stand_in(space, pmf), rows)
    tables, errors, fields = slowly(space, pmf, rows)
    np.testing.assert_allclose(found.tables, tables, atol=TIGHT)
    np.testing.assert_allclose(found.errors, errors / (2 if space.states == 2 else 1), rtol=1e-9)
    np.testing.assert_allclose(found.fields, fields if space.states > 2 else fields[:, 1], atol=TIGHT)


def test_the_error_is_that_of_counting() -> None:
    """Two sites alone: a coupling counted from n rows, a quarter of the log-odds ratio, scatters as the error says."""
    pmf, n, tries = np.array([0.4, 0.2, 0.1, 0.3]), 10_000, 4000
    space = Space(2, 2)
    counts = np.random.default_rng(7).multinomial(n, pmf, size=tries)
    counted = np.log(counts[:, 0] * counts[:, 3] / (counts[:, 1] * counts[:, 2])) / 4
    data = np.repeat(every_row(space), [4000, 2000, 1000, 3000], axis=0)
    found = structure.recover(KnownLaw(space, pmf), data)
    # The sample deviation of 4000 draws has a relative error of 1/√8000 = 1.1 %; six of these, and 0.2 % for 1/n effects.
    assert found.errors[0, 1] == pytest.approx(counted.std(), rel=0.07)
    assert found.couplings[0, 1] == pytest.approx(np.log(0.4 * 0.3 / (0.2 * 0.1)) / 4, abs=TIGHT)


def test_many_states_do_not_overflow_a_byte() -> None:
    space = Space(2, 130)
    pmf = oracles.random_law(space, seed=9) + 1e-9
    rows = np.stack([np.arange(130), np.arange(130)[::-1]], axis=1)
    found = structure.recover(KnownLaw(space, pmf), rows, rows=2)
    keep = np.eye(130) - 1 / 130
    np.testing.assert_allclose(found.tables[0, 1], keep @ np.log(pmf).reshape(130, 130) @ keep, atol=TIGHT)
