"""Parameters in groups: scikit-learn's rules, names of the past, and the paper's form."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import neurise
from neurise import GGM, SEDD, Architecture, Chain, Corrector, NeurISE, Pairwise, Training, discovery
from neurise.energies import regressions
from neurise.experiments import _methods
from neurise.theory import learning

NAMES = discovery.names("neurise.models")


def groups(kind: type[neurise.Model]) -> dict[str, Any]:
    return {name: value for name, value in kind.parameters().items() if dataclasses.is_dataclass(value)}


def test_few_parameters_stand_beside_each_other() -> None:
    own = NeurISE.parameters()
    inside = groups(NeurISE)
    assert len(own) - len(inside) <= 14
    assert len(inside) <= 5
    for name in NAMES:
        kind = discovery.find("neurise.models", name)
        assert len(kind.parameters()) - len(groups(kind)) <= 14
        assert len(groups(kind)) <= 5


def test_parameters_are_given_deep_and_shallow() -> None:
    model = NeurISE(width=7, training=Training(batch_size=5), chain=Chain(unseen=0.1))
    shallow, deep = model.get_params(deep=False), model.get_params()
    assert shallow == {**NeurISE.parameters(), "width": 7, "training": model.training, "chain": model.chain}
    assert deep == {**shallow, **model.flat_params()}
    assert (deep["training__batch_size"], deep["chain__unseen"], deep["chain__kind"]) == (5, 0.1, "round_robin")
    assert set(deep) == set(NeurISE.parameters()) | set(NeurISE.leaves())
    assert NeurISE().set_params(**model.flat_params()).get_params() == deep


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_in_a_group_is_set_by_its_own_name(name: str) -> None:
    kind = discovery.find("neurise.models", name)
    for group, default in groups(kind).items():
        for field in dataclasses.fields(default):
            model, mark = kind(), object()
            leaf = f"{group}__{field.name}"
            assert model.set_params(**{leaf: mark}) is model
            assert getattr(getattr(model, group), field.name) is mark
            others = {other: value for other, value in model.flat_params().items() if other != leaf}
            assert others == {other: value for other, value in kind.leaves().items() if other != leaf}
    assert kind().get_params(deep=False) == kind.parameters()  # groups are frozen, so that no default has changed


def test_a_group_and_what_is_in_it_can_be_set_at_once() -> None:
    model = NeurISE().set_params(training=Training(patience=3), training__batch_size=9, corrector__clean=0.5)
    assert model.training == Training(patience=3, batch_size=9)
    assert model.corrector == Corrector(clean=0.5)
    assert Pairwise().set_params(training__patience=3).training.learning_rate == 0.3  # its own default stays


def test_a_setting_that_fails_changes_nothing() -> None:
    model = NeurISE()
    with pytest.raises(ValueError, match="no parameter 'nothing'"):
        model.set_params(width=5, training__batch_size=5, nothing=1)
    assert model.get_params() == NeurISE().get_params()


@pytest.mark.parametrize("name", NAMES)
def test_clones_have_the_same_parameters_in_groups_of_their_own(name: str) -> None:
    model = tiny.model(name)
    for again in (clone(model), clone(model.fit(tiny.spins(), max_steps=1))):
        assert again.get_params() == model.get_params()
        assert not hasattr(again, "schema_")
    again.set_params(**{leaf: 5 for leaf in model.leaves() if leaf == "training__batch_size"})
    assert model.get_params() == tiny.model(name).get_params()


def test_a_grid_search_reaches_into_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "ITERATIONS", 10)
    X = tiny.spins(80)
    halves = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    grid = {"training__batch_size": [8, 64], "architecture__pairwise": [False, True]}
    search = GridSearchCV(tiny.model(training__learning_rate=0.05, steps=10), grid, cv=halves).fit(X)
    assert [set(params) for params in search.cv_results_["params"]] == [set(grid)] * 4
    for place, params in enumerate(search.cv_results_["params"]):
        for number, (train, test) in enumerate(halves):
            own = tiny.model(training__learning_rate=0.05, steps=10, **params).fit(X[train])
            found = search.cv_results_[f"split{number}_test_score"][place]
            assert found == pytest.approx(own.log_prob(X[test]).mean(), abs=1e-12)
    assert search.best_estimator_.get_params()["training__batch_size"] == search.best_params_["training__batch_size"]
    assert len(set(search.cv_results_["mean_test_score"])) == 4  # every one of them made a difference


def test_the_text_shows_what_was_changed_and_nothing_else() -> None:
    assert repr(NeurISE()) == "NeurISE()"
    assert repr(NeurISE(training=Training())) == "NeurISE()"
    model = NeurISE(width=8, training=Training(batch_size=64), architecture=Architecture(pairwise=False))
    assert (
        repr(model) == "NeurISE(width=8, training=Training(batch_size=64), architecture=Architecture(pairwise=False))"
    )
    scope = {"NeurISE": NeurISE, "Training": Training, "Architecture": Architecture}
    assert eval(repr(model), scope).get_params() == model.get_params()
    # A model's own defaults are not shown, those of the group are not missed.
    assert repr(GGM()) == "GGM()"
    assert repr(GGM(chain=Chain())) == "GGM(chain=Chain(hide_noised=True))"
    assert repr(Pairwise().set_params(training__patience=3)) == "Pairwise(training=Training(patience=3))"


OLD = {
    "batch_size": "training__batch_size",
    "learning_rate": "training__learning_rate",
    "patience": "training__patience",
    "validation_fraction": "training__validation_fraction",
    "skip": "architecture__pairwise",
    "heads": "architecture__heads",
    "residual": "architecture__residual",
    "hide_noised": "chain__hide_noised",
    "unseen": "chain__unseen",
    "clean": "corrector__clean",
    "sweeps": "corrector__sweeps",
}


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_a_name_of_the_past_is_refused_with_the_new_one(old: str, new: str) -> None:
    message = rf"NeurISE has no parameter '{old}'; its name is {new} now"
    with pytest.raises(TypeError, match=message):
        NeurISE(**{old: 1})
    with pytest.raises(ValueError, match=message):
        NeurISE().set_params(**{old: 1})


def test_a_name_that_never_was_suggests_a_near_one() -> None:
    with pytest.raises(TypeError, match="NeurISE has no parameter 'widht'; did you mean width"):
        NeurISE(widht=3)
    with pytest.raises(ValueError, match="did you mean training__batch_size"):
        NeurISE().set_params(training__batchsize=3)
    with pytest.raises(TypeError, match="SEDD has no parameter 'chain'"):
        SEDD(chain=Chain())
    with pytest.raises(TypeError, match="unexpected keyword"):
        Training(batchsize=3)


def test_a_value_in_a_group_that_cannot_be_is_refused_when_it_is_used() -> None:
    with pytest.raises(ValueError, match="batch_size must be a positive whole number, got 0"):
        NeurISE(training=Training(batch_size=0)).fit(tiny.spins())
    with pytest.raises(ValueError, match="heads must be one of 'shared', 'site', got 'own'"):
        NeurISE(architecture=Architecture(heads="own")).fit(tiny.spins())
    with pytest.raises(ValueError, match="architecture__site_input must be one of 'one_hot', 'number', got 'bits'"):
        NeurISE(network="local_mlp", architecture=Architecture(site_input="bits")).fit(tiny.spins())


@pytest.mark.parametrize("network", ["local_mlp", "sparse", "masked", "causal"])
def test_a_network_that_is_not_shown_the_site_cannot_be_shown_it_otherwise(network: str) -> None:
    message = f"architecture__site_input='number': network '{network}' has no such input; set network='site_mlp'"
    with pytest.raises(ValueError, match=message):
        NeurISE(network=network, architecture=Architecture(site_input="number")).fit(tiny.spins())


@pytest.mark.parametrize("heads", ["shared", "site"])
def test_a_site_that_is_shown_as_a_number_is_learnt_saved_and_loaded(heads: str, tmp_path: Path) -> None:
    plain, model = (
        tiny.model(architecture__heads=heads, architecture__site_input=form) for form in ("one_hot", "number")
    )
    for one in (plain, model):
        one.fit(tiny.spins(), max_steps=20)
    assert plain.num_parameters_ - model.num_parameters_ == 8 * (3 - 1)  # width · (sites − 1)
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    assert again.get_params()["architecture__site_input"] == "number"
    np.testing.assert_array_equal(again.sample(50, seed=0), model.sample(50, seed=0))
    np.testing.assert_array_equal(again.log_prob(tiny.spins()), model.log_prob(tiny.spins()))


# --- the paper's form --------------------------------------------------------------------------------------------------


def test_the_papers_form_is_one_network_with_the_screening_loss_and_everything_in_view() -> None:
    model = NeurISE.paper(width=8, depth=2, steps=20, training__batch_size=32)
    assert (model.loss, model.members, model.chain.hide_noised) == ("screening", 1, False)
    assert model.architecture == Architecture(heads="shared", residual=False, pairwise=False)
    model.fit(tiny.spins(), verbose=False)
    network: Any = model.conditionals.network
    assert (type(network).__name__, network.residual, len(network.head)) == ("SiteMLP", False, 1)
    assert not model.conditionals.hidden(torch.arange(model.conditionals.noise.num_steps)).any()
    with pytest.raises(NotImplementedError, match="hide_noised=False"):
        model.log_prob(tiny.spins())
    assert NeurISE.paper(loss="cross_entropy", chain__hide_noised=True).loss == "cross_entropy"


def test_the_experiments_and_the_theory_use_the_papers_form() -> None:
    made = _methods.named("neurise_paper").make(width=8)
    assert made.get_params() == NeurISE.paper(width=8).get_params()
    assert "NeurISE.paper(" in inspect.getsource(learning.learning_curve)
