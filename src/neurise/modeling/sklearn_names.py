"""scikit-learn's own words for what models call otherwise, without importing it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def weights_of(weights: Any, sample_weight: Any) -> Any:
    """Return the weights of the rows, which may be given under either name, and not under both."""
    if weights is not None:
        raise ValueError("weights and sample_weight are two names of one thing; give one of them")
    return sample_weight


def seed_of(seed: int | None, random_state: Any, usual: int | None) -> int:
    """Return a seed for ``random_state``: a whole number, or one drawn from a generator of numpy's."""
    if seed != usual:
        raise ValueError(
            f"seed={seed!r} and random_state={random_state!r} are two names of one thing; give one of them"
        )
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return random_state  # type: ignore[no-any-return]  # checked as any seed is


def not_fitted(name: str) -> RuntimeError:
    """Make the error of a model that is used before ``fit``: scikit-learn's own, where that is in use, and ours."""
    message = f"this {name} is not fitted yet; call fit(X) first"
    exceptions: Any = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return RuntimeError(message)
    kind = type("NotFittedError", (exceptions.NotFittedError, RuntimeError), {"__module__": "sklearn.exceptions"})
    return kind(message)  # type: ignore[no-any-return]
