"""Where a search for good parameters may look: each model class names its own, as ``search_space``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Integer:
    """A whole number from ``low`` to ``high``, both of them possible."""

    low: int
    high: int


@dataclass(frozen=True)
class Uniform:
    """A number between ``low`` and ``high``."""

    low: float
    high: float


@dataclass(frozen=True)
class LogUniform:
    """A positive number between ``low`` and ``high``, whose logarithm is uniform."""

    low: float
    high: float


Domain = Choice | Integer | Uniform | LogUniform
SearchSpace = Mapping[str, Domain]

TRAINING: SearchSpace = MappingProxyType(
    {
        "training__learning_rate": LogUniform(1e-4, 5e-2),
        "training__weight_decay": LogUniform(1e-8, 1e-3),
        "training__batch_size": Choice((64, 128, 256, 512)),
    }
)
"""The paper's ranges for the training loop, of all methods."""

SHARED: SearchSpace = MappingProxyType({"depth": Integer(1, 5), "width": Choice((64, 128, 256, 512)), **TRAINING})
"""The paper's ranges for all methods that train a network."""

NOISE: SearchSpace = MappingProxyType({"keep_prob": Uniform(0.001, 0.999), "cycles": Integer(1, 10)})
"""The paper's ranges for NeurISE alone: ε between 0 and 1, neither of them, and how often noise goes round all sites."""
