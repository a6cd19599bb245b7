"""Data frames and tables: alphabets per column, matched by name, given back as they came."""

import datetime
import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import neurise
from neurise.binning import numbers_in, tokens_of
from neurise.column import Column, tagged, untagged
from neurise.columns import Columns
from neurise.fields import Field
from neurise.frames import Table
from neurise.models.independent import Independent

N = 60


def values() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    return {
        "colour": [["red", "green", "blue"][i] for i in rng.integers(0, 3, N)],
        "smokes": [bool(i) for i in rng.integers(0, 2, N)],
        "children": [int(i) for i in rng.integers(0, 4, N)],
        "size": [["S", "M", "L"][i] for i in rng.integers(0, 2, N)],
    }


def pandas_frame() -> pd.DataFrame:
    frame = pd.DataFrame(values())
    frame["size"] = pd.Categorical(frame["size"], ["S", "M", "L"], ordered=True)
    return frame.astype({"children": "int8"})


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(values(), schema_overrides={"children": pl.UInt8, "size": pl.Enum(["S", "M", "L"])})


def arrow_table() -> pa.Table:
    found = values()
    sizes = pa.DictionaryArray.from_arrays(
        pa.array([["S", "M", "L"].index(v) for v in found["size"]], pa.int8()), ["S", "M", "L"]
    )
    return pa.table({**{name: pa.array(v) for name, v in found.items() if name != "size"}, "size": sizes})


FRAMES = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": arrow_table}


def schema_of(frame: Any) -> Any:
    return frame.schema if isinstance(frame, pa.Table) else dict(zip(frame.columns, frame.dtypes, strict=True))


@pytest.fixture(params=FRAMES)
def frame(request: pytest.FixtureRequest) -> Any:
    return FRAMES[request.param]()


def test_samples_are_frames_like_the_one_that_was_fitted(frame: Any, tmp_path: Any) -> None:
    fitted = Independent().fit(frame)
    assert fitted.space_.digits == (3, 2, 4, 3)  # "L" never occurs, and is possible
    fitted.save(tmp_path / "model")
    for model in (fitted, neurise.load(tmp_path / "model")):
        drawn = model.sample(200, seed=0)
        assert type(drawn) is type(frame)
        assert schema_of(drawn) == schema_of(frame)
        assert len(drawn) == 200
        assert model.log_prob(drawn).shape == (200,)
        colours = drawn["colour"].to_pylist() if isinstance(drawn, pa.Table) else drawn["colour"].to_list()
        assert set(colours) == {"red", "green", "blue"}
    np.testing.assert_array_equal(model.log_prob(frame), fitted.log_prob(frame))


def test_columns_are_matched_by_name() -> None:
    frame = pandas_frame()
    fitted = Independent().fit(frame)
    turned = frame[["size", "children", "colour", "smokes"]]
    np.testing.assert_array_equal(fitted.log_prob(turned), fitted.log_prob(frame))
    np.testing.assert_array_equal(fitted.log_prob(pl.DataFrame(values())), fitted.log_prob(frame))  # another library
    np.testing.assert_array_equal(fitted.log_prob(frame.to_numpy(dtype=object)), fitted.log_prob(frame))  # by place
    told = (
        "X lacks 'smokes' and has 'smoker', which the model does not know; the model has the columns 'colour', 'smokes'"
    )
    with pytest.raises(ValueError, match=told):
        fitted.log_prob(frame.rename(columns={"smokes": "smoker"}))
    with pytest.raises(ValueError, match="has 'age', which"):
        fitted.log_prob(frame.assign(age=1))
    with pytest.raises(ValueError, match="lacks 'size'"):
        fitted.log_prob(frame.drop(columns="size"))
    with pytest.raises(ValueError, match="X has 3 features, but neurise is expecting 4"):
        fitted.log_prob(frame.to_numpy(dtype=object)[:, :3])


def test_an_unknown_symbol_is_named_with_its_column() -> None:
    fitted = Independent().fit(pandas_frame())
    other = pandas_frame().assign(colour=["pink", *values()["colour"][1:]])
    with pytest.raises(
        ValueError, match=r"'pink' at row 0 of the column 'colour', which is not in its alphabet .'blue', 'g"
    ):
        fitted.log_prob(other)


