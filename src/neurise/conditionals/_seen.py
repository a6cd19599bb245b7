"""Rows as columns of distinct rows, each with how often it was seen."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from neurise.rows import Rows, are_counts
from neurise.space import Space, row_ids


class Seen(NamedTuple):
    """Distinct rows as columns (sites, n) int16, the label last, −1 for what is missing; and how often each was seen, (n,)."""

    columns: Tensor
    often: Tensor
    sizes: tuple[int, ...]


def seen_in(rows: Rows, space: Space, classes: int) -> Seen:
    """Put equal rows together. Weights that are no counts are scaled to the number of rows they are worth, (Σw)² / Σw²."""
    x = rows.x.cpu()
    (ids,) = row_ids(x, states=space.states)
    columns, others = x.T.to(torch.int16), list[Tensor]()
    if rows.missing is not None:
        gaps = rows.missing.cpu()
        (ids,) = row_ids(x.masked_fill(gaps, 0), states=space.states)
        columns = columns.masked_fill(gaps.T, -1)
        others += row_ids(gaps.to(torch.uint8), states=2)
    if classes:
        y = torch.full((len(x),), -1) if rows.y is None else rows.y.cpu().long()
        columns = torch.cat([columns, y[None].to(torch.int16)])
        others.append(y + 1)
    for other in others:
        ids = torch.unique(ids * (int(other.max()) + 1) + other, return_inverse=True)[1]
    often = torch.ones(len(x), dtype=torch.float64)
    if rows.weights is not None:
        often = rows.weights.cpu().double()
        if not are_counts(often):
            often = often * often.sum() / often.square().sum()
    count = int(ids.max()) + 1
    # One row of each kind, in random order: what looks at some of them takes the first.
    places = torch.empty(count, dtype=torch.int64)
    places[ids] = torch.arange(len(x))
    often = sums(ids, often, count)
    mixed = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    mixed = mixed[often[mixed] > 0]
    return Seen(columns[:, places[mixed]].contiguous(), often[mixed], (*space.digits, *([classes] if classes else [])))


def sums(place: Tensor, numbers: Tensor, count: int) -> Tensor:
    """Add up the numbers of each place, (count,)."""
    return torch.zeros(count, dtype=torch.float64).index_add_(0, place, numbers)
