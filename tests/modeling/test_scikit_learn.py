"""What scikit-learn expects of an estimator: its own checks, its own names, pipelines and searches."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import tiny
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder
from sklearn.utils.estimator_checks import check_estimator

from neurise import Independent

REAL_VALUES = "it fits and weighs rows of real numbers, and symbols are discrete"
EXCEPTIONS = {"check_sample_weight_equivalence_on_dense_data": REAL_VALUES}
WITH_GAPS = {"check_positive_only_tag_during_fit": REAL_VALUES}
WITHOUT_GAPS = {"check_estimators_nan_inf": REAL_VALUES}
GROUPS = {"check_parameters_default_constructible": "rarely used parameters stand in groups, which are dataclasses"}
BOUNDS = dict.fromkeys(
    (
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_dict_unchanged",
        "check_estimators_dtypes",
        "check_estimators_pickle",
        "check_fit_idempotent",
    ),
    "the likelihood of this model has a bound and no exact value, so that score_samples and predict_proba refuse",
)
CHECKED = {
    "independent": EXCEPTIONS | WITH_GAPS,
    "memorize": EXCEPTIONS | WITHOUT_GAPS,
    "pairwise": EXCEPTIONS | WITHOUT_GAPS | GROUPS,
    "d3pm": EXCEPTIONS | WITHOUT_GAPS | GROUPS | BOUNDS,
    "neurise": EXCEPTIONS | WITH_GAPS | GROUPS,
}
SLOW = {"d3pm", "neurise", "pairwise"}


@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CHECKED])
def test_scikit_learns_own_checks_pass_but_for_named_exceptions(name: str) -> None:
    made = tiny.model(name, **({"steps": 2, "depth": 1, "width": 4} if name == "neurise" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks themselves, and of rows that are too few to learn from
        results = check_estimator(made, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed.keys() == CHECKED[name].keys(), failed
    assert sum(result["status"] == "passed" for result in results) > 35


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "dok_array", "dok_matrix"])
def test_sparse_matrices_are_refused_with_the_way_out(kind: str) -> None:
    with pytest.raises(ValueError, match=r"X is a sparse matrix, which is not supported; give X\.toarray\(\)"):
        Independent().fit(getattr(sparse, kind)(np.eye(3)))


def test_weights_have_two_names_and_are_given_under_one() -> None:
    X, weights = tiny.spins(50), np.arange(50.0)
    ours, theirs = Independent().fit(X, weights=weights), Independent().fit(X, sample_weight=weights)
    assert np.array_equal(ours.log_prob(X), theirs.log_prob(X))
    assert not np.array_equal(ours.log_prob(X), Independent().fit(X).log_prob(X))
    with pytest.raises(ValueError, match="weights and sample_weight are two names of one thing"):
        Independent().fit(X, weights=weights, sample_weight=weights)


def test_seeds_have_two_names_and_are_given_under_one() -> None:
    X = tiny.spins()
    ours, theirs = tiny.model().fit(X, seed=3, max_steps=2), tiny.model().fit(X, random_state=3, max_steps=2)
    assert tiny.same_weights(ours, theirs)
    assert not tiny.same_weights(ours, tiny.model().fit(X, max_steps=2))
    assert np.array_equal(ours.sample(9, seed=4), ours.sample(9, random_state=4))
    with pytest.raises(ValueError, match="seed=3 and random_state=5 are two names of one thing"):
        tiny.model().fit(X, seed=3, random_state=5)
    with pytest.raises(ValueError, match="seed=0 and random_state=5 are two names of one thing"):
        ours.sample(2, seed=0, random_state=5)
    with pytest.raises(ValueError, match="seed must be a whole number of at most 64 bits, got 'x'"):
        ours.sample(2, random_state="x")


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_generator_of_numpys_is_a_random_state(kind: Any) -> None:
    model = Independent().fit(tiny.spins(), random_state=kind(0))
    source = kind(7)
    first, second = model.sample(30, random_state=source), model.sample(30, random_state=source)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, model.sample(30, random_state=kind(7)))


def test_what_is_learnt_bears_scikit_learns_names() -> None:
    model = Independent()
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError, match=r"this Independent is not fitted yet; call fit\(X\) first"):
        model.score_samples(tiny.spins())
    model.fit(tiny.spins(sites=4))
    assert model.n_features_in_ == 4
    assert np.array_equal(model.score_samples(tiny.spins(sites=4)), model.log_prob(tiny.spins(sites=4)))
    assert model.score(tiny.spins(sites=4)) == model.score_samples(tiny.spins(sites=4)).mean()


def test_columns_with_names_are_known_by_them() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": ["red", "blue", "red"], "size": ["s", "s", "l"]})
    model = Independent().fit(frame)
    assert model.feature_names_in_.tolist() == ["colour", "size"]
    assert model.feature_names_in_.dtype == object
    assert model.n_features_in_ == 2
    for nameless in (Independent(), Independent().fit(tiny.spins()), Independent().fit(frame.to_numpy())):
        assert not hasattr(nameless, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 1 features, but neurise is expecting 2 features as input"):
        model.score_samples(frame.to_numpy()[:, :1])


WORDS = np.array([["red", "small"], ["blue", "large"], ["red", "large"], ["green", "small"]] * 10)


def test_a_pipeline_encodes_words_and_scores_them() -> None:
    line = make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), Independent())
    line.fit(WORDS, independent__sample_weight=np.ones(len(WORDS)))
    assert line.n_features_in_ == 2
    # red is one half of the rows, small one half: independent columns make it a quarter.
    assert line.score_samples(np.array([["red", "small"]]))[0] == pytest.approx(np.log(1 / 4), abs=1e-9)
    drawn = line[0].inverse_transform(line[-1].sample(20, random_state=0))
    assert set(drawn[:, 0]) <= {"red", "green", "blue"}
    own = clone(line).set_params(independent__alphabet=[0, 1, 2])
    assert np.isfinite(cross_val_score(pickle.loads(pickle.dumps(own)), WORDS, cv=2)).all()


def test_columns_of_several_kinds_go_through_a_column_transformer() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"colour": WORDS[:, 0], "size": WORDS[:, 1], "height": rng.normal(size=len(WORDS))})
    bins = KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")
    columns = ColumnTransformer([("words", OrdinalEncoder(), ["colour", "size"]), ("numbers", bins, ["height"])])
    line = make_pipeline(columns, Independent())
    search = GridSearchCV(line, {"independent__order": [[0, 1, 2], [2, 1, 0]]}, cv=2, error_score="raise")
    search.fit(frame)
    assert search.best_score_ == pytest.approx(search.score(frame), abs=0.2)
    assert search.best_estimator_[-1].sample(5).shape == (5, 3)


def test_neither_neurise_nor_a_fit_imports_scikit_learn() -> None:
    code = (
        "import sys, numpy as np, neurise\n"
        "model = neurise.Independent().fit(np.eye(3, dtype=int), sample_weight=[1, 2, 3], random_state=1)\n"
        "model.score_samples(np.eye(3, dtype=int)); repr(model)\n"
        "try: neurise.Memorize().sample(3)\n"
        "except RuntimeError: pass\n"
        "assert not {'sklearn', 'pandas', 'narwhals', 'rich'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
