"""Folds of rows: every observation is in one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from neurise.rows import Rows, with_folds

FOLDS = 5


def rows(n: int = 23, *, labels: bool = False, weights: torch.Tensor | None = None) -> Rows:
    x = torch.from_numpy((tiny.spins(n) > 0).astype(np.uint8))
    return Rows(x, torch.arange(n) % 2 if labels else None, weights)


@pytest.mark.parametrize("folds", [2, 5, 23])
def test_folds_are_balanced_and_the_rows_stay_as_they_are(folds: int) -> None:
    given = rows(labels=True, weights=torch.rand(23, generator=torch.Generator().manual_seed(0)).double())
    found = with_folds(given, folds, seed=1)
    assert torch.equal(found.x, given.x)
    assert torch.equal(found.y, given.y)
    assert torch.equal(found.weights, given.weights)
    sizes = torch.bincount(found.fold, minlength=folds)
    assert len(sizes) == folds
    assert int(sizes.max() - sizes.min()) <= 1


def test_the_seed_decides() -> None:
    first, again, other = (with_folds(rows(), FOLDS, seed=seed).fold for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_of_counts_every_observation_falls_into_a_fold_of_its_own() -> None:
    counts = torch.arange(23, dtype=torch.float64) * 40 + 1
    given = rows(labels=True, weights=counts)
    given = replace(given, x=torch.arange(69, dtype=torch.uint8).reshape(23, 3))  # so that rows can be told apart
    found = with_folds(given, FOLDS, seed=1)
    place, fold = found.x[:, 0].long() // 3, found.fold.long()
    assert torch.equal(found.x, given.x[place])
    assert torch.equal(found.y, given.y[place])
    assert len(torch.unique(place * FOLDS + fold)) == len(found)
    table = torch.zeros(23, FOLDS, dtype=torch.float64).index_put_((place, fold), found.weights, accumulate=True)
    assert torch.equal(table.sum(1), counts)
    # Binomial(m, 1/5) of each row: its standard deviation is 0.4 √m, and 115 of them are within five.
    assert ((table - counts[:, None] / FOLDS).abs() <= 5 * 0.4 * counts[:, None].sqrt()).all()


def test_folds_go_with_the_rows() -> None:
    found = with_folds(rows(), FOLDS, seed=1)
    some = torch.tensor([3, 1, 20])
    assert torch.equal(found.take(some).fold, found.fold[some])
    batch = found.at((torch.arange(23) + 0.5) / 23)
    assert torch.equal(batch.fold, found.fold)
    assert rows().at(torch.tensor([0.5])).fold is None
