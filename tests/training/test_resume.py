"""Stopped at any moment, a run goes on as if nothing had happened: bit for bit."""

import functools
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from steps import replace_steps

from neurise.deadline import Work
from neurise.modeling.model import Model
from neurise.modeling.trained import Job
from neurise.training import loop

STEPS = 40
RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "soft noise, labels and counts": {
        "params": {"keep_prob": 0.5, "cycles": 2},
        "y": np.where(tiny.spins()[:, 0] > 0, "up", "down"),
        "weights": np.arange(60) % 4,
    },
    "nothing held back": {"params": {"training__validation_fraction": 0}},
    "a limit of time besides": {"max_seconds": 1e9},
    "an own validation set": {"validation": tiny.spins(seed=1)},
}


def run(run: dict[str, Any], **fit: Any) -> Model:
    given = {"max_steps": STEPS} | {key: value for key, value in run.items() if key != "params"} | fit
    return tiny.model(**run.get("params", {})).fit(tiny.spins(), **given)


def record(model: Model) -> list[tuple[float | None, ...]]:
    return [(entry["step"], entry["loss"], entry.get("validation")) for entry in model.history_]


class Stopped(Exception):
    pass


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def stepping(state: Any, genuine: Any) -> Any:
        if state.step == step:
            raise Stopped
        return genuine()

    replace_steps(monkeypatch, stepping)


@functools.cache
def whole_run(name: str) -> Model:
    return run(RUNS[name])


@pytest.mark.parametrize("stop", [0, 7, 10, 29, STEPS - 1])
@pytest.mark.parametrize(("name", "share"), [*((name, 1e9) for name in RUNS), ("plain", loop.CHECKPOINT_SHARE)])
def test_a_stopped_run_goes_on_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, share: float, stop: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", share)  # at every evaluation, or as time allows
        stop_at(patch, stop)
        with pytest.raises(Stopped):
            run(RUNS[name], checkpoint=tmp_path)
    resumed, whole = run(RUNS[name], checkpoint=tmp_path, resume=True), whole_run(name)
    assert tiny.same_weights(resumed, whole)
    assert record(resumed) == record(whole)
    assert resumed.stopped_ == whole.stopped_


def test_resuming_does_go_on_and_not_start_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)
        stop_at(patch, 35)
        with pytest.raises(Stopped):
            run({}, checkpoint=tmp_path)
    stop_at(monkeypatch, 29)  # never reached from step 30
    run({}, checkpoint=tmp_path, resume=True)


def test_a_checkpoint_changes_nothing(tmp_path: Path) -> None:
    assert tiny.same_weights(run({}, checkpoint=tmp_path), run({}))


def test_a_run_that_is_over_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run({}, checkpoint=tmp_path)
    stop_at(monkeypatch, STEPS)
    again = run({}, checkpoint=tmp_path, resume=True)
    assert tiny.same_weights(again, whole)
    assert record(again) == record(whole)


def test_patience_that_was_lost_is_not_found_again(tmp_path: Path) -> None:
    coins = np.random.default_rng(0).choice([-1, 1], size=(40, 8))
    params = {"width": 32, "training__patience": 3, "training__learning_rate": 0.02}
    whole = tiny.model(**params).fit(coins, max_steps=2000, checkpoint=tmp_path)
    again = tiny.model(**params).fit(coins, max_steps=2000, checkpoint=tmp_path, resume=True)
    assert again.stopped_ == whole.stopped_ == "patience"
    assert record(again) == record(whole)
    assert tiny.same_weights(again, whole)


def test_what_is_left_of_a_killed_write_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 25)
        with pytest.raises(Stopped):
            run({}, checkpoint=tmp_path)
    (tmp_path / ".checkpoint.safetensors.1.tmp.safetensors").write_bytes(b"half a fi")
    assert tiny.same_weights(run({}, checkpoint=tmp_path, resume=True), run({}))


def test_a_checkpoint_is_not_overwritten_by_mistake(tmp_path: Path) -> None:
    run({}, checkpoint=tmp_path)
    model = tiny.model()
    with pytest.raises(FileExistsError, match=r"checkpoint\.safetensors exists; pass resume=True.*or start again"):
        model.fit(tiny.spins(), max_steps=STEPS, checkpoint=tmp_path)
    assert not hasattr(model, "objective_")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"validation": tiny.spins(seed=2)}, "data was '[0-9a-f]+', is '[0-9a-f]+'"),
        ({"weights": np.ones(60)}, "data was"),
        ({"y": np.arange(60) % 2}, "data was"),
        ({"params": {"training__learning_rate": 0.5}}, r"model was .*learning_rate.*is .*0\.5"),
        ({"params": {"order": [1, 0, 2]}}, "model was"),
        ({"seed": np.int64(3)}, "seed was 0, is 3"),
        ({"max_steps": 77}, "max_steps was 40, is 77"),
        ({"max_seconds": 1e6}, "max_seconds was None, is 1000000.0"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    run({}, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=f"belongs to another run.*{message}"):
        run(other, checkpoint=tmp_path, resume=True)


def test_a_damaged_checkpoint_is_refused_and_leaves_a_fitted_model_alone(tmp_path: Path) -> None:
    model = run({})
    before = model.sample(20, seed=0)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="damaged"):
        model.fit(tiny.spins(sites=5), max_steps=STEPS, checkpoint=tmp_path, resume=True)
    assert np.array_equal(model.sample(20, seed=0), before)


def test_resuming_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="checkpoint="):
        run({}, resume=True)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        run({}, checkpoint=tmp_path / "file")


def test_what_a_kind_left_of_the_time_is_for_the_next_even_after_resuming(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def run(job: Job, own: Work, **_: Any) -> None:
        """Say that a checkpoint was found of a run that had taken six seconds of ten."""
        given.append(own.seconds)
        job.begin()
        job.stopped = "time"
        job.history.append({"step": 1.0, "seconds": 6.0, "loss": 1.0})

    monkeypatch.setattr(Job, "run", run)
    tiny.model(members=2, architecture__pairwise=True).fit(tiny.spins(), max_seconds=10.0)
    first, second = given
    assert first <= 5
    assert second <= 4


CHILD = """
import sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
import tiny
from neurise.training import loop
loop.CHECKPOINT_SHARE = 1e9
tiny.model().fit(tiny.spins(), max_steps={steps}, checkpoint={folder!r}, resume=True)
"""


def test_a_killed_process_goes_on_bit_for_bit(tmp_path: Path) -> None:
    steps, path = 600, tmp_path / "checkpoint.safetensors"
    code = CHILD.format(tests=str(Path(__file__).parents[1]), steps=steps, folder=str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    while child.poll() is None and not path.exists():
        time.sleep(0.01)
    time.sleep(random.random() * 0.5)  # any moment will do, and none is waited for
    child.kill()
    child.wait()
    assert path.exists()
    resumed = tiny.model().fit(tiny.spins(), max_steps=steps, checkpoint=tmp_path, resume=True)
    whole = tiny.model().fit(tiny.spins(), max_steps=steps)
    assert tiny.same_weights(resumed, whole)
    assert record(resumed) == record(whole)
