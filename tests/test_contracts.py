"""What every model promises, whatever it is: data in, ``fit``, ``sample`` out. A new model is tested here by being there."""

import math
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from neurise import discovery
from neurise.modeling.model import Model

NAMES = discovery.names("neurise.models")
VARIANTS = {"as it comes": {}, "soft noise": {"keep_prob": 0.5, "cycles": 2}}
"""Parameters that change what a model does; those that a model has not are left out."""


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    known = discovery.find("neurise.models", name).parameters()
    chosen = {key: value for key, value in request.param.items() if key in known}
    if request.param and not chosen:
        pytest.skip(f"{name} has no such parameters")
    return chosen


ROWS = np.random.default_rng(0).integers(0, 3, (40, 4))
KINDS: dict[str, Any] = {
    "ints": ROWS - 1,
    "small ints": ROWS.astype(np.int8),
    "bytes": ROWS.astype(np.uint8) * 100,
    "floats": ROWS.astype(np.float32),
    "booleans": ROWS > 0,
    "letters": np.array(list("xyz"))[ROWS],
    "byte letters": np.array([b"x", b"y", b"z"])[ROWS],
    "objects": np.array(list("xyz"), dtype=object)[ROWS],
    "lists": ROWS.tolist(),
    "int tensor": torch.tensor(ROWS),
    "float tensor": torch.tensor(ROWS).float(),
    "boolean tensor": torch.tensor(ROWS > 0),
    "one site": ROWS[:, :1],
}


@pytest.mark.parametrize("X", KINDS.values(), ids=KINDS)
def test_symbols_in_are_symbols_out(name: str, X: Any) -> None:
    drawn = tiny.model(name).fit(X, max_steps=3).sample(30, seed=0)
    assert isinstance(drawn, torch.Tensor) == isinstance(X, torch.Tensor)
    assert drawn.shape == (30, len(X[0]))
    if isinstance(X, torch.Tensor):
        assert drawn.dtype == X.dtype
        X = X.numpy()
    given = np.asarray(X)
    if given.dtype.kind != "O":
        assert np.asarray(drawn).dtype == given.dtype
    assert set(np.unique(drawn).tolist()) <= set(np.unique(given).tolist())
    assert len(np.unique(drawn)) > 1  # three steps from the uniform start, every symbol is still likely


def test_a_fit_returns_the_model_itself(name: str) -> None:
    model = tiny.model(name)
    assert model.fit(tiny.spins(), max_steps=3) is model


def test_seeds(name: str, variant: dict[str, Any]) -> None:
    first, second, other = (tiny.model(name, **variant).fit(tiny.spins(), seed=seed) for seed in (1, 1, 2))
    assert tiny.same_weights(first, second)
    if tiny.is_trained(name):
        assert not tiny.same_weights(first, other)
    drawn = first.sample(50, seed=3)
    assert np.array_equal(first.sample(50, seed=3), drawn)
    assert np.array_equal(second.sample(50, seed=np.int64(3)), drawn)
    assert not np.array_equal(first.sample(50, seed=4), drawn)
    # Without a seed draws are fresh. The third site is nearly a fair coin, so 200 rows agree by chance less often than
    # once in 2^100.
    assert not np.array_equal(first.sample(200), first.sample(200))


@pytest.mark.parametrize("n", [1, 2, 1000, np.int64(7), 5.0])
def test_as_many_rows_as_are_asked_for(name: str, n: Any) -> None:
    model = tiny.model(name).fit(tiny.spins(sites=4), max_steps=3)
    assert model.sample(n).shape == (n, 4)


def test_a_site_with_one_symbol_stays_constant_exactly(name: str, variant: dict[str, Any]) -> None:
    X = tiny.spins(sites=5)
    X[:, 1], X[:, 3] = -1, 1
    drawn = tiny.model(name, order=[3, 0, 4, 1, 2], **variant).fit(X, max_steps=3).sample(2000, seed=0)
    assert np.unique(drawn[:, 1]).tolist() == [-1]
    assert np.unique(drawn[:, 3]).tolist() == [1]
    for site in (0, 2, 4):
        assert np.unique(drawn[:, site]).tolist() == [-1, 1]


@pytest.mark.parametrize("alphabet", [None, [-1, 1, 5]])
def test_data_that_never_varies_comes_back_as_it_is(name: str, variant: dict[str, Any], alphabet: Any) -> None:
    model = tiny.model(name, alphabet=alphabet, **variant).fit(np.tile([[1, -1, 1]], (10, 1)))
    assert model.stopped_ == "constant"
    assert model.history_ == []
    assert np.unique(model.sample(500, seed=0), axis=0).tolist() == [[1, -1, 1]]


