"""The evaluation, held against models whose scores are known exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from known_models import FAST, PMF, Oracle, known_law, rows_only

from neurise import Independent, Memorize, NeurISE, exact
from neurise.dataset import Dataset
from neurise.evaluation import Case, Evaluation, Measurement, evaluate
from neurise.evaluation.measures import divergences, likelihood
from neurise.metrics.total_variation import total_variation


@pytest.fixture(scope="module")
def fitted() -> NeurISE:
    return NeurISE().set_params(**FAST).fit(known_law().sample(300, seed=0), verbose=False)


# --- everything together -------------------------------------------------------------------------------------------


def spin_glass(**fields: Any) -> Dataset:
    """Four spins on a ring, with everything that is known of such data."""
    from neurise.datasets import ising

    return replace(ising([(0, 1), (1, 2), (2, 3), (3, 0)], J=[0.5, -0.3, 0.4, 0.2], h=[0.1] * 4), **fields)


ALL = {
    "total_variation", "kl", "chi2", "coverage", "correlation_mean_abs", "correlation_rms", "correlation_frobenius",
    "correlation_couplers", "correlation_triples", "mmd", "mmd_hamming", "kde", "energy_mean", "energy_spread",
    "energy_distance", "overlap_distance", "nearest_distance", "copies", "log_likelihood", "bits_per_site", "fidelity",
    "copies_beyond_chance", "nearer_than_chance",
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
