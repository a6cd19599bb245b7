"""How to train: everything about the loop that a user may choose."""

from __future__ import annotations

from dataclasses import dataclass


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

    def __post_init__(self) -> None:
        if self.max_steps is None and self.max_seconds is None:
            raise ValueError("training needs max_steps or max_seconds")
        positive = ("batch_size", "learning_rate", "clip_norm", "patience", "max_steps", "max_seconds")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("batch_size", "patience", "max_steps"):
            value = getattr(self, name)
            if value is not None and value != int(value):
                raise ValueError(f"{name} must be a whole number, got {value}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        for name in ("warmup", "average_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")

    @property
    def evaluate_every(self) -> int:
        """How many steps lie between two evaluations: a fiftieth of the run, within reason."""
        return 200 if self.max_steps is None else min(200, max(10, self.max_steps // 50))

    def progress(self, step: int, seconds: float) -> float:
        """Fraction of the run that is over, by steps or by time, whichever is further."""
        by_steps = step / self.max_steps if self.max_steps else 0.0
        by_time = seconds / self.max_seconds if self.max_seconds else 0.0
        return min(1.0, max(by_steps, by_time))
