"""Laws of small pairwise models, written out in full."""

from __future__ import annotations

import math

import numpy as np
import torch

from neurise.interactions import Interactions
from neurise.space import Space

LIMIT = 2**26
"""Beyond this a law takes more than half a gigabyte."""
BLOCK = 2**18
"""Probabilities that are computed at a time: they stay in the cache between one pass and the next."""


def tokens_at(space: Space, index: np.ndarray) -> np.ndarray:
    """Configurations at given places of a law, (n, sites) tokens."""
    tokens = np.empty((len(index), space.sites), dtype=np.uint8)
    for site, states in reversed(list(enumerate(space.digits))):
        index, tokens[:, site] = np.divmod(index, states)
    return tokens


def pairwise_law(model: Interactions) -> tuple[np.ndarray, float]:
    r"""All p^q probabilities of :math:`\mu = e^{H}/Z`, float64, and log Z.

    The sites are cut in two halves A and B:

    .. math:: H = H_A(x_A) + H_B(x_B) + \sum_{j \in B} c_j(x_A, x_j), \qquad
       c_j(x_A, b) = \sum_{i \in A} W_{ij}(x_i, b).

    For a row of the law, one :math:`x_A`, the last sum is built up site by site and costs two additions per entry.
    """
    space = model.space
    if space.size > LIMIT:
        raise ValueError(
            f"{space.count} configurations are too many to write out (the limit is {LIMIT:,}); draw samples instead"
        )
    cut = space.sites // 2
    first, second = _half(model, 0, cut), _half(model, cut, space.sites)
    own_first, own_second = _own(model, first, 0), _own(model, second, cut)
    cross = np.zeros((len(first), space.sites - cut, space.states))
    for (i, j), table in zip(model.edges.tolist(), model.tables, strict=True):
        if i < cut <= j:
            cross[:, j - cut] += table[first[:, i]]
    law = np.empty((len(first), len(second)))
    step = max(1, BLOCK // len(second))
    blocks = [slice(start, start + step) for start in range(0, len(law), step)]
    tops, sums = np.empty(len(blocks)), np.empty(len(blocks))
    for number, rows in enumerate(blocks):
        exponents = own_first[rows, None]
        second_half = zip(cross[rows].swapaxes(0, 1), space.digits[cut:], strict=True)
        for terms, states in reversed(list(second_half)):  # the first site is the most significant
            exponents = (terms[:, :states, None] + exponents[:, None, :]).reshape(len(terms), -1)
        exponents += own_second
        tops[number] = exponents.max()  # each block is scaled by its own maximum
        exponents -= tops[number]
        sums[number] = np.exp(exponents, out=law[rows]).sum()
    top = tops.max()
    scale = np.exp(tops - top)
    total = float(scale @ sums)
    for rows, factor in zip(blocks, scale / total, strict=True):
        law[rows] *= factor
    return law.ravel(), float(top) + math.log(total)


def _half(model: Interactions, start: int, stop: int) -> np.ndarray:
    """All configurations of some of the sites, (p^n, n) tokens."""
    if start == stop:
        return np.zeros((1, 0), dtype=np.uint8)
    return model.space.part(start, stop).configurations().numpy()


def _own(model: Interactions, half: np.ndarray, start: int) -> np.ndarray:
    """Weight of the configurations of one half without the other."""
    stop = start + half.shape[1]
    inside = ((model.edges >= start) & (model.edges < stop)).all(axis=1)
    if start == stop:
        return np.zeros(1)
    part = Interactions(model.edges[inside] - start, model.tables[inside], model.fields[start:stop])
    return part.log_weight(torch.from_numpy(half)).numpy()


def draw_from_law(law: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n places of a law by inverting its cumulative sum, a block at a time: the whole sum is never held."""
    starts = np.arange(0, len(law), BLOCK)
    masses = np.add.reduceat(law, starts)
    ends = masses.cumsum()
    level = _below(rng.random(n) * ends[-1], ends[-1])
    block = np.searchsorted(ends, level, side="right")
    order = np.argsort(block, kind="stable")
    places = np.empty(n, dtype=np.int64)
    for part in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        number = block[part[0]]
        inside = law[starts[number] : starts[number] + BLOCK].cumsum()
        rest = _below(level[part] - (ends[number] - masses[number]), inside[-1])
        places[part] = starts[number] + np.searchsorted(inside, rest, side="right")
    return places


def _below(level: np.ndarray, total: float) -> np.ndarray:
    """Keep levels in [0, total) whatever their rounding: what has probability zero is then never found."""
    return level.clip(0.0, np.nextafter(total, 0.0))
