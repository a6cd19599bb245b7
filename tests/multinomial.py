"""Every set of samples that a small law can give, with its probability; and the jackknife, one row at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from neurise.space import Space


def outcomes(space: Space, law: np.ndarray, n: int) -> Iterator[tuple[np.ndarray, float]]:
    """All sets of n rows, (n, sites) tokens, up to their order, and the chance of each."""
    rows = np.array(list(itertools.product(range(space.states), repeat=space.sites)))
    for places in itertools.combinations_with_replacement(np.flatnonzero(law).tolist(), n):
        counts = np.bincount(places, minlength=len(law))
        ways = math.factorial(n) // math.prod(math.factorial(int(count)) for count in counts)
        yield rows[list(places)], ways * math.prod(law[place] for place in places)


def moments(space: Space, law: np.ndarray, n: int, score: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """Mean and variance of the score of n draws, summed over all that may be drawn."""
    values, chances = map(np.array, zip(*((score(x), chance) for x, chance in outcomes(space, law, n)), strict=True))
    assert abs(chances.sum() - 1) < 1e-12
    mean = float(chances @ values)
    return mean, float(chances @ (values - mean) ** 2)


def jackknife(rows: np.ndarray, score: Callable[[np.ndarray], float]) -> float:
    """Standard error by leaving out each row in turn."""
    left = np.array([score(np.delete(rows, i, axis=0)) for i in range(len(rows))])
    return float(np.sqrt((len(rows) - 1) / len(rows) * ((left - left.mean()) ** 2).sum()))
