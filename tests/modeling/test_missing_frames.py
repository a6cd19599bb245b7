"""Data frames with missing values: fit, impute, predict_proba and clamp, by the names of the columns."""

from typing import Any

import numpy as np
import pytest

from neurise import Independent, NeurISE
from neurise.frames import Table

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("narwhals")


def survey(seed: int = 0, n: int = 120) -> Any:
    """Columns of unequal alphabets, a tenth of whose values are missing."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    frame = pandas.DataFrame(
        {
            "colour": pandas.Categorical(colour, ["red", "green", "blue"], ordered=True),
            "size": np.where(colour == "red", "XL", rng.choice(["S", "M"], n)).astype(object),
            "children": pandas.array(rng.integers(0, 5, n), dtype="Int64"),
        }
    )
    for name in frame:
        gone = rng.random(n) < 0.1
        frame[name] = frame[name].mask(gone, None)
    return frame.set_axis(np.arange(n) + 1000)


def fitted(frame: Any, network: str = "masked") -> NeurISE:
    model = NeurISE(network=network, width=16, depth=1, members=1)
    return model.fit(frame, max_steps=60, seed=0, verbose=False)


@pytest.mark.parametrize("network", ["masked", "site_mlp", "sparse"])
def test_columns_of_their_own_alphabets_are_learnt_with_gaps(network: str) -> None:
    frame = survey()
    model = fitted(frame, network)
    assert model.schema_.gaps == int(frame.isna().sum().sum())
    assert all(np.isfinite(record.get("validation", 0.0)) for record in model.history_)
    assert np.isfinite(model.log_prob(frame)).all()
    law = model.predict_proba(frame, "size")
    assert law.shape == (len(frame), 3)
    np.testing.assert_allclose(law.sum(1), 1)


def test_pandas_keeps_what_is_there_and_its_types() -> None:
    frame = survey()
    found = fitted(frame).impute(frame[["size", "colour", "children"]], seed=0)
    assert list(found.columns) == ["size", "colour", "children"]
    assert not found.isna().any().any()
    assert found.index.equals(frame.index)
    for name in frame:
        assert found[name].dtype == frame[name].dtype
        there = frame[name].notna()
        assert (found[name][there] == frame[name][there]).all()


def test_polars_and_tables_keep_what_is_there() -> None:
    frame = polars.from_pandas(survey().astype({"colour": object}))
    found = fitted(frame).impute(frame, seed=0)
    assert found.schema == frame.schema
    assert found.null_count().sum_horizontal().item() == 0
    rows = survey().astype(object).to_numpy()
    table = Table(np.where(survey().isna(), None, rows), ["colour", "size", "children"])
    filled = fitted(table).impute(table, seed=0)
    assert isinstance(filled, Table)
    assert (np.asarray(filled) == np.asarray(table))[np.asarray(table) != None].all()  # noqa: E711


def test_clamp_takes_a_frame_with_gaps() -> None:
    model = fitted(survey())
    given = pandas.DataFrame({"colour": ["red"], "size": [None], "children": [None]})
    assert set(model.sample(20, clamp=given, seed=0)["colour"]) == {"red"}


def test_an_empty_column_is_named() -> None:
    frame = survey()
    frame["colour"] = frame["colour"].mask(np.ones(len(frame), dtype=bool), None)  # its categories are still known
    with pytest.raises(ValueError, match="no value at all at the column 'colour'"):
        Independent().fit(frame)
    with pytest.raises(ValueError, match=r"one of 'colour', 'size', 'children'; got 'weight'"):
        Independent().fit(survey()).predict_proba(survey(), "weight")
