"""Settings that were left open suit the data, and stay with the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sklearn.base import clone

import neurise
from neurise import exact
from neurise.energies import regressions
from neurise.modeling import many, sizes
from neurise.modeling.sizes import MOST_COLUMNS, MOST_WORK, ON_CPU, SIZES, Sizes, suited

PLACES = {
    "batch_size": "training__batch_size",
    "learning_rate": "training__learning_rate",
    "pairwise": "architecture__pairwise",
    "precision": "training__precision",
    "weight_decay": "training__weight_decay",
    "stretch": "chain__stretch",
    "dropout": "architecture__dropout",
}
PACE = {"most_steps", "evaluations"}
"""What goes with a network, and no parameter says."""
OPEN = {name: PLACES.get(name, name) for name in Sizes._fields if name not in PACE}
"""What may be left open, and the parameters that say it."""
STEPS = 10


def law_of_rows(model: neurise.NeurISE) -> np.ndarray:
    """Probabilities of all rows of ±1, from the likelihood."""
    rows = np.array(list(itertools.product([-1, 1], repeat=model.space_.sites)))
    return np.exp(model.log_prob(rows))


@pytest.fixture
def classes_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let data of less than 150 tokens, of less than 300 and of more be of three classes, all of which train in a blink."""
    small, middle, large = Sizes(4, 1, 4, 32, 1e-3), Sizes(6, 2, 2, 64, 2e-3), Sizes(8, 2, 1, 64, 2e-3)
    for table in ("SIZES", "ON_CPU"):
        monkeypatch.setattr(sizes, table, ((150, small), (300, middle), (float("inf"), large)))
    monkeypatch.setattr(regressions, "ITERATIONS", 10)
    suited.cache_clear()
    yield
    suited.cache_clear()