def test_alphabets_are_named_by_column_or_in_a_list() -> None:
    fitted = Independent(alphabet={"colour": ["red", "green", "blue", "pink"]}).fit(pandas_frame())
    assert fitted.space_.digits[0] == 4
    rows = np.array([[0, 1, 2], [1, 0, 2], [0, 0, 0]])
    listed = Independent(alphabet=[[0, 1], (1, 0), range(4)]).fit(rows)
    assert listed.space_.digits == (2, 2, 4)
    drawn = listed.sample(50, seed=0)
    assert drawn.dtype == rows.dtype
    assert drawn.shape == (50, 3)
    tensor = Independent(alphabet=[[0, 1], [0, 1], [0, 1, 2]]).fit(torch.from_numpy(rows)).sample(5, seed=0)
    assert tensor.dtype == torch.int64
    with pytest.raises(ValueError, match="alphabet names the column 'color', which X does not have"):
        Independent(alphabet={"color": ["red"]}).fit(pandas_frame())
    with pytest.raises(ValueError, match="2 alphabets for 3 columns"):
        Independent(alphabet=[[0, 1], [0, 1]]).fit(rows)
    with pytest.raises(ValueError, match="not in its alphabet"):
        Independent(alphabet=[[0, 1], [0, 1], [0, 1]]).fit(rows)
    with pytest.raises(ValueError, match="different symbols"):
        Independent(alphabet=[[0, 1], [0, 0], [0, 1]]).fit(rows)


def test_plain_arrays_keep_one_alphabet() -> None:
    for rows in (np.array([[0, 1], [1, 2]]), np.array([["a", "b"], ["b", "c"]]), [[1, -1], [-1, 0]]):
        assert Independent().fit(rows).space_ == neurise.Space(2, 3)


def test_words_and_mixed_kinds_in_arrays_have_alphabets_per_column() -> None:
    words = np.array([["red", "yes"], ["blue", "no"], ["red", "no"]])
    assert Independent().fit(words).space_.digits == (2, 2)
    mixed = np.array([["red", 3], ["blue", 4], ["pink", 4]], dtype=object)
    fitted = Independent().fit(mixed)
    assert fitted.space_.digits == (3, 2)
    assert set(fitted.sample(100, seed=0)[:, 1]) == {3, 4}


def test_identifiers_and_measurements_are_refused_with_a_way_out() -> None:
    frame = pandas_frame().assign(name=[f"p{i}" for i in range(N)])
    with pytest.raises(
        ValueError, match=r"the column 'name' has a different value in each of 60 rows.*--drop-column name"
    ):
        Independent().fit(frame)
    frame = pandas_frame().assign(weight=np.round(np.random.default_rng(0).normal(70, 9, N), 0) + 0.5)
    assert Independent().fit(frame).space_.sites == 5  # few different ones are symbols
    frame = pandas_frame().assign(weight=np.random.default_rng(0).normal(70, 9, N).repeat(2)[:N])
    Independent().fit(frame.iloc[:40])
    with pytest.raises(ValueError, match=r"'weight' has 40 different values.*neurise.bins\(8\).*--bins weight=8"):
        Independent().fit(pandas_frame().assign(weight=np.r_[np.arange(40) / 7, np.zeros(20)]))


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_binned_numbers_come_back_as_numbers_inside_their_bins(kind: str) -> None:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, 500) if kind == "int64" else rng.normal(50, 9, 500)
    frame = pd.DataFrame({"age": age.astype(kind), "old": np.where(age > 50, "yes", "no")})
    fitted = Independent(alphabet={"age": neurise.bins(5)}).fit(frame)
    column = fitted.schema_.alphabet.columns[0]
    assert len(column) == 5
    tokens = fitted.schema_.encode(frame)[:, 0].numpy()
    assert np.bincount(tokens).min() > 70
    drawn = fitted.sample(2000, seed=0)
    assert drawn["age"].dtype == kind
    assert drawn["age"].between(age.min(), age.max()).all()
    assert drawn["age"].nunique() > 50
    again = fitted.schema_.encode(drawn)[:, 0].numpy()
    assert np.abs(np.bincount(again) / 2000 - 0.2).max() < 6 * np.sqrt(0.16 / 2000) + 0.03
    given = Independent(alphabet={"age": neurise.bins(edges=[0, 30, 60, 100])}).fit(frame)
    assert given.schema_.alphabet.columns[0].edges == (0, 30, 60, 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a number of bins or their edges"),
        ({"count": 1}, "at least 2"),
        ({"count": 300}, "at most 256"),
        ({"edges": [1, 2]}, "at least three numbers"),
        ({"edges": [1, 3, 2]}, "at least three numbers that grow"),
        ({"edges": [0, 1, float("inf")]}, "finite"),
        ({"edges": ["a", 1, 2]}, "must be numbers"),
    ],
)
def test_bins_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neurise.bins(**arguments)


