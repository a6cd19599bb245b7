"""What all tasks share: one fit of one constructor call."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import neurise

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
    print(model.summary(), flush=True)  # what was chosen for the data
    return model, seconds
