"""Training that goes wrong or is stopped leaves a model that can be used."""

import itertools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

from neurise import deadline
from neurise.modeling.model import Model
from neurise.training.loop import TrainingDiverged
from neurise.training.state import TrainingState


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[TrainingState], Any]) -> None:
    """Do something after a gradient step; what it returns, if anything, is taken for the loss."""

    def stepping(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
        loss = genuine()
        changed = act(state) if state.step == step else None
        return loss if changed is None else changed

    replace_steps(monkeypatch, stepping)


def assert_usable(model: Model) -> None:
    assert all(np.isfinite(weight).all() for weight in tiny.weights(model).values())
    assert not any(parameter.requires_grad for parameter in model.conditionals_.parameters())
    assert set(np.unique(model.sample(20, seed=0))) <= {-1, 1}
    assert np.isfinite(model.log_prob(tiny.spins())).all()


@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_a_learning_rate_far_too_large(fraction: float) -> None:
    model = tiny.model(training__learning_rate=1e8, training__warmup=0.0, training__validation_fraction=fraction)
    with pytest.raises(TrainingDiverged, match=r"smaller training__learning_rate \(it is 1e\+08\), or another loss"):
        model.fit(tiny.spins(), max_steps=500)
    assert model.stopped_ == "diverged"
    assert_usable(model)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_a_loss_that_is_no_number_brings_the_last_good_weights_back(
    monkeypatch: pytest.MonkeyPatch, value: float, fraction: float
) -> None:
    kept: dict[str, np.ndarray] = {}
    genuine = TrainingState.record

    def noting(state: TrainingState, *rest: Any) -> None:
        genuine(state, *rest)
        # The model is the one network of a stack.
        kept.update({name.replace("pattern", "network"): own[0].numpy().copy() for name, own in state.average.items()})

    def poison(state: TrainingState) -> torch.Tensor:
        for parameter in state.network.parameters():
            parameter.data.fill_(value)
        return torch.tensor(value)

    monkeypatch.setattr(TrainingState, "record", noting)
    at_step(monkeypatch, 25, poison)
    model = tiny.model(training__validation_fraction=fraction)
    with pytest.raises(TrainingDiverged, match=r"the loss became (nan|inf) in step 25:"):
        model.fit(tiny.spins(), max_steps=50)
    assert model.diverged_at_ == 25  # it was seen at the evaluation after 30
    assert [record["step"] for record in model.history_] == [10, 20]
    assert_usable(model)
    assert all(np.array_equal(kept[name], weight) for name, weight in tiny.weights(model).items())


@pytest.mark.parametrize("step", [20, 50], ids=["on the way", "in the last step"])
def test_weights_that_overflow_while_the_loss_is_finite(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def poison(state: TrainingState) -> None:
        next(iter(state.average.values())).fill_(torch.inf)

    at_step(monkeypatch, step, poison)
    model = tiny.model(training__validation_fraction=0)
    with pytest.raises(TrainingDiverged, match=f"the weights became infinite near step {step}"):
        model.fit(tiny.spins(), max_steps=50)
    assert model.diverged_at_ == step
    assert_usable(model)


def test_divergence_is_seen_when_the_clock_ends_training(monkeypatch: pytest.MonkeyPatch) -> None:
    at_step(monkeypatch, 3, lambda state: torch.tensor(torch.nan))
    monkeypatch.setattr(deadline, "CLOCK", itertools.count().__next__)  # a second a look
    model = tiny.model()
    with pytest.raises(TrainingDiverged, match="the loss became nan"):
        model.fit(tiny.spins(), max_seconds=12)
    assert_usable(model)


def ctrl_c(state: TrainingState) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("step", [1, 25], ids=["before the first evaluation", "after some"])
def test_ctrl_c_leaves_a_usable_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: int
) -> None:
    before = signal.getsignal(signal.SIGINT)
    at_step(monkeypatch, step, ctrl_c)
    model = tiny.model().fit(tiny.spins(), max_steps=10**9)
    assert model.stopped_ == "interrupted"
    assert f"interrupted after {step} steps; the model is usable as it is\n" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    assert_usable(model)


def test_sigterm_leaves_a_usable_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    at_step(monkeypatch, 25, lambda state: os.kill(os.getpid(), signal.SIGTERM))
    model = tiny.model().fit(tiny.spins(), max_steps=10**9, verbose=False)
    assert model.stopped_ == "interrupted"
    assert signal.getsignal(signal.SIGTERM) is before
    assert_usable(model)


def test_ctrl_c_from_outside_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    # The timer starts with training; the run has no other end, so that no speed is assumed.
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    at_step(monkeypatch, 1, lambda state: timer.start())
    before = signal.getsignal(signal.SIGINT)
    model = tiny.model(training__validation_fraction=0).fit(tiny.spins(), max_steps=10**9, verbose=False)
    timer.join()
    assert model.stopped_ == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    assert_usable(model)


def test_ctrl_c_names_the_checkpoint_to_go_on_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    at_step(monkeypatch, 25, ctrl_c)
    tiny.model().fit(tiny.spins(), max_steps=50, checkpoint=tmp_path)
    assert f"go on with resume=True from {tmp_path / 'checkpoint.safetensors'}\n" in capsys.readouterr().err


def test_a_second_ctrl_c_interrupts_at_once_and_leaves_a_usable_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)

    def impatient(state: TrainingState) -> None:
        ctrl_c(state)
        ctrl_c(state)

    at_step(monkeypatch, 25, impatient)
    model = tiny.model()
    with pytest.raises(KeyboardInterrupt):
        model.fit(tiny.spins(), max_steps=10**9, verbose=False)
    assert model.stopped_ == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    assert_usable(model)


def test_a_disk_that_is_full_while_a_checkpoint_is_written_leaves_a_usable_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neurise.persistence.save_file", full)
    model = tiny.model()
    with pytest.raises(OSError, match="No space left"):
        model.fit(tiny.spins(), max_steps=30, checkpoint=tmp_path)
    assert_usable(model)
    assert list(tmp_path.iterdir()) == []
