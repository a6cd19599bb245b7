"""A mixture over orders is a law: its likelihood, its samples, its files, and what it cannot be asked."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import chi_square
import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import exact
from neurise.conditionals.mixture import Mixture
from neurise.modeling.orders import orders_of

SITES, STATES = 3, 4
CONFIGURATIONS = np.array(list(itertools.product(range(STATES), repeat=SITES)))
PLACE = STATES ** np.arange(SITES)[::-1]
OWN = (2, 0, 1)
"""The order of the model, which is not that of the columns."""
FLOAT32 = 1e-5


def data(n: int = 200, *, constant: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).integers(STATES, size=(n, SITES))
    X[: n // 2, 1] = X[: n // 2, 0]
    y = np.where(X[:, 0] > 1, "up", "down")
    if constant:
        X[:, 2] = 3
    return X, y


@functools.cache
def fitted(
    network: str = "masked", *, labels: bool = False, constant: bool = False, orders: Any = 3, **params: Any
) -> Any:
    X, y = data(constant=constant)
    own = {"training__learning_rate": 0.05, "alphabet": tuple(range(STATES)), **params}
    model = tiny.model(network=network, order=OWN, architecture__orders=orders, **own)
    return model.fit(X, y if labels else None, max_steps=40)


def chain_laws(model: Any, label: torch.Tensor | None = None) -> list[np.ndarray]:
    """The law of every chain over the user's sites, by the product of its conditionals."""
    laws = []
    for chain in model.chains:
        places = range(SITES) if chain.order is None else chain.order
        x = torch.from_numpy(CONFIGURATIONS[:, [OWN[place] for place in places]]).to(torch.uint8)
        y = None if label is None else label.expand(len(x))
        log_law = torch.zeros(len(x), dtype=torch.float64)
        for u in range(SITES):
            step = torch.tensor([u])
            answer = chain.conditionals.log_conditional(step, step, x, y).double()
            log_law += answer.gather(-1, x[:, u, None].long()).squeeze(-1)
        laws.append(log_law.exp().numpy())
    return laws


@pytest.mark.parametrize("network", ["masked", "site_mlp"])
@pytest.mark.parametrize("constant", [False, True])
def test_the_law_is_the_mean_of_the_laws_of_the_chains(network: str, constant: bool) -> None:
    model = fitted(network, constant=constant)
    laws = chain_laws(model)
    assert len(laws) == 3
    assert np.abs(laws[0] - laws[1]).max() > 1e-3  # or the mean would say nothing
    np.testing.assert_allclose(exact.law(model).numpy(), np.mean(laws, axis=0), atol=1e-7, rtol=FLOAT32)
    np.testing.assert_allclose(np.exp(model.log_prob(CONFIGURATIONS)), np.mean(laws, axis=0), atol=1e-7, rtol=FLOAT32)


def test_a_bound_is_the_likelihood_itself() -> None:
    model = fitted()
    np.testing.assert_allclose(model.elbo(CONFIGURATIONS, seed=0).value, model.log_prob(CONFIGURATIONS), rtol=FLOAT32)


def test_labels_are_summed_over_outside_of_the_chains() -> None:
    model = fitted(labels=True)
    laws = [np.mean(chain_laws(model, torch.tensor([label])), axis=0) for label in range(2)]
    np.testing.assert_allclose(np.exp(model.log_prob(CONFIGURATIONS, "up")), laws[1], atol=1e-7, rtol=FLOAT32)
    frequencies = model.schema_.labels.frequencies
    np.testing.assert_allclose(exact.law(model).numpy(), frequencies @ np.stack(laws), atol=1e-7, rtol=FLOAT32)


@pytest.mark.parametrize("labels", [False, True])
def test_samples_follow_the_law(labels: bool) -> None:
    model = fitted(labels=labels)
    y = "down" if labels else None
    chi_square.assert_drawn_from(model.sample(20_000, y, seed=0) @ PLACE, exact.law(model, y).numpy())


def test_a_conditional_is_a_ratio_of_the_mixture() -> None:
    model = fitted()
    law = exact.law(model).numpy().reshape([STATES] * SITES)
    found = model.conditional(CONFIGURATIONS, 1).reshape(*law.shape, STATES)
    expected = np.moveaxis(law / law.sum(1, keepdims=True), 1, -1)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4)


