"""A pairwise model by maximum likelihood: what it learns, what it says of itself, and when it uses the training loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_cases import FAMILIES, law, parameters

import neurise
from neurise import datasets, exact, fit_many
from neurise.energies.elimination import Elimination
from neurise.energies.elimination_order import find_plan
from neurise.energies.exact_laws import exact_laws
from neurise.interactions import Interactions
from neurise.models.pairwise import Pairwise


def rows_of(name: str, n: int, **options: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Rows of a family with labels, and the law of each class."""
    family = FAMILIES[name]
    theta, laws, rng = parameters(family, **options), exact_laws(family), np.random.default_rng(0)
    assert laws is not None
    parts = [laws.solve(theta, kind).draw(n // family.kinds, rng).numpy() for kind in range(family.kinds)]
    y = np.repeat(np.arange(family.kinds), n // family.kinds) if family.classes else None
    return np.concatenate(parts), y, np.array([law(family, theta, kind)[0] for kind in range(family.kinds)])


def tv(one: Any, two: Any) -> float:
    return 0.5 * float(np.abs(np.asarray(one) - two).sum())


@pytest.mark.parametrize("name", ["spins", "three states"])
def test_the_law_is_learnt(name: str) -> None:
    X, _, laws = rows_of(name, 4000, size=0.5)
    model = Pairwise(order=list(range(X.shape[1]))[::-1]).fit(X, seed=0, verbose=False)
    assert model.stopped_ == "solved"
    # TV ≤ 0.4 √(d / N) on average; d ≤ 28 parameters, and twice the mean is allowed for.
    assert tv(exact.law(model), laws[0]) < 0.8 * np.sqrt(28 / 4000)
    assert "maximum likelihood" in str(model.summary())
    assert model.couplings_.shape[:2] == (X.shape[1],) * 2


def test_classes_share_couplings_or_have_their_own() -> None:
    X, y, laws = rows_of("labels", 6000, size=0.4)
    model = Pairwise().fit(X, y, verbose=False)
    assert np.ptp(model.couplings_, axis=0).max() == 0
    assert max(tv(exact.law(model, kind), laws[kind]) for kind in range(3)) < 0.1
    turned = np.where(y[:, None] == 2, X[:, [3, 1, 4, 0, 2]], X)  # another graph
    own = Pairwise().fit(turned, y, verbose=False)
    assert np.ptp(own.couplings_, axis=0).max() > 0.2
    assert "each class by itself" in str(own.energy_)


def test_given_pairs_and_constant_sites() -> None:
    X, _, _ = rows_of("spins", 2000, size=0.5)
    X = np.insert(X, 2, 1, axis=1)
    edges = [(0, 1), (1, 3), (4, 5), (0, 2)]
    model = Pairwise(edges=edges).fit(X, verbose=False)
    there = {tuple(pair) for pair in np.argwhere(np.triu(model.couplings_) != 0).tolist()}
    assert there == {(0, 1), (1, 3), (4, 5)}
    assert "that were given" in str(model.energy_)
    assert (model.sample(50, seed=0)[:, 2] == 1).all()


def test_files_keep_what_was_learnt(tmp_path: Path) -> None:
    X, _, _ = rows_of("three states", 1000)
    model = Pairwise().fit(X, verbose=False)
    model.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert isinstance(loaded, Pairwise)
    assert loaded.energy_ == model.energy_
    np.testing.assert_array_equal(loaded.log_prob(X[:50]), model.log_prob(X[:50]))


def test_many_models_are_fitted_as_alone() -> None:
    X, _, _ = rows_of("spins", 1000)
    together = fit_many([Pairwise(), Pairwise()], [X, X[:500]], seeds=[0, 0], verbose=False)
    for model, rows in zip(together, (X, X[:500]), strict=True):
        np.testing.assert_allclose(model.couplings_, Pairwise().fit(rows, seed=0, verbose=False).couplings_)


def test_the_training_loop_is_used_where_it_is_asked_for() -> None:
    X, _, _ = rows_of("spins", 500)
    asked = [({"l1": 0.01}, {}), ({"l2": 1e-3}, {}), ({"loss": "screening"}, {}), ({"estimator": "loss"}, {})]
    for params, options in [*asked, ({}, {"max_steps": 3})]:
        model = Pairwise(steps=3, **params).fit(X, verbose=False, **options)
        assert model.stopped_ == "steps", params
    both = Pairwise(estimator="maximum_likelihood").fit(X, max_steps=3, verbose=False)
    assert both.stopped_ == "solved"


def test_sums_that_cannot_be_done_leave_the_loop_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neurise.energies.choosing.exact_laws", lambda *given: None)
    monkeypatch.setattr("neurise.energies.choosing.candidates", lambda *given, **named: None)
    monkeypatch.setattr("neurise.energies.chain_fit.problems", lambda *given, **named: ["they stay where they are"])
    X, _, _ = rows_of("spins", 500)
    model = Pairwise(steps=3).fit(X, verbose=False)
    assert model.stopped_ == "steps"
    assert "the loss cross_entropy, since the Markov chains do not mix: they stay" in str(model.energy_)
    with pytest.raises(NotImplementedError, match="estimator=None"):
        Pairwise(estimator="maximum_likelihood").fit(X, verbose=False)
    with pytest.raises(ValueError, match="estimator must be"):
        Pairwise(estimator="least squares").fit(X, verbose=False)


def test_rows_that_are_all_the_same_need_nothing() -> None:
    model = Pairwise().fit(np.ones((20, 3), dtype=int), verbose=False)
    assert (model.sample(4, seed=0) == 1).all()
    assert "no site varies" in str(model.energy_)


def test_the_default_penalty_follows_the_number_of_rows() -> None:
    """Few rows of many symbols: the training loop does not overfit them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, size=(200, 30))
    model = Pairwise(estimator="loss").fit(X[:150], validation=X[150:], max_steps=100, verbose=False)
    # The uniform law has log 12 nats per site, and nothing can be learnt.
    assert model.history_[-1]["validation"] < 1.3 * np.log(12)


def test_many_rows_of_several_states_are_regressed() -> None:
    """Features of a site with more than two states are redundant, which sums in float32 once hid."""
    data = datasets.potts(side=2, states=3)
    model = Pairwise().fit(data.sample(100_000, seed=1), verbose=False)
    assert model.stopped_ == "solved"


@pytest.mark.slow
def test_a_large_narrow_lattice_is_exact() -> None:
    """6 × 6 spins without wrap are 2^36 configurations, which are summed out site by site."""
    edges = [(6 * i + j, 6 * i + j + 1) for i in range(6) for j in range(5)]
    edges += [(6 * i + j, 6 * i + j + 6) for i in range(5) for j in range(6)]
    data = datasets.ising(edges, 0.6, 0.05)
    X = data.sample(2000, seed=0)
    model = Pairwise().fit(X, verbose=False)
    assert model.stopped_ == "solved"
    assert {tuple(pair) for pair in np.argwhere(np.triu(model.couplings_) != 0).tolist()} >= set(edges)
    # The most likely parameters say more of the rows than the true ones, and by no more than about half their number.
    true = Interactions.ising(np.array(edges), np.full(60, 0.6), np.full(36, 0.05))
    plan = find_plan(true)
    assert plan is not None
    log_prob = true.log_weight(torch.tensor(X > 0).byte()).numpy() - Elimination(true, plan).log_z
    assert 0 < (model.log_prob(X) - log_prob).sum() < 150
    assert model.sample(10, seed=0).shape == (10, 36)


@pytest.mark.parametrize("given", [{"l1": 0.1}, {"l2": 1.0}, {"loss": "screening"}])
def test_what_the_likelihood_has_no_use_for_is_refused(given: dict[str, Any]) -> None:
    name = next(iter(given))
    with pytest.raises(ValueError, match=rf"'maximum_likelihood' has no use for {name}="):
        neurise.Pairwise(estimator="maximum_likelihood", **given).fit([[0, 1], [1, 0], [1, 1]] * 10, verbose=False)
