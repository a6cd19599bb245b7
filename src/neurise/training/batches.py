"""Rows of data on the device: drawing minibatches, and holding some back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Generator, Tensor


class Source(Protocol):
    """Where minibatches come from."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    @property
    def device(self) -> torch.device:
        """Where minibatches are wanted."""

    @property
    def num_bytes(self) -> int:
        """How much memory the rows take there."""

    def advance(self, step: int) -> None:
        """Make ready for the draw of a step, where there is something to be done that cannot be part of it."""

    def draw(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Draw n rows with replacement, each with probability proportional to its weight, and their labels."""

    def spread(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Repeat the rows to make n of them, each as often as its weight says to within one, in random order."""


@dataclass(frozen=True)
class Rows:
    """Tokens (N, sites) uint8, labels (N,) or None, weights (N,) float64 or None where all rows count the same."""

    x: Tensor
    y: Tensor | None = None
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.x.device

    @property
    def num_bytes(self) -> int:
        """How much memory the tokens take."""
        return self.x.numel()

    def advance(self, step: int) -> None:
        """Do nothing: rows that are all here are always ready."""

    def to(self, device: torch.device) -> Rows:
        """Move everything to a device."""
        moved = (None if part is None else part.to(device) for part in (self.x, self.y, self.weights))
        return Rows(*moved)  # type: ignore[arg-type]

    def take(self, index: Tensor) -> Rows:
        """Pick rows, with what belongs to them."""
        picked = (None if part is None else part[index] for part in (self.x, self.y, self.weights))
        return Rows(*picked)  # type: ignore[arg-type]

    @cached_property
    def _cumulative(self) -> Tensor | None:
        return None if self.weights is None else self.weights.cumsum(0)

    def draw(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Draw n rows with replacement, each with probability proportional to its weight."""
        return self.at(torch.rand(n, generator=generator, device=self.x.device, dtype=torch.float64))

    def spread(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Repeat the rows to make n of them, each as often as its weight says to within one, in random order."""
        order = torch.randperm(n, generator=generator, device=self.x.device)
        return self.at((order.double() + 0.5) / n)

    def at(self, level: Tensor) -> tuple[Tensor, Tensor | None]:
        """Pick the rows at given levels in [0, 1) of the cumulative weight."""
        if self._cumulative is None:
            index = (level * len(self)).long()
        else:
            index = torch.searchsorted(self._cumulative, level * self._cumulative[-1], right=True)
        index = index.clamp(max=len(self) - 1)
        return self.x[index], None if self.y is None else self.y[index]


def are_counts(weights: Tensor) -> bool:
    """Whether weights are whole numbers: counts of equal observations."""
    return bool((weights == weights.round()).all()) and bool(weights.max() > 1)


def into_folds(counts: Tensor, folds: int, *, generator: Generator) -> Iterator[Tensor]:
    """Put every observation into one of the folds at random; yield how many of each row a fold has, fold after fold."""
    left = counts
    for fold in range(folds):
        taken = torch.binomial(left, torch.full_like(left, 1 / (folds - fold)), generator=generator)
        left = left - taken
        yield taken


def split(rows: Rows, fraction: float, *, generator: Generator) -> tuple[Rows, Rows | None]:
    """Hold back a fraction of the observations.

    Whole-number weights are counts of equal observations, and each *observation* goes to one side or the other: a row
    seen m times is held back Binomial(m, fraction) times, so that both sides follow the same law. Without counts, rows
    are shuffled and cut. None is held back where that would leave a side empty.
    """
    if fraction == 0:
        return rows, None
    if rows.weights is not None and are_counts(rows.weights):
        held = torch.binomial(rows.weights, torch.full_like(rows.weights, fraction), generator=generator)
        kept = rows.weights - held
        if not kept.any() or not held.any():
            return rows, None
        return _with_weights(rows, kept), _with_weights(rows, held)
    cut = round(len(rows) * fraction)
    if cut == 0 or cut == len(rows):
        return rows, None
    order = torch.randperm(len(rows), generator=generator, device=rows.x.device)
    kept_rows, held_rows = rows.take(order[cut:]), rows.take(order[:cut])
    if any(part.weights is not None and not part.weights.any() for part in (kept_rows, held_rows)):
        return rows, None
    return kept_rows, held_rows


def _with_weights(rows: Rows, weights: Tensor) -> Rows:
    present = weights > 0
    return Rows(rows.x[present], None if rows.y is None else rows.y[present], weights[present])


def digest(*parts: Rows | None) -> str:
    """Tell data sets apart, by what is in them."""
    total = hashlib.sha256()
    for part in parts:
        for tensor in (None,) if part is None else (part.x, part.y, part.weights):
            total.update(b"-" if tensor is None else str(tuple(tensor.shape)).encode())
            total.update(b"" if tensor is None else tensor.contiguous().cpu().numpy().tobytes())
    return total.hexdigest()[:16]
