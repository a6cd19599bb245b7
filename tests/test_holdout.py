"""Test rows held back from a data set: which ones, how many, and the same ones again."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from neurise.dataset import Dataset
from neurise.holdout import Split, hold_back
from neurise.space import Space

X = np.arange(40).reshape(20, 2) % 7


def data(**more: object) -> Dataset:
    return Dataset("some rows", Space(2, 7), np.arange(7), **{"train": X, **more})


def test_every_row_is_on_one_side_with_its_label() -> None:
    labels = np.arange(20)
    found = hold_back(data(labels=labels), Split(0.25, 3))
    assert (len(found.train), len(found.test)) == (15, 5)
    assert sorted([*found.labels, *found.test_labels]) == labels.tolist()
    np.testing.assert_array_equal(found.train, X[found.labels])
    np.testing.assert_array_equal(found.test, X[found.test_labels])


def test_the_seed_decides_which() -> None:
    labels = np.arange(20)
    chosen = [hold_back(data(labels=labels), Split(0.25, seed)).test_labels.tolist() for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_of_counted_rows_observations_are_held_back() -> None:
    counts = np.full(20, 100)
    found = hold_back(data(weights=counts), Split(0.25, 0))
    assert found.weights.sum() + found.test_weights.sum() == 2000
    assert len(found.train) == len(found.test) == 20
    # Binomial(2000, 1/4): five standard deviations are 97.
    assert abs(found.test_weights.sum() - 500) < 97


def test_importances_stay_with_their_rows() -> None:
    weights = np.linspace(0.1, 0.9, 20)
    found = hold_back(data(weights=weights, labels=np.arange(20)), Split(0.25, 0))
    np.testing.assert_allclose(found.weights, weights[found.labels])
    np.testing.assert_allclose(found.test_weights, weights[found.test_labels])


@pytest.mark.parametrize(
    ("given", "fraction", "says"),
    [
        (data(test=X), 0.2, "test rows of its own"),
        (data(), 1.0, "must be in"),
        (data(), -0.1, "must be in"),
        (data(), float("nan"), "must be in"),
        (data(), 0.001, "leaves one side without any"),
        (data(train=None), 0.2, "no rows"),
    ],
)
def test_what_cannot_be_held_back(given: Dataset, fraction: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        hold_back(given, Split(fraction, 0))


def test_a_model_keeps_its_split_in_files(tmp_path: object) -> None:
    import neurise

    model = tiny.model("independent").fit(tiny.spins())
    assert model.split_ is None
    model.split_ = Split(0.25, 7)
    model.save(f"{tmp_path}/m")
    assert neurise.load(f"{tmp_path}/m").split_ == Split(0.25, 7)
    assert tiny.model("independent").fit(tiny.spins()).split_ is None
