"""Optuna's tree-structured Parzen estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


def tpe(space: Mapping[str, BaseDistribution], seed: int) -> BaseSampler:
    """Draw where good trials are dense and bad ones are not; the first ten trials are random."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed)
