"""The transformer that fills missing values: right by enumeration, and a transformer as scikit-learn knows them."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import tiny
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from neurise import Imputer, Independent, Memorize, NeurISE

RNG = np.random.default_rng(0)


def rows(n: int = 300) -> np.ndarray:
    """Three sites of four states: the second is the first nine times in ten, the third is anything."""
    first, other = RNG.integers(0, 4, n), RNG.integers(0, 4, n)
    second = np.where(RNG.random(n) < 0.9, first, RNG.integers(0, 4, n))
    return np.stack([first, second, other], axis=1).astype(float)


def with_gaps(X: np.ndarray, share: float = 0.3) -> np.ndarray:
    X = X.copy()
    X[RNG.random(X.shape) < share] = np.nan
    X[0] = np.nan  # a row of which nothing is known
    return X


def enumerated(X: np.ndarray, row: np.ndarray, site: int) -> np.ndarray:
    """The law of a site given what is there, counted among complete rows."""
    there = ~np.isnan(row)
    there[site] = False
    same = X[(X[:, there] == row[there]).all(axis=1)]
    return np.array([(same[:, site] == state).mean() for state in range(4)])


def test_the_most_probable_value_is_that_of_the_enumerated_law() -> None:
    X = rows()
    known = Imputer(Memorize()).fit(X)  # whose law is that of the rows
    gaps = with_gaps(X)
    filled = known.transform(gaps)
    assert np.array_equal(filled[~np.isnan(gaps)], gaps[~np.isnan(gaps)])
    assert filled.dtype == X.dtype
    for place, site in np.argwhere(np.isnan(gaps)).tolist():
        law = enumerated(X, gaps[place], site)
        assert law[int(filled[place, site])] == pytest.approx(law.max(), abs=1e-9)
    assert np.array_equal(filled, known.transform(gaps))


def test_a_fitted_model_fills_with_the_most_probable_value_itself() -> None:
    X = rows()
    gaps = with_gaps(X)
    model = Memorize().fit(X)
    assert np.array_equal(model.impute(gaps, most_probable=True), Imputer(Memorize()).fit(X).transform(gaps))
    with pytest.raises(ValueError, match="n is 2, and the most probable values are the same each time"):
        model.impute(gaps, 2, most_probable=True)


def test_labels_decide_what_is_most_probable() -> None:
    X = np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], [40, 40, 40, 40], axis=0)
    y = np.repeat(["equal", "equal", "different", "different"], 40)
    gaps = np.array([[0, np.nan], [0, np.nan], [1, 1], [1, np.nan]])
    filled = Memorize().fit(X, y).impute(gaps, y=["equal", "different", "equal", "different"], most_probable=True)
    assert filled.tolist() == [[0, 0], [0, 1], [1, 1], [1, 0]]


def test_draws_follow_the_joint_law_of_what_is_missing() -> None:
    X = rows()
    known = Imputer(Memorize(), strategy="draw", random_state=0).fit(X)
    n = 4000
    drawn = known.transform(np.tile([np.nan, np.nan, 1.0], (n, 1)))
    same = X[X[:, 2] == 1]
    for a in range(4):
        for b in range(4):
            truth = ((same[:, 0] == a) & (same[:, 1] == b)).mean()
            found = ((drawn[:, 0] == a) & (drawn[:, 1] == b)).mean()
            assert abs(found - truth) < 5 * np.sqrt(truth * (1 - truth) / n) + 1e-9
    again = Imputer(Memorize(), strategy="draw", random_state=0).fit(X)
    assert np.array_equal(drawn, again.transform(np.tile([np.nan, np.nan, 1.0], (n, 1))))


@pytest.mark.slow
def test_it_learns_from_rows_with_gaps_and_leaves_its_model_alone() -> None:
    model = tiny.model(steps=300, training__learning_rate=0.02)
    X = rows(600)
    gaps = with_gaps(X, 0.15)
    imputer = Imputer(model)
    filled = imputer.fit_transform(gaps)
    assert not np.isnan(filled).any()
    assert not hasattr(model, "schema_")
    told = np.isnan(gaps[:, 1]) & ~np.isnan(gaps[:, 0])
    # The second site is the first with probability 0.9 + 0.1 / 4; three standard errors below that.
    right = (filled[told, 1] == X[told, 1]).mean()
    assert right > 0.925 - 3 * np.sqrt(0.925 * 0.075 / told.sum())


def test_frames_come_back_as_frames() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pandas.DataFrame({"colour": ["red", "blue", None, "red"] * 5, "size": ["s", None, "l", "s"] * 5})
    frame.index = range(100, 120)
    imputer = Imputer("independent").fit(frame)
    filled = imputer.transform(frame)
    assert isinstance(filled, pandas.DataFrame)
    assert filled.columns.tolist() == imputer.get_feature_names_out().tolist() == ["colour", "size"]
    assert filled["colour"].tolist() == ["red", "blue", "red", "red"] * 5
    assert filled["size"].tolist() == ["s", "s", "l", "s"] * 5
    assert filled.index.tolist() == list(range(100, 120))
    assert imputer.feature_names_in_.tolist() == ["colour", "size"]


def test_set_output_chooses_the_container() -> None:
    pandas = pytest.importorskip("pandas")
    gaps = with_gaps(rows(40))
    imputer = Imputer("independent").fit(gaps)
    assert isinstance(imputer.transform(gaps), np.ndarray)
    with config_context(transform_output="pandas"):
        assert imputer.transform(gaps).columns.tolist() == ["x0", "x1", "x2"]
    assert imputer.set_output(transform="pandas") is imputer
    assert isinstance(imputer.transform(gaps), pandas.DataFrame)
    assert isinstance(imputer.set_output(transform="default").transform(gaps), np.ndarray)
    with pytest.raises(ValueError, match="transform must be one of 'default', 'pandas', 'polars', got 'excel'"):
        imputer.set_output(transform="excel")


def test_pipelines_and_searches_reach_into_it() -> None:
    X = rows(80)
    y = X[:, 0] > 1
    line = make_pipeline(Imputer(Independent()), OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    search = GridSearchCV(line, {"imputer__model__order": [[0, 1, 2], [2, 1, 0]], "imputer__strategy": ["draw"]}, cv=2)
    search.fit(with_gaps(X, 0.1), y)
    assert search.best_estimator_[0].model_.order_ in ((0, 1, 2), (2, 1, 0))
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(X), search.predict(X))


def test_parameters() -> None:
    imputer = Imputer(NeurISE(width=8), strategy="draw")
    copy = clone(imputer)
    assert copy.model is not imputer.model
    assert copy.get_params()["model__width"] == 8
    assert copy.set_params(model__width=9, strategy="most_probable").model.width == 9
    assert repr(imputer) == "Imputer(model=NeurISE(width=8), strategy='draw')"
    assert repr(Imputer()) == "Imputer()"
    assert Imputer("neurise", {"width": 7})._made().width == 7
    with pytest.raises(ValueError, match="model is the name 'neurise'; give its parameters with params="):
        Imputer().set_params(model__width=9)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "strategy": ({"strategy": "mean"}, "strategy must be one of 'most_probable', 'draw', got 'mean'"),
    "name": ({"model": "neurize"}, "unknown model 'neurize'; did you mean neurise"),
    "model": ({"model": 5}, "model must be a model of neurise's or the name of one, got 5"),
    "params": ({"model": Independent(), "params": {"order": None}}, "params are for a model that is named"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_when_it_is_fitted(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Imputer(**given).fit(rows(20))


def test_what_is_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError, match=r"this Imputer is not fitted yet; call fit\(X\) first"):
        Imputer().transform(rows(5))
    assert not hasattr(Imputer(), "n_features_in_")


@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`")
def test_scikit_learns_own_checks_pass_but_for_named_exceptions() -> None:
    # Both fit rows of real numbers, and symbols are discrete.
    exceptions = {"check_sample_weight_equivalence_on_dense_data", "check_positive_only_tag_during_fit"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Imputer("independent"), on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed.keys() == exceptions, failed


def test_another_container_keeps_the_columns_with_their_names() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"b": [1.0, 2.0, None, 1.0] * 10, "a": ["x", "y"] * 20})
    imputer = Imputer("independent").fit(frame).set_output(transform="polars")
    found = imputer.transform(frame[["a", "b"]])
    assert found.columns == ["a", "b"]
    assert found["a"].to_list() == frame["a"].tolist()
    imputer.set_output(transform="pandas")
    found = imputer.transform(polars.DataFrame({"a": ["x", "y"], "b": [1, None]}))  # whole numbers, filled with a float
    assert found["a"].tolist() == ["x", "y"]
    assert found["b"].tolist() == [1, 1]
