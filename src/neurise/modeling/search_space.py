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


@dataclass(frozen=True)
class ZeroOr:
    """0 in a ``share`` of the draws, else a number between ``low`` and ``high``.

    It is searched as one number, from :attr:`start` to ``high``, so that every sampler can: below ``low`` it means 0.
    """

    low: float
    high: float
    share: float

    @property
    def start(self) -> float:
        """Where the range begins that is searched."""
        return self.low - (self.high - self.low) * self.share / (1 - self.share)


@dataclass(frozen=True)
class Unless:
    """As ``domain`` says, but always ``value`` where the parameter ``zero`` is 0."""

    domain: Integer
    zero: str
    value: Any


Domain = Choice | Integer | Uniform | LogUniform | ZeroOr | Unless
SearchSpace = Mapping[str, Domain]


def as_parameters(space: SearchSpace, searched: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Translate what a search has drawn to parameters of the model; ``fixed`` are those that are not searched."""
    found = dict(searched)
    for name, domain in space.items():
        if isinstance(domain, ZeroOr) and found[name] < domain.low:
            found[name] = 0.0
    for name, domain in space.items():
        if isinstance(domain, Unless) and {**fixed, **found}.get(domain.zero) == 0:
            found[name] = domain.value
    return found


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

NOISE: SearchSpace = MappingProxyType(
    {"keep_prob": ZeroOr(0.001, 0.999, share=0.25), "cycles": Unless(Integer(1, 10), zero="keep_prob", value=1)}
)
"""For NeurISE alone: the paper's range of ε, between 0 and 1, and of the cycles of noise; and in a quarter of the draws
hard noise, ε = 0, which the paper's range leaves out. One cycle of it erases everything, and a second has no use."""