def test_a_mixture_is_saved_with_its_orders(tmp_path: Path) -> None:
    model = fitted(constant=True)
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    assert [chain.order for chain in again.chains] == [chain.order for chain in model.chains]
    assert np.array_equal(again.log_prob(CONFIGURATIONS), model.log_prob(CONFIGURATIONS))
    assert np.array_equal(again.sample(20, seed=1), model.sample(20, seed=1))


@pytest.mark.parametrize("orders", [[None], [None, [0, 1, 1], None], [None, [0, 1], None], "none"])
def test_a_file_with_orders_that_are_none_is_refused(orders: Any) -> None:
    model = fitted()
    described = {**model.conditionals_.description(), "orders": orders}
    with pytest.raises(ValueError, match="orders"):
        Mixture.build(described, model.frame())


def test_a_summary_says_how_many_orders_there_are() -> None:
    assert dict(fitted().summary())["orders"] == 3
    assert "orders" not in dict(fitted(orders=1).summary())


def test_an_interrupted_mixture_goes_on_where_it_was(tmp_path: Path) -> None:
    X, y = data(60)
    weights = np.arange(60) % 3 + 1
    make = functools.partial(tiny.model, network="masked", architecture__orders=2)
    whole = make().fit(X, y, weights=weights, max_steps=30)

    calls = []

    def stop(step: int, *_: Any) -> bool:
        calls.append(step)
        return len(calls) == 5  # in the middle of the second order

    checkpoint = tmp_path / "run"
    make().fit(X, y, weights=weights, max_steps=30, checkpoint=checkpoint, callback=stop)
    resumed = make().fit(X, y, weights=weights, max_steps=30, checkpoint=checkpoint, resume=True)
    assert tiny.same_weights(whole, resumed)


def test_many_mixtures_are_fitted_together() -> None:
    X, _ = data(60)
    models = neurise.fit_many(tiny.model(network="masked", architecture__orders=2), X, seeds=[0, 1], max_steps=10)
    assert [len(model.chains) for model in models] == [2, 2]
    assert all(np.isfinite(model.log_prob(X)).all() for model in models)


def test_random_orders_hang_on_the_seed_and_begin_with_the_models_own() -> None:
    first, again, other = (orders_of(4, OWN, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert first[0] is None
    assert all(order is not None and sorted(order) == list(range(SITES)) for order in first[1:])


def test_given_orders_are_in_the_users_numbers() -> None:
    assert orders_of([list(OWN), [0, 1, 2]], OWN, 0) == [None, (1, 2, 0)]
    model = fitted(orders=((1, 0, 2), OWN))
    assert [chain.order for chain in model.chains] == [(2, 1, 0), None]
    np.testing.assert_allclose(exact.law(model).numpy(), np.mean(chain_laws(model), axis=0), atol=1e-7, rtol=FLOAT32)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"keep_prob": 0.3}, "keep_prob=0.3"),
        ({"chain__hide_noised": False, "network": "site_mlp"}, "hide_noised=False"),
        ({"chain__steps": 2, "network": "site_mlp"}, "chain__steps=2"),
        ({"corrector__clean": 0.3, "network": "site_mlp"}, "corrector__clean=0.3"),
        ({"calibrate": True, "network": "site_mlp", "architecture__pairwise": True}, "calibrate=True"),
        ({"architecture__orders": 0}, "orders"),
        ({"architecture__orders": [[0, 1, 1]]}, r"orders\[0\]"),
        ({"architecture__orders": [[0, 1, 2], [0, 1, 2]]}, "twice"),
        ({"architecture__orders": []}, "empty"),
        ({"architecture__orders": "four"}, "orders"),
    ],
)
def test_what_cannot_be_mixed_is_refused(params: dict[str, Any], message: str) -> None:
    own = {"network": "masked", "architecture__orders": 2, **params}
    with pytest.raises(ValueError, match=message):
        tiny.model(**own).fit(data()[0], max_steps=2)


def test_what_a_mixture_does_not_know_is_named() -> None:
    model = fitted()
    with pytest.raises(NotImplementedError, match="architecture__orders=1"):
        model.sample(3, clamp=np.ma.masked_less(np.array([0, -1, -1]), 0))
    with pytest.raises(NotImplementedError, match="architecture__orders=1"):
        model.conditional(CONFIGURATIONS, 0, step=1)