def test_clamp_takes_masked_arrays_and_frames_with_gaps() -> None:
    fitted = Independent().fit(pandas_frame())
    clamp = pd.DataFrame({"colour": ["red"], "smokes": [None], "children": [None], "size": [None]})
    assert set(fitted.sample(30, clamp=clamp, seed=0)["colour"]) == {"red"}
    with pytest.raises(ValueError, match=r"clamp has 1 rows|clamp has 2 rows"):
        fitted.sample(30, clamp=pd.concat([clamp, clamp]), seed=0)


SYMBOLS = ["red", "", "ü", 3, -1, 2**60, True, 0.5, b"\x00\xff", ("a", 1, (2.5,)), datetime.date(2020, 2, 29)]
SYMBOLS += [datetime.datetime(2020, 2, 29, 12, 30)]


def test_every_symbol_survives_json() -> None:
    for symbol in SYMBOLS:
        back = untagged(Field(json.loads(json.dumps(tagged(symbol))), "s"))
        assert back == symbol
        assert type(back) is type(symbol)
    with pytest.raises(ValueError, match="symbols are text, numbers"):
        tagged(object())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"columns": 3}, "a.columns"),
        ({"columns": []}, "a.columns"),
        ({"frame": "excel"}, "a.frame"),
        ({"dtype": "V8"}, "a.dtype"),
        ({"symbols": ["a", "a"]}, "symbols"),
        ({"symbols": [{"tuple": 3}]}, "symbols"),
        ({"symbols": [{"date": "x"}]}, "symbols"),
        ({"symbols": [None]}, "symbols"),
        ({"symbols": []}, "symbols"),
        ({"symbols": list(range(300))}, "symbols"),
        ({"edges": [2, 1]}, "edges"),
        ({"edges": [1, "x"]}, "edges"),
        ({"name": None}, "name"),
        ({"kind": 3}, "kind"),
        ({"ordered": 1}, "ordered"),
    ],
)
def test_a_hostile_file_gives_one_error_that_names_the_field(change: dict[str, Any], field: str) -> None:
    told = Columns((Column("x", ("a", "b")), Column("y", (1, 2, 3))), "pandas").to_dict()
    assert Columns.from_field(Field(told, "a"), 2) == Columns(
        (Column("x", ("a", "b")), Column("y", (1, 2, 3))), "pandas"
    )
    if set(change) <= set(told):
        told |= change
    else:
        told["columns"][0] |= change
    with pytest.raises(ValueError, match=field):
        Columns.from_field(Field(json.loads(json.dumps(told)), "a"), 2)


def test_a_table_keeps_its_names_when_rows_are_taken() -> None:
    table = Table(np.array([["a", 1], ["b", 2], ["a", 1]], dtype=object), ["x", "y"])
    assert table[[0, 2]].names == ("x", "y")
    fitted = Independent().fit(table)
    drawn = fitted.sample(4, seed=0)
    assert isinstance(drawn, Table)
    assert drawn.names == ("x", "y")


def test_rows_of_weight_zero_and_validation_rows_are_read_by_name() -> None:
    frame = pandas_frame()
    fitted = Independent().fit(frame, weights=(frame["colour"] != "red").to_numpy().astype(float))
    assert "red" not in fitted.schema_.alphabet.columns[0].symbols
    held = frame.iloc[:9, ::-1]
    model = neurise.NeurISE(width=8, depth=1, members=1).fit(frame, validation=held, max_steps=5)
    assert model.history_


@pytest.mark.parametrize(("rest", "whole"), [(np.arange(100, 200), True), (np.linspace(0.5, 9.5, 100), False)])
def test_nothing_but_a_frequent_value_is_drawn_from_its_bin(rest: np.ndarray, whole: bool) -> None:
    """Nine of ten numbers are 0, and the next one may be far away."""
    values = np.concatenate([np.zeros(900), rest])
    edges = neurise.bins(4).cut(values, "x")
    tokens = tokens_of(values, edges)
    assert (tokens[:900] == 0).all()
    assert (tokens[900:] > 0).all()
    drawn = numbers_in(tokens, edges, whole=whole, rng=np.random.default_rng(0))
    assert (drawn[:900] == 0).all()
    assert (drawn[900:] > 0).all()
