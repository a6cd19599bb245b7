"""What every model promises as an estimator: parameters, files, and clear errors."""

import copy
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import neurise
from neurise import discovery
from neurise.modeling.model import Model

NAMES = discovery.names("neurise.models")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=NAMES, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def fitted(name: str) -> Model:
    return tiny.model(name).fit(tiny.spins(), max_steps=5)


def test_it_is_a_model_with_keyword_parameters_that_have_defaults(name: str) -> None:
    kind = discovery.find("neurise.models", name)
    assert issubclass(kind, Model)
    assert kind.__name__.lower() == name.replace("_", "")
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is not inspect.Parameter.empty
    assert {"alphabet", "order"} <= kind.parameters().keys()


def test_the_constructor_stores_what_it_is_given_and_nothing_else(name: str) -> None:
    kind = discovery.find("neurise.models", name)
    given = {key: object() for key in kind.parameters()}
    model = kind(**given)
    assert vars(model) == given
    assert all(model.get_params(deep=False)[key] is value for key, value in given.items())
    assert kind().get_params(deep=False) == kind.parameters()
    assert kind().get_params() == kind.parameters() | kind.leaves()


def test_parameters_are_set_by_name(name: str) -> None:
    model = tiny.model(name)
    assert model.set_params(alphabet="AC", order=[1, 0]) is model
    assert (model.alphabet, model.order) == ("AC", [1, 0])
    with pytest.raises(ValueError, match=r"no parameter 'colour'; it has: .*alphabet"):
        model.set_params(colour="red")


def test_fitting_leaves_the_parameters_alone(name: str) -> None:
    order = [2, 0, 1]
    model = tiny.model(name, order=order, alphabet=(-1, 1))
    before = dict(model.get_params())
    model.fit(tiny.spins(), max_steps=3)
    assert model.order is order
    assert all(model.get_params()[key] is value for key, value in before.items())


