import functools
import math
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sklearn.model_selection import GridSearchCV

import neurise
from neurise import exact

ALL = np.array([[a, b, c] for a in range(3) for b in range(3) for c in range(3)])  # in the order of a law
ROWS = ALL[np.random.default_rng(0).choice(27, size=200, p=np.random.default_rng(1).dirichlet(np.full(27, 0.5)))]
Y = np.where(ROWS[:, 0] > 0, "up", "down")
FLOAT32 = 1e-5
"""A conditional is a log-softmax in float32 of logits below 10: its rounding error is below 10 · 2^-23 ~ 10^-6, and at most
three or six of them are multiplied here."""


def fitted(y: Any = None, **params: Any) -> neurise.NeurISE:
    """A model that nobody changes."""
    return _fitted(y is not None, tuple(params.items()))


@functools.cache
def _fitted(labels: bool, items: tuple[tuple[str, Any], ...]) -> neurise.NeurISE:
    y, params = Y if labels else None, dict(items)
    model = tiny.model(training__learning_rate=0.02, **params).fit(ROWS, y, max_steps=60)
    assert isinstance(model, neurise.NeurISE)
    return model


def substituted(law: np.ndarray, X: np.ndarray, site: int) -> np.ndarray:
    """Probabilities of every symbol at a site, the others as in X, from a law: by substitution and normalisation."""
    table = np.zeros((len(X), 3))
    for symbol in range(3):
        changed = X.copy()
        changed[:, site] = symbol
        table[:, symbol] = law[changed @ [9, 3, 1]]
    return table / table.sum(axis=1, keepdims=True)


# --- the clean conditional ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("site", [0, 1, 2])
@pytest.mark.parametrize("params", [{}, {"order": (2, 0, 1)}, {"cycles": 2}, {"network": "local_mlp"}])
def test_the_clean_conditional_is_that_of_the_law(params: dict[str, Any], site: int) -> None:
    model = fitted(**params)
    expected = substituted(exact.law(model).numpy(), ALL, site)
    np.testing.assert_allclose(model.conditional(ALL, site), expected, atol=FLOAT32)
    assert expected.std(axis=0).min() > 0.01  # it does depend on the others


@pytest.mark.parametrize("y", [None, "up"])
def test_the_clean_conditional_with_labels_is_that_of_the_mixture_or_of_one(y: str | None) -> None:
    model = fitted(Y)
    expected = substituted(exact.law(model, y).numpy(), ALL, 1)
    np.testing.assert_allclose(model.conditional(ALL, 1, y=y), expected, atol=FLOAT32)


@pytest.mark.parametrize("params", [{"keep_prob": 0.5}, {"chain__hide_noised": False}])
def test_without_an_exact_likelihood_there_is_no_clean_conditional(params: dict[str, Any]) -> None:
    model = fitted(**params)
    with pytest.raises(NotImplementedError, match=r"keep_prob|hide_noised"):
        model.conditional(ALL, 1)


# --- the conditional of a step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_prob", [0.0, 0.5])
@pytest.mark.parametrize("step", range(6))
def test_the_conditional_of_a_step_is_the_networks(keep_prob: float, step: int) -> None:
    model = fitted(keep_prob=keep_prob, cycles=2, order=(2, 0, 1))
    place = step % 3
    table = model.conditional(ALL, site=[2, 0, 1][place], step=step)
    assert table.shape == (27, 3)
    x = torch.tensor(ALL[:, [2, 0, 1]], dtype=torch.uint8)
    hidden = model.conditionals.hidden(torch.tensor([step]))
    logits = model.conditionals.network(torch.tensor([step]), torch.tensor([place]), x, hidden)
    np.testing.assert_allclose(table, logits.double().softmax(-1).numpy(), atol=FLOAT32)


def test_at_the_first_step_of_hard_noise_it_is_the_clean_one() -> None:
    # Only the factor of the site that is generated last depends on that site.
    model = fitted(order=(1, 0, 2))
    np.testing.assert_allclose(model.conditional(ALL, 1, step=0), model.conditional(ALL, 1), atol=FLOAT32)
    assert np.abs(model.conditional(ALL, 0, step=1) - model.conditional(ALL, 0)).max() > 0.01


def test_the_conditional_of_a_step_needs_the_label() -> None:
    model = fitted(Y)
    with pytest.raises(ValueError, match="give y"):
        model.conditional(ALL, 0, step=0)
    each = model.conditional(ALL, 0, step=0, y=["up"] * 27)
    assert np.array_equal(model.conditional(ALL, 0, step=0, y="up"), each)
    assert np.abs(model.conditional(ALL, 0, step=0, y="down") - each).max() > 0.01


@pytest.mark.parametrize(("site", "step"), [(0, 1), (1, 0), (2, 3), (0, 6), (0, -3), (1, 100)])
def test_a_step_that_does_not_noise_the_site_is_refused(site: int, step: int) -> None:
    with pytest.raises(ValueError, match=rf"step {step} does not noise site {site}.*below 6"):
        fitted(cycles=2).conditional(ALL, site, step=step)


