"""What all tasks share: one fit of one constructor call."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import neurise
from neurise.modeling.trained import TrainedModel

Row = dict[str, Any]


def fitted(
    arguments: argparse.Namespace,
    seed: int,
    X: Any,
    y: Any = None,
    alphabet: Any = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[neurise.NeurISE, float]:
    """Fit ``NeurISE(**settings)`` within the budget of the command; return it, and the seconds that ``fit`` took."""
    began = time.perf_counter()
    model = neurise.NeurISE().set_params(**{"alphabet": alphabet, **(settings or {}), **arguments.settings})
    model.fit(X, y, seed=seed, verbose=False, **arguments.budget, **options)
    seconds = time.perf_counter() - began
    show(model)
    return model, seconds


def show(model: TrainedModel) -> None:
    """Print what was chosen for the data; Ctrl-C goes on where it stopped the training, for what it left is no figure."""
    print(model.summary(), flush=True)
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt


def excess(rows: list[Row]) -> tuple[float, float]:
    """Return by how much models are worse than memorising the same rows, and the standard error of that."""
    differences = np.array([row["tv"] - row["memorising"] for row in rows])
    error = differences.std(ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else math.inf
    return float(differences.mean()), float(error)
