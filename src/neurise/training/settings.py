"""How to train: everything about the loop that a user may choose."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from neurise.training.precision import PRECISIONS

MOMENT = 0.1
"""Seconds."""


@dataclass(frozen=True)
class Settings:
    """Settings of the loop. Steps or seconds may be None, not both."""

    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float  # fraction of the run during which the learning rate rises
    clip_norm: float
    average_decay: float
    patience: int  # evaluations without improvement before stopping
    max_steps: int | None
    max_seconds: float | None
    precision: str = "tf32"

    def __post_init__(self) -> None:
        if self.max_steps is None and self.max_seconds is None:
            raise ValueError("training needs max_steps or max_seconds")
        object.__setattr__(self, "max_steps", checked_limits(self.max_steps, self.max_seconds)[0])
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}, got {self.precision!r}")
        for name in ("batch_size", "patience"):
            object.__setattr__(self, name, positive_whole(name, getattr(self, name)))
        self._require("learning_rate", "a positive number", lambda value: 0 < value < math.inf)
        self._require("clip_norm", "positive", lambda value: value > 0)  # infinity means: do not clip
        self._require("weight_decay", "a number, not negative", lambda value: 0 <= value < math.inf)
        for name in ("warmup", "average_decay"):
            self._require(name, "in [0, 1)", lambda value: 0 <= value < 1)

    @property
    def evaluate_every(self) -> int:
        """How many steps lie between two evaluations: a fiftieth of the run, within reason."""
        return 200 if self.max_steps is None else min(200, max(10, self.max_steps // 50))

    def progress(self, step: int, seconds: float) -> float:
        """Fraction of the run that is over, by steps or by time, whichever is further."""
        by_steps = step / self.max_steps if self.max_steps else 0.0
        by_time = seconds / self.max_seconds if self.max_seconds else 0.0
        return min(1.0, max(by_steps, by_time))

    def after(self, seconds: float) -> Settings:
        """Count seconds that are spent already; a moment is always left, in which a step is made."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(self.max_seconds - seconds, min(self.max_seconds, MOMENT)))

    def _require(self, name: str, what: str, test: Callable[[float], bool]) -> None:
        value = getattr(self, name)
        if not is_number(value) or not test(value):
            raise ValueError(f"{name} must be {what}, got {value!r}")


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python's or numpy's; True and False are not meant as one."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def checked_limits(max_steps: Any, max_seconds: Any) -> tuple[int | None, float | None]:
    """Insist on limits that a run can keep; None is none."""
    if max_seconds is not None and not (is_number(max_seconds) and 0 < max_seconds < math.inf):
        raise ValueError(f"max_seconds must be a positive number, got {max_seconds!r}")
    return None if max_steps is None else positive_whole("max_steps", max_steps), max_seconds


def positive_whole(name: str, value: Any) -> int:
    """Insist on a positive whole number; 8.0 is one."""
    if is_number(value) and math.isfinite(value) and value == int(value) and value > 0:
        return int(value)
    raise ValueError(f"{name} must be a positive whole number, got {value!r}")