@pytest.mark.parametrize("gpu", [False, True])
def test_more_tokens_give_larger_networks_and_fewer_of_them(gpu: bool) -> None:
    found = [suited(10**power // 10, 10, 2, gpu=gpu) for power in range(3, 10)]
    for fewer, more in itertools.pairwise(found):
        assert fewer.width <= more.width
        assert fewer.depth <= more.depth
        assert fewer.members >= more.members
    assert found[0].members > found[-1].members == 1
    assert found[0].width < found[-1].width


def test_it_is_the_tokens_that_count_and_a_class_ends_below_its_bound() -> None:
    assert suited(10**5, 20, 2, gpu=True).width == suited(20, 10**5, 2, gpu=True).width == SIZES[2][1].width
    for (bound, below), (_, above) in itertools.pairwise(SIZES):
        assert suited(int(bound) - 1, 1, 2, gpu=True).width == below.width
        assert suited(int(bound), 1, 2, gpu=True).width == above.width


@pytest.mark.parametrize("rows", [100, 10**5, 10**6, 10**8])
def test_without_a_gpu_nothing_is_larger(rows: int) -> None:
    there, here = (suited(rows, 5, 3, gpu=gpu) for gpu in (True, False))
    assert all(
        getattr(here, name) <= getattr(there, name) for name in ("width", "depth", "members", "batch_size", "steps")
    )
    assert [bound for bound, _ in ON_CPU] == [bound for bound, _ in SIZES]


def test_pairwise_terms_need_few_columns_and_a_committee() -> None:
    assert suited(10, MOST_COLUMNS // 2, 2, gpu=True).pairwise is True
    assert suited(10, MOST_COLUMNS // 2 + 1, 2, gpu=True).pairwise is False
    assert suited(10, MOST_COLUMNS // 3 + 1, 3, gpu=True).pairwise is False
    assert suited(10**8, 4, 2, gpu=True).pairwise is False


def test_pairwise_terms_that_a_cpu_would_fit_for_hours_are_left_out_there() -> None:
    sites, states = 250, 2
    rows = int(MOST_WORK) // (sites**2 * states)
    assert rows * sites < SIZES[2][0]  # else there would be no committee to have them
    assert suited(rows, sites, states, gpu=False).pairwise is True
    assert suited(rows + 1, sites, states, gpu=False).pairwise is False
    assert suited(rows + 1, sites, states, gpu=True).pairwise is True


@pytest.mark.parametrize(
    ("params", "pairwise"), [({}, True), ({"keep_prob": 0.5}, False), ({"network": "local_mlp"}, False)], ids=str
)
def test_pairwise_terms_are_left_out_where_they_would_not_be_fitted(params: dict[str, Any], pairwise: bool) -> None:
    small = dict.fromkeys(("width", "depth", "members", "training__batch_size"), 2)
    model = neurise.NeurISE().set_params(**small, **params).fit(tiny.spins(), max_steps=1)
    assert model.chosen().pairwise is pairwise
    assert ("pairwise_terms + site_mlp" in model.shares_) is pairwise


def test_a_model_with_everything_open_is_fitted_saved_and_loaded(tmp_path: Path) -> None:
    model = neurise.NeurISE().fit(tiny.spins(), max_steps=STEPS, device="cpu")
    assert all(model.get_params()[name] is None for name in OPEN.values())
    wanted = suited(60, 3, 2, gpu=False)
    assert model.chosen() == wanted
    assert len(model.conditionals.members) == wanted.members
    model.save(tmp_path)
    loaded = neurise.load(tmp_path, device="cpu")
    assert tiny.same_weights(loaded, model)
    law = exact.law(model)
    assert torch.equal(exact.law(loaded), law)
    assert np.array_equal(loaded.sample(50, seed=1), model.sample(50, seed=1))
    assert loaded.get_params() == model.get_params() == clone(model).get_params()
    # A product of three conditionals in float32, whose errors are below 10^-6 each.
    np.testing.assert_allclose(law_of_rows(model), law, rtol=1e-5)


def test_the_device_is_asked_for() -> None:
    model = neurise.NeurISE().fit(tiny.spins(), max_steps=1, device="cpu")
    there = neurise.NeurISE()
    there.schema_, there.device_ = model.schema_, SimpleNamespace(type="cuda")
    assert there.chosen() == suited(60, 3, 2, gpu=True)
    assert model.chosen() == suited(60, 3, 2, gpu=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 5),
        ("depth", 3),
        ("members", 3),
        ("pairwise", False),
        ("batch_size", 7),
        ("learning_rate", 0.5),
        ("steps", 3),
    ],
)
@pytest.mark.usefixtures("classes_at_few_rows")
def test_what_the_user_says_goes(name: str, value: Any) -> None:
    model = neurise.NeurISE().set_params(**{OPEN[name]: value}).fit(tiny.spins(40), max_steps=2)
    assert getattr(model.chosen(), name) == value
    settings = model.settings(None, None)
    network = list(model.conditionals)[-1].network
    network = network.parts[1] if hasattr(network, "parts") else network
    found = Sizes(
        network.token.shape[-1],
        len(network.hidden.norms),
        len(model.conditionals.members),
        settings.batch_size,
        settings.learning_rate,
        settings.max_steps,
        any("pairwise" in kind for kind in model.shares_),
    )
    assert found == Sizes(4, 1, 4, 32, 1e-3, pairwise=True)._replace(**{name: value})


def test_a_model_without_open_settings_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="batch_size must be a positive whole number, got None"):
        tiny.model("dfm", training__batch_size=None).fit(tiny.spins())


@pytest.mark.usefixtures("classes_at_few_rows")
def test_data_sets_of_different_classes_are_fitted_in_groups() -> None:
    sizes, seeds = (40, 45, 90, 80, 120), (3, 4, 5, 6, 7)
    Xs = [tiny.spins(n, seed=n) for n in sizes]
    fitted = neurise.fit_many(neurise.NeurISE(), Xs, seeds=seeds, max_steps=STEPS)
    assert [model.chosen().members for model in fitted] == [4, 4, 2, 2, 1]
    groups = [(0, 1), (2, 3), (4,)]
    for group in groups:
        own = neurise.fit_many(
            neurise.NeurISE(), [Xs[k] for k in group], seeds=[seeds[k] for k in group], max_steps=STEPS
        )
        for k, model in zip(group, own, strict=True):
            assert tiny.same_weights(model, fitted[k])
            assert np.array_equal(model.sample(20, seed=0), fitted[k].sample(20, seed=0))
            np.testing.assert_allclose(law_of_rows(model), exact.law(model), rtol=1e-5)
    alone = neurise.NeurISE().fit(Xs[4], seed=7, max_steps=STEPS)
    assert tiny.same_weights(alone, fitted[4])


@pytest.mark.usefixtures("classes_at_few_rows")
def test_where_nothing_is_open_the_number_of_rows_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    genuine = many._train

    def noting(jobs: Any, *given: Any, **rest: Any) -> None:
        together.append(len(jobs))
        genuine(jobs, *given, **rest)

    monkeypatch.setattr(many, "_train", noting)
    neurise.fit_many(tiny.model(), [tiny.spins(n) for n in (40, 90, 120)], max_steps=2)
    assert together == [3]


def test_wide_rows_are_learnt_in_stretches_where_there_is_no_gpu() -> None:
    assert suited(1000, sizes.MANY_SITES - 1, 2, gpu=False).stretch == 1
    assert suited(1000, sizes.MANY_SITES, 2, gpu=True).stretch == 1
    assert suited(1000, sizes.MANY_SITES, 2, gpu=False).stretch == sizes.STRETCH
