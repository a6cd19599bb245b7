"""Columns with alphabets of their own: no model, noise or network gives an impossible symbol any probability."""

import itertools
from collections.abc import Iterable
from typing import Any

import chi_square
import numpy as np
import pytest
import tiny
import torch
from variants import CASES

from neurise import discovery, exact
from neurise.modeling.model import Model, Request

NAMES = discovery.names("neurise.models")
WORDS = (("red", "green", "blue"), ("no", "yes"), ("N", "E", "S", "W"))
"""Three columns of 3, 2 and 4 symbols: sites and states differ, and no two columns are alike."""
QUICK = {*NAMES, "soft", "masked", "committee", "calibrated", "sparse"}
"""What a newcomer runs; the others are slow in all."""


def marked(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def rows(n: int = 300) -> np.ndarray:
    """Words that depend on each other; nothing is impossible but what a column does not know."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.8, a > 0, rng.integers(0, 2, n))
    c = np.where(rng.random(n) < 0.6, a + 1, rng.integers(0, 4, n))
    return np.array(
        [[WORDS[0][i], WORDS[1][int(j)], WORDS[2][k]] for i, j, k in zip(a, b, c, strict=True)], dtype=object
    )


def configurations() -> np.ndarray:
    return np.array(list(itertools.product(*WORDS)), dtype=object)


def places(drawn: np.ndarray) -> np.ndarray:
    """The place of each row in a law; a word that is none of its column's is a KeyError."""
    tokens = [[WORDS[site].index(word) for word in column] for site, column in enumerate(np.asarray(drawn).T.tolist())]
    return np.ravel_multi_index(tokens, [len(words) for words in WORDS])


@pytest.fixture(params=marked(CASES), scope="module")
def fitted(request: pytest.FixtureRequest) -> Model:
    name, params = CASES[request.param]
    if tiny.is_trained(name):
        params = {"training__learning_rate": 0.02, **params}
    model = tiny.model(name, order=[1, 2, 0], alphabet=list(WORDS), **params)
    return model.fit(rows(), max_steps=60 if tiny.is_trained(name) else None, seed=1)


def test_the_law_is_over_what_is_possible_and_samples_follow_it(fitted: Model) -> None:
    assert fitted.space_.digits == (2, 4, 3)  # in the order of noising
    law = exact.law(fitted).numpy()
    assert law.shape == (24,)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-9)
    chi_square.assert_drawn_from(places(fitted.sample(20_000, seed=0)), law)


def test_the_likelihood_is_that_law(fitted: Model) -> None:
    try:
        log_prob = fitted.log_prob(configurations())
    except NotImplementedError:
        pytest.skip("no exact likelihood")
    sweeps = {"sweeps": 0} if "corrector" in fitted.parameters() else {}
    np.testing.assert_allclose(np.exp(log_prob), exact.law(fitted, **sweeps), rtol=1e-5, atol=1e-12)


def test_a_bound_is_below_it(fitted: Model) -> None:
    try:
        bound = fitted.elbo(configurations(), seed=0, draws=32)
    except NotImplementedError:
        pytest.skip("no bound")
    sweeps = {"sweeps": 0} if "corrector" in fitted.parameters() else {}
    law = exact.law(fitted, **sweeps).numpy()
    assert np.isfinite(bound.value).all()
    assert (bound.value - 6 * bound.standard_error <= np.log(law) + 1e-4).all()


def test_clamped_words_hold_and_the_others_follow_their_law(fitted: Model) -> None:
    clamp = np.ma.masked_all(3, dtype=object)
    clamp[1] = "yes"
    sweeps = {"sweeps": 0} if "corrector" in fitted.parameters() else {}
    try:
        drawn = fitted.sample(20_000, clamp=clamp, seed=0, **sweeps)
    except NotImplementedError as reason:
        assert "clamp" in str(reason)  # noqa: PT017 - a model may refuse, if it says what would not
        return
    assert (drawn[:, 1] == "yes").all()
    law = exact.law(fitted, **sweeps).numpy() * (configurations()[:, 1] == "yes")
    seen = np.bincount(places(drawn), minlength=24) / len(drawn)
    # Draws from weighted particles are not quite independent: a tenth of them is.
    assert np.abs(seen - law / law.sum()).max() < 6 * np.sqrt(0.25 / 2000)


@pytest.mark.parametrize("case", marked(["neurise", "independent", "memorize", "pairwise", "sparse", "causal"]))
def test_a_million_draws_hold_nothing_impossible(case: str) -> None:
    """Tokens are looked at before they become symbols: a wrong one could not be told from them."""
    name, params = CASES[case]
    model = tiny.model(name, alphabet=list(WORDS), **params).fit(rows(), max_steps=3 if tiny.is_trained(name) else None)
    request = Request(10**6, None, None, torch.Generator().manual_seed(0))
    with torch.no_grad():
        tokens = model._draw(request)
    assert tokens.shape == (10**6, 3)
    assert bool((tokens < torch.tensor([3, 2, 4])).all())
    assert [len(column.unique()) for column in tokens.T] == [3, 2, 4]


@pytest.mark.parametrize(("name", "params"), [("d3pm", {"noise": "absorbing"}), ("sedd", {}), ("dfm", {}), ("md4", {})])
def test_a_mask_fits_beside_256_symbols(name: str, params: dict[str, Any]) -> None:
    x = np.stack([np.arange(512) % 256, np.arange(512) % 3], axis=1)
    model = tiny.model(name, alphabet=[range(256), range(3)], **params).fit(x, max_steps=3)
    drawn = model.sample(300, seed=0)
    assert drawn[:, 0].max() > 200
    assert drawn[:, 1].max() == 2
    with pytest.raises((NotImplementedError, ValueError)):
        exact.law(model)
