"""Gaps are filled in whatever kind of table they stand, whatever kind the model was fitted with."""

from typing import Any

import numpy as np
import pytest

from neurise import Independent, NeurISE, bins
from neurise.frames import Table

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

NAMES = ["size", "colour"]
WORDS = {"colour": ["red", "blue"] * 30, "size": ["S", "M", "L"] * 20}
GAPS = {"size": ["M", None, "L"], "colour": [None, "blue", None]}  # in another order than the model's
MADE: dict[str, Any] = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "table": lambda columns: Table(np.array(list(columns.values()), dtype=object).T, list(columns)),
}


def values(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, Table):
        return dict(zip(frame.names, np.asarray(frame).T.tolist(), strict=True))
    return {name: list(frame[name].to_pylist() if hasattr(frame, "to_pylist") else frame[name]) for name in NAMES}


@pytest.mark.parametrize("given", MADE)
@pytest.mark.parametrize("fitted", MADE)
def test_columns_in_another_order_and_of_another_library_are_filled_by_name(fitted: str, given: str) -> None:
    model = Independent().fit(MADE[fitted](WORDS))
    frame = MADE[given](GAPS)
    found = model.impute(frame, seed=0)
    assert type(found) is type(frame)
    filled = values(found)
    assert list(filled) == NAMES
    for name in NAMES:
        assert set(filled[name]) <= set(WORDS[name])
        assert all(new == old for new, old in zip(filled[name], GAPS[name], strict=True) if old is not None)


@pytest.mark.parametrize("given", ["pandas", "polars", "pyarrow"])
def test_a_model_of_an_array_fills_frames_by_place(given: str) -> None:
    model = Independent().fit(np.array([[0, 5], [0, 7]] * 20))
    found = values(model.impute(MADE[given]({"size": [0, None], "colour": [None, 7]}), seed=0))
    assert found["size"] == [0, 0]
    assert found["colour"][0] in (5, 7)


def test_numbers_that_are_there_stay_beside_gaps_in_nested_lists() -> None:
    rows = [[k % 17 + 0.25, "odd" if k % 2 else "even"] for k in range(120)]
    model = Independent(alphabet=[bins(4), None]).fit(rows)
    found = model.impute([[3.25, None], [4.25, "odd"]], seed=0)
    assert found[:, 0].tolist() == [3.25, 4.25]
    assert found[0, 1] in ("odd", "even")
    assert model.impute([[3.25, "odd"]]).tolist() == [[3.25, "odd"]]


def test_categories_that_lack_a_symbol_of_the_model_are_no_obstacle() -> None:
    model = Independent().fit(pandas.DataFrame({"a": ["x"] * 40, "b": ["u", "v"] * 20}))
    frame = pandas.DataFrame({"a": pandas.Categorical([None, None], ["z"]), "b": ["u", "v"]}, index=[7, 7])
    found = model.impute(frame)
    assert found["a"].tolist() == ["x", "x"]
    assert found.index.tolist() == [7, 7]


def test_words_in_masked_arrays_are_columns_and_what_is_masked_is_no_symbol() -> None:
    words = np.array([["red", "S"], ["blue", "L"], ["?", "S"]] * 20, dtype=object)
    rows = np.ma.array(words, mask=words == "?")
    model = Independent().fit(rows)
    assert model.space_.digits == (2, 2)
    assert set(model.impute(rows)[:, 0].tolist()) <= {"red", "blue"}


def test_a_row_to_hold_is_given_alike_to_tables_and_arrays() -> None:
    table = NeurISE(network="masked", width=8, members=1).fit(pandas.DataFrame(WORDS), max_steps=5, verbose=False)
    for clamp in (["red", None], ("red", None), [["red", None]], pandas.Series(["red", None], ["colour", "size"])):
        assert set(table.sample(6, clamp=clamp, seed=0)["colour"]) == {"red"}
    array = NeurISE(network="masked", width=8, members=1).fit(
        np.array([[0, 5], [5, 0]] * 20), max_steps=5, verbose=False
    )
    assert set(array.sample(6, clamp=[[5, None]], seed=0)[:, 0].tolist()) == {5}
    with pytest.raises(ValueError, match="clamp has 2 features"):
        NeurISE(network="masked", width=8, members=1).fit(
            pandas.DataFrame({**WORDS, "n": [1, 2] * 30}), max_steps=5, verbose=False
        ).sample(2, clamp=[["red", None]])


def test_labels_for_other_rows_are_refused() -> None:
    model = Independent().fit(pandas.DataFrame(WORDS), ["A", "B"] * 30)
    with pytest.raises(ValueError, match="y has 4 labels for 5 rows"):
        model.predict_proba(pandas.DataFrame(WORDS)[:5], "size", y=["A"] * 4)


def test_categories_that_cannot_be_saved_are_refused_before_the_fit() -> None:
    frame = pandas.DataFrame({"age": pandas.cut(np.arange(60), 3), "b": [0, 1] * 30})
    with pytest.raises(ValueError, match="the column 'age' holds Interval"):
        Independent().fit(frame)
