"""The kernel density of samples, apart from what all experiments measure: rows of others do not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neurise.metrics.kde import kde


def density(
    drawn: np.ndarray, reference: np.ndarray, other: np.ndarray, symbols: Sequence[Any], seed: int
) -> dict[str, float | None]:
    """Mean log-density of real rows under a kernel estimate from the samples, in nats, and under as many real rows."""
    found = kde(drawn, reference, other=other, alphabet=list(symbols), seed=seed).log_density
    return {"kde": float(found), "kde_floor": found.floor}