def test_scikit_learn_clones_it(fitted: Model) -> None:
    fresh = clone(fitted)
    assert type(fresh) is type(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert get_tags(fresh).estimator_type == "density_estimator"
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


def test_a_copy_is_independent(fitted: Model) -> None:
    twin = copy.deepcopy(fitted)
    assert np.array_equal(twin.sample(20, seed=0), fitted.sample(20, seed=0))
    twin.fit(np.array([["a", "b"], ["b", "a"]]), max_steps=2)
    assert fitted.sample(1).shape == (1, 3)


def test_the_text_of_a_model_names_what_differs_from_the_defaults(name: str) -> None:
    kind = discovery.find("neurise.models", name)
    assert repr(kind()) == f"{kind.__name__}()"
    assert repr(kind(order=[1, 0], alphabet="AC")) in (
        f"{kind.__name__}(order=[1, 0], alphabet='AC')",
        f"{kind.__name__}(alphabet='AC', order=[1, 0])",
    )
    assert "order=array" in repr(kind(order=np.arange(3)))


@pytest.mark.parametrize("device", DEVICES)
def test_saved_and_loaded_it_is_the_same(name: str, tmp_path: Path, device: str) -> None:
    model = tiny.model(name, order=[1, 2, 0]).fit(tiny.spins(), max_steps=5, device=device)
    model.save(tmp_path)
    loaded = neurise.load(tmp_path, device=device)
    assert type(loaded) is type(model)
    assert np.array_equal(loaded.sample(30, seed=0), model.sample(30, seed=0))
    assert tiny.same_weights(loaded, model)
    assert loaded.get_params() == model.get_params()


USES: dict[str, Any] = {
    "sample": lambda model: model.sample(5),
    "log_prob": lambda model: model.log_prob(tiny.spins()),
    "elbo": lambda model: model.elbo(tiny.spins()),
    "score": lambda model: model.score(tiny.spins()),
    "save": lambda model: model.save("nowhere"),
    "space_": lambda model: model.space_,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_not_fitted_says_so(name: str, use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=r"not fitted yet; call fit\(X\) first"):
        use(tiny.model(name))
    assert list(tmp_path.iterdir()) == []


# --- what is checked in one place for all models is tried with one of them -----------------------------------------------


@pytest.fixture(scope="module")
def simple() -> Model:
    return tiny.model("independent").fit(tiny.spins())


@pytest.mark.parametrize("n", [0, -1, 2.5, True, math.nan, math.inf, None, "5", [5]])
def test_a_number_of_rows_that_cannot_be_is_refused(simple: Model, n: Any) -> None:
    with pytest.raises(ValueError, match=r"n must be a positive whole number, got"):
        simple.sample(n)


@pytest.mark.parametrize("seed", [1.5, "1", 2**64, True])
def test_what_is_no_seed_is_refused(simple: Model, seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be"):
        simple.sample(5, seed=seed)


def test_as_many_rows_to_start_from_as_are_asked_for(simple: Model) -> None:
    with pytest.raises(ValueError, match="start has 60 rows for n=5"):
        simple.sample(5, start=tiny.spins())
    with pytest.raises(NotImplementedError, match="Independent has no start"):
        simple.sample(60, start=tiny.spins())


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_other_numbers_of_columns_are_refused(columns: int, simple: Model) -> None:
    with pytest.raises(ValueError, match=f"X has {columns} features, but neurise is expecting 3 features"):
        simple.score(tiny.spins(sites=columns))
    with pytest.raises(ValueError, match=rf"clamp has the shape \({columns},\)"):
        simple.sample(5, clamp=np.ma.array(np.ones(columns), mask=True))


BAD_DATA: dict[str, tuple[dict[str, Any], str]] = {
    "negative weight": ({"X": tiny.spins(3), "weights": [1, -1, 1]}, "-1.0 at row 1"),
    "missing weight": ({"X": tiny.spins(3), "weights": [1, 1, math.nan]}, "nan at row 2"),
    "no weight at all": ({"X": tiny.spins(3), "weights": [0, 0, 0]}, "all weights are zero"),
    "weights of others": ({"X": tiny.spins(3), "weights": [1, 1]}, r"\(2,\)"),
    "one row": ({"X": tiny.spins(1)}, "one row"),
    "empty": ({"X": np.zeros((0, 3))}, "empty"),
    "nothing but gaps": ({"X": [[0, math.nan], [1, math.nan]]}, "no value at all in column 1"),
    "device": ({"X": tiny.spins(), "device": "abacus"}, "device 'abacus' cannot be used"),
    "steps": ({"X": tiny.spins(), "max_steps": 0}, "max_steps must be .* got 0"),
    "seconds": ({"X": tiny.spins(), "max_seconds": -1}, "max_seconds must be .* got -1"),
    "validation": ({"X": tiny.spins(), "validation": tiny.spins(sites=2)}, "validation has 2 features"),
}


@pytest.mark.parametrize(("given", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_data_that_cannot_be_learnt_from_is_refused(given: dict[str, Any], message: str) -> None:
    model = tiny.model()
    with pytest.raises(ValueError, match=message):
        model.fit(**given)
    with pytest.raises(RuntimeError, match="not fitted"):
        model.sample(1)


@pytest.mark.parametrize(
    "params",
    [
        {"order": [0, 0, 1]},
        {"alphabet": "xyz"},
        {"width": 0},
        {"network": "no"},
        {"training__validation_fraction": 1.5},
    ],
)
def test_a_refused_fit_leaves_a_fitted_model_as_it_was(name: str, params: dict[str, Any]) -> None:
    model = tiny.model(name).fit(tiny.spins(), max_steps=5)
    drawn = model.sample(20, seed=0)
    if not params.keys() <= model.leaves().keys():
        pytest.skip(f"{name} has no such parameter")
    with pytest.raises(ValueError, match=next(iter(params)).rpartition("__")[2]):
        model.set_params(**params).fit(tiny.spins(50, sites=3, seed=5) * 2)
    assert np.array_equal(model.sample(20, seed=0), drawn)
    if tiny.is_trained(name):
        assert model.history_[-1]["step"] == 5
