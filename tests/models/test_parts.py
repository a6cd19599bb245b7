"""A committee of two kinds is trained in two parts, and behaves as one model does."""

from __future__ import annotations

import functools
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sklearn.base import clone
from steps import replace_steps

import neurise
from neurise import exact
from neurise.modeling.model import Model
from neurise.modeling.trained import TrainedModel, _merged
from neurise.models import _trained
from neurise.training import loop, regressions
from neurise.training.loop import TrainingDiverged
from neurise.training.state import TrainingState

STEPS = 20
members = pytest.mark.parametrize("members", [2, 4], ids=["a network a part", "a committee a part"])


def model(members: int = 4, **params: Any) -> Any:
    return tiny.model(members=members, skip=True, **params)


def fitted(members: int = 4, **fit: Any) -> Any:
    return model(members).fit(tiny.spins(), **{"max_steps": STEPS, "verbose": False} | fit)


@functools.cache
def whole_run(members: int) -> Any:
    return fitted(members)


def record(one: Model) -> list[tuple[float | None, ...]]:
    return [(entry["step"], entry["loss"], entry.get("validation")) for entry in one.history_]


def all_rows(symbols: list[Any], sites: int = 3) -> np.ndarray:
    return np.array(list(itertools.product(symbols, repeat=sites)))


def assert_usable(one: Any) -> None:
    assert all(np.isfinite(weight).all() for weight in tiny.weights(one).values())
    assert not any(parameter.requires_grad for parameter in one.objective_.network.parameters())
    assert set(np.unique(one.sample(20, seed=0))) <= {-1, 1}
    assert np.exp(one.log_prob(all_rows([-1, 1]))).sum() == pytest.approx(1, abs=1e-5)


