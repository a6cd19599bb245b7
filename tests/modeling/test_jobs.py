"""A committee of two kinds is trained as two jobs, and behaves as one model does."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from lock_holder import held_elsewhere
from sklearn.base import clone
from steps import replace_steps

import neurise
from neurise import exact
from neurise.energies import regressions
from neurise.locks import FolderInUse
from neurise.modeling import trained
from neurise.modeling.model import Model
from neurise.modeling.trained import Job, TrainedModel, _merged
from neurise.training import loop
from neurise.training.loop import TrainingDiverged
from neurise.training.state import TrainingState, checkpoints_in, remove_checkpoints

STEPS = 20
members = pytest.mark.parametrize("members", [2, 4], ids=["a network per job", "a committee per job"])


def model(members: int = 4, **params: Any) -> Any:
    return tiny.model(members=members, architecture__pairwise=True, **params)


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
    assert not any(parameter.requires_grad for parameter in one.conditionals.parameters())
    assert set(np.unique(one.sample(20, seed=0))) <= {-1, 1}
    assert np.exp(one.log_prob(all_rows([-1, 1]))).sum() == pytest.approx(1, abs=1e-5)


def at_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[TrainingState], Any]) -> None:
    """Do something after one of the steps, counted over all jobs; what it returns, if anything, is taken for the loss."""
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
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of the model that is fitted next."""
    seen: list[Job] = []
    genuine = TrainedModel.finish

    def noting(whole: TrainedModel, own: Any, *rest: Any) -> None:
        seen.extend(own)
        genuine(whole, own, *rest)

    monkeypatch.setattr(TrainedModel, "finish", noting)
    return seen


def ctrl_c(state: TrainingState) -> None:
    os.kill(os.getpid(), signal.SIGINT)


# --- what is put together ----------------------------------------------------------------------------------------------


