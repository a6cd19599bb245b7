"""What a pairwise model draws: by its law written out, by Markov chains, with labels and with sites given."""

from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from chi_square import assert_drawn_from
from pairwise_models import SPACES, generator, law_of, random_model

import neurise
from neurise import datasets, exact
from neurise.models._pairwise import law as pairwise_law
from neurise.models._pairwise.dense import DenseInteractions
from neurise.models._pairwise.law import PairwiseLaw, draw_by_tempering, draw_exactly
from neurise.models.pairwise import Pairwise
from neurise.space import Space

SPACE = Space(sites=4, states=3)
ALL = np.array(oracles.configurations(SPACE))
FIRST, SECOND = oracles.random_law(SPACE, 0), oracles.random_law(SPACE, 1)


def fitted(**params: Any) -> Pairwise:
    model = Pairwise().set_params(**{"training__learning_rate": 1.0, "order": [2, 0, 3, 1], **params})
    return model.fit(ALL, weights=FIRST, max_steps=30, verbose=False)


def with_labels() -> Pairwise:
    X, y = np.concatenate([ALL, ALL]), np.repeat(["a", "b"], len(ALL))
    model = Pairwise().set_params(training__learning_rate=1.0, order=[2, 0, 3, 1])
    return model.fit(X, y, weights=np.append(FIRST, 2 * SECOND), max_steps=30, verbose=False)


def places(rows: Any) -> np.ndarray:
    return SPACE.index(torch.as_tensor(rows)).numpy()


def restricted(law: np.ndarray, **given: int) -> np.ndarray:
    """The law given some sites, by striking out what disagrees."""
    kept = law * np.all([ALL[:, int(site[1:])] == token for site, token in given.items()], axis=0)
    return kept / kept.sum()


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_weights_and_sums_are_those_of_explicit_loops(space: Space) -> None:
    model, edges, tables, fields = random_model(space)
    law = law_of(space, edges, tables, fields)
    x = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    whole = PairwiseLaw(model, np.full(space.sites, -1))
    np.testing.assert_allclose(whole.probabilities().numpy(), law, atol=1e-12)
    np.testing.assert_allclose((whole.log_weight(x) - whole.log_z()).numpy(), np.log(law), atol=1e-12)


@pytest.mark.parametrize("given", [{0: 1}, {1: 0, 3: 1}, {0: 1, 1: 1, 2: 0}, "all"])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_law_given_some_sites_is_the_law_with_the_rest_struck_out(space: Space, given: Any) -> None:
    model, edges, tables, fields = random_model(space)
    law, x = law_of(space, edges, tables, fields), np.array(oracles.configurations(space))
    pattern = np.full(space.sites, -1)
    for site, token in (dict.fromkeys(range(space.sites), 1) if given == "all" else given).items():
        pattern[site] = token
    kept = law * ((x == pattern) | (pattern < 0)).all(1)
    partial = PairwiseLaw(model, pattern)
    np.testing.assert_allclose(partial.probabilities().numpy(), kept / kept.sum(), atol=1e-12)
    share = partial.log_z() - PairwiseLaw(model, np.full(space.sites, -1)).log_z()
    assert share == pytest.approx(np.log(kept.sum()), abs=1e-12)
    tokens = torch.tensor(x, dtype=torch.uint8)
    np.testing.assert_array_equal(np.isfinite(partial.log_weight(tokens).numpy()), kept > 0)
    rows, found = partial.draw(50, generator=generator(), sweeps=None)
    assert found is None
    assert (rows.numpy()[:, pattern >= 0] == pattern[pattern >= 0]).all()


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_dense_model_has_the_conditionals_of_a_sparse_one(space: Space) -> None:
    model, edges, tables, fields = random_model(space)
    dense, law = DenseInteractions(model), law_of(space, edges, tables, fields)
    x = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    for site in range(space.sites):
        found = dense.logits(site, x)[:, 0].softmax(-1).numpy()
        np.testing.assert_allclose(found, oracles.conditional(space, law, site), atol=1e-12)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_rows_drawn_exactly_follow_the_law(space: Space) -> None:
    model, *truth = random_model(space)
    rows = draw_exactly(model, 20_000, generator=generator())
    assert_drawn_from(space.index(rows).numpy(), law_of(space, *truth))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_rows_drawn_by_tempering_follow_the_law(space: Space, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise_law, "DENSE", 0 if dense else 64)
    model, *truth = random_model(space)
    rows, found = draw_by_tempering(model, 1000, generator=generator(), sweeps=320)
    assert rows.shape == (1000, space.sites)
    # A hot chain is fresh with every sweep and these laws are flat: rows five sweeps apart are as good as independent.
    assert found.every == 5
    assert found.effective_rows > 700
    assert_drawn_from(space.index(rows).numpy(), law_of(space, *truth))


