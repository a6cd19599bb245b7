import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps
from torch import Tensor

from neurise import NeurISE, deadline
from neurise.modeling import trained
from neurise.modeling.trained import MOMENT, Job
from neurise.training.loop import progress_of
from neurise.training.settings import Settings
from neurise.training.state import TrainingState
from neurise.training.step import schedule

GOOD = Settings(64, 1e-3, 0.0, 0.1, 1.0, 0.99, 5, "tf32", 1000, None)
BAD: dict[str, list[Any]] = {
    "batch_size": [0, -1, 2.5, math.nan, math.inf, "64", True],
    "learning_rate": [0, -1e-3, math.nan, math.inf, "fast", True],
    "weight_decay": [-1e-9, math.nan, math.inf, "much"],
    "warmup": [-0.1, 1, 1.5, math.nan, None],
    "clip_norm": [0, -1, math.nan, None],
    "average_decay": [-0.1, 1, math.nan, None],
    "patience": [0, -1, 1.5, math.inf, None],
    "validation_fraction": [-0.1, 1, math.nan, None, "some", True],
    "precision": ["float64", 32],
}
LIMITS: dict[str, list[Any]] = {
    "max_steps": [0, -1, 1.5, math.nan, math.inf, "many", False],
    "max_seconds": [0, -1, math.nan, math.inf, "long"],
}


def cases(values: dict[str, list[Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "value"), [(name, value) for name in values for value in values[name]])


def settings_of(max_steps: Any = 1000, max_seconds: Any = None, **params: Any) -> Settings:
    """The settings that a model's parameters and the limits of a run make."""
    made: Settings = tiny.model("d3pm", **params).settings(max_steps, max_seconds)  # type: ignore[attr-defined]
    return made


@cases(BAD)
def test_an_impossible_setting_is_named_with_its_value(name: str, value: Any) -> None:
    for model in (NeurISE(), tiny.model("d3pm")):
        with pytest.raises(ValueError, match=rf"{name} must be .*got {value!r}"):
            model.set_params(**{f"training__{name}": value}).fit(tiny.spins())
        assert not hasattr(model, "schema_")


@cases(LIMITS)
def test_an_impossible_limit_is_named_with_its_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be .*got {value!r}"):
        NeurISE().fit(tiny.spins(), **{name: value})


def test_a_run_needs_an_end() -> None:
    with pytest.raises(ValueError, match="steps must be a positive whole number, got None"):
        tiny.model("d3pm", steps=None).fit(tiny.spins())


def test_networks_that_learn_by_heart_stop_however_much_time_there_is() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (50, 4))
    model = NeurISE(network="sparse", members=1, alphabet=[0, 1])
    found = model.fit(rows, max_seconds=1e6, seed=0, verbose=False).chosen_
    assert model.settings(None, 60.0, found).max_steps == found.most_steps == 500
    assert model.settings(7, 60.0, found).max_steps == 7
    assert settings_of(None, 60.0, steps=8).max_steps is None  # other networks go on while there is time


@pytest.mark.parametrize("value", [8.0, np.int64(8), np.float32(8)])
def test_whole_numbers_of_any_type_become_ints(value: Any) -> None:
    settings = settings_of(None, steps=value, training__batch_size=value, training__patience=value)
    for name in ("batch_size", "patience", "max_steps"):
        assert getattr(settings, name) == 8
        assert type(getattr(settings, name)) is int


@pytest.mark.parametrize("name", ["batch_size", "learning_rate"])
def test_what_is_left_to_the_model_must_be_chosen_by_then(name: str) -> None:
    open_ = {f"training__{name}": None}
    assert tiny.model(**open_).fit(tiny.spins(), max_steps=1).history_[-1]["step"] == 1  # NeurISE chooses
    with pytest.raises(ValueError, match=f"{name} must be .*got None"):
        settings_of(**open_)


def test_gradients_may_be_left_unclipped() -> None:
    model = tiny.model("d3pm", training__clip_norm=math.inf)
    assert model.fit(tiny.spins(), max_steps=1).history_[-1]["step"] == 1
    assert settings_of(training__clip_norm=math.inf).clip_norm == math.inf


@pytest.mark.parametrize(
    ("steps", "seconds", "expected"), [(1000, None, 0.25), (None, 60.0, 0.5), (1000, 60.0, 0.5), (1000, 3000.0, 0.25)]
)
def test_progress_is_whichever_is_further(steps: int | None, seconds: float | None, expected: float) -> None:
    settings = replace(GOOD, max_steps=steps, max_seconds=seconds)
    assert progress_of(settings, 250, 30.0) == expected
    assert progress_of(settings, 10**9, 10.0**9) == 1.0
    assert progress_of(settings, 0, 0.0) == 0.0


def test_the_learning_rate_rises_straight_and_falls_as_half_a_cosine() -> None:
    assert schedule(0.0, 0.2) == 0
    assert schedule(0.05, 0.2) == pytest.approx(0.25)
    assert schedule(0.2, 0.2) == 1
    assert schedule(0.6, 0.2) == pytest.approx(0.5)  # half-way down
    assert schedule(0.4, 0.2) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))
    assert schedule(1.0, 0.2) == pytest.approx(0, abs=1e-15)
    assert schedule(0.0, 0.0) == 1


@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.9])
def test_the_learning_rate_has_one_peak(warmup: float) -> None:
    values = [schedule(i / 1000, warmup) for i in range(1001)]
    peak = values.index(max(values))
    assert values[: peak + 1] == sorted(values[: peak + 1])
    assert values[peak:] == sorted(values[peak:], reverse=True)
    assert all(0 <= value <= 1 for value in values)
    assert peak == round(1000 * warmup)


def idle_step(state: TrainingState, genuine: Callable[[], Tensor]) -> Tensor:
    state.step += 1
    return torch.ones(())


@pytest.mark.parametrize(("steps", "every"), [(11, 10), (500, 10), (1000, 20), (100_000, 200), (None, 200)])
def test_evaluations_are_a_fiftieth_of_the_run_apart_within_reason(
    monkeypatch: pytest.MonkeyPatch, steps: int | None, every: int
) -> None:
    replace_steps(monkeypatch, idle_step)
    model = tiny.model(training__validation_fraction=0)
    model.fit(tiny.spins(), max_steps=steps, max_seconds=1e9, callback=lambda step, *_: step >= 2 * every)
    evaluated = [record["step"] for record in model.history_]
    assert evaluated == [every, 2 * every if steps is None else min(2 * every, steps)]


@pytest.mark.parametrize(("spent", "left"), [(4.0, 6.0), (11.0, MOMENT)], ids=["in time", "too late"])
def test_what_is_spent_before_the_first_step_counts(monkeypatch: pytest.MonkeyPatch, spent: float, left: float) -> None:
    clock, given, genuine = [0.0], list[float | None](), Job.begin

    def slow(job: Job, together: int = 1) -> None:
        genuine(job, together)
        clock[0] += spent

    def noting(objective: Any, rows: Any, held: Any, settings: Settings, **_: Any) -> str:
        given.append(settings.max_seconds)
        return "time"

    monkeypatch.setattr(deadline, "CLOCK", lambda: clock[0])
    monkeypatch.setattr(trained, "train", noting)
    monkeypatch.setattr(Job, "begin", slow)
    tiny.model().fit(tiny.spins(), max_seconds=10.0)
    tiny.model().fit(tiny.spins(), max_steps=5)
    assert given == [left, None]  # a moment is left in any case, or no model could be used
