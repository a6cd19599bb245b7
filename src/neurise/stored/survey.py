"""What the first pass over the files finds out: rows that show every symbol, and how often each label occurs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neurise.holdings import Holding
from neurise.space import MAX_STATES

MOST_LABELS = 2**16
DENSE = 2**16
"""Range of whole numbers up to which they are counted instead of sorted."""


class Survey:
    """Rows that show, for every column, each of its symbols once; and the mass of every label."""

    def __init__(self, sites: int, names: Sequence[str] | None) -> None:
        self.names = [f"column {k}" for k in range(sites)] if names is None else [f"column {n!r}" for n in names]
        self._seen: list[set[Any]] = [set() for _ in range(sites)]
        self.rows: list[np.ndarray] = []
        self.row_labels: list[np.ndarray] = []
        self.labels: dict[Any, float] = {}

    def see(self, block: Holding) -> None:
        """Look at some rows, and keep those that show a new symbol or a new label."""
        chosen: list[int] = []
        for site, seen in enumerate(self._seen):
            values, first = distinct(block.X[:, site])
            new = [k for k, value in enumerate(values) if value not in seen]
            seen.update(values[k] for k in new)
            chosen += [first[k] for k in new]
            if len(seen) > MAX_STATES:
                some = ", ".join(map(repr, sorted(seen, key=str)[:5]))
                raise ValueError(
                    f"{self.names[site]} has more than {MAX_STATES} different values, {some}, …; leave it out "
                    "(drop_columns=, --drop-column), or write its values in fewer classes"
                )
        if block.y is not None:
            kinds, places, index = np.unique(block.y, return_index=True, return_inverse=True)
            masses = np.bincount(index, weights=block.weights, minlength=len(kinds))
            chosen += [int(k) for value, k in zip(kinds.tolist(), places, strict=True) if value not in self.labels]
            for value, mass in zip(kinds.tolist(), masses.tolist(), strict=True):
                self.labels[value] = self.labels.get(value, 0.0) + mass
            if len(self.labels) > MOST_LABELS:
                raise ValueError(f"the labels have more than {MOST_LABELS:,} different values")
        if chosen:
            index = np.unique(chosen)
            self.rows.append(block.X[index])
            if block.y is not None:
                self.row_labels.append(block.y[index])


def distinct(column: np.ndarray) -> tuple[list[Any], list[int]]:
    """Return the different values of a column, and the first place of each."""
    if column.dtype.kind in "bu" and column.dtype.itemsize == 1:
        low, span = 0, 256
    elif column.dtype.kind in "iu" and len(column):
        low = int(column.min())
        span = int(column.max()) - low + 1
    else:
        span = DENSE + 1
    if span > DENSE:
        values, first = np.unique(column, return_index=True)
        return values.tolist(), first.tolist()
    numbers = column.astype(np.int64) - low
    present = np.flatnonzero(np.bincount(numbers, minlength=1))
    return (present + low).astype(column.dtype).tolist(), [int((numbers == value).argmax()) for value in present]
