"""Settings that suit the size of the data, for those that the user leaves open.

All of them go by the number of tokens, rows × sites: what there is to learn from. Few tokens are soon learnt by heart: small
networks, many of which answer together. Many tokens want a large network and many examples. Every figure is one of docs/quality.md.
"""

from __future__ import annotations

from typing import Any

SIZES: tuple[tuple[float, dict[str, Any]], ...] = (
    (1e5, {"width": 64, "depth": 2, "members": 8, "batch_size": 1024, "learning_rate": 8e-4}),
    (1e6, {"width": 128, "depth": 2, "members": 4, "batch_size": 4096, "learning_rate": 1e-3}),
    (1e7, {"width": 256, "depth": 3, "members": 2, "batch_size": 16384, "learning_rate": 4e-3}),
    (float("inf"), {"width": 512, "depth": 3, "members": 1, "batch_size": 16384, "learning_rate": 4e-3}),
)
"""Settings below so many tokens."""
ON_CPU = {"batch_size": 1024, "learning_rate": 2e-3}
"""The most where there is no GPU: four thousand steps should be a matter of minutes, and small batches want small steps."""
MOST_COLUMNS = 2048
"""Sites × states up to which pairwise terms are used: there are as many as the square of it."""
MOST_WORK = 5e8
"""Rows × sites² × states up to which they are used where there is no GPU: to fit them should take minutes at most."""


def suited(rows: int, sites: int, states: int, *, gpu: bool) -> dict[str, Any]:
    """Return a value for every setting that may be left open."""
    found = next(settings for tokens, settings in SIZES if rows * sites < tokens)
    feasible = sites * states <= MOST_COLUMNS and (gpu or rows * sites**2 * states <= MOST_WORK)
    skip = found["members"] > 1 and feasible
    most = {} if gpu else {name: min(value, found[name]) for name, value in ON_CPU.items()}
    return {**found, **most, "skip": skip}
