"""Folds of rows: a number at the end of each row says which member of a committee may not learn from it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from neurise.training.batches import Rows, are_counts, into_folds

MOST_FOLDS = 256
"""A fold is written as a token is, in a byte."""


def with_folds(rows: Rows, folds: int, *, seed: int) -> Rows:
    """Put every observation into a fold at random, and write the fold at the row's end.

    Rows fall into folds that are equally large to within one. Whole-number weights are counts of equal observations, each of
    which falls into a fold of its own: a row is there once for every fold that holds some of them, with their number.
    """
    generator = torch.Generator().manual_seed(seed)
    if rows.weights is None or not are_counts(rows.weights):
        fold = torch.randperm(len(rows), generator=generator) % folds
        return replace(rows, x=torch.cat([rows.x, fold[:, None].to(rows.x)], dim=1))
    counts = torch.stack(list(into_folds(rows.weights, folds, generator=generator)), dim=1)
    place, fold = torch.nonzero(counts, as_tuple=True)
    own = rows.take(place)
    return replace(own, x=torch.cat([own.x, fold[:, None].to(own.x)], dim=1), weights=counts[place, fold])


def without_folds(x: Tensor, sites: int) -> tuple[Tensor, Tensor | None]:
    """Take rows (..., sites or sites + 1) apart: their tokens, and the folds (...) if they have such."""
    return x[..., :sites], x[..., sites].long() if x.shape[-1] > sites else None
