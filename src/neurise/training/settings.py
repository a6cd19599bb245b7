"""How to train: the group of parameters that every trained model has, and the limits of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neurise import checks

PRECISIONS = ("float32", "tf32", "bfloat16")
MOMENT = 0.1
"""Seconds that a run always has, so that it makes a step."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the training loop. None leaves a value to the model, which chooses it by the size of the data.

    Args:
        batch_size: rows per step.
        learning_rate: largest step length; it rises during ``warmup`` and falls like half a cosine to 0.
        weight_decay: of AdamW.
        warmup: fraction of the run during which the learning rate rises.
        clip_norm: largest norm of a gradient; infinity does not clip.
        average_decay: memory of the moving average of the weights, which is what a model keeps.
        patience: evaluations without improvement before training stops.
        validation_fraction: share of the rows that is held back, unless ``fit`` is given validation rows.
        precision: of the products on a GPU: "tf32", "float32" or "bfloat16". A CPU has float32 only.
    """

    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-4
    warmup: float = 0.05
    clip_norm: float = 1.0
    average_decay: float = 0.995
    patience: int = 20
    validation_fraction: float = 0.1
    precision: str = "tf32"

    def check(self) -> None:
        """Raise ValueError for the first value that cannot be used."""
        for name in ("batch_size", "patience"):
            if getattr(self, name) is not None:
                checks.positive_whole(name, getattr(self, name))
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)
        checks.positive("clip_norm", self.clip_norm, finite=False)
        checks.not_negative("weight_decay", self.weight_decay)
        for name in ("warmup", "average_decay", "validation_fraction"):
            checks.share(name, getattr(self, name))
        checks.one_of("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class Settings:
    """Settings of one run of the loop, all of them chosen. Steps or seconds may be None, not both."""

    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float
    clip_norm: float
    average_decay: float
    patience: int
    precision: str
    max_steps: int | None
    max_seconds: float | None

    @classmethod
    def of(cls, training: Training, *, max_steps: int | None, max_seconds: float | None) -> Settings:
        """Check the group of a model whose open values have been chosen, and add the limits of the run."""
        training.check()
        if max_steps is None and max_seconds is None:
            raise ValueError("training needs max_steps or max_seconds")
        steps, seconds = checks.limits(max_steps, max_seconds)
        return cls(
            checks.positive_whole("batch_size", training.batch_size),
            checks.positive("learning_rate", training.learning_rate),
            training.weight_decay,
            training.warmup,
            training.clip_norm,
            training.average_decay,
            checks.positive_whole("patience", training.patience),
            training.precision,
            steps,
            seconds,
        )

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
