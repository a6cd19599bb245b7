"""Random search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


def random(space: Mapping[str, BaseDistribution], seed: int) -> BaseSampler:
    """Draw every parameter from its range, whatever earlier trials gave."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)
