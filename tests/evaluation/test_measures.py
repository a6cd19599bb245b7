"""Every measure of an evaluation, held against models whose scores are known exactly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from known_models import FAST, PMF, SPACE, SYMBOLS, Bounded, Oracle, Silent, known_law, rows_only

from neurise import NeurISE, evaluation, exact
from neurise.dataset import Dataset
from neurise.evaluation import Case, Evaluation, Measure, evaluate
from neurise.evaluation.measures import correlations, divergences, likelihood
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.total_variation import total_variation
from neurise.space import Space


def measured(model: Any, data: Any, *, measure: Measure, **options: Any) -> Evaluation:
    return evaluate(model, data, baselines=False, measures=(measure,), **options)


@pytest.fixture(scope="module")
def fitted() -> NeurISE:
    return NeurISE().set_params(**FAST).fit(known_law().sample(300, seed=0), verbose=False)


# --- total variation -----------------------------------------------------------------------------------------------


def test_total_variation_is_exact_on_a_small_space(fitted: NeurISE) -> None:
    row = measured(fitted, known_law(), samples=10, measure=divergences)["total_variation"]
    assert row.value == pytest.approx(total_variation(exact.law(fitted), PMF), abs=1e-12)
    assert row.floor == 0


def test_total_variation_does_not_depend_on_the_order_of_symbols(fitted: NeurISE) -> None:
    """The same law, written over other digits and with a symbol that nobody uses."""
    named = np.array([7, 9, 0, 5, 2])
    digit = {symbol: place for place, symbol in enumerate(named.tolist())}
    wide = Space(SPACE.sites, len(named))
    pmf = np.zeros(wide.size)
    rows = SYMBOLS[SPACE.configurations().numpy()]
    tokens = torch.tensor([[digit[symbol] for symbol in row] for row in rows.tolist()])
    pmf[wide.index(tokens).numpy()] = PMF
    data = Dataset("named", wide, named, law=lambda: pmf, train=rows)
    expected = measured(fitted, known_law(), samples=10, measure=divergences)["total_variation"].value
    assert measured(fitted, data, samples=10, measure=divergences)["total_variation"].value == pytest.approx(
        expected, abs=1e-12
    )
    assert measured(fitted, data, samples=10, measure=likelihood)["log_likelihood"].floor == pytest.approx(
        np.log(PMF).mean()
    )


def test_sampled_total_variation_of_a_perfect_model_is_at_its_floor() -> None:
    n, values, floors = 2000, [], []
    for seed in range(20):
        row = measured(Oracle(PMF), known_law(), samples=n, seed=seed, measure=divergences)["total_variation"]
        values.append(row.value)
        floors.append(row.floor)
    # E|p̂ − p| ≈ √(2 p (1 − p) / π n), a normal approximation for the likely configurations.
    expected = 0.5 * np.sqrt(2 * PMF * (1 - PMF) / (np.pi * n)).sum()
    assert np.mean(values) == pytest.approx(expected, rel=0.1)
    assert np.mean(floors) == pytest.approx(expected, rel=0.1)
    assert values != floors


def test_sampled_total_variation_sees_a_wrong_model() -> None:
    wrong = np.roll(PMF, 7)
    row = measured(Oracle(wrong), known_law(), samples=20_000, measure=divergences)["total_variation"]
    assert row.value == pytest.approx(total_variation(wrong, PMF), abs=0.02)
    assert row.floor < 0.05


def test_large_spaces_are_sampled_unless_asked(fitted: NeurISE, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(fitted, known_law(), samples=50, exact=False, measure=divergences)["total_variation"].floor > 0
    monkeypatch.setattr(evaluation.case, "EXACT_LIMIT", SPACE.size - 1)
    assert measured(fitted, known_law(), samples=50, measure=divergences)["total_variation"].floor > 0
    assert measured(fitted, known_law(), samples=50, exact=True, measure=divergences)["total_variation"].floor == 0


def test_exact_refuses_what_cannot_be(fitted: NeurISE) -> None:
    with pytest.raises(ValueError, match="pmf of rows"):
        measured(fitted, rows_only(test=known_law().sample(9, seed=0)), samples=9, exact=True, measure=divergences)
    with pytest.raises(ValueError, match="exact law of a Oracle"):
        measured(Oracle(PMF), known_law(), samples=9, exact=True, measure=divergences)


def test_a_law_that_lacks_a_symbol_of_the_model() -> None:
    narrow = Dataset("narrow", Space(3, 2), np.array([0, 2]), law=lambda: np.full(8, 1 / 8), train=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"\[0, 2, 5, 7\], and the law of narrow is over \[0, 2\] only"):
        measured(Oracle(PMF), narrow, samples=9, measure=divergences)


# --- correlations --------------------------------------------------------------------------------------------------


def test_correlation_error_of_a_perfect_model_is_at_its_floor() -> None:
    rows = [
        measured(Oracle(PMF), known_law(), samples=1000, seed=seed, measure=correlations)["correlation_rms"]
        for seed in range(40)
    ]
    value, floor = np.mean([row.value for row in rows]), np.mean([row.floor for row in rows])
    assert value == pytest.approx(floor, rel=0.15)
    assert 0 < floor < 2 * np.sqrt(0.5 / 1000)


def test_correlation_error_compares_samples_with_test_rows_and_train_rows_with_test_rows() -> None:
    train, test = known_law().sample(70, seed=1), known_law().sample(50, seed=2)
    found = measured(Oracle(PMF), rows_only(train=train, test=test), samples=100, seed=5, measure=correlations)
    samples = Oracle(PMF).sample(100, seed=5)
    for kind, value in cross_correlation(samples, test, other=train, seed=5)._asdict().items():
        row = found[f"correlation_{kind}"]
        assert (row.value, row.error, row.floor) == pytest.approx((value, value.error, value.floor))


def test_an_array_is_cut_in_halves_for_the_floor() -> None:
    rows = known_law().sample(61, seed=1)
    case = Case(Oracle(PMF), rows_only(test=rows), samples=9, seed=0, exact=None)
    first, second = case.truth.real
    assert (len(first), len(second)) == (31, 30)
    assert sorted([*first.tolist(), *second.tolist()]) == sorted(rows.tolist())
    assert first.tolist() != rows[:31].tolist()
    assert (
        "500 samples against 31 rows; floor: other real rows"
        in measured(Oracle(PMF), rows, samples=500, measure=correlations)["correlation_rms"].note
    )


@pytest.mark.filterwarnings("ignore:these .* learnt from")
def test_one_site_has_no_correlations() -> None:
    rows = np.array([[0], [1], [1]])
    assert (
        measured(NeurISE().set_params(**FAST).fit(rows, verbose=False), rows, samples=9, measure=correlations).rows
        == ()
    )


# --- likelihood ----------------------------------------------------------------------------------------------------


def test_likelihood_of_the_true_law_is_its_own_floor() -> None:
    test = known_law().sample(40, seed=1)
    found = measured(Oracle(PMF), known_law(test=test), samples=9, measure=likelihood)
    values = Oracle(PMF).log_prob(test)
    row = found["log_likelihood"]
    assert (row.value, row.floor) == pytest.approx((values.mean(), values.mean()))
    assert row.error == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    bits = found["bits_per_site"]
    assert bits.value == bits.floor == pytest.approx(-values.mean() / np.log(2) / 3)
    assert bits.error == pytest.approx(row.error / np.log(2) / 3)


def test_a_wrong_law_stays_below_the_floor() -> None:
    row = measured(Oracle(np.roll(PMF, 7)), known_law(), samples=500, measure=likelihood)["log_likelihood"]
    assert row.value < row.floor


def test_counts_are_as_good_as_repeated_rows() -> None:
    rows, counts = known_law().sample(30, seed=1), np.random.default_rng(0).integers(0, 5, 30)
    weighted = measured(Oracle(PMF), rows_only(test=rows, test_weights=counts), samples=99, measure=likelihood)
    repeated = measured(Oracle(PMF), rows_only(test=np.repeat(rows, counts, axis=0)), samples=99, measure=likelihood)
    for mine, theirs in zip(weighted.rows, repeated.rows, strict=True):
        assert (mine.value, mine.floor) == pytest.approx((theirs.value, theirs.floor))
        assert mine.error == pytest.approx(theirs.error)


def test_importances_weigh_the_rows() -> None:
    rows, weights = known_law().sample(30, seed=1), np.random.default_rng(0).random(30)
    found = evaluate(Oracle(PMF), rows_only(test=rows, test_weights=weights), samples=2000)
    expected = np.average(Oracle(PMF).log_prob(rows), weights=weights)
    assert found["log_likelihood"].value == pytest.approx(expected)
    samples = Oracle(PMF).sample(2000, seed=0)
    by_weight = cross_correlation(samples, rows, reference_weights=weights).rms
    assert found["correlation_rms"].value == pytest.approx(by_weight)
    # What needs independent rows is left out, and there are no rows left to learn a baseline from.
    assert not {"mmd", "overlap_distance"} & {row.name for row in found.rows}
    assert found.baselines == ""


@pytest.mark.filterwarnings("ignore:these .* learnt from")
def test_labels_are_given_to_a_model_that_has_them() -> None:
    rows = known_law().sample(200, seed=0)
    labels = np.where(rows[:, 0] > 2, "high", "low")
    model = NeurISE().set_params(**FAST).fit(rows, labels, verbose=False)
    found = measured(model, rows_only(train=rows, labels=labels), samples=50, measure=likelihood)["log_likelihood"]
    assert found.value == pytest.approx(model.log_prob(rows, labels).mean())
    assert "given their labels" in found.note
    without = measured(model, rows_only(train=rows), samples=50, measure=likelihood)["log_likelihood"]
    assert without.value == pytest.approx(model.log_prob(rows).mean())
    assert without.value != pytest.approx(found.value)


def test_labels_of_the_data_do_not_disturb_a_model_without(fitted: NeurISE) -> None:
    rows = known_law().sample(20, seed=4)
    found = measured(fitted, rows_only(train=rows, labels=np.arange(20)), samples=50, measure=likelihood)[
        "log_likelihood"
    ]
    assert found.value == pytest.approx(fitted.log_prob(rows).mean())


def test_bound_where_there_is_no_likelihood() -> None:
    rows = known_law().sample(25, seed=1)
    found = measured(Bounded(PMF), rows, samples=50, measure=likelihood)
    assert found["elbo"].value == pytest.approx(Oracle(PMF).log_prob(rows).mean() - 1)
    assert "Monte Carlo error 0.06" in found["elbo"].note  # 0.3 / √25
    with pytest.raises(KeyError, match=r"log_likelihood.*there are: .*elbo"):
        found["log_likelihood"]


@pytest.mark.filterwarnings("ignore:these .* learnt from")
def test_soft_noise_is_measured_by_its_bound() -> None:
    rows = known_law().sample(60, seed=0)
    model = NeurISE().set_params(keep_prob=0.5, cycles=2, **FAST).fit(rows, verbose=False)
    found = measured(model, rows, samples=50, seed=3, measure=likelihood)["elbo"]
    assert found.value == pytest.approx(model.elbo(rows, seed=3).value.mean())


def test_what_cannot_be_measured_says_why() -> None:
    row = measured(Silent(PMF), known_law(), samples=50, measure=likelihood)["log_likelihood"]
    assert row.value is None
    assert "no likelihood" in row.note


@pytest.mark.filterwarnings("error")
def test_impossible_rows_are_told() -> None:
    law = PMF.copy()
    law[SPACE.index(torch.tensor([0, 0, 0]))] = 0
    found = measured(
        Oracle(law / law.sum()), np.array([[0, 0, 0], [7, 7, 7], [2, 2, 2]]), samples=50, measure=likelihood
    )
    assert found["log_likelihood"].value == -np.inf
    assert "1 rows have probability zero" in found["log_likelihood"].note
    fields = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert next(row for row in fields["rows"] if row["name"] == "log_likelihood")["value"] is None
