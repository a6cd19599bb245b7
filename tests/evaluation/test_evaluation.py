"""The evaluation, held against models whose scores are known exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from neurise import Independent, Memorize, NeurISE, evaluation, exact
from neurise.alphabet import Alphabet
from neurise.dataset import Dataset
from neurise.evaluation import Case, Evaluation, Measure, Measurement, evaluate
from neurise.evaluation.measures import correlations, divergences, likelihood
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.total_variation import total_variation
from neurise.models._labels import Labels
from neurise.space import Space

SPACE = Space(sites=3, states=4)  # sites != states, so that mixing them up fails
SYMBOLS = np.array([0, 2, 5, 7])
PMF = np.random.default_rng(3).dirichlet(np.full(SPACE.size, 0.5))
FAST = {"width": 8, "depth": 1, "steps": 30, "batch_size": 64}


def draw(pmf: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    place = rng.choice(len(pmf), n, p=pmf)
    return SYMBOLS[SPACE.configurations().numpy()[place]]


def known_law(**fields: Any) -> Dataset:
    return Dataset("known", SPACE, SYMBOLS, law=lambda: PMF, draw=lambda n, rng: draw(PMF, n, rng), **fields)


def rows_only(**fields: Any) -> Dataset:
    return Dataset("rows", SPACE, SYMBOLS, **fields)


class Oracle:
    """A model that knows its own law, and offers no more than a model must."""

    def __init__(self, pmf: np.ndarray, *, labels: Labels | None = None) -> None:
        self.pmf, self.space_ = pmf, SPACE
        self.schema_ = SimpleNamespace(alphabet=Alphabet.of(SYMBOLS[:, None]), labels=labels)

    def sample(self, n: int, y: Any = None, *, seed: int | None = None) -> np.ndarray:
        return draw(self.pmf, n, np.random.default_rng(seed))

    def log_prob(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf[SPACE.index(self.schema_.alphabet.encode(X)).numpy()])


class Bounded(Oracle):
    """Knows a lower bound only, with a standard error of 0.3 a row."""

    def log_prob(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        raise NotImplementedError("no likelihood; elbo() gives a bound")

    def elbo(self, X: np.ndarray, y: Any = None, *, seed: int | None = None) -> Any:
        return SimpleNamespace(value=super().log_prob(X) - 1, standard_error=np.full(len(X), 0.3))


class Silent(Bounded):
    def elbo(self, X: np.ndarray, y: Any = None, *, seed: int | None = None) -> Any:
        raise NotImplementedError


def measured(model: Any, data: Any, *, measure: Measure, **options: Any) -> Evaluation:
    return evaluate(model, data, baselines=False, measures=(measure,), **options)


@pytest.fixture(scope="module")
def fitted() -> NeurISE:
    return NeurISE(**FAST).fit(known_law().sample(300, seed=0), verbose=False)


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


def test_one_site_has_no_correlations() -> None:
    rows = np.array([[0], [1], [1]])
    assert measured(NeurISE(**FAST).fit(rows, verbose=False), rows, samples=9, measure=correlations).rows == ()


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


def test_labels_are_given_to_a_model_that_has_them() -> None:
    rows = known_law().sample(200, seed=0)
    labels = np.where(rows[:, 0] > 2, "high", "low")
    model = NeurISE(**FAST).fit(rows, labels, verbose=False)
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


def test_soft_noise_is_measured_by_its_bound() -> None:
    rows = known_law().sample(60, seed=0)
    model = NeurISE(keep_prob=0.5, cycles=2, **FAST).fit(rows, verbose=False)
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


# --- everything together -------------------------------------------------------------------------------------------


def spin_glass(**fields: Any) -> Dataset:
    """Four spins on a ring, with everything that is known of such data."""
    from neurise.datasets import ising

    return replace(ising([(0, 1), (1, 2), (2, 3), (3, 0)], J=[0.5, -0.3, 0.4, 0.2], h=[0.1] * 4), **fields)


ALL = {
    "total_variation", "kl", "chi2", "coverage", "correlation_mean_abs", "correlation_rms", "correlation_frobenius",
    "correlation_couplers", "correlation_triples", "mmd", "mmd_hamming", "kde", "energy_mean", "energy_spread",
    "energy_distance", "overlap_distance", "nearest_distance", "copies", "log_likelihood", "bits_per_site", "fidelity",
}  # fmt: skip


@pytest.fixture(scope="module")
def everything() -> Evaluation:
    data = spin_glass(train=spin_glass().sample(400, seed=1))
    return evaluate(Memorize().fit(spin_glass().sample(3000, seed=2)), data, samples=500)


def test_everything_that_applies_is_measured(everything: Evaluation) -> None:
    assert {row.name for row in everything.rows} == ALL
    assert all(row.value is not None for row in everything.rows)
    for row in everything.rows:
        assert row.floor is not None
        assert set(row.baselines) == {"independent", "memorize"}
    json.dumps(everything.to_dict(), allow_nan=False)


def test_baselines_are_what_they_would_score_themselves(everything: Evaluation) -> None:
    data = everything.case.data
    for name, kind in (("independent", Independent), ("memorize", Memorize)):
        fitted = kind(alphabet=[-1, 1]).fit(data.train)
        expected = total_variation(exact.law(fitted), data.pmf)
        assert everything["total_variation"].baselines[name] == pytest.approx(expected, abs=1e-12)
    assert everything["copies"].baselines["memorize"] == 1
    assert everything.baselines == "400 training rows"


def test_samples_from_anywhere_are_as_good_as_a_model() -> None:
    data, rows = spin_glass(train=spin_glass().sample(400, seed=1)), spin_glass().sample(500, seed=3)
    found = evaluate(rows, data, baselines=False)
    assert {row.name for row in found.rows} == ALL - {"log_likelihood", "bits_per_site", "fidelity"}
    assert found["total_variation"].value == pytest.approx(total_variation(rows, data.pmf))
    assert (found.model, found.samples) == ("the given samples", 500)
    with pytest.raises(ValueError, match="exact law of given samples"):
        evaluate(rows, data, exact=True)
    with pytest.raises(ValueError, match=r"samples have 3 sites; in ising.* there are 4"):
        evaluate(rows[:, :3], data)


def test_a_law_without_rows_lends_fresh_ones_to_the_baselines() -> None:
    found = evaluate(Oracle(PMF), known_law(), samples=40, measures=(divergences,))
    assert found.baselines == "40 fresh rows"
    assert found["total_variation"].baselines["independent"] > 0


# --- the rest ------------------------------------------------------------------------------------------------------


def rows_of(data: Dataset, seed: int = 0) -> np.ndarray:
    return Case(Oracle(PMF), data, samples=20, seed=seed, exact=None).truth.rows.X


def test_test_rows_come_first_then_the_law_then_the_rows_that_were_learnt() -> None:
    train, test = known_law().sample(7, seed=1), known_law().sample(8, seed=2)
    assert rows_of(known_law(train=train, test=test)) is test
    assert len(rows_of(known_law(train=train))) == 20
    assert rows_of(rows_only(train=train)) is train
    with pytest.raises(ValueError, match="neither rows nor a law"):
        rows_of(rows_only())


def test_fresh_rows_are_not_those_that_were_learnt() -> None:
    for seed in range(3):
        assert rows_of(known_law(), seed).tolist() == rows_of(known_law(), seed).tolist()
        for other in range(10):
            assert rows_of(known_law(), seed).tolist() != known_law().sample(20, seed=other).tolist()


def test_a_measurement_of_ones_own(fitted: NeurISE) -> None:
    def rows(case: Case) -> Iterator[Measurement]:
        yield Measurement("rows", float(len(case.truth.rows.X)), units="rows")

    found = evaluate(fitted, known_law(), samples=12, measures=(likelihood, rows))
    assert found["rows"].value == 12
    assert isinstance(found, Evaluation)
    assert json.loads(json.dumps(found.to_dict()))["rows"][-1] == {
        "name": "rows",
        "value": 12.0,
        "error": None,
        "floor": None,
        "units": "rows",
        "note": "",
        "baselines": {"independent": 12.0, "memorize": 12.0},
    }


def test_tensors_are_as_good_as_arrays(fitted: NeurISE) -> None:
    rows = known_law().sample(40, seed=1)
    assert (
        evaluate(fitted, torch.from_numpy(rows), samples=20).to_dict() == evaluate(fitted, rows, samples=20).to_dict()
    )


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.zeros((4, 2), int), {}, "the model has 3 sites; in the given rows there are 2"),
        (np.array([["a", "b", "c"]]), {}, "letters and numbers cannot be compared"),
        (np.zeros(3), {}, "data must be a matrix"),
        (np.array([[0, 1, 2], [0, 0, 0]]), {}, "symbol 1 at row 0, column 1"),
        (known_law(), {"samples": 0}, "samples must be a positive whole number, got 0"),
        (known_law(), {"samples": 2.5}, r"got 2\.5"),
    ],
)
def test_mistakes(fitted: NeurISE, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(fitted, data, **options)
