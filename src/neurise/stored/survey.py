"""What the first pass over the files finds out: rows that show every symbol, and how often each label occurs."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.holdings import Holding
from neurise.space import MAX_STATES
from neurise.stored.reading import Coded, Reader

MOST_LABELS = 2**16
DENSE = 2**16
"""Range of whole numbers up to which they are counted instead of sorted."""


class Survey:
    """Rows that show, for every column, each of its symbols once; and the mass of every label."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._seen: list[set[Any]] = [set() for _ in range(reader.sites)]
        self.rows: list[Any] = []
        self.row_labels: list[np.ndarray] = []
        self.labels: dict[Any, float] = {}

    def see(self, block: Holding) -> None:
        """Look at some rows, and keep those that show a new symbol or a new label."""
        chosen: list[int] = []
        for site, seen in enumerate(self._seen):
            values, first = distinct(self.reader.column(block.X, site))
            new = [k for k, value in enumerate(values) if value not in seen]
            seen.update(values[k] for k in new)
            chosen += [first[k] for k in new]
            if len(seen) > MAX_STATES:
                raise ValueError(self._too_many(site, seen))
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
            self.rows.append(self.reader.take(block.X, index))
            if block.y is not None:
                self.row_labels.append(block.y[index])

    def exemplars(self) -> tuple[Any, np.ndarray | None]:
        """Return the rows and their labels, twice: where every value differs, a column would seem to name the rows."""
        return self.reader.join(2 * self.rows), np.concatenate(2 * self.row_labels) if self.row_labels else None

    def _too_many(self, site: int, seen: set[Any]) -> str:
        names, some = self.reader.names, ", ".join(map(repr, sorted(seen, key=str)[:5]))
        name = f"column {site}" if names is None else f"column {names[site]!r}"
        return (
            f"{name} has more than {MAX_STATES} different values, {some}, …; leave it out (drop_column=, --drop-column), or "
            "write its values to the files in fewer classes"
        )


def distinct(column: Coded) -> tuple[list[Any], list[int]]:
    """Return the different values of a column, and the first place of each."""
    index, values = column.codes, column.values
    low, span = 0, 256
    if index.dtype.itemsize > 1 or index.dtype.kind == "i":
        low = int(index.min()) if len(index) else 0
        span = int(index.max()) - low + 1 if len(index) else 1
    if span > DENSE:
        found, first = (part.tolist() for part in np.unique(index, return_index=True))
    else:
        numbers = index.astype(np.int64) - low
        present = np.flatnonzero(np.bincount(numbers, minlength=1))
        found, first = (present + low).astype(index.dtype).tolist(), [int((numbers == k).argmax()) for k in present]
    return found if values is None else [values[k] for k in found], first
