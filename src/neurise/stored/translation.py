"""Translate blocks of whole numbers to tokens by tables, which is many times faster than to look each up."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neurise.schema import Schema

WIDEST = 2**16
"""Entries of the table of a column at most."""


class Translation:
    """What a schema makes of the symbols of every column, read off rows that show each of them."""

    def __init__(self, schema: Schema, rows: np.ndarray) -> None:
        self.schema, self.tables = schema, list[np.ndarray]()
        if rows.dtype.kind not in "biu":
            return
        low, high = rows.min(0).astype(np.int64), rows.max(0).astype(np.int64)
        if int((high - low).max()) >= WIDEST:
            return
        tokens = schema.encode(rows).numpy()
        for place, site in enumerate(schema.order):
            table = np.full(int(high[site] - low[site]) + 1, -1, dtype=np.int16)
            table[rows[:, site].astype(np.int64) - low[site]] = tokens[:, place]
            self.tables.append(table)
        self.low = low

    def __call__(self, rows: np.ndarray) -> Tensor:
        """Translate rows as the schema does, (N, sites) uint8."""
        if not self.tables or rows.dtype.kind not in "biu":
            return self.schema.encode(rows)
        found = np.empty((len(self.tables), len(rows)), dtype=np.uint8)
        for place, (site, table) in enumerate(zip(self.schema.order, self.tables, strict=True)):
            index = rows[:, site].astype(np.int64) - self.low[site]
            if len(index) and (index.min() < 0 or index.max() >= len(table)):
                return self.schema.encode(rows)  # which says what is wrong
            tokens = table[index]
            if (tokens < 0).any():
                return self.schema.encode(rows)
            found[place] = tokens
        return torch.from_numpy(np.ascontiguousarray(found.T))
