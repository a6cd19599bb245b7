"""Models of tables are measured like any others, on the tokens of their columns."""

import numpy as np
import pandas as pd
import pytest

import neurise
from neurise.dataset import Dataset
from neurise.frames import Table


def frame(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    return pd.DataFrame(
        {"colour": np.array(["red", "blue", "pink"])[a], "big": np.where(rng.random(n) < 0.9, a > 0, a == 0)}
    )


def test_a_model_of_a_table_is_measured_on_rows_of_the_table() -> None:
    model = neurise.Independent().fit(frame())
    found = neurise.evaluate(model, frame(seed=1)[["big", "colour"]], train=frame(), samples=2000)
    plain = neurise.Independent().fit(model.schema_.alphabet.encode(frame()).numpy())
    tokens = model.schema_.alphabet.encode(frame(seed=1)).numpy()
    train = model.schema_.alphabet.encode(frame()).numpy()
    same = neurise.evaluate(plain, tokens, train=train, samples=2000)
    assert [row.name for row in found.rows] == [row.name for row in same.rows]
    np.testing.assert_allclose([row.value for row in found.rows], [row.value for row in same.rows], rtol=1e-9)
    assert "Independent" in found.model


def test_rows_that_were_learnt_from_are_known_again() -> None:
    model = neurise.Independent().fit(frame())
    with pytest.warns(UserWarning, match="those that the model learnt from"):
        neurise.evaluate(model, frame(), samples=100, baselines=False)


def test_a_data_set_without_names_is_refused() -> None:
    model = neurise.Independent().fit(frame())
    data = Dataset("plain", neurise.Space(2, 3), np.arange(3), train=np.array([[0, 1], [1, 2]]))
    with pytest.raises(ValueError, match="plain has no names of columns, and the model has: 'colour', 'big'"):
        neurise.evaluate(model, data)
    named = Dataset(
        "named", neurise.Space(2, 3), np.arange(3), train=Table(frame(seed=1).to_numpy(dtype=object), ["colour", "big"])
    )
    assert neurise.evaluate(model, named, samples=100).rows


def test_a_model_of_an_array_is_measured_on_a_frame_as_on_an_array() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (60, 3))
    model = neurise.Independent().fit(rows)
    fresh = np.random.default_rng(1).integers(0, 2, (40, 3))
    of_frame, of_array = (
        neurise.evaluate(model, data, samples=50, baselines=False) for data in (pd.DataFrame(fresh), fresh)
    )
    assert [row.value for row in of_frame.rows] == [row.value for row in of_array.rows]
