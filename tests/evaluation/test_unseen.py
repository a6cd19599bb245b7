"""Which rows a model is measured on: those that were held back from it, or with a warning those that it knows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny

import neurise
from neurise.dataset import Dataset
from neurise.evaluation import evaluate
from neurise.evaluation.measures import likelihood
from neurise.holdout import Split, hold_back
from neurise.modeling.model import Model
from neurise.space import Space

X = tiny.spins(80, 4)
OLD = Path(__file__).parents[1] / "saved_models" / "v0.1"


def data(**more: object) -> Dataset:
    return Dataset("rows", Space(4, 2), np.array([-1, 1]), **{"train": X, **more})


def fitted(rows: np.ndarray, **more: object) -> Model:
    return tiny.model("independent", alphabet=[-1, 1]).fit(rows, **more)


def measured(model: Model, known: object) -> neurise.evaluation.Evaluation:
    return evaluate(model, known, samples=20, measures=[likelihood], baselines=False)


@pytest.mark.parametrize("known", [data(), X, data(train=None, test=X)], ids=["train", "array", "test"])
def test_rows_that_were_learnt_from_are_warned_of(known: object) -> None:
    with pytest.warns(UserWarning, match="these 80 rows are those that the model learnt from"):
        assert measured(fitted(X), known).against == "80 rows that it learnt from"


def test_weights_are_part_of_what_was_learnt() -> None:
    counts = np.arange(1, 81)
    model = fitted(X, weights=counts)
    with pytest.warns(UserWarning, match="learnt from"):
        measured(model, data(weights=counts))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured(model, data(weights=counts[::-1].copy()))


def test_others_are_not(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measured(fitted(X), data(train=tiny.spins(80, 4, seed=1))).against == "80 rows"
        assert measured(fitted(X), data(test=tiny.spins(9, 4, seed=1))).against == "9 rows"
        # A model of an earlier version does not know what it has learnt from.
        model = fitted(X)
        model.schema_ = replace(model.schema_, digest="")
        model.save(tmp_path / "old")
        assert measured(neurise.load(tmp_path / "old"), data()).against == "80 rows"


def test_models_of_earlier_versions_have_no_digest() -> None:
    found = [neurise.load(folder) for folder in sorted(OLD.iterdir()) if (folder / "config.json").exists()]
    assert found
    assert all(model.schema_.digest == "" and model.split_ is None for model in found)


@pytest.mark.parametrize("known", [data(), X], ids=["data set", "array"])
def test_what_was_held_back_is_held_back_again(tmp_path: Path, known: object) -> None:
    apart = hold_back(data(), Split(0.25, 5))
    model = fitted(apart.train)
    model.split_ = Split(0.25, 5)
    model.save(tmp_path / "m")
    found = measured(neurise.load(tmp_path / "m"), known)
    assert found.against == "20 rows that were held back from its training"
    assert found["log_likelihood"].value == pytest.approx(model.log_prob(apart.test).mean())
    other = data(train=tiny.spins(80, 4, seed=2))
    assert measured(model, other).against == "80 rows"


def test_rows_are_known_again_in_any_order_and_as_counts() -> None:
    schema = fitted(X).schema_
    assert schema.is_of(X)
    assert schema.is_of(X[::-1].copy())
    different, counts = np.unique(X, axis=0, return_counts=True)
    assert schema.is_of(different, weights=counts)
    assert not schema.is_of(X[:-1])
    assert not schema.is_of(-X)
    assert not schema.is_of(X, weights=np.full(80, 2))
    assert not schema.is_of(X + 5)
    assert not schema.is_of(X[:, :3])
    twice = np.concatenate([X, X])
    assert schema.is_of(twice, weights=np.repeat([1, 0], 80))  # the same observations
    assert fitted(twice, weights=np.repeat([1, 0], 80)).schema_.is_of(X, weights=np.ones(80))
