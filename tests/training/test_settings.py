import math
from typing import Any

import numpy as np
import pytest
import tiny

from neurise.training.settings import Settings, Training
from neurise.training.step import schedule

GOOD: dict[str, Any] = {
    "batch_size": 64,
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "warmup": 0.1,
    "clip_norm": 1.0,
    "average_decay": 0.99,
    "patience": 5,
    "precision": "tf32",
    "max_steps": 1000,
    "max_seconds": None,
}
BAD: dict[str, list[Any]] = {
    "batch_size": [0, -1, 2.5, math.nan, math.inf, None, "64", True],
    "learning_rate": [0, -1e-3, math.nan, math.inf, None, "fast", True],
    "weight_decay": [-1e-9, math.nan, math.inf, None],
    "warmup": [-0.1, 1, 1.5, math.nan, None],
    "clip_norm": [0, -1, math.nan, None],
    "average_decay": [-0.1, 1, math.nan, None],
    "patience": [0, -1, 1.5, math.inf, None],
    "validation_fraction": [-0.1, 1, math.nan, None, "some", True],
    "precision": ["float64", 32, None],
    "max_steps": [0, -1, 1.5, math.nan, math.inf, "many", False],
    "max_seconds": [0, -1, math.nan, math.inf, "long"],
}


def settings_of(**changes: Any) -> Settings:
    """The settings that a model's group and the limits of a run make."""
    given = GOOD | changes
    limits = {name: given.pop(name) for name in ("max_steps", "max_seconds")}
    return Settings.of(Training(**given), **limits)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_an_impossible_setting_is_named_with_its_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be .*got {value!r}"):
        settings_of(**{name: value})


def test_a_run_needs_an_end() -> None:
    with pytest.raises(ValueError, match="max_steps or max_seconds"):
        settings_of(max_steps=None, max_seconds=None)


@pytest.mark.parametrize("value", [8.0, np.int64(8), np.float32(8)])
def test_whole_numbers_of_any_type_become_ints(value: Any) -> None:
    settings = settings_of(batch_size=value, patience=value, max_steps=value)
    for name in ("batch_size", "patience", "max_steps"):
        assert getattr(settings, name) == 8
        assert type(getattr(settings, name)) is int


@pytest.mark.parametrize("name", ["batch_size", "learning_rate"])
def test_what_is_left_to_the_model_must_be_chosen_by_then(name: str) -> None:
    Training(**{name: None}).check()  # by itself it is fine
    with pytest.raises(ValueError, match=f"{name} must be .*got None"):
        settings_of(**{name: None})


def test_gradients_may_be_left_unclipped() -> None:
    assert settings_of(clip_norm=math.inf).clip_norm == math.inf


@pytest.mark.parametrize(("steps", "every"), [(1, 10), (500, 10), (1000, 20), (100_000, 200), (None, 200)])
def test_evaluations_are_a_fiftieth_of_the_run_apart_within_reason(steps: int | None, every: int) -> None:
    assert settings_of(max_steps=steps, max_seconds=1.0).evaluate_every == every


@pytest.mark.parametrize(
    ("steps", "seconds", "expected"), [(1000, None, 0.25), (None, 60.0, 0.5), (1000, 60.0, 0.5), (1000, 3000.0, 0.25)]
)
def test_progress_is_whichever_is_further(steps: int | None, seconds: float | None, expected: float) -> None:
    settings = settings_of(max_steps=steps, max_seconds=seconds)
    assert settings.progress(250, 30.0) == expected
    assert settings.progress(10**9, 10.0**9) == 1.0
    assert settings.progress(0, 0.0) == 0.0


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


def test_what_is_spent_before_the_first_step_counts() -> None:
    limited = tiny.model().settings(None, 10.0)  # type: ignore[attr-defined]
    assert limited.after(4.0).max_seconds == 6.0
    assert 0 < limited.after(11.0).max_seconds < 1  # a moment is left, or no model could be used
    assert tiny.model().settings(5, None).after(4.0).max_seconds is None  # type: ignore[attr-defined]
