"""Models whose best fit has a closed form: nothing is trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from neurise.modeling.model import Model, Run
from neurise.rows import Rows


@dataclass(kw_only=True, eq=False, repr=False)
class SolvedModel(Model):
    """A model that is counted, not trained: limits, checkpoints and validation rows have no part in it."""

    order: Sequence[int] | None = None
    alphabet: Sequence[Any] | None = None
    tables_: dict[str, Tensor] = field(init=False)  # what was counted

    @abstractmethod
    def _count(self, x: Tensor, y: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """Make the tables from tokens (N, sites), class numbers (N,), all 0 without labels, and weights (N,).

        A model that ``takes_gaps`` is given int16 tokens where values are missing, −1 in their place.
        """

    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        y = torch.zeros(len(rows), dtype=torch.int64) if rows.y is None else rows.y
        weights = torch.ones(len(rows), dtype=torch.float64) if rows.weights is None else rows.weights
        x = rows.x if rows.missing is None else rows.x.to(torch.int16).masked_fill(rows.missing, -1)
        self._restore(self._count(x, y, weights), None)
        if bool((self.schema_.constant < 0).any()):
            self.stopped_ = "solved"

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.tables_

    def _check_tables(self, tables: Mapping[str, Tensor]) -> None:
        """Raise ValueError for tables, read from a file, that no data could have given."""

    def _insist(self, tables: Mapping[str, Tensor], **wanted: tuple[torch.dtype, tuple[int, ...]]) -> None:
        """Raise ValueError unless there are just these tables, of these types and shapes; −1 is any length."""
        for name, (dtype, shape) in wanted.items():
            table = tables.get(name)
            if table is None or table.dtype != dtype or len(table.shape) != len(shape):
                raise ValueError(f"the tensor {name} must be {dtype} with {len(shape)} axes")
            if any(size not in (-1, own) for size, own in zip(shape, table.shape, strict=True)):
                raise ValueError(f"the tensor {name} has the shape {tuple(table.shape)}, and {shape} was expected")
        if strange := sorted(tables.keys() - wanted.keys()):
            raise ValueError(f"the tensor {strange[0]} has no place in a {type(self).__name__}")

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        self._check_tables(tensors)
        self.tables_ = {name: tensor.to(self.device_) for name, tensor in tensors.items()}

    def _class_of(self, y: Tensor | None, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.int64, device=self.device_) if y is None else y.to(self.device_).expand(n)
