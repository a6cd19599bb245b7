"""Numbers of a column as a few intervals, each of which is one symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from neurise import checks
from neurise.space import MAX_STATES


@dataclass(frozen=True)
class Bins:
    """How a column of numbers is cut: into ``count`` bins that hold about equally many values, or at given ``edges``."""

    count: int | None = None
    edges: tuple[float, ...] | None = None

    def cut(self, values: np.ndarray, what: str) -> tuple[float, ...]:
        r"""Return the edges :math:`e_0 < \dots < e_k` for values (N,): bin i is :math:`[e_i, e_{i+1})`, the last one closed.

        Edges of equally filled bins are values of the data, so that each bin of whole numbers holds one. A bin is closed when
        it holds its share of what is left: a value that occurs often has a bin of its own, and the rest is shared out anew.
        A bin of one value ends right after it, so that nothing but this value is drawn from it.
        """
        if self.edges is not None:
            return self.edges
        if self.count is None or values.min() == values.max():
            raise ValueError(f"{what} has {len(np.unique(values))} value, which cannot be cut into bins")
        distinct, often = np.unique(values.astype(np.float64), return_counts=True)
        begins, held, left, before = [distinct[0]], 0, len(values), distinct[0]
        is_whole = bool((distinct == np.floor(distinct)).all())
        for value, count in zip(distinct, often, strict=True):
            if held and len(begins) < self.count and held + count / 2 > left / (self.count - len(begins) + 1):
                after = before + 1 if is_whole else np.nextafter(before, np.inf)
                begins.append(after if before == begins[-1] else value)
                left, held = left - held, 0
            held, before = held + count, value
        last = distinct[-1] if distinct[-1] > begins[-1] else np.nextafter(distinct[-1], np.inf)
        return tuple(float(edge) for edge in (*begins, last))


def bins(count: int | None = None, *, edges: Sequence[float] | None = None) -> Bins:
    """Cut a column of numbers into bins: about equally filled ones, or those between given edges.

    ``NeurISE(alphabet={"age": neurise.bins(8), "income": neurise.bins(edges=[0, 1e4, 5e4, 1e6])})``. What is sampled are numbers
    drawn evenly inside their bin. Numbers beyond the outermost edges belong to the outermost bins.

    >>> import neurise
    >>> import pandas as pd
    >>> table = pd.DataFrame({'age': range(20, 80), 'member': [True, False] * 30})
    >>> model = neurise.Independent(alphabet={'age': neurise.bins(4)}).fit(table)
    >>> list(model.sample(2, seed=0).columns)
    ['age', 'member']
    """
    if (count is None) == (edges is None):
        raise ValueError(f"bins takes a number of bins or their edges, got count={count!r} and edges={edges!r}")
    if count is not None:
        if (number := checks.count("count", count, MAX_STATES)) < 2:
            raise ValueError(f"bins must be at least 2, got {count}")
        return Bins(number)
    try:
        given = tuple(float(edge) for edge in edges or ())
    except (TypeError, ValueError):
        raise ValueError(f"edges must be numbers, got {edges!r}") from None
    if not 3 <= len(given) <= MAX_STATES + 1 or not all(a < b for a, b in pairwise(given)):
        raise ValueError(f"edges must be at least three numbers that grow, at most {MAX_STATES + 1}, got {edges!r}")
    if not np.isfinite(given).all():
        raise ValueError(
            f"edges must be finite, got {edges!r}: numbers beyond the outermost belong to the outermost bins"
        )
    return Bins(edges=given)


def tokens_of(values: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """Return the bin of each number."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def numbers_in(
    tokens: np.ndarray, edges: Sequence[float], *, whole: bool, rng: np.random.Generator | None
) -> np.ndarray:
    """Draw numbers evenly inside the bins, or take the middle of each where there is nothing to draw with."""
    low, high = np.asarray(edges)[tokens], np.asarray(edges)[tokens + 1]
    level = np.full(tokens.shape, 0.5) if rng is None else rng.random(tokens.shape)
    if not whole:
        found: np.ndarray = low + level * (high - low)
        return np.where(tokens < len(edges) - 2, np.minimum(found, np.nextafter(high, low)), found)
    first = np.ceil(low)
    last = np.where(tokens < len(edges) - 2, np.ceil(high) - 1, np.floor(high))  # a bin ends before the next one's edge
    last = np.maximum(first, last)
    return np.asarray(np.minimum(first + np.floor(level * (last - first + 1)), last), dtype=np.int64)
