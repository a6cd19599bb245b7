"""Rows with missing values: their likelihood, their completion and the law of a column, against enumeration."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import neurise
from neurise import GGM, Independent, Memorize, NeurISE, Pairwise, exact
from neurise.modeling import partial_chains, partial_rows
from neurise.modeling.groups import Architecture
from neurise.training.settings import Training

SITES, STATES = 4, 3
QUICK = Training(batch_size=64, learning_rate=2e-2, validation_fraction=0.0)


def rows(seed: int = 0, n: int = 300) -> np.ndarray:
    """Rows in which every site depends on the one before it."""
    rng = np.random.default_rng(seed)
    x = rng.integers(STATES, size=(n, SITES))
    for site in range(1, SITES):
        x[:, site] = np.where(rng.random(n) < 0.7, (x[:, site - 1] + site) % STATES, x[:, site])
    return x


def fitted(kind: type = NeurISE, *, y: Any = None, **params: Any) -> Any:
    if issubclass(kind, NeurISE | GGM):
        params = {"width": 16, "depth": 1, "members": 1, "training": QUICK, **params}
        return kind(**params).fit(rows(), y, max_steps=40, seed=0, verbose=False)
    return kind(**params).fit(rows(), y, verbose=False)


def law_of(model: Any) -> np.ndarray:
    """The probabilities of all rows, by the user's sites."""
    every = np.array(list(itertools.product(range(STATES), repeat=SITES)))
    return np.exp(model.log_prob(every)).reshape((STATES,) * SITES)


def partial(seed: int = 1, n: int = 40) -> np.ndarray:
    """Rows with gaps, in all patterns; one has none, one nothing else."""
    x = rows(seed, n).astype(float)
    x[np.random.default_rng(seed).random(x.shape) < 0.45] = np.nan
    x[0], x[1] = rows(seed, 1)[0], np.nan
    return x


