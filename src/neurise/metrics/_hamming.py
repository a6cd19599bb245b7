"""How many sites of two rows agree, for all pairs of rows of two sets, tile by tile; and which rows to take."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from neurise.batching import batches
from neurise.metrics._rows import spins

TILE = 2048
"""Rows on a side of a tile: large enough for a fast matrix product, small enough for a few copies of it in memory."""

TILE_BYTES = 2**27
"""What the encoded rows of one side of a tile may take."""


def agreements(x: Tensor, y: Tensor, states: int) -> Tensor:
    r"""Numbers of sites that agree, :math:`\sum_i 1\{x_i = y_i\}`, (rows of x, rows of y); whole numbers in float32.

    For two states a single product of spins, :math:`(\sigma \cdot \sigma' + q)/2`; else one product of indicators a state.
    """
    if states <= 2:
        return torch.addmm(torch.full((), x.shape[1] / 2, device=x.device), spins(x), spins(y).T, beta=1, alpha=0.5)
    total = torch.zeros(len(x), len(y), device=x.device)
    for state in range(states):
        total.addmm_((x == state).float(), (y == state).float().T)
    return total


def tiles(x: Tensor, y: Tensor, states: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """All pairs of a row of x and a row of y: which rows, which columns, and their :func:`agreements`."""
    row_bytes = max(TILE_BYTES // TILE, 8 * x.shape[1])
    for rows in batches(len(x), row_bytes, TILE_BYTES):
        for columns in batches(len(y), row_bytes, TILE_BYTES):
            yield rows, columns, agreements(x[rows], y[columns], states)


def tiles_within(x: Tensor, states: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """The tiles on and above the diagonal of the pairs within one set: the others mirror them."""
    row_bytes = max(TILE_BYTES // TILE, 8 * x.shape[1])
    for rows in batches(len(x), row_bytes, TILE_BYTES):
        for columns in batches(len(x), row_bytes, TILE_BYTES):
            if columns.start >= rows.start:
                yield rows, columns, agreements(x[rows], x[columns], states)
