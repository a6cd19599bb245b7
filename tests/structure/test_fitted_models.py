"""Structure of fitted models: orders, alphabets, labels, constant sites, soft noise, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

from neurise import NeurISE, Training, datasets, structure
from neurise.dataset import Dataset
from neurise.space import Space


class Likelihood:
    """A likelihood by hand, on rows of spins."""

    def __init__(self, log_prob: Any) -> None:
        self.log_prob = log_prob


def test_order_and_alphabet_of_a_model_do_not_matter() -> None:
    rows = tiny.spins(200)
    data = Dataset("spins", Space(3, 2), np.array([-1, 1]), train=rows)
    model = tiny.model("neurise", order=(2, 0, 1), alphabet=[1, -1]).fit(rows, verbose=False)
    found = structure.recover(model, data)
    same = structure.recover(Likelihood(model.log_prob), data)
    np.testing.assert_array_equal(found.tables, same.tables)
    np.testing.assert_array_equal(found.fields, same.fields)
    assert found.symbols.tolist() == [-1, 1]
    # By hand: three spins, of which the third is the context of the first two.
    top = bottom = 0.0
    for context in rows[:, 2].tolist():
        value = {(a, b): float(model.log_prob([[a, b, context]])[0]) for a in (-1, 1) for b in (-1, 1)}
        mass = np.exp(list(value.values()))
        weight = 1 / (mass.sum() / mass).sum()
        top += weight * (value[1, 1] + value[-1, -1] - value[1, -1] - value[-1, 1]) / 4
        bottom += weight
    # A row alone and a row among others may be added up in another order: four log-probabilities of three float32 terms
    # below 4, each off by at most 3 · 4 · 2⁻²⁴, of which a quarter of the sum is taken.
    assert found.couplings[0, 1] == pytest.approx(top / bottom, abs=12 * 2**-24)


def test_rows_alone_are_read_in_the_symbols_of_the_model() -> None:
    model = tiny.model("neurise").fit(tiny.spins(100), verbose=False)
    found = structure.recover(model, np.ones((4, 3), dtype=int))  # the other symbol does not occur
    assert found.symbols.tolist() == [-1, 1]
    assert found.rows == 1


def test_weights_count_as_repeated_rows() -> None:
    rows = tiny.spins(30)
    model = tiny.model("neurise").fit(rows, verbose=False)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    counted = Dataset("counted", Space(3, 2), np.array([-1, 1]), train=distinct, weights=counts.astype(float))
    first, second = structure.recover(model, rows), structure.recover(model, counted)
    np.testing.assert_allclose(first.tables, second.tables, rtol=1e-12)
    np.testing.assert_allclose(first.errors, second.errors, rtol=1e-12)


def test_labels_are_conditioned_on() -> None:
    rows = tiny.spins(120)
    y = (rows[:, 2] > 0).astype(int)
    model = tiny.model("neurise").fit(rows, y, verbose=False)
    given = structure.recover(model, rows, y=1)
    expected = structure.recover(Likelihood(lambda X: model.log_prob(X, 1)), rows)
    np.testing.assert_array_equal(given.tables, expected.tables)
    assert not np.array_equal(given.tables, structure.recover(model, rows).tables)


def test_a_constant_site_has_no_couplings() -> None:
    rows = np.insert(tiny.spins(100), 1, 1, axis=1)
    model = tiny.model("neurise").fit(rows, verbose=False)
    found = structure.recover(model, rows)
    assert found.constant == (1,)
    assert np.isnan(found.couplings[1, [0, 2, 3]]).all()
    assert np.isnan(found.fields).tolist() == [False, True, False, False]
    assert not found.adjacency[1].any()
    rest = np.delete(np.delete(found.couplings, 1, 0), 1, 1)
    assert np.isfinite(rest).all()
    truth = datasets.ising([(0, 2), (1, 3)], 1.0, np.zeros(4))
    result = structure.compare(found, truth)
    assert (result.undefined, result.pairs, result.true_edges) == (3, 3, 1)


def test_rows_are_chosen_by_the_seed() -> None:
    rows = tiny.spins(200, sites=5)
    model = tiny.model("neurise").fit(rows, verbose=False)
    first, again, other = (structure.recover(model, rows, rows=4, seed=seed) for seed in (0, 0, 1))
    assert first.rows == 4
    np.testing.assert_array_equal(first.tables, again.tables)
    assert not np.array_equal(first.tables, other.tables)


def test_soft_noise_is_refused_unless_a_cycle_is_named() -> None:
    rows = tiny.spins(100)
    model = tiny.model("neurise", keep_prob=0.9, cycles=2, order=(1, 2, 0)).fit(rows, verbose=False)
    with pytest.raises(
        NotImplementedError, match=r"neither a likelihood.* nor clean conditionals.*keep_prob=0.*cycle=0"
    ):
        structure.recover(model, rows)
    found = structure.recover(model, rows[:1].repeat(2, axis=0), cycle=1)
    row = rows[0]
    halves = []
    for i, j, step in ((0, 1, 3 + 2), (1, 0, 3 + 0)):  # site 0 stands third in the order, site 1 first
        odds = []
        for value in (1, -1):
            context = row.copy()
            context[j] = value
            law = model.conditional(context[None], i, step=step)[0]
            odds.append(np.log(law[1] / law[0]))
        halves.append((odds[0] - odds[1]) / 4)
    # The network computes in single precision: logits near 1 are known to 1e-7, and a coupling is made of four of them.
    assert found.couplings[0, 1] == pytest.approx(np.mean(halves), abs=1e-6)
    with pytest.raises(ValueError, match=r"step 6 does not noise site 1|step 8 does not noise site 0"):
        structure.recover(model, rows, cycle=2)


def test_mistakes() -> None:
    rows = tiny.spins(50)
    model = tiny.model("neurise").fit(rows, verbose=False)
    with pytest.raises(ValueError, match="the model has 3 sites; in data there are 5"):
        structure.recover(model, tiny.spins(10, sites=5))
    with pytest.raises(ValueError, match="data has the symbol 7"):
        structure.recover(model, np.full((2, 3), 7))
    with pytest.raises(ValueError, match=r"the model's symbols are .*-1, 1.*potts.* are .*0, 1, 2"):
        structure.recover(model, Dataset("potts", Space(3, 3), np.arange(3), train=np.zeros((2, 3), int)))
    with pytest.raises(ValueError, match="data is empty"):
        structure.recover(model, np.zeros((0, 3), int))
    with pytest.raises(ValueError, match="nothing has no rows"):
        structure.recover(model, Dataset("nothing", Space(3, 2), np.array([-1, 1]), train=np.zeros((0, 3), int)))
    with pytest.raises(ValueError, match="rows must be a positive whole number, got 0"):
        structure.recover(model, rows, rows=0)
    with pytest.raises(ValueError, match="cycle=0 is for soft noise"):
        structure.recover(model, rows, cycle=0)
    with pytest.raises(ValueError, match="1 sites of 2 states; couplings need two"):
        structure.recover(Likelihood(lambda X: np.zeros(len(X))), np.array([[0], [1]]))
    with pytest.raises(
        NotImplementedError, match=r"object has neither a likelihood, .*it has no log_prob; it has no conditional"
    ):
        structure.recover(object(), rows)


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("way", ["likelihood", "conditionals"])
def test_a_pairwise_model_gives_back_its_own_parameters(states: int, way: str) -> None:
    rows = np.random.default_rng(8).integers(0, states, (80, 4))
    model = tiny.model("pairwise", order=(2, 0, 3, 1)).fit(rows, verbose=False)
    asked: Any = model
    if way == "conditionals":
        asked = type("Sites", (), {"conditional": staticmethod(model.conditional)})()
    found = structure.recover(asked, rows)
    expected = model.couplings_[..., None, None] * np.array([[1, -1], [-1, 1]]) if states == 2 else model.couplings_
    np.testing.assert_allclose(found.tables, expected, atol=1e-6)  # its weights are kept in single precision
    np.testing.assert_allclose(found.fields, model.fields_, atol=1e-6)


@pytest.mark.slow
def test_a_fit_recovers_every_coupler_of_a_spin_glass_and_no_other() -> None:
    data = datasets.edwards_anderson(side=4, seed=2)
    X = data.sample(100_000, seed=2)
    model = NeurISE(width=64, steps=700, training=Training(batch_size=16384, learning_rate=1e-2, patience=1000))
    model.fit(X, verbose=False)
    found = structure.recover(model, X)
    result = structure.compare(found, data)
    assert found.rule == "two groups"
    assert result.perfect, result
    assert result.area == 1
