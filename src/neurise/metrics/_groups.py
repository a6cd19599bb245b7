"""Groups of sites, and what the sites of a group have in common."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from neurise.alphabet import as_array
from neurise.batching import batches

ENUMERABLE = 2**20
"""Groups up to which all of them are listed and a part is chosen; beyond, groups are drawn and equal ones dropped."""


def check_groups(given: Any, sites: int, order: int, what: str) -> Tensor:
    """Check groups of ``order`` distinct sites, (m, order), and give each once, (groups, order), its sites ascending."""
    array = as_array(given, what)
    if array.ndim != 2 or array.shape[1] != order or len(array) == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be whole numbers of sites, {order} a row; the shape is {array.shape}, of type {array.dtype}"
        )
    outside = (array < 0) | (array >= sites)
    if outside.any():
        raise ValueError(f"{what} names the site {int(array[outside][0])}; sites are numbered 0 to {sites - 1}")
    groups = np.sort(array.astype(np.int64), axis=1)
    twice = (np.diff(groups, axis=1) == 0).any(axis=1)
    if twice.any():
        place = int(twice.argmax())
        raise ValueError(f"{what} names a site twice in row {place}: {array[place].tolist()}")
    return torch.from_numpy(np.unique(groups, axis=0))


def draw_groups(sites: int, order: int, number: int, *, generator: Generator) -> Tensor:
    """Draw distinct groups of distinct sites, uniformly, (groups, order); all of them where there are no more."""
    there_are = math.comb(sites, order)
    if there_are <= max(number, min(ENUMERABLE, 4 * number)):
        every = torch.tensor(list(itertools.combinations(range(sites), order)))
        return every if there_are <= number else every[torch.randperm(there_are, generator=generator)[:number]]
    groups = torch.empty((0, order), dtype=torch.int64)
    while len(groups) < number:
        drawn = torch.randint(sites, (2 * number, order), generator=generator).sort(dim=1).values
        drawn = drawn[(drawn.diff(dim=1) > 0).all(dim=1)]
        # Sorting would favour low sites among those that are kept, so the first of each in the order drawn is kept.
        groups = _first_of_each(torch.cat([groups, drawn]))[:number]
    return groups


def sums_over(x: Tensor, groups: Tensor, states: int, masses: Tensor | None = None) -> Tensor:
    r"""Sums over rows of :math:`\prod_{i \in g} \sigma_i` (two states) or of :math:`1\{x_i \text{ all equal}\}`, (groups,)."""
    columns = x.T.contiguous()  # a group takes whole columns: fast when they lie in one piece
    if states <= 2:
        columns = columns.to(torch.int8) * 2 - 1
    sums = torch.empty(len(groups), dtype=torch.float64, device=x.device)
    for piece in batches(len(groups), (8 if masses is not None else 3) * len(x)):
        first, *others = groups[piece].T
        product = columns[first] if states <= 2 else torch.ones_like(columns[first])  # (groups, n) bytes
        for site in others:
            product *= columns[site] if states <= 2 else columns[site] == columns[first]
        if masses is None:
            sums[piece] = product.sum(dim=1, dtype=torch.int64).to(torch.float64)
        else:
            sums[piece] = product.to(torch.float64) @ masses
    return sums


def _first_of_each(groups: Tensor) -> Tensor:
    _, kind = torch.unique(groups, dim=0, return_inverse=True)
    first = torch.full((int(kind.max()) + 1,), len(groups))
    first.scatter_reduce_(0, kind, torch.arange(len(groups)), "amin")
    return groups[first.sort().values]
