"""Parameters that are changed after ``fit``: what is saved is what was fitted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import neurise
from neurise import discovery
from neurise.modeling.model import Model

OTHERS: dict[str, Any] = {"order": [2, 1, 0], "alphabet": [1, -1], "network": "no_such_network", "loss": "no_such_loss"}


def fitted(name: str, **params: Any) -> Model:
    fit: dict[str, Any] = {"max_steps": 2, "verbose": False} if tiny.is_trained(name) else {}
    return tiny.model(name, **params).fit(tiny.spins(), **fit)


@pytest.mark.parametrize("name", discovery.names("neurise.models"))
def test_whatever_is_set_after_fit_the_fitted_model_is_saved(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    before, drawn = model.flat_params(), model.sample(20, seed=0)
    for leaf in before.keys() - set(model.changeable):
        model.set_params(**{leaf: OTHERS.get(leaf, "nonsense")})
    model.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert loaded.flat_params() == before
    assert np.array_equal(loaded.sample(20, seed=0), drawn)


def test_a_list_that_is_changed_after_fit_is_saved_as_it_was(tmp_path: Path) -> None:
    order = [2, 0, 1]
    model = fitted("neurise", order=order)
    order.reverse()
    model.save(tmp_path)
    assert neurise.load(tmp_path).order == [2, 0, 1]


def test_a_group_that_is_replaced_by_nothing_is_saved_as_it_was(tmp_path: Path) -> None:
    model = fitted("neurise")
    model.set_params(corrector=None, training=None)
    model.save(tmp_path)
    assert neurise.load(tmp_path).flat_params() == fitted("neurise").flat_params()


@pytest.mark.parametrize("sweeps", [-1, 2, "many"])
def test_a_way_to_sample_that_no_model_has_is_refused_before_anything_is_written(tmp_path: Path, sweeps: Any) -> None:
    model = fitted("neurise")
    model.save(tmp_path)
    model.set_params(corrector__sweeps=sweeps)  # which needs corrector__clean, and a number
    with pytest.raises(ValueError, match="sweeps"):
        model.save(tmp_path)
    assert neurise.load(tmp_path).flat_params()["corrector__sweeps"] is None
