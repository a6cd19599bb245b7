"""Many models of one kind, trained as one: their rows and their objective, stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from neurise.networks.parts.stack import Stack
from neurise.rows import Batch, Rows
from neurise.training.objective import Objective, Prediction

BELOW_ONE = 1 - 2.0**-40
"""The greatest level of a draw among many data sets: one nearer to 1 could round up into the next of them."""


@dataclass(frozen=True)
class ManyRows:
    """The rows of K data sets, which may differ in size, one after another."""

    rows: Rows  # without weights
    first: Tensor  # (K,): where each data set begins
    count: Tensor  # (K,)
    advance: ClassVar[None] = None
    cumulative: Tensor | None  # (rows,): k plus the share of its weight that data set k has up to here

    @classmethod
    def of(cls, parts: Sequence[Rows]) -> ManyRows:
        """Put data sets together; either all of them have labels, or none, and the same with weights and gaps."""
        count = torch.tensor([len(part) for part in parts])
        y, fold, gaps = (_joined([getattr(part, own) for part in parts]) for own in ("y", "fold", "missing"))
        sums = [part.weights.cumsum(0) for part in parts if part.weights is not None]
        cumulative = torch.cat([k + total / total[-1] for k, total in enumerate(sums)]) if sums else None
        rows = Rows(torch.cat([part.x for part in parts]), y, fold=fold, missing=gaps)
        return cls(rows, count.cumsum(0) - count, count, cumulative)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    @property
    def num_bytes(self) -> int:
        """How much memory the rows take on the device."""
        return self.rows.num_bytes

    def to(self, device: torch.device) -> ManyRows:
        """Move everything to a device."""
        cumulative = None if self.cumulative is None else self.cumulative.to(device)
        return ManyRows(self.rows.to(device), self.first.to(device), self.count.to(device), cumulative)

    def draw(self, n: int, *, generator: Generator) -> Batch:
        """Draw n rows of each data set with replacement, (n, K, sites), each with probability proportional to its weight."""
        shape = (n, len(self.count))
        return self.at(torch.rand(shape, generator=generator, device=self.device, dtype=torch.float64))

    def spread(self, n: int, *, generator: Generator) -> Batch:
        """Repeat the rows of each data set to make n of them, each as often as its weight says to within one."""
        device = self.device
        orders = [torch.randperm(n, generator=generator, device=device) for _ in range(len(self.count))]
        return self.at((torch.stack(orders, dim=1).double() + 0.5) / n)

    def at(self, level: Tensor) -> Batch:
        """Pick the rows at given levels in [0, 1) of each data set's cumulative weight, (n, K)."""
        if self.cumulative is None:
            index = (level * self.count).long()
        else:
            every = torch.arange(len(self.count), device=level.device)
            level = every + level.clamp(max=BELOW_ONE)
            index = torch.searchsorted(self.cumulative, level, right=True) - self.first
        index = self.first + torch.minimum(index, self.count - 1)
        rows = self.rows
        y, fold, gaps = (None if part is None else part[index] for part in (rows.y, rows.fold, rows.missing))
        return Batch(rows.x[index], y, fold, gaps)


def _joined(parts: Sequence[Tensor | None]) -> Tensor | None:
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None


@dataclass(frozen=True)
class ManyObjective:
    """The objective of one network, for K of them: drawn examples are (n, K, ...), and so are losses and scores, (n, K)."""

    one: Objective
    network: Stack

    @property
    def noisings(self) -> int:
        """As often as for one network."""
        return self.one.noisings

    @property
    def bytes_per_example(self) -> int:
        """As much as K examples of one network."""
        return self.network.size * self.one.bytes_per_example

    def draw(self, batch: Batch, *, generator: Generator) -> tuple[Any, ...]:
        """Noise the rows (n, K, sites) of all models in one go.

        What is drawn for n · K examples is stratified: example i of each model gets the i-th of n strata of times, and the
        K models take its K parts in an order that is drawn anew for every i. So a model's times are those that it would
        draw alone.
        """
        n, models = batch.x.shape[:2]
        device = batch.x.device
        turn = (
            torch.randint(models, (n, 1), generator=generator, device=device)
            if models > 1
            else torch.zeros((n, 1), dtype=torch.int64, device=device)
        )
        every = torch.arange(models, device=device)
        row = models * torch.arange(n, device=device)[:, None]
        there = (row + (every - turn) % models).flatten()
        back = row.T + (every[:, None] + turn.T) % models  # (K, n): the layout that the stack reads
        mixed = Batch(*(None if part is None else part.flatten(0, 1)[there] for part in batch))  # type: ignore[arg-type]
        drawn = self.one.draw(mixed, generator=generator)
        return tuple(None if part is None else part[back].transpose(0, 1) for part in drawn)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the training losses, (n, K); ``network`` is the ``each`` of a :class:`Stack`."""
        return network(self.one.losses, drawn)

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the validation compares, (n, K)."""
        return network(self.one.scores, drawn)
