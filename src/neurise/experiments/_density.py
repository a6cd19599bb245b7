"""The kernel density of samples, apart from what all experiments measure: rows of others do not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from neurise.dataset import Dataset
from neurise.metrics.kde import kde

ROWS = 1000
"""Rows on either side where a law is known: a twentieth of a second, at which the error of a score is a tenth of a nat."""


def density(
    drawn: np.ndarray, reference: np.ndarray, other: np.ndarray, symbols: Sequence[Any], seed: int
) -> dict[str, float | None]:
    """Mean log-density of real rows under a kernel estimate from the samples, in nats, and under as many real rows."""
    found = kde(drawn, reference, other=other, alphabet=list(symbols), seed=seed).log_density
    return {"kde": float(found), "kde_floor": found.floor}


def density_of_law(
    drawn: np.ndarray, learnt_from: np.ndarray, fresh: np.ndarray, other: np.ndarray, data: Dataset, seed: int
) -> dict[str, float | None]:
    """The same at few rows of a known law, beside two scores: of the rows that were learnt from, and of the law itself."""
    assert data.pmf is not None
    symbols, seen = data.symbols.tolist(), fresh[:ROWS]
    kept = kde(learnt_from[:ROWS], seen, alphabet=symbols).log_density
    place = data.space.index(torch.from_numpy(np.searchsorted(data.symbols, seen)))
    return {
        **density(drawn[:ROWS], seen, other[:ROWS], symbols, seed),
        "memorised_kde": float(kept),
        "log_law": float(np.log(data.pmf[place.numpy()]).mean()),
    }