@pytest.mark.parametrize("site", [-1, 3, 100, 1.5])
def test_a_site_that_is_not_there_is_refused(site: int) -> None:
    with pytest.raises(ValueError, match=f"column must be a whole number from 0 to 2; got {site}"):
        fitted().conditional(ALL, site)


# --- likelihood --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "why"),
    [({"keep_prob": 0.3}, r"soft noise \(keep_prob > 0\)"), ({"chain__hide_noised": False}, "hide_noised=False")],
)
def test_where_no_likelihood_is_exact_the_error_names_elbo(params: dict[str, Any], why: str) -> None:
    model = fitted(**params)
    with pytest.raises(NotImplementedError, match=rf"{why}.*elbo\(\)"):
        model.log_prob(ALL)
    assert model.score(ALL) == pytest.approx(model.elbo(ALL, seed=0).value.mean(), abs=1e-12)


def test_the_likelihood_without_a_label_sums_over_labels() -> None:
    model = fitted(Y)
    parts = [model.log_prob(ALL, label) + math.log((label == Y).mean()) for label in ("down", "up")]
    np.testing.assert_allclose(model.log_prob(ALL), np.logaddexp(*parts), rtol=1e-12)
    mixed = model.log_prob(ALL, np.array(["down", "up"])[np.arange(27) % 2])
    np.testing.assert_allclose(mixed[::2], model.log_prob(ALL[::2], "down"), atol=3 * FLOAT32)
    np.testing.assert_allclose(mixed[1::2], model.log_prob(ALL[1::2], "up"), atol=3 * FLOAT32)


@pytest.mark.parametrize("y", [None, "up"])
def test_the_bound_is_the_likelihood_where_that_is_exact(y: str | None) -> None:
    # With hard noise and hidden sites the reverse chain never looks at noise, so every draw of the bound is tight; with
    # the exact posterior of the label as weights, so is the bound on the sum over labels.
    model = fitted(Y)
    bound = model.elbo(ALL, y, seed=0)
    np.testing.assert_allclose(bound.value, model.log_prob(ALL, y), atol=3 * FLOAT32)
    assert bound.standard_error.max() < 3 * FLOAT32


@pytest.mark.parametrize("y", [None, "up"])
@pytest.mark.parametrize("params", [{"keep_prob": 0.5, "cycles": 2}, {"chain__hide_noised": False, "cycles": 2}])
def test_the_bound_is_below_the_log_of_the_exact_law(params: dict[str, Any], y: str | None) -> None:
    model, draws = fitted(Y, **params), 64
    bound = model.elbo(ALL, y, seed=0, draws=draws)
    # The mean of 64 draws is close to normal: one of 27 exceeds six standard errors less often than once in 10^5.
    excess = bound.value - exact.law(model, y).log().numpy()
    assert (excess < 6 * bound.standard_error + FLOAT32).all()
    assert (bound.standard_error > 0).any()


@pytest.mark.parametrize("draws", [1, 0])
def test_a_standard_error_needs_two_draws(draws: int) -> None:
    with pytest.raises(ValueError, match=f"draws(=| must be a positive whole number, got ){draws}"):
        fitted().elbo(ALL, draws=draws)


# --- scikit-learn ------------------------------------------------------------------------------------------------------


def test_a_grid_search_picks_by_the_likelihood() -> None:
    X = tiny.spins(80)
    halves = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    base = tiny.model(training__learning_rate=0.05)
    search = GridSearchCV(base, {"width": [1, 8]}, cv=halves).fit(X)
    for place, width in enumerate([1, 8]):
        for number, (train, test) in enumerate(halves):
            score = tiny.model(training__learning_rate=0.05, width=width).fit(X[train]).log_prob(X[test]).mean()
            assert search.cv_results_[f"split{number}_test_score"][place] == pytest.approx(score, abs=1e-12)
    best = [1, 8][int(np.argmax(search.cv_results_["mean_test_score"]))]
    assert search.best_params_ == {"width": best}
    whole = tiny.model(training__learning_rate=0.05, width=best).fit(X)
    assert tiny.same_weights(search.best_estimator_, whole)


# --- arguments ---------------------------------------------------------------------------------------------------------

BAD: list[tuple[str, Any]] = [
    *(("keep_prob", value) for value in (1, 1.0, -0.1, 1.5, math.nan)),
    *(("cycles", value) for value in (0, -1, 1.5)),
    *(("width", value) for value in (0, -8, 2.5, True, "8", math.nan)),
    *(("depth", value) for value in (0, -1, 1.5)),
    ("loss", "screning"),
    ("loss", "weighted_screening(x)"),
    ("loss", "weighted_screening(1e999)"),
    ("network", "sitemlp"),
    ("order", [0, 1]),
    ("order", [0, 1, 1]),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_an_impossible_argument_is_shown(name: str, value: Any) -> None:
    shown = str(value).replace("(", r"\(").replace(")", r"\)").replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(ValueError, match=rf"{name}.*{shown}"):
        tiny.model(**{name: value}).fit(ROWS, max_steps=2)


@pytest.mark.parametrize("network", ["site_mpl", "sitemlp"])
def test_an_unknown_network_suggests_a_near_one(network: str) -> None:
    with pytest.raises(ValueError, match=f"unknown network '{network}'; did you mean site_mlp"):
        tiny.model(network=network).fit(ROWS)