@pytest.mark.parametrize("limit", [pairwise_law.LIMIT, 1])
def test_samples_follow_the_law_that_is_written_out(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(sweeps=256)
    law = exact.law(model).numpy()
    assert oracles.tv(law, np.full(81, 1 / 81)) > 0.2
    monkeypatch.setattr(pairwise_law, "LIMIT", limit)
    monkeypatch.setattr(pairwise_law, "MOST_ENTRIES", 0)
    assert_drawn_from(places(model.sample(1000, seed=0)), law)
    assert hasattr(model, "diagnostics_") == (limit == 1)


@pytest.mark.parametrize("limit", [pairwise_law.LIMIT, 1])
def test_given_sites_are_conditioned_on(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(sweeps=256)
    law = exact.law(model).numpy()
    monkeypatch.setattr(pairwise_law, "LIMIT", limit)
    monkeypatch.setattr(pairwise_law, "MOST_ENTRIES", 0)
    drawn = model.sample(1000, clamp=np.ma.array([0, 2, 0, 1], mask=[True, False, True, False]), seed=0)
    assert_drawn_from(places(drawn), restricted(law, s1=2, s3=1))


def test_a_narrow_graph_beyond_the_limit_is_summed_out_site_by_site(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    law, log_prob = exact.law(model).numpy(), model.log_prob(ALL)
    monkeypatch.setattr(pairwise_law, "LIMIT", 1)
    np.testing.assert_allclose(model.log_prob(ALL), log_prob, atol=1e-9)
    assert_drawn_from(places(model.sample(5000, seed=0)), law)
    drawn = model.sample(5000, clamp=np.ma.array([0, 2, 0, 1], mask=[True, False, True, False]), seed=0)
    assert_drawn_from(places(drawn), restricted(law, s1=2, s3=1))
    assert not hasattr(model, "diagnostics_")


def test_every_row_may_be_given_sites_of_its_own() -> None:
    model = fitted()
    law = exact.law(model).numpy()
    each = np.ma.masked_all((10_000, 4), dtype=int)
    each[::2, 0], each[1::2, 3] = 1, 2
    drawn = model.sample(10_000, clamp=each, seed=1)
    assert_drawn_from(places(drawn[::2]), restricted(law, s0=1))
    assert_drawn_from(places(drawn[1::2]), restricted(law, s3=2))
    assert (model.sample(3, clamp=np.ma.array([0, 1, 2, 0], mask=False)) == [0, 1, 2, 0]).all()


def test_each_label_has_a_law_of_its_own() -> None:
    model = with_labels()
    assert model.couplings_.shape == (2, 4, 4, 3, 3)
    assert model.fields_.shape == (2, 4, 3)
    laws = {y: exact.law(model, y).numpy() for y in "ab"}
    assert oracles.tv(laws["a"], laws["b"]) > 0.2
    for y, law in laws.items():
        assert_drawn_from(places(model.sample(5000, y, seed=0)), law)
        np.testing.assert_allclose(model.log_prob(ALL, y), np.log(law), atol=1e-9)
        np.testing.assert_allclose(model.conditional(ALL, 1, y=y), oracles.conditional(SPACE, law, 1), atol=1e-9)
    mixed = laws["a"] / 3 + 2 * laws["b"] / 3
    np.testing.assert_allclose(exact.law(model).numpy(), mixed, atol=1e-12)
    np.testing.assert_allclose(model.conditional(ALL, 2), oracles.conditional(SPACE, mixed, 2), atol=1e-9)
    assert_drawn_from(places(model.sample(5000, seed=1)), mixed)
    given = np.ma.array([1, 0, 0, 0], mask=[False, True, True, True])
    assert_drawn_from(places(model.sample(5000, clamp=given, seed=2)), restricted(mixed, s0=1))
    assert_drawn_from(places(model.sample(5000, "b", clamp=given, seed=3)), restricted(laws["b"], s0=1))
    with pytest.raises(ValueError, match="give y"):
        model.pseudo_log_likelihood(ALL)


def test_a_label_learns_what_it_would_learn_alone() -> None:
    # Rows of the other class have no influence on the tables of this one, except on which rows a minibatch holds.
    model = Pairwise().set_params(training__validation_fraction=0.0, l2=0.0)
    model.fit(np.concatenate([ALL, ALL]), np.repeat(["a", "b"], 81), weights=np.append(FIRST, SECOND), max_steps=400)
    alone = Pairwise().set_params(training__validation_fraction=0.0, l2=0.0).fit(ALL, weights=SECOND, max_steps=400)
    # Two runs of 32 parameters differ by about ½√(2 · 32 / n), where n ~ 50,000 rows of a class are in the averaged end of a
    # run: 0.02. A class that learnt from the other's rows would be ten times as far off.
    assert oracles.tv(exact.law(model, "b").numpy(), exact.law(alone).numpy()) < 0.05
    assert oracles.tv(exact.law(model, "a").numpy(), exact.law(alone).numpy()) > 0.2


def test_sites_that_never_vary_are_exact() -> None:
    X = ALL.copy()
    X[:, 1] = 2
    model = Pairwise().set_params(order=[2, 1, 0, 3], training__learning_rate=1.0).fit(X, weights=FIRST, max_steps=30)
    law = exact.law(model).numpy()
    assert law[ALL[:, 1] != 2].sum() == 0
    assert law.sum() == pytest.approx(1)
    assert_drawn_from(places(model.sample(5000, seed=0)), law)
    assert np.abs(model.couplings_[1]).max() == np.abs(model.fields_[1]).max() == 0
    assert (model.conditional(ALL, 1) == [0, 0, 1]).all()
    np.testing.assert_allclose(model.log_prob(X), np.log(law[places(X)]), atol=1e-9)
    assert np.isneginf(model.log_prob([[0, 0, 0, 0]]))
    assert np.isneginf(model.pseudo_log_likelihood([[0, 0, 0, 0]]))


def test_a_saved_model_comes_back_with_its_couplings(tmp_path: Path) -> None:
    model = fitted(edges=[(0, 1), (3, 2)])
    model.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert isinstance(loaded, Pairwise)
    np.testing.assert_array_equal(loaded.couplings_, model.couplings_)
    np.testing.assert_array_equal(loaded.fields_, model.fields_)
    np.testing.assert_array_equal(exact.law(loaded), exact.law(model))


def test_what_needs_the_sum_over_all_configurations_says_so_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, labelled = fitted(), with_labels()
    monkeypatch.setattr(pairwise_law, "LIMIT", 1)
    monkeypatch.setattr(pairwise_law, "MOST_ENTRIES", 0)
    for ask in (model.log_prob, model.elbo, model.score, lambda X: exact.law(model)):
        with pytest.raises(NotImplementedError, match="pseudo_log_likelihood"):
            ask(ALL)
    assert model.conditional(ALL, 0).shape == (81, 3)
    with pytest.raises(NotImplementedError, match="give y"):
        labelled.sample(5, clamp=np.ma.array([1, 0, 0, 0], mask=[False, True, True, True]))
    with pytest.raises(NotImplementedError, match="no reverse chain"):
        exact.law(model, start=FIRST)


def test_chains_that_do_not_mix_give_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise_law, "LIMIT", 1)
    monkeypatch.setattr(pairwise_law, "MOST_ENTRIES", 0)
    model = fitted(sweeps=1)  # raised to one sweep per row, far too few for ten round trips a group
    network: Any = model.objective_.network
    network.couplings.data *= 30
    with pytest.warns(UserWarning, match=r"did not mix: .*; a longer run may help: sweeps=\d+"):
        model.sample(10, seed=0)
    assert not model.diagnostics_.mixed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ising", "potts"])
def test_a_hundred_thousand_rows_give_the_law_as_well_as_counting_them(kind: str) -> None:
    data = datasets.potts(side=2, states=3) if kind == "potts" else datasets.edwards_anderson(side=3)
    X = data.sample(100_000, seed=1)
    model = Pairwise().fit(X, verbose=False)
    tokens = torch.tensor(np.searchsorted(data.symbols, X))
    counted = np.bincount(data.space.index(tokens).numpy(), minlength=data.space.size) / len(X)
    assert oracles.tv(exact.law(model).numpy(), data.pmf) < 1.5 * oracles.tv(counted, data.pmf)