def summed(law: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The probabilities of all completions of a row: its missing sites are axes."""
    return law[tuple(slice(None) if np.isnan(value) else int(value) for value in row)]


MODELS = {
    "site_mlp": lambda: fitted(),
    "order": lambda: fitted(order=[2, 0, 3, 1]),
    "masked": lambda: fitted(network="masked"),
    "orders": lambda: fitted(architecture=Architecture(orders=2)),
    "labels": lambda: fitted(y=rows()[:, 0] % 2),
    "independent": lambda: fitted(Independent),
    "memorize": lambda: fitted(Memorize),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_partial_row_is_as_likely_as_its_completions_together(name: str) -> None:
    model, x = MODELS[name](), partial()
    law = law_of(model)
    with np.errstate(divide="ignore"):
        expected = np.log([summed(law, row).sum() for row in x])
    found, error = model.marginal(x)
    assert not error.any()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(model.log_prob(x), expected, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("column", [0, 2])
def test_predict_proba_is_the_law_of_a_column_given_the_rest(name: str, column: int) -> None:
    model, x = MODELS[name](), partial()
    if name == "memorize":
        x = rows()[:5].astype(float)  # other rows may be impossible
    law = law_of(model)
    found = model.predict_proba(x, column)
    for row, own in zip(x, found, strict=True):
        free = row.copy()
        free[column] = np.nan
        joint = summed(law, free)
        axis = int(np.isnan(free[:column]).sum())
        expected = joint.sum(tuple(a for a in range(joint.ndim) if a != axis))
        np.testing.assert_allclose(own, expected / expected.sum(), atol=1e-5)


@pytest.mark.parametrize("name", ["site_mlp", "order", "masked", "orders", "labels"])
def test_imputed_values_follow_their_joint_law(name: str) -> None:
    model, n = MODELS[name](), 4000
    law = law_of(model)
    for row in ([np.nan, 1, np.nan, 0], [2, np.nan, np.nan, np.nan], [np.nan, np.nan, 1, 1]):
        x = np.tile(np.array(row, dtype=float), (n, 1))
        found = model.impute(x, seed=0)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found[~np.isnan(x)], x[~np.isnan(x)])
        expected = summed(law, x[0])
        expected = expected / expected.sum()
        gone = found[:, np.isnan(x[0])].astype(int)
        counts = np.zeros(expected.shape)
        np.add.at(counts, tuple(gone.T), 1)
        error = np.sqrt(expected * (1 - expected) / n)
        assert (np.abs(counts / n - expected) < 4.5 * error + 1e-3).all()


def test_particles_estimate_what_is_too_much_to_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = fitted(), partial(n=30)
    expected = model.marginal(x).log_prob
    for module in (partial_rows, partial_chains):
        monkeypatch.setattr(module, "MOST", 1)
    found, error = model.marginal(x)
    behind = [bool(np.isnan(row[np.argmin(np.isnan(row)) :]).any()) and not np.isnan(row).all() for row in x]
    np.testing.assert_array_equal(error > 0, behind)
    np.testing.assert_allclose(found[error == 0], expected[error == 0], atol=1e-6)
    assert (np.abs(found - expected)[error > 0] < 5 * error[error > 0] + 0.01).all()
    with pytest.warns(UserWarning, match="estimated, with a standard error of"):
        model.log_prob(x)
    exact_law = summed(law_of(model), np.array([0, np.nan, np.nan, 1.0]))
    law = model.predict_proba([[0, None, None, 1]], 2)[0]
    np.testing.assert_allclose(law, exact_law.sum(0) / exact_law.sum(), atol=0.1)


@pytest.mark.parametrize("kind", [NeurISE, GGM])
def test_soft_noise_imputes_and_counts(kind: type) -> None:
    model = fitted(kind, keep_prob=0.3, cycles=2)
    x = np.tile([np.nan, 1, np.nan, 0], (500, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.impute(x, seed=0)
        law = model.predict_proba([[0, None, 2, 1]], 3)
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(found[:, [1, 3]], x[:, [1, 3]])
    np.testing.assert_allclose(law.sum(), 1)
    chain = np.asarray(exact.law(model)).reshape((STATES,) * SITES)[:, 1, :, 0]
    counts = np.zeros(chain.shape)
    np.add.at(counts, tuple(found[:, [0, 2]].astype(int).T), 1 / len(x))
    assert np.abs(counts - chain / chain.sum()).sum() / 2 < 0.1
    with pytest.raises(NotImplementedError, match="no exact likelihood"):
        model.log_prob(x)


def test_the_result_is_of_the_type_of_what_was_given() -> None:
    model = fitted()
    masked = np.ma.array(rows()[:3], mask=np.eye(3, SITES, dtype=bool))
    found = model.impute(masked, seed=0)
    assert isinstance(found, np.ma.MaskedArray)
    assert not np.ma.getmaskarray(found).any()
    assert isinstance(model.impute(torch.tensor([[0.0, torch.nan, 1, 2]]), seed=0), torch.Tensor)
    assert model.impute([[0, None, 1, 2]], seed=0).shape == (1, SITES)
    several = model.impute([[0, None, 1, 2]], 3, seed=0)
    assert isinstance(several, list)
    assert len(several) == 3
    np.testing.assert_array_equal(model.impute(rows()[:2]), rows()[:2])


def test_clamp_takes_what_is_missing_in_any_form() -> None:
    model = fitted()
    expected = model.sample(4, clamp=np.ma.array([0, 9, 1, 9], mask=[0, 1, 0, 1]), seed=3)
    for clamp in ([0, None, 1, None], np.array([0, np.nan, 1, np.nan]), torch.tensor([0, torch.nan, 1, torch.nan])):
        np.testing.assert_array_equal(model.sample(4, clamp=clamp, seed=3), expected)
    np.testing.assert_array_equal(model.sample(2, clamp=[0, 1, 1, 2], seed=3), [[0, 1, 1, 2]] * 2)


@pytest.mark.parametrize("column", [-1, SITES, "first", 1.5, True])
def test_a_column_that_is_not_there_is_refused(column: Any) -> None:
    with pytest.raises(ValueError, match="column must be"):
        fitted(Independent).predict_proba(rows(), column)


def test_models_that_cannot_sum_say_so() -> None:
    model = Pairwise().fit(rows(), max_steps=5, verbose=False)
    np.testing.assert_allclose(np.exp(model.log_prob(partial()[1:2])), 1, atol=1e-6)
    with pytest.raises(NotImplementedError, match="D3PM"):
        neurise.D3PM(width=8, depth=1).fit(rows(), max_steps=2, verbose=False).impute(partial())


@pytest.mark.parametrize("ask", ["impute", "marginal", "log_prob"])
def test_models_without_a_likelihood_name_one_that_fills_rows(ask: str) -> None:
    """With labels, which are drawn given what is there, as without."""
    model = neurise.MD4(width=8, depth=1).fit(rows(), np.arange(len(rows())) % 2, max_steps=2, verbose=False)
    with pytest.raises(NotImplementedError, match=r"MD4 .* rows with missing values; NeurISE .* fills them"):
        getattr(model, ask)(partial())