@members
def test_history_has_the_means_of_the_jobs_and_the_seconds_of_both(jobs: list[Job], members: int) -> None:
    one = fitted(members)
    kinds = [(type(job.objective.network.pattern).__name__, job.objective.network.size) for job in jobs]
    assert kinds == [("Sum", members // 2), ("SiteMLP", members // 2)]
    assert [entry["step"] for entry in one.history_] == [10, 20]
    for entry, first, second in zip(one.history_, *(job.history for job in jobs), strict=True):
        for name in ("loss", "validation"):
            assert entry[name] == pytest.approx((first[name] + second[name]) / 2, rel=1e-12)
        assert entry["seconds"] == pytest.approx(first["seconds"] + second["seconds"], rel=1e-12)
    assert one.stopped_ == "steps"
    assert list(one.shares_) == ["pairwise_terms + site_mlp", "site_mlp"]
    assert sum(one.shares_.values()) == pytest.approx(1, abs=1e-12)


def test_of_runs_that_end_at_different_steps_the_longer_is_told_to_its_end() -> None:
    first = [{"step": 1.0, "seconds": 2.0, "loss": 4.0}, {"step": 2.0, "seconds": 3.0, "loss": 2.0}]
    second = [{"step": 1.0, "seconds": 5.0, "loss": 6.0}]
    wanted = [
        {"step": 1.0, "seconds": 7.0, "steps": 2.0, "loss": 5.0},
        {"step": 2.0, "seconds": 8.0, "steps": 3.0, "loss": 2.0},
    ]
    assert _merged([first, second]) == _merged([second, first]) == wanted
    assert _merged([first, []]) == [{**record, "steps": record["step"]} for record in first]


def test_the_time_is_divided_among_the_jobs_and_the_steps_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    genuine = trained.train

    def noting(objective: Any, rows: Any, aside: Any, settings: Any, **rest: Any) -> str:
        limits.append((settings.max_steps, settings.max_seconds))
        return genuine(objective, rows, aside, settings, **rest)

    monkeypatch.setattr(trained, "train", noting)
    fitted(max_steps=3, max_seconds=1000)
    assert [steps for steps, _ in limits] == [3, 3]
    # What the pairwise fit of the first took is taken off, and what it left over is for the second.
    assert 400 < limits[0][1] < 500
    assert 900 < limits[1][1] < 1000


@members
@pytest.mark.parametrize("labels", [False, True])
def test_the_law_is_that_of_the_likelihood(members: int, labels: bool) -> None:
    X = np.random.default_rng(0).choice(3, size=(80, 3), p=[0.6, 0.3, 0.1])
    one = model(members, training__learning_rate=0.02).fit(X, X[:, 0] > 0 if labels else None, max_steps=STEPS)
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


def test_constant_data_trains_nothing(jobs: list[Job]) -> None:
    one = model(alphabet=[-1, 1]).fit(np.ones((20, 3), dtype=int), max_steps=STEPS)
    assert one.stopped_ == "constant"
    assert not jobs
    assert (one.sample(10, seed=0) == 1).all()


@pytest.mark.parametrize(
    "params", [{"members": 3}, {"members": 2, "keep_prob": 0.5}, {"chain__hide_noised": False}], ids=str
)
def test_other_committees_are_one_job(jobs: list[Job], params: dict[str, Any]) -> None:
    model(**params).fit(tiny.spins(), max_steps=2)
    assert [job.objective.network.size for job in jobs] == [params.get("members", 4)]


@pytest.mark.parametrize("value", [0, 2.5, float("nan"), "2", True], ids=str)
def test_an_impossible_number_of_members_is_refused_before_anything_is_learnt(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.setattr(trained, "train", None)
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
    assert (tmp_path / "part-1").exists() == (stop > STEPS)  # Ctrl-C ends the jobs that are left, too
    assert len(half.shares_) == (2 if stop > STEPS else 1)  # and what was not trained has no say
    resumed = fitted(members, checkpoint=tmp_path, resume=True)
    whole = whole_run(members)
    assert tiny.same_weights(resumed, whole)
    assert record(resumed) == record(whole)
    assert (resumed.stopped_, resumed.shares_) == (whole.stopped_, whole.shares_)
    assert {path.parent.name for path in tmp_path.rglob("*.safetensors")} == {tmp_path.name, "part-1"}


@pytest.mark.parametrize("stop", [15, STEPS + 15], ids=["in the first job", "in the second"])
def test_one_job_that_diverges_leaves_a_usable_model(monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    at_step(monkeypatch, stop, lambda state: torch.tensor(torch.nan))
    one = model()
    with pytest.raises(TrainingDiverged, match="the loss became nan"):
        one.fit(tiny.spins(), max_steps=STEPS)
    assert one.stopped_ == "diverged"
    assert [entry["step"] for entry in one.history_] == [10, 20]  # of the job that came to its end
    assert_usable(one)


@pytest.mark.parametrize("stop", [15, STEPS + 15], ids=["in the first job", "in the second"])
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
    assert not hasattr(one, "conditionals_")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        fitted(checkpoint=tmp_path / "file")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkpoints of a run that was interrupted in its second part."""
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regressions, "ITERATIONS", 10)
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)
        at_step(patch, STEPS + 15, ctrl_c)
        fitted(2, checkpoint=folder)
    assert [path.relative_to(folder).as_posix() for path in checkpoints_in(folder)] == PLACES
    return folder


PLACES = ["checkpoint.safetensors", "part-1/checkpoint.safetensors"]


@pytest.mark.parametrize("removed", PLACES)
def test_removing_any_checkpoint_never_gives_another_model(interrupted: Path, tmp_path: Path, removed: str) -> None:
    folder = shutil.copytree(interrupted, tmp_path / "copy")
    (folder / removed).unlink()
    assert tiny.same_weights(fitted(2, checkpoint=folder, resume=True), whole_run(2))


@pytest.mark.parametrize("left", PLACES)
def test_what_is_left_of_another_run_is_seen_before_anything_is_trained(
    interrupted: Path, tmp_path: Path, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / left).parent.mkdir(exist_ok=True)
    shutil.copy(interrupted / left, tmp_path / left)
    monkeypatch.setattr(trained, "train", None)
    with pytest.raises(FileExistsError, match=rf"{left} exists.*remove_checkpoints"):
        fitted(2, checkpoint=tmp_path)
    remove_checkpoints(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_a_part_that_this_run_does_not_have_is_refused(interrupted: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(interrupted, tmp_path / "copy")
    with pytest.raises(ValueError, match=r"part-1/checkpoint\.safetensors belongs to another run, of more parts"):
        tiny.model().fit(tiny.spins(), max_steps=STEPS, checkpoint=folder, resume=True)


def test_the_checkpoint_of_one_part_is_not_taken_for_that_of_another(interrupted: Path, tmp_path: Path) -> None:
    first, second = (tmp_path / place for place in PLACES)
    second.parent.mkdir()
    shutil.copy(interrupted / PLACES[0], second)
    shutil.copy(interrupted / PLACES[0], first)
    with pytest.raises(ValueError, match=r"part-1/checkpoint.*belongs to another run \(part was None, is 1\)"):
        fitted(2, checkpoint=tmp_path, resume=True)


def test_two_runs_do_not_share_a_folder_of_checkpoints(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as other, pytest.raises(FolderInUse, match=f"process {other.pid} on"):
        fitted(2, checkpoint=tmp_path)


# --- callbacks ---------------------------------------------------------------------------------------------------------


def test_a_callback_sees_a_model_that_can_be_used_and_may_call_the_run_off() -> None:
    seen = []

    def watch(step: int, seconds: float, losses: dict[str, float], shown: Any) -> bool:
        assert_usable(shown)
        seen.append((step, sorted(losses), len(shown.history_)))
        return len(seen) == 3  # the first evaluation of the second job

    one = fitted(callback=watch)
    assert seen == [(10, ["loss", "validation"], 1), (20, ["loss", "validation"], 2), (10, ["loss", "validation"], 1)]
    assert one.stopped_ == "callback"
    assert len(one.shares_) == 2
    assert_usable(one)


def test_a_run_that_is_called_off_in_the_first_job_keeps_that_kind_alone(jobs: list[Job]) -> None:
    one = fitted(callback=lambda *told: True)
    assert len(jobs) == 1
    assert one.stopped_ == "callback"
    assert one.shares_ == {"pairwise_terms + site_mlp": pytest.approx(1)}
    assert_usable(one)
