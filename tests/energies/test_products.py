"""Laws of products of spins against sums over all configurations, one at a time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import oracles
import pytest
import torch

from neurise.deadline import Work
from neurise.energies import higher_orders, learning, products
from neurise.energies.learning import Learnt
from neurise.energies.products import Observed, Sets
from neurise.rows import Rows
from neurise.space import Space

SPACE = Space(6, 2)
TRUTH: dict[tuple[int, ...], float] = {
    **{(site,): 0.1 for site in range(6)},
    (0, 1): 0.5,
    (0, 2, 3): 0.6,
    (1, 4, 5): -0.7,
    (2, 3, 4, 5): 0.6,
}


def features(sets: Sets) -> np.ndarray:
    """The products at all configurations, (2^q, sets)."""
    spins = 2.0 * np.array(oracles.configurations(SPACE)) - 1
    return np.stack([spins[:, list(own)].prod(1) for own in sets], axis=1)


def law(terms: dict[tuple[int, ...], float]) -> np.ndarray:
    weight = np.exp(features(tuple(terms)) @ np.array(list(terms.values())))
    return np.asarray(weight / weight.sum())


def rows_of(terms: dict[tuple[int, ...], float], n: int, seed: int) -> Rows:
    return Rows(torch.from_numpy(oracles.draw(SPACE, law(terms), n, seed).astype(np.uint8)))


def test_a_fit_matches_the_moments_of_the_rows_and_knows_its_information() -> None:
    rows = rows_of(TRUTH, 3000, 1)
    sets = tuple(TRUTH)
    found = products.fit(Observed.of(rows, 3000.0), sets)
    own = law(dict(zip(sets, found.theta.tolist(), strict=True)))
    np.testing.assert_allclose(np.exp(found.log_law), own, rtol=1e-9)
    seen, at = features(sets), products.places(rows.x.numpy())
    np.testing.assert_allclose(found.moments[found.masks], own @ seen, atol=1e-12)
    fisher = (seen * own[:, None]).T @ seen - np.outer(own @ seen, own @ seen)
    np.testing.assert_allclose(found.fisher, fisher, atol=1e-12)
    np.testing.assert_allclose(found.log_prob(rows.x.numpy()), np.log(own)[at], rtol=1e-9)
    # The gradient of the penalised likelihood is zero, up to what the fit calls enough.
    gradient = seen[at].mean(0) - own @ seen - products.penalty(sets) * found.theta / 3000
    assert 3000 * gradient @ np.linalg.solve(fisher, gradient) < 0.03**2 * len(sets) * 1.01
    away = (found.theta - np.array(list(TRUTH.values()))) / np.sqrt(found.covariance.diagonal())
    assert np.abs(away).max() < 5


def test_weighted_rows_are_repeated_rows() -> None:
    rows = rows_of(TRUTH, 200, 2)
    times = torch.arange(200) % 3 + 1
    weighted = Observed.of(Rows(rows.x, weights=times.double()), 400.0)
    repeated = Observed.of(Rows(rows.x.repeat_interleave(times, 0)), 400.0)
    np.testing.assert_allclose(weighted.moments, repeated.moments, atol=1e-12)


def test_what_a_product_gains_is_what_the_likelihood_rises_by() -> None:
    """To first order: of a product that is weak, and with so many rows that the penalty does not count."""
    weak = {**TRUTH, (0, 3, 5): 0.01}
    observed = Observed(6, products.walsh.moments_of(law(weak)), 1e6)
    base = products.fit(observed, tuple(TRUTH))
    (gain,) = higher_orders.gains(base, observed, products.masks_of(6, ((0, 3, 5),)))
    more = products.fit(observed, tuple(weak), np.append(base.theta, 0.0))
    assert gain == pytest.approx(1e6 * (more.value - base.value), rel=0.05)
    assert gain > 10


@pytest.mark.parametrize("seed", range(3))
def test_three_and_four_body_terms_are_found_and_no_others(seed: int) -> None:
    found = higher_orders.find(rows_of(TRUTH, 2000, seed), np.empty((0, 2), dtype=np.int64))
    assert found is not None
    assert {own for own in found.sets if len(own) > 1} == {own for own in TRUTH if len(own) > 1}
    assert distance(np.exp(found.log_law), law(TRUTH)) < 1.5 * 0.4 * np.sqrt(len(TRUTH) / 2000)


def test_false_pairs_are_dropped() -> None:
    every = np.array(list(combinations(range(6), 2)))
    found = higher_orders.find(rows_of(TRUTH, 5000, 4), every)
    assert found is not None
    assert {own for own in found.sets if len(own) > 1} == {own for own in TRUTH if len(own) > 1}


def test_pairwise_rows_keep_their_pairwise_law() -> None:
    pairs = {own: strength for own, strength in TRUTH.items() if len(own) < 3} | {(2, 3): 0.8, (1, 4): -0.6}
    rows, held = rows_of(pairs, 2000, 5), rows_of(pairs, 200, 6)
    learnt = learning.learn(rows, SPACE)
    assert isinstance(learnt, Learnt)
    assert higher_orders.choose(learnt, rows, held=held, seed=0, work=Work()) is None


@pytest.mark.parametrize("held", [True, False])
def test_held_back_rows_or_folds_ask_for_products(held: bool) -> None:
    rows, aside = rows_of(TRUTH, 1000, 7), rows_of(TRUTH, 150, 8)
    learnt = learning.learn(rows, SPACE)
    assert isinstance(learnt, Learnt)
    chosen = higher_orders.choose(learnt, rows, held=aside if held else None, seed=0, work=Work())
    assert chosen is not None
    assert higher_orders.is_higher(chosen)


def test_rows_that_do_not_follow_the_products_refuse_them() -> None:
    rows = rows_of(TRUTH, 1000, 7)
    other = {own: -strength if len(own) > 2 else strength for own, strength in TRUTH.items()}
    learnt = learning.learn(rows, SPACE)
    assert isinstance(learnt, Learnt)
    assert higher_orders.choose(learnt, rows, held=rows_of(other, 5000, 9), seed=0, work=Work()) is None


def distance(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.abs(one - two).sum() / 2)