def at_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[TrainingState], Any]) -> None:
    """Do something after one of the steps, counted over all parts; what it returns, if anything, is taken for the loss."""
    count = itertools.count(1)

    def stepping(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
        loss = genuine()
        changed = act(state) if next(count) == number else None
        return loss if changed is None else changed

    replace_steps(monkeypatch, stepping)


@pytest.fixture(autouse=True)
def roughly_fitted_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairwise terms are found for certain elsewhere; here a few iterations will do."""
    monkeypatch.setattr(regressions, "ITERATIONS", 10)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[TrainedModel]:
    """The parts of the model that is fitted next."""
    seen: list[TrainedModel] = []
    genuine = TrainedModel.put_together

    def noting(whole: TrainedModel, own: Any, *rest: Any) -> None:
        seen.extend(own)
        genuine(whole, own, *rest)

    monkeypatch.setattr(TrainedModel, "put_together", noting)
    return seen


def ctrl_c(state: TrainingState) -> None:
    os.kill(os.getpid(), signal.SIGINT)


# --- what is put together ----------------------------------------------------------------------------------------------


@members
def test_history_has_the_means_of_the_parts_and_the_seconds_of_both(parts: list[TrainedModel], members: int) -> None:
    one = fitted(members)
    assert [(part.get_params()["skip"], part.get_params()["members"]) for part in parts] == [
        (True, members // 2),
        (False, members // 2),
    ]
    assert [entry["step"] for entry in one.history_] == [10, 20]
    for entry, first, second in zip(one.history_, *(part.history_ for part in parts), strict=True):
        for name in ("loss", "validation"):
            assert entry[name] == pytest.approx((first[name] + second[name]) / 2, rel=1e-12)
        assert entry["seconds"] == pytest.approx(first["seconds"] + second["seconds"], rel=1e-12)
    assert one.stopped_ == "steps"
    assert 0 <= one.share_ <= 1


def test_of_runs_that_end_at_different_steps_the_longer_is_told_to_its_end() -> None:
    first = [{"step": 1.0, "seconds": 2.0, "loss": 4.0}, {"step": 2.0, "seconds": 3.0, "loss": 2.0}]
    second = [{"step": 1.0, "seconds": 5.0, "loss": 6.0}]
    wanted = [{"step": 1.0, "seconds": 7.0, "loss": 5.0}, {"step": 2.0, "seconds": 8.0, "loss": 2.0}]
    assert _merged([first, second]) == _merged([second, first]) == wanted
    assert _merged([first, []]) == first


def test_the_time_is_divided_among_the_parts_and_the_steps_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    genuine = _trained.train

    def noting(objective: Any, rows: Any, aside: Any, settings: Any, **rest: Any) -> str:
        limits.append((settings.max_steps, settings.max_seconds))
        return genuine(objective, rows, aside, settings, **rest)

    monkeypatch.setattr(_trained, "train", noting)
    fitted(max_steps=3, max_seconds=1000)
    assert [steps for steps, _ in limits] == [3, 3]
    # What the pairwise fit of the first part took is taken off; the second part has none.
    assert limits[0][1] < limits[1][1] <= 500
    assert limits[0][1] > 400


@members
@pytest.mark.parametrize("labels", [False, True])
def test_the_law_is_that_of_the_likelihood(members: int, labels: bool) -> None:
    X = np.random.default_rng(0).choice(3, size=(80, 3), p=[0.6, 0.3, 0.1])
    one = model(members, learning_rate=0.02).fit(X, X[:, 0] > 0 if labels else None, max_steps=STEPS)
    # A product of three conditionals in float32, whose errors are below 10^-6 each.
    np.testing.assert_allclose(np.exp(one.log_prob(all_rows([0, 1, 2]))), exact.law(one), rtol=1e-5)
    assert float(exact.law(one).sum()) == pytest.approx(1, abs=1e-9)


def test_many_are_trained_as_one_is() -> None:
    (alone,) = neurise.fit_many(model(), [tiny.spins()], max_steps=STEPS)
    assert tiny.same_weights(alone, whole_run(4))
    assert record(alone) == record(whole_run(4))
    for one in neurise.fit_many(model(), [tiny.spins(n) for n in (40, 60)], max_steps=STEPS):
        assert one.stopped_ == "steps"
        assert [entry["step"] for entry in one.history_] == [10, 20]
        assert_usable(one)


@members
def test_clones_and_files(members: int, tmp_path: Path) -> None:
    one = whole_run(members)
    again = clone(one)
    assert again.get_params() == one.get_params()
    assert tiny.same_weights(again.fit(tiny.spins(), max_steps=STEPS), one)
    one.save(tmp_path)
    assert tiny.same_weights(neurise.load(tmp_path), one)


def test_constant_data_has_no_parts(parts: list[TrainedModel]) -> None:
    one = model(alphabet=[-1, 1]).fit(np.ones((20, 3), dtype=int), max_steps=STEPS)
    assert one.stopped_ == "constant"
    assert not parts
    assert (one.sample(10, seed=0) == 1).all()


@pytest.mark.parametrize("params", [{"members": 3}, {"members": 2, "keep_prob": 0.5}, {"hide_noised": False}], ids=str)
def test_other_committees_have_no_parts(parts: list[TrainedModel], params: dict[str, Any]) -> None:
    model(**params).fit(tiny.spins(), max_steps=2)
    assert not parts


@pytest.mark.parametrize("value", [0, 2.5, float("nan"), "2", True], ids=str)
def test_an_impossible_number_of_members_is_refused_before_anything_is_learnt(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.setattr(_trained, "train", None)
    with pytest.raises(ValueError, match=f"members must be a positive whole number, got {value!r}"):
        model(value).fit(tiny.spins(), max_steps=2)


# --- ends --------------------------------------------------------------------------------------------------------------


@members
@pytest.mark.parametrize("stop", [5, 15, STEPS, STEPS + 15])
def test_a_run_that_is_interrupted_goes_on_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: int, stop: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)
        at_step(patch, stop, ctrl_c)
        half = fitted(members, checkpoint=tmp_path)
    assert half.stopped_ == "interrupted"
    assert_usable(half)
    assert (tmp_path / "part-1").exists() == (stop > STEPS)  # Ctrl-C ends the parts that are left, too
    resumed = fitted(members, checkpoint=tmp_path, resume=True)
    whole = whole_run(members)
    assert tiny.same_weights(resumed, whole)
    assert record(resumed) == record(whole)
    assert (resumed.stopped_, resumed.share_) == (whole.stopped_, whole.share_)
    assert {path.parent.name for path in tmp_path.rglob("*.safetensors")} == {tmp_path.name, "part-1"}


@pytest.mark.parametrize("stop", [15, STEPS + 15], ids=["in the first part", "in the second"])
def test_one_part_that_diverges_leaves_a_usable_model(monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    at_step(monkeypatch, stop, lambda state: torch.tensor(torch.nan))
    one = model()
    with pytest.raises(TrainingDiverged, match="the loss became nan"):
        one.fit(tiny.spins(), max_steps=STEPS)
    assert one.stopped_ == "diverged"
    assert [entry["step"] for entry in one.history_] == [10, 20]  # of the part that came to its end
    assert_usable(one)


@pytest.mark.parametrize("stop", [15, STEPS + 15], ids=["in the first part", "in the second"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_whatever_breaks_training_off_leaves_a_usable_model(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], stop: int
) -> None:
    def fail(state: TrainingState) -> None:
        raise error

    at_step(monkeypatch, stop, fail)
    one = model()
    with pytest.raises(error):
        one.fit(tiny.spins(), max_steps=STEPS)
    assert one.stopped_ == "interrupted"
    assert_usable(one)


def test_a_checkpoint_is_not_overwritten_by_mistake(tmp_path: Path) -> None:
    fitted(checkpoint=tmp_path)
    one = model()
    with pytest.raises(FileExistsError, match="resume=True"):
        one.fit(tiny.spins(), max_steps=STEPS, checkpoint=tmp_path)
    assert not hasattr(one, "objective_")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        fitted(checkpoint=tmp_path / "file")
