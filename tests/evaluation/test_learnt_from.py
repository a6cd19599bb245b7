"""The rows that a model learnt from, given beside those that it is measured on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import tiny

import neurise
from neurise.dataset import Dataset
from neurise.evaluation import Evaluation, evaluate
from neurise.evaluation.measures import memorisation
from neurise.holdout import Split, hold_back
from neurise.metrics import privacy
from neurise.space import Space

TRAIN, HELD = (np.random.default_rng(seed).integers(0, 3, (200, 12)) for seed in (0, 1))


def measured(model: Any, data: Any, **options: Any) -> Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return evaluate(model, data, samples=150, measures=[memorisation], **options)


def test_a_memoriser_is_caught_where_the_training_rows_are_given() -> None:
    assert not measured(neurise.Memorize().fit(TRAIN), HELD, baselines=False).rows  # nothing is known of them
    found = measured(neurise.Memorize().fit(TRAIN), HELD, train=TRAIN)
    assert found["copies"].value == 1
    assert found["copies_beyond_chance"].value == 1  # 3^12 configurations: none of 200 repeats itself by chance
    assert found["copies_beyond_chance"].floor == 0
    assert found["copies_beyond_chance"].baselines == {"independent": 0, "memorize": 1}
    assert found["nearer_than_chance"].value > 0.1


def test_the_measure_is_the_metric() -> None:
    model = neurise.Independent().fit(TRAIN)
    found = measured(model, HELD, train=TRAIN, baselines=False)
    expected = privacy(model.sample(150, seed=0), TRAIN, HELD)
    for name, value in (
        ("copies_beyond_chance", expected.copies_beyond_chance),
        ("nearer_than_chance", expected.nearer),
    ):
        assert found[name].value == pytest.approx(float(value))
        assert found[name].error == pytest.approx(value.error)


def test_samples_from_anywhere_are_measured_too() -> None:
    assert measured(TRAIN[:50], HELD, train=TRAIN, baselines=False)["copies_beyond_chance"].value == 1


def test_a_part_that_the_model_held_back_is_not_a_training_row() -> None:
    rows = Dataset("rows", Space(12, 3), np.arange(3), train=TRAIN)
    split = Split(0.25, 7)
    known = hold_back(rows, split)
    model = neurise.Memorize(alphabet=[0, 1, 2]).fit(known.train)
    model.split_ = split
    alone, given = measured(model, rows), measured(model, rows, train=rows)
    assert alone.rows == given.rows
    assert alone["copies_beyond_chance"].value == 1
    assert given.case.data.train is not None
    assert len(given.case.data.train) == 150


def test_rows_of_weight_zero_were_not_learnt_from() -> None:
    weights = np.repeat([1.0, 0.0], 100)
    given = Dataset("rows", Space(12, 3), np.arange(3), train=TRAIN, weights=weights)
    model = neurise.Memorize(alphabet=[0, 1, 2]).fit(TRAIN, weights=weights)
    assert measured(model, HELD, train=given)["copies"].value == 1
    assert measured(TRAIN[100:], HELD, train=given, baselines=False)["copies"].value == 0


def test_other_rows_are_warned_of_or_refused() -> None:
    model = tiny.model("independent", alphabet=[0, 1, 2]).fit(TRAIN)
    with pytest.warns(UserWarning, match="has not learnt from these 199 training rows"):
        evaluate(model, HELD, train=TRAIN[1:], samples=20, measures=[memorisation], baselines=False)
    with pytest.raises(ValueError, match="training rows have 11 sites"):
        evaluate(model, HELD, train=TRAIN[:, 1:], samples=20)
    with pytest.raises(ValueError, match="letters and numbers"):
        evaluate(model, HELD, train=np.full((3, 12), "a"), samples=20)
