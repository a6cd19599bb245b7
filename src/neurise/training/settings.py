"""How to train: the group of parameters that every trained model has, and the settings of one run."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("float32", "tf32", "bfloat16")
PRECISION, DECAY, EVALUATIONS = "tf32", 1e-4, 50
"""Precision, weight decay and number of evaluations of networks that do not say which suit them."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the training loop. None leaves a value to the model, which chooses it by the size of the data.

    Args:
        batch_size: rows per step.
        learning_rate: largest step length; it rises during ``warmup`` and falls like half a cosine to 0.
        weight_decay: of AdamW; by default 10⁻⁴, or what suits the network.
        warmup: fraction of the run during which the learning rate rises.
        clip_norm: largest norm of a gradient; infinity does not clip.
        average_decay: memory of the moving average of the weights, which is what a model keeps.
        patience: evaluations without improvement before training stops.
        validation_fraction: share of the rows that is held back, unless ``fit`` is given validation rows.
        precision: of the products on a GPU: "tf32", "float32" or "bfloat16"; by default what the network is made for, "tf32"
            unless it says otherwise. A CPU has float32 only.

    >>> import neurise
    >>> neurise.NeurISE(training=neurise.Training(batch_size=512)).get_params()['training__batch_size']
    512
    """

    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    warmup: float = 0.05
    clip_norm: float = 1.0
    average_decay: float = 0.995
    patience: int = 20
    validation_fraction: float = 0.1
    precision: str | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of one run of the loop, all of them chosen and checked. Steps or seconds may be None, not both."""

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
    evaluations: int = (
        EVALUATIONS  # of a run of so many steps: as often the weights are compared, and the best are kept
    )