@pytest.mark.parametrize("states", [1, 2])
def test_one_symbol_or_one_site_are_data_too(name: str, variant: dict[str, Any], states: int) -> None:
    X = np.arange(20)[:, None] % states
    drawn = tiny.model(name, **variant).fit(X, max_steps=3).sample(100, seed=0)
    assert np.unique(drawn).tolist() == list(range(states))


def test_an_alphabet_may_name_more_than_the_data_has(name: str, variant: dict[str, Any]) -> None:
    model = tiny.model(name, alphabet="ACGT-", **variant).fit(np.array(list("AC"))[ROWS[:, :3] % 2], max_steps=3)
    assert set(np.unique(model.sample(500, seed=0))) <= set("ACGT-")
    if "log_prob" in likelihoods(model):
        assert model.log_prob([["-", "G", "T"]]).shape == (1,)
    with pytest.raises(ValueError, match="'N' at row 0, column 1"):
        model.score([["A", "N", "A"]])


def likelihoods(model: Model) -> list[str]:
    """Which likelihoods a model has."""
    rows = model.sample(2, seed=0)
    found = []
    for kind in ("log_prob", "elbo"):
        try:
            getattr(model, kind)(rows)
        except NotImplementedError:
            continue
        found.append(kind)
    return found


def test_likelihoods_are_one_number_a_row(name: str, variant: dict[str, Any]) -> None:
    model, X = tiny.model(name, **variant).fit(tiny.spins()), tiny.spins(7)
    found = likelihoods(model)
    if "log_prob" in found:
        assert model.log_prob(X).shape == (7,)
        assert (model.log_prob(X) <= 0).all()
        assert model.score(X) == pytest.approx(model.log_prob(X).mean(), abs=1e-12)
    if "elbo" in found:
        bound = model.elbo(X, seed=1)
        assert bound.value.shape == bound.standard_error.shape == (7,)
        assert (bound.standard_error >= 0).all()
        assert np.array_equal(model.elbo(X, seed=1).value, bound.value)
    if found == ["elbo"]:
        assert model.score(X) == model.score(X)  # the same noise every time, so that scores can be compared


def test_rows_of_weight_zero_never_influence(name: str, variant: dict[str, Any]) -> None:
    X, weights = tiny.spins(), np.arange(60) % 3
    odd = np.vstack([[[9, 9, 9]], X, [[-1, 7, 1]]])
    plain = tiny.model(name, **variant).fit(X[weights > 0], weights=weights[weights > 0])
    padded = tiny.model(name, **variant).fit(odd, weights=[0, *weights, 0])
    assert tiny.same_weights(plain, padded)
    assert np.array_equal(plain.sample(100, seed=0), padded.sample(100, seed=0))


@pytest.mark.parametrize("wrap", [np.array, list, torch.tensor])
def test_counts_mean_the_same_as_repeated_rows(name: str, variant: dict[str, Any], wrap: Any) -> None:
    X, counts = tiny.spins(20), [1 + i % 4 for i in range(20)]
    held = tiny.spins(20, seed=1)
    counted = tiny.model(name, **variant).fit(X, weights=wrap(counts), validation=held)
    repeated = tiny.model(name, **variant).fit(np.repeat(X, counts, axis=0), validation=held)
    n = 4000
    difference = counted.sample(n, seed=0).mean(0) - repeated.sample(n, seed=1).mean(0)
    # Minibatches are drawn by levels of the cumulative weight, so both see the same rows and learn the same law. What is
    # left is sampling: each mean of n spins has a variance of at most 1/n; five standard deviations of the difference.
    assert np.abs(difference).max() < 5 * math.sqrt(2 / n)


def test_weights_matter(name: str, variant: dict[str, Any]) -> None:
    X = tiny.spins(200)
    weights = np.where(X[:, 2] > 0, 99.0, 1.0)
    params = {"training__learning_rate": 0.05} if tiny.is_trained(name) else {}
    model = tiny.model(name, **variant, **params).fit(X, weights=weights, max_steps=100)
    n = 1000
    # In the data the third site is a fair coin; a model that ignored the weights would exceed this once in 10^6.
    assert model.sample(n, seed=0)[:, 2].mean() > X[:, 2].mean() + 5 / math.sqrt(n)


def test_fitting_again_starts_from_nothing(name: str) -> None:
    model = tiny.model(name).fit(np.array(list("xyz"))[ROWS], max_steps=5)
    model.fit(tiny.spins())
    assert tiny.same_weights(model, tiny.model(name).fit(tiny.spins()))
    assert set(np.unique(model.sample(50))) == {-1, 1}
