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
    (float("inf"), {"width": 512, "depth": 3, "members": 1, "batch_size": 4096, "learning_rate": 2e-3}),
)
"""Settings below so many tokens."""
ON_CPU = 1024
"""Examples of a batch at most where there is no GPU: four thousand steps should be a matter of minutes."""
MOST_COLUMNS = 2048
"""Sites × states up to which pairwise terms are used: there are as many as the square of it."""


def suited(rows: int, sites: int, states: int, *, gpu: bool) -> dict[str, Any]:
    """Return a value for every setting that may be left open."""
    found = next(settings for tokens, settings in SIZES if rows * sites < tokens)
    skip = found["members"] > 1 and sites * states <= MOST_COLUMNS
    return {**found, "skip": skip, "batch_size": found["batch_size"] if gpu else min(ON_CPU, found["batch_size"])}
