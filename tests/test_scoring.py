"""Surprise, held against enumerated laws."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import tiny

import neurise
from neurise import exact, scoring
from neurise.modeling.model import Model
from neurise.scoring import in_blocks, ranks, surprise

SITES, STATES = 4, 3
SYMBOLS = np.array(list("abc"))
ORDER = [2, 0, 3, 1]
EVERYTHING = SYMBOLS[np.indices([STATES] * SITES).reshape(SITES, -1).T]


def rows(n: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.choice(STATES, (n, SITES), p=[0.5, 0.3, 0.2])
    x[:, 1] = np.where(rng.random(n) < 0.8, x[:, 0], x[:, 1])
    return SYMBOLS[x]


def labels(n: int = 120) -> np.ndarray:
    return np.where(rows(n)[:, 2] == "a", "low", "high")


def fitted(name: str = "neurise", y: Any = None, **params: Any) -> Model:
    model = tiny.model(name, alphabet=list("abc"), order=ORDER, **params)
    return model.fit(rows(), y, verbose=False) if tiny.is_trained(name) else model.fit(rows(), y)


def chain_terms(law: np.ndarray, order: list[int]) -> np.ndarray:
    """Return −log P(x_u | the sites at later places) of all configurations, (p^q, sites), by marginals of the law."""
    joint = law.reshape([STATES] * SITES)
    found = np.empty((law.size, SITES))
    known = np.ones(law.size)
    index = np.indices(joint.shape).reshape(SITES, -1)
    for place in reversed(range(SITES)):
        marginal = joint.sum(axis=tuple(order[:place]), keepdims=True)
        own = np.broadcast_to(marginal, joint.shape)[tuple(index)]
        found[:, order[place]] = -np.log(own / known)
        known = own
    return found


@pytest.mark.parametrize("name", ["neurise", "independent"])
@pytest.mark.parametrize("labelled", [False, True])
def test_surprise_is_the_chain_rule_of_the_enumerated_law(name: str, labelled: bool) -> None:
    """Without labels given, a model with labels sums over them: its whole law is that of the mixture."""
    model = fitted(name, labels() if labelled else None)
    found = surprise(model, EVERYTHING)
    law = exact.law(model).numpy()
    assert found.sites is not None
    np.testing.assert_allclose(found.sites, chain_terms(law, ORDER), atol=2e-6)  # networks compute in float32
    np.testing.assert_allclose(found.sites.sum(1), -found.log_prob, atol=1e-9)
    np.testing.assert_allclose(found.log_prob, model.log_prob(EVERYTHING), atol=1e-9)
    assert (found.of, found.error) == ("log_prob", None)


def test_given_labels_are_conditioned_on() -> None:
    model = fitted(y=labels())
    y = np.resize(["low", "high"], len(EVERYTHING))
    found = surprise(model, EVERYTHING, y)
    np.testing.assert_allclose(found.log_prob, model.log_prob(EVERYTHING, y), atol=1e-9)
    law = exact.law(model, "low").numpy()
    np.testing.assert_allclose(found.sites[::2], chain_terms(law, ORDER)[::2], atol=2e-6)


def test_a_mixture_over_orders_averages_its_chains() -> None:
    model = fitted(network="masked", architecture__orders=2)
    found = surprise(model, EVERYTHING)
    np.testing.assert_allclose(found.log_prob, model.log_prob(EVERYTHING), atol=1e-9)
    expected, laws = np.zeros((len(EVERYTHING), SITES)), []
    for chain in model.chains:
        law = exact.chain_law(chain.conditionals).numpy()
        own = [ORDER[place] for place in (chain.order or range(SITES))]
        back = np.moveaxis(law.reshape([STATES] * SITES), range(SITES), own).ravel()
        laws.append(back)
        expected += back[:, None] * chain_terms(back, own)
    np.testing.assert_allclose(found.sites, expected / np.sum(laws, axis=0)[:, None], atol=2e-6)


def test_with_soft_noise_the_sites_share_the_bound() -> None:
    model = fitted(keep_prob=0.5, cycles=2)
    found = surprise(model, EVERYTHING, seed=3, draws=5)
    assert found.of == "elbo"
    assert found.sites is not None
    np.testing.assert_allclose(found.sites.sum(1), -found.log_prob, atol=1e-9)
    expected = model.elbo(EVERYTHING, seed=3, draws=5)
    np.testing.assert_allclose(found.log_prob, expected.value, atol=1e-9)
    np.testing.assert_allclose(found.error, expected.standard_error, atol=1e-9)
    labelled = fitted(y=labels(), keep_prob=0.5, cycles=2)
    summed = surprise(labelled, EVERYTHING, seed=1)
    np.testing.assert_allclose(summed.log_prob, labelled.elbo(EVERYTHING, seed=1).value)
    assert summed.sites.shape == EVERYTHING.shape


def test_a_pairwise_model_gives_all_others() -> None:
    model = fitted("pairwise")
    found = surprise(model, EVERYTHING)
    for site in range(SITES):
        law = model.conditional(EVERYTHING, site)
        own = law[np.arange(len(law)), np.searchsorted(SYMBOLS, EVERYTHING[:, site])]
        np.testing.assert_allclose(found.sites[:, site], -np.log(own))
    np.testing.assert_allclose(found.log_prob, model.log_prob(EVERYTHING))
    assert surprise(fitted("pairwise", labels()), EVERYTHING).sites is None  # which label?
    wide = tiny.model("pairwise", estimator="loss").fit(
        np.random.default_rng(0).integers(0, 2, (40, 30)), verbose=False
    )
    X = np.eye(3, 30, dtype=int)
    pseudo = surprise(wide, X)
    assert pseudo.of == "pseudo_log_likelihood"
    np.testing.assert_allclose(pseudo.log_prob, wide.pseudo_log_likelihood(X))
    np.testing.assert_allclose(surprise(wide, X, sites=False).log_prob, pseudo.log_prob)


@pytest.mark.parametrize(("name", "of"), [("memorize", "log_prob"), ("d3pm", "elbo")])
def test_other_models_score_whole_rows(name: str, of: str) -> None:
    model = fitted(name)
    found = surprise(model, rows()[:5], seed=2)
    assert (found.of, found.sites) == (of, None)
    assert "does not fall into terms" in found.given
    expected = model.log_prob(rows()[:5]) if of == "log_prob" else model.elbo(rows()[:5], seed=2).value
    np.testing.assert_allclose(found.log_prob, expected)


@pytest.mark.parametrize("labelled", [False, True])
def test_an_impossible_symbol_is_infinitely_surprising_where_it_stands(labelled: bool) -> None:
    X = np.column_stack([np.zeros(40, int), np.arange(40) % 2, np.arange(40) % 3 % 2])
    model = neurise.Independent(alphabet=[0, 1]).fit(X, X[:, 1] if labelled else None)
    found = surprise(model, [[1, 0, 0], [0, 0, 0]])
    assert found.log_prob[0] == -np.inf
    assert found.sites is not None
    assert np.isposinf(found.sites[0]).tolist() == [True, False, False]
    assert np.isfinite(found.sites[1]).all()


def test_equal_rows_share_a_rank() -> None:
    assert ranks(np.array([-1.0, -3.0, -np.inf, -3.0, 0.0])).tolist() == [4, 2, 1, 2, 5]


def test_blocks_give_the_same_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "BLOCK", 50)
    model = fitted(y=labels())
    y = np.resize(["low", "high"], len(EVERYTHING))
    parts = list(in_blocks(model, EVERYTHING, y))
    assert len(parts) == 7
    whole = surprise(model, EVERYTHING, y)
    # Products over rows of another number round differently, by a few last bits of numbers of single precision.
    close = partial(np.testing.assert_allclose, rtol=16 * np.finfo(np.float32).eps)
    close(np.concatenate([part.log_prob for _, part in parts]), whole.log_prob)
    close(np.concatenate([part.sites for _, part in parts]), whole.sites)


def test_draws_must_give_an_error() -> None:
    with pytest.raises(ValueError, match="at least two draws"):
        surprise(fitted("independent"), EVERYTHING, draws=1)


@pytest.mark.parametrize("labelled", [False, True])
def test_rows_with_gaps_are_scored_by_what_is_there(labelled: bool) -> None:
    """The chain rule of the enumerated law, summed over the gaps."""
    model = fitted(y=labels() if labelled else None)
    table = exact.law(model).numpy().reshape([STATES] * SITES)
    rng = np.random.default_rng(5)
    tokens, gone = rng.integers(0, STATES, (30, SITES)), rng.random((30, SITES)) < 0.3
    gone[0], gone[1] = False, [True, False, True, False]
    found = surprise(model, np.ma.array(SYMBOLS[tokens], mask=gone))
    assert found.sites is not None
    for row in range(30):
        before = 1.0
        for place in reversed(range(SITES)):
            site = ORDER[place]
            known = [other for other in ORDER[place:] if not gone[row, other]]
            index = tuple(tokens[row, other] if other in known else slice(None) for other in range(SITES))
            now = table[index].sum()
            if gone[row, site]:
                assert np.isnan(found.sites[row, site])
            else:
                assert found.sites[row, site] == pytest.approx(-np.log(now / before), abs=5e-6)
            before = now
        assert found.log_prob[row] == pytest.approx(np.log(before), abs=5e-6)
    assert found.error is None  # so few completions are summed over


def test_gaps_need_a_likelihood() -> None:
    gappy = np.ma.array(rows()[:3], mask=np.eye(3, SITES, dtype=bool))
    with pytest.raises(NotImplementedError, match="rows with gaps need an exact likelihood"):
        surprise(fitted(keep_prob=0.5, cycles=2), gappy)
    found = surprise(fitted("memorize"), gappy)
    assert found.sites is None
    np.testing.assert_allclose(found.log_prob, fitted("memorize").log_prob(gappy))
