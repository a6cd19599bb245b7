"""Settings that suit the size of the data, for those that the user leaves open.

All of them go by the number of tokens, rows × sites: what there is to learn from. Few tokens are soon learnt by heart: small
networks, many of which answer together. Many tokens want a large network and many examples. The figures stand in
docs/evidence/quality.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from neurise.training.settings import DECAY, EVALUATIONS, PRECISION


class Sizes(NamedTuple):
    """What is chosen by the size of the data."""

    width: int
    depth: int
    members: int
    batch_size: int
    learning_rate: float
    steps: int = 4000
    pairwise: bool = False
    precision: str = PRECISION
    stretch: int = 1
    weight_decay: float = DECAY
    dropout: float = 0.1
    most_steps: int | None = None  # where more make it worse, however much time there is
    evaluations: int = EVALUATIONS


SIZES: tuple[tuple[float, Sizes], ...] = (
    (1e5, Sizes(64, 2, 8, 1024, 8e-4)),
    (1e6, Sizes(128, 2, 4, 4096, 1e-3)),
    (1e7, Sizes(256, 3, 2, 16384, 4e-3)),
    (float("inf"), Sizes(512, 3, 1, 16384, 4e-3)),
)
"""Settings below so many tokens."""
ON_CPU: tuple[tuple[float, Sizes], ...] = (
    (1e5, Sizes(64, 2, 2, 256, 2e-3, steps=800)),
    (1e6, Sizes(64, 2, 2, 512, 2e-3, steps=1500)),
    (1e7, Sizes(256, 3, 2, 1024, 2e-3)),
    (float("inf"), Sizes(512, 3, 1, 1024, 2e-3)),
)
"""The same where there is no GPU: a small problem should be a matter of seconds, and small batches want small steps."""
MOST_COLUMNS = 2048
"""Sites × states up to which pairwise terms are used: there are as many as the square of it."""
MOST_WORK = 5e8
"""Rows × sites² × states up to which they are used where there is no GPU: to fit them should take minutes at most."""

MANY_SITES, STRETCH = 500, 16
"""Sites from which on so many steps of a row are learnt at once where there is no GPU. With 100 sites nothing is gained; with
784 a gradient step takes a third of the time, with 2084 a sixth (benchmarks/measured/stretches.json)."""


@lru_cache
def suited(rows: int, sites: int, states: int, *, gpu: bool) -> Sizes:
    """Return a value for every setting that may be left open."""
    found = next(settings for tokens, settings in (SIZES if gpu else ON_CPU) if rows * sites < tokens)
    if not gpu and sites >= MANY_SITES:  # more steps that take less: better after the same time
        found = found._replace(stretch=STRETCH, steps=2 * found.steps)
    feasible = sites * states <= MOST_COLUMNS and (gpu or rows * sites**2 * states <= MOST_WORK)
    return found._replace(pairwise=found.members > 1 and feasible)
