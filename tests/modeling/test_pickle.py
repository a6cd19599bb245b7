"""Models travel to other processes: pickle, joblib, and scikit-learn's workers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import tiny
from sklearn.model_selection import cross_val_score

from neurise import discovery, losses
from neurise.energies import regressions

NAMES = discovery.names("neurise.models")
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "committee": ("neurise", {"members": 2, "architecture__pairwise": True}),
    "calibrated": ("neurise", {"architecture__pairwise": None, "calibrate": True}),
    "soft": ("neurise", {"keep_prob": 0.5, "cycles": 2}),
    "heat bath": ("ggm", {"reverse": "heat_bath"}),
    "weighted": ("neurise", {"loss": "weighted_screening(0.5)"}),
}
CASES = {name: (name, {}) for name in NAMES} | MORE
ways = pytest.mark.parametrize("way", ["pickle", "joblib"])
every = pytest.mark.parametrize("case", CASES)


@pytest.fixture(autouse=True)
def roughly_fitted_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairwise terms are found for certain elsewhere; here a few iterations will do."""
    monkeypatch.setattr(regressions, "ITERATIONS", 10)


def there_and_back(model: Any, way: str, folder: Path) -> Any:
    if way == "pickle":
        return pickle.loads(pickle.dumps(model))
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def made(case: str) -> Any:
    name, params = CASES[case]
    return tiny.model(name, **params)


X = tiny.spins(sites=4)
X[:, 2] = 1  # a constant site
y = np.where(X[:, 0] > 0, "up", "down")


def fitted(case: str) -> Any:
    return made(case).fit(X, y, max_steps=5)


@every
@ways
def test_an_unfitted_model_comes_back(case: str, way: str, tmp_path: Path) -> None:
    model = made(case)
    again = there_and_back(model, way, tmp_path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "schema_")


@every
def test_a_fitted_model_comes_back(case: str, tmp_path: Path) -> None:
    model = fitted(case)
    for use in (False, True):  # before anything was asked, and after
        if use:
            model.sample(5, seed=0)
        again = there_and_back(model, "joblib" if use else "pickle", tmp_path)
        assert again.get_params() == model.get_params()
        assert tiny.same_weights(again, model)
        assert np.array_equal(again.sample(50, seed=1), model.sample(50, seed=1))
        assert np.array_equal(again.sample(50, "up", seed=1), model.sample(50, "up", seed=1))
        assert again.score(X, y) == model.score(X, y)
        assert str(again.summary()) == str(model.summary())
    try:
        expected = model.log_prob(X, y)
    except NotImplementedError:
        return
    assert np.array_equal(again.log_prob(X, y), expected)


@pytest.mark.parametrize("name", ["screening", "cross_entropy", "tempered_screening(0.75)", "weighted_screening(-0.5)"])
def test_losses_are_equal_where_their_parameters_are(name: str) -> None:
    loss = losses.resolve(name)
    assert pickle.loads(pickle.dumps(loss)) == loss == losses.resolve(name)
    assert losses.tempered_screening(0.5) != losses.tempered_screening(0.75)
    assert losses.tempered_screening(0.5) != losses.weighted_screening(0.5)


@pytest.mark.slow  # two processes import everything
def test_workers_of_scikit_learn_fit_it() -> None:
    X, model = tiny.spins(60), tiny.model(steps=5)
    alone = cross_val_score(model, X, cv=2)
    together = cross_val_score(model, X, cv=2, n_jobs=2)
    # Workers may have another number of threads, and so another order of sums.
    np.testing.assert_allclose(together, alone, rtol=1e-5)
