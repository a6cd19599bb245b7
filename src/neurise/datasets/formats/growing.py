"""Rows that arrive a block at a time."""

from __future__ import annotations

import numpy as np


class Growing:
    """A matrix that grows at its end, in the smallest type that holds all its rows.

    Room is added an eighth at a time by reallocation, which for large blocks of memory moves pages and copies nothing: the
    rows never exist twice.
    """

    def __init__(self) -> None:
        self._held: np.ndarray | None = None
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, block: np.ndarray) -> None:
        """Add rows, all of one width."""
        block = narrowed(block)
        if self._held is None:
            self._held = np.array(block)
        else:
            self._widen(np.promote_types(self._held.dtype, block.dtype))
            end = self._rows + len(block)
            if end > len(self._held):
                self._resize(max(end, len(self._held) + len(self._held) // 8))
            self._held[self._rows : end] = block
        self._rows += len(block)

    def array(self) -> np.ndarray:
        """Give all rows; nothing can be added afterwards."""
        if self._held is None:
            raise ValueError("there are no rows")
        self._resize(self._rows)
        return self._held

    def _widen(self, dtype: np.dtype) -> None:
        if self._held is not None and self._held.dtype != dtype:
            self._held = self._held[: self._rows].astype(dtype)

    def _resize(self, rows: int) -> None:
        if self._held is not None and len(self._held) != rows:
            self._held.resize((rows, self._held.shape[1]), refcheck=False)  # nobody else has seen it


def narrowed(values: np.ndarray) -> np.ndarray:
    """Give whole numbers the smallest signed type that holds them; letters stay as they are."""
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    types = (np.int8, np.int16, np.int32, np.int64)
    return values.astype(next(t for t in types if np.iinfo(t).min <= low and high <= np.iinfo(t).max), copy=False)
