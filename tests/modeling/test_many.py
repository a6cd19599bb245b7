"""Models that are fitted together are as good as those that are fitted alone."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

import neurise
from neurise import discovery
from neurise.modeling import many
from neurise.modeling.model import Model, Run
from neurise.training.state import TrainingState

TRAINED = [name for name in discovery.names("neurise.models") if tiny.is_trained(name)]
SIZES = (40, 60, 50)


def several(**params: Any) -> list[Model]:
    return [tiny.model(**params) for _ in SIZES]


def data() -> list[np.ndarray]:
    return [tiny.spins(n, seed=n) for n in SIZES]


def law_of(X: np.ndarray) -> np.ndarray:
    """Frequencies of all configurations of ±1, first site most significant."""
    codes = (X > 0) @ (2 ** np.arange(X.shape[1])[::-1])
    return np.bincount(codes, minlength=2 ** X.shape[1]) / len(X)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("name", TRAINED)
def test_one_model_through_the_machinery_for_many_is_what_fit_makes(
    monkeypatch: pytest.MonkeyPatch, name: str, labels: bool
) -> None:
    X = tiny.spins()
    y, weights = (X[:, 0] > 0) if labels else None, np.arange(60) % 3 + 1
    monkeypatch.setattr(many, "_joint_seed", lambda seeds: next(iter(seeds)))
    run = Run(5, None, False, 20, None, False, 0.0)
    trial = many._trial(tiny.model(name), X, y, weights, None, run=run, place=torch.device("cpu"))
    monkeypatch.setattr(many, "_train", many._train_as_one)  # one job by itself would go its own way
    many._learn_all([trial])
    alone = tiny.model(name).fit(X, y, weights=weights, seed=5, max_steps=20, device="cpu")
    assert trial.model.stopped_ == alone.stopped_
    assert len(trial.model.history_) == len(alone.history_) == 2
    for ours, theirs in zip(trial.model.history_, alone.history_, strict=True):
        for key in ("step", "loss", "validation"):
            assert ours[key] == pytest.approx(theirs[key], rel=1e-5)
    # The same draws and the same arithmetic, summed in another order; Adam's first steps magnify rounding.
    for key, weight in tiny.weights(alone).items():
        np.testing.assert_allclose(tiny.weights(trial.model)[key], weight, atol=2e-4)


def test_models_trained_together_learn_as_well_as_alone() -> None:
    Xs = [tiny.spins(400, seed=1), -tiny.spins(200, seed=2) * np.array([1, -1, 1])]  # the second: opposite sites
    params = {
        "training__validation_fraction": 0,
        "training__learning_rate": 0.02,
        "width": 16,
        "training__batch_size": 256,
    }
    together = neurise.fit_many(tiny.model(**params), Xs, max_steps=400)
    for k, X in enumerate(Xs):
        alone = tiny.model(**params).fit(X, max_steps=400, seed=k)
        errors = [
            0.5 * np.abs(np.asarray(neurise.exact.law(model)) - law_of(X)).sum() for model in (together[k], alone)
        ]
        # Two laws that differ in the sign of a correlation of 0.8 are 0.8 apart; what is left here is the optimiser's noise.
        assert max(errors) < 0.03
    assert 0.5 * np.abs(law_of(Xs[0]) - law_of(Xs[1])).sum() > 0.6


@pytest.mark.parametrize("name", TRAINED)
def test_every_kind_of_model_is_as_usable_as_from_fit(name: str, tmp_path: Path) -> None:
    models = [tiny.model(name) for _ in SIZES]
    fitted = neurise.fit_many(models, data(), max_steps=10)
    assert all(ours is given for ours, given in zip(fitted, models, strict=True))
    for model in fitted:
        assert model.stopped_ == "steps"
        assert [record["step"] for record in model.history_] == [10]
        assert model.sample(5, seed=0).shape == (5, 3)
        assert float(neurise.exact.law(model).sum()) == pytest.approx(1)
        assert not any(tensor.requires_grad for tensor in model._tensors().values())
    fitted[1].save(tmp_path)
    assert tiny.same_weights(neurise.load(tmp_path), fitted[1])
    assert not tiny.same_weights(fitted[0], fitted[1])


def test_labels_and_weights_go_with_their_data() -> None:
    # Each data set has one row of great weight in each class; those alone are to be learnt.
    rows = [np.array([[1, 1, 1], [-1, -1, -1], [1, -1, 1]]), np.array([[1, -1, 1], [-1, 1, -1], [1, 1, 1], [-1, 1, 1]])]
    labels = [np.array(["a", "b", "a"]), np.array(["a", "b", "b", "a"])]
    weights = [np.array([1e6, 1e6, 1.5]), np.array([1e6, 1e6, 1.5, 1.5])]
    params = {"training__validation_fraction": 0, "training__learning_rate": 0.05}
    fitted = neurise.fit_many(tiny.model(**params), rows, labels, weights=weights, max_steps=200)
    for model, X in zip(fitted, rows, strict=True):
        for label, row in (("a", X[0]), ("b", X[1])):
            assert np.mean((model.sample(200, label, seed=0) == row).all(1)) > 0.9


def test_one_data_set_and_several_seeds() -> None:
    X = tiny.spins()
    fitted = neurise.fit_many(tiny.model(), X, X[:, 0] > 0, weights=np.arange(60) % 3, seeds=iter([3, 4]), max_steps=10)
    assert len(fitted) == 2
    assert not tiny.same_weights(*fitted)
    listed = neurise.fit_many(
        tiny.model(), [X, X], np.stack([X[:, 0] > 0] * 2), weights=[np.arange(60) % 3] * 2, seeds=[3, 4], max_steps=10
    )
    assert all(tiny.same_weights(*pair) for pair in zip(fitted, listed, strict=True))


def test_the_same_list_gives_the_same_bits() -> None:
    first, second = (neurise.fit_many(tiny.model(), data(), max_steps=10) for _ in range(2))
    assert all(tiny.same_weights(*pair) for pair in zip(first, second, strict=True))


def test_a_model_that_only_memorises_stops_and_the_others_go_on() -> None:
    coins = np.random.default_rng(0).choice([-1, 1], size=(40, 8))
    strong = np.repeat(np.random.default_rng(1).choice([-1, 1], size=(4000, 1)), 8, axis=1)
    strong = np.where(np.random.default_rng(2).random(strong.shape) < 0.1, -strong, strong)
    params = {"width": 32, "training__patience": 3, "training__learning_rate": 0.02}
    weak, steady = neurise.fit_many(tiny.model(**params), [coins, strong], max_steps=400)
    assert weak.stopped_ == "patience"
    scores = [record["validation"] for record in weak.history_]
    assert len(scores) == scores.index(min(scores)) + 1 + 3
    assert len(steady.history_) > len(weak.history_)


@pytest.mark.parametrize("end", [50, 37], ids=["all steps", "Ctrl-C on the way"])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_a_model_that_diverges_does_not_disturb_the_others(
    monkeypatch: pytest.MonkeyPatch, fraction: float, end: int
) -> None:
    averages: dict[int, torch.Tensor] = {}

    def step(state: TrainingState, genuine: Callable[[], torch.Tensor], *, poison: bool) -> torch.Tensor:
        averages[state.step] = state.average["pattern.pattern.token"][1, 0].clone()
        loss = genuine()
        if poison and state.step == 25:
            for parameter in state.network.parameters():
                parameter.data[1] = torch.nan
        if state.step == end < 50:
            os.kill(os.getpid(), signal.SIGINT)
        return loss

    def fitted() -> list[Model]:
        return neurise.fit_many(tiny.model(training__validation_fraction=fraction), data(), max_steps=50, verbose=False)

    with monkeypatch.context() as patch:
        replace_steps(patch, partial(step, poison=False))
        undisturbed = fitted()
    replace_steps(monkeypatch, partial(step, poison=True))
    with pytest.warns(UserWarning, match="models 1 of 3 diverged and keep their last good weights"):
        models = fitted()
    ended = "steps" if end == 50 else "interrupted"
    assert [model.stopped_ for model in models] == [ended, "diverged", ended]
    assert [model.diverged_at_ for model in models] == [None, 26, None]  # the first loss of the spoilt weights
    assert [record["step"] for record in models[1].history_] == [10, 20]
    first = tiny.weights(models[1])["network.token"]
    assert any(np.array_equal(first, averages[step].numpy()) for step in ((20,) if fraction == 0 else (10, 20)))
    assert all(tiny.same_weights(models[k], undisturbed[k]) for k in (0, 2))


def test_what_cannot_be_trained_as_one_is_trained_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    genuine = many._train

    def noting(jobs: Any, *rest: Any, **more: Any) -> None:
        sizes.append(len(jobs))
        genuine(jobs, *rest, **more)

    monkeypatch.setattr(many, "_train", noting)
    fixed = tiny.spins(40)
    fixed[:, 2] = 1  # a constant site
    models = [*(tiny.model() for _ in range(3)), *(tiny.model(width=5) for _ in range(2)), tiny.model("independent")]
    Xs = [tiny.spins(40), fixed, tiny.spins(30), tiny.spins(40), tiny.spins(30), tiny.spins(20)]
    fitted = neurise.fit_many(models, Xs, max_steps=10)
    assert sorted(sizes) == [1, 2, 2]
    assert [model.stopped_ for model in fitted] == ["steps"] * 5 + ["solved"]
    assert (fitted[1].sample(50, seed=0)[:, 2] == 1).all()


def trained_together(
    monkeypatch: pytest.MonkeyPatch, name: str, Xs: Any, **params: Any
) -> tuple[list[int], list[Model]]:
    """Fit models of a kind at once, and say in groups of how many they were trained."""
    sizes: list[int] = []
    genuine = many._train

    def noting(jobs: Any, *rest: Any, **more: Any) -> None:
        sizes.append(len(jobs))
        genuine(jobs, *rest, **more)

    monkeypatch.setattr(many, "_train", noting)
    fitted = neurise.fit_many([tiny.model(name, **params) for _ in Xs], Xs, max_steps=10, verbose=False, device="cpu")
    return sizes, fitted


@pytest.mark.parametrize("name", TRAINED)
def test_each_model_has_the_constant_sites_of_its_own_data(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    Xs = [tiny.spins(40, sites=4) for _ in range(4)]
    for X, (site, value) in zip(Xs, [(2, 1), (2, 1), (3, 1), (3, -1)], strict=True):
        X[:, site] = value
    sizes, fitted = trained_together(monkeypatch, name, Xs)
    assert sorted(sizes) == [1, 1, 2]
    for X, model in zip(Xs, fitted, strict=True):
        drawn, constant = model.sample(50, seed=0), (X[0] == X).all(0)
        assert (drawn[:, constant] == X[0, constant]).all()
        assert not (drawn[:, ~constant] == drawn[0, ~constant]).all(0).any()


@pytest.mark.parametrize("name", TRAINED)
def test_each_model_has_the_alphabets_of_its_own_table(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pandas, source = pytest.importorskip("pandas"), np.random.default_rng(0)
    tables = [
        pandas.DataFrame({f"c{place}": source.integers(0, size, 60) for place, size in enumerate(states)})
        for states in [(2, 4, 3), (4, 3, 2), (4, 3, 2)]
    ]
    more = {"keep_prob": 0.5} if name == "ggm" else {}
    sizes, fitted = trained_together(monkeypatch, name, tables, **more)
    assert sorted(sizes) == [1, 2]
    for table, model in zip(tables, fitted, strict=True):
        drawn = model.sample(500, seed=0)
        assert {column: set(drawn[column]) for column in drawn} == {column: set(table[column]) for column in table}


@pytest.mark.parametrize(("name", "params"), [("pairwise", {}), ("neurise", {"network": "causal"})])
def test_what_is_chosen_by_the_number_of_rows_is_chosen_for_each(
    monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, Any]
) -> None:
    """The penalty of couplings, and the share of the channels that a transformer leaves out."""
    Xs = [tiny.spins(n, seed=n) for n in (20, 400, 400)]
    sizes, together = trained_together(monkeypatch, name, Xs, **params)
    assert sorted(sizes) == [1, 2]
    alone = tiny.model(name, **params).fit(Xs[0], seed=0, max_steps=10, verbose=False, device="cpu")
    np.testing.assert_allclose(together[0].log_prob(Xs[0]), alone.log_prob(Xs[0]), rtol=0, atol=1e-6)


def test_ctrl_c_leaves_usable_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
        if state.step == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return genuine()

    replace_steps(monkeypatch, stop)
    models = [tiny.model(), tiny.model(), tiny.model(width=5), tiny.model(width=5), tiny.model(width=6)]
    fitted = neurise.fit_many(models, [tiny.spins()] * 5, max_steps=10**9, verbose=False)
    for model in fitted:
        assert model.stopped_ == "interrupted"
        assert model.sample(5, seed=0).shape == (5, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": [1, 2]}, "seeds has 2 entries for 3 models"),
        ({"ys": [None]}, "ys has 1 entries for 3 models"),
        ({"models": [tiny.model()]}, "models has 1 entries for 3 models"),
        ({"models": [tiny.model()] * 3}, "the same model is in the list twice"),
        ({"Xs": []}, "Xs is empty"),
        ({"Xs": tiny.spins(), "models": tiny.model()}, "say with seeds= how many"),
        ({"seeds": [0, 1, 2.5]}, "seed must be a whole number"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"Xs": [*data()[:2], np.full((3, 3), np.nan)]}, "no value at all"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neurise.fit_many(**{"models": several(), "Xs": data(), **given})


def test_a_failure_leaves_all_models_as_they_were() -> None:
    models = several(width=7)
    neurise.fit_many(models, data(), max_steps=10)
    before = [tiny.weights(model) for model in models]
    models[2].set_params(loss="nonsense")
    with pytest.raises(ValueError, match="unknown loss"):
        neurise.fit_many(models, data(), max_steps=10)
    for model, weights in zip(models, before, strict=True):
        assert all(np.array_equal(weight, weights[name]) for name, weight in tiny.weights(model).items())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", TRAINED)
def test_a_gpu_learns_as_well(name: str) -> None:
    there, here = (
        neurise.fit_many(tiny.model(name), data(), max_steps=30, device=device) for device in ("cuda", "cpu")
    )
    for ours, theirs in zip(there, here, strict=True):
        last = [model.history_[-1]["validation"] for model in (ours, theirs)]
        assert last[0] == pytest.approx(last[1], abs=0.1)
