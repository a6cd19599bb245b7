"""The empirical distribution: the data itself, drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neurise.categorical import uniforms
from neurise.modeling.model import Request
from neurise.modeling.solved import SolvedModel
from neurise.space import row_ids


@dataclass(kw_only=True, eq=False, repr=False)
class Memorize(SolvedModel):
    r"""The rows of the data, each as often as it weighs.

    .. math:: P(x \mid y) = \sum_{n : y_n = y} w_n 1\{x_n = x\} \Big/ \sum_{n : y_n = y} w_n

    A baseline. A model that is no closer to the truth than this has not generalised.

    Args:
        order: the sites in the order in which the model takes them; of no consequence here.
        alphabet: all symbols, where the sample may lack some.

    >>> import neurise, numpy as np
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> np.exp(neurise.Memorize().fit(X).log_prob(X[:4])).round(2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def _count(self, x: Tensor, y: Tensor, weights: Tensor) -> dict[str, Tensor]:
        (ids,) = row_ids(x, states=self.schema_.space.states)
        # Equal rows of different classes stay apart.
        keys, place = torch.unique(ids * max(1, self.schema_.classes) + y, return_inverse=True)
        first = torch.full((len(keys),), len(x)).scatter_reduce_(0, place, torch.arange(len(x)), "amin")
        masses = torch.zeros(len(keys), dtype=torch.float64).index_add_(0, place, weights)
        return {"rows": x[first], "classes": y[first], "masses": masses}

    def _check_tables(self, tables: Mapping[str, Tensor]) -> None:
        space, classes = self.schema_.space, max(1, self.schema_.classes)
        count = len(tables.get("masses", ()))
        wanted = {"rows": (torch.uint8, (count, space.sites)), "classes": (torch.int64, (count,))}
        self._insist(tables, **wanted, masses=(torch.float64, (count,)))
        if not count or int(tables["rows"].max()) >= space.states:
            raise ValueError(f"the tensor rows must hold tokens below {space.states}")
        if not 0 <= int(tables["classes"].min()) <= int(tables["classes"].max()) < classes:
            raise ValueError(f"the tensor classes must hold numbers from 0 to {classes - 1}")
        if not bool((tables["masses"] > 0).all()):
            raise ValueError("the tensor masses must hold positive numbers")

    def _draw(self, request: Request) -> Tensor:
        self._refuse(sweeps=request.sweeps, start=request.start)
        n, y, clamp, generator = request.n, request.y, request.clamp, request.generator
        labels = self._class_of(y, n)
        level = uniforms(n, generator=generator)
        if clamp is None:
            return self.tables_["rows"][self._pick(labels, level)]
        values, given = (part.to(self.device_).expand(n, -1) for part in clamp)
        groups = torch.cat([values.masked_fill(~given, 0), given, labels[:, None]], dim=1)
        place = torch.empty(n, dtype=torch.int64, device=self.device_)
        for group in torch.unique(groups, dim=0):
            here = (groups == group).all(1)
            row = int(torch.nonzero(here)[0])
            fits = ((self.tables_["rows"] == values[row]) | ~given[row]).all(1)
            if y is not None:
                fits &= self.tables_["classes"] == labels[row]
            if not bool(fits.any()):
                raise ValueError("no row of the data has the clamped values: nothing can be drawn")
            place[here] = _at(self.tables_["masses"] * fits, level[here])
        return self.tables_["rows"][place]

    def _pick(self, labels: Tensor, level: Tensor) -> Tensor:
        """Draw a row of each label's class by mass."""
        place = torch.empty_like(labels)
        for label in torch.unique(labels):
            here = labels == label
            place[here] = _at(self.tables_["masses"] * (self.tables_["classes"] == label), level[here])
        return place

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        rows, classes, number = self.tables_["rows"], self.tables_["classes"], max(1, self.schema_.classes)
        known, asked = row_ids(rows, x.to(self.device_), states=self.space_.states)
        share = torch.zeros((len(rows) + len(x)) * number, dtype=torch.float64, device=self.device_)
        share[known * number + classes] = self.tables_["masses"] / self._class_masses()[classes]
        return share[asked * number + self._class_of(y, len(x))].log().cpu()

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Return the empirical law: the share of each row at its index."""
        masses = self.tables_["masses"] * (self.tables_["classes"] == self._class_of(label, 1))
        law = torch.zeros(self.space_.size, dtype=torch.float64, device=self.device_)
        return law.index_add_(0, self.space_.index(self.tables_["rows"]), masses / masses.sum())

    def _class_masses(self) -> Tensor:
        classes = max(1, self.schema_.classes)
        totals = torch.zeros(classes, dtype=torch.float64, device=self.device_)
        return totals.index_add_(0, self.tables_["classes"], self.tables_["masses"])


def _at(masses: Tensor, level: Tensor) -> Tensor:
    """Inverse-CDF draw: the place whose share of the total mass holds each level; a mass of zero is never chosen."""
    total = masses.cumsum(0)
    place = torch.searchsorted(total, level * total[-1], right=True)
    return place.clamp(max=int(torch.nonzero(masses)[-1]))
