"""Translate blocks of rows to tokens by tables, which is many times faster than to look every value up."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.schema import Schema
from neurise.stored.reading import Reader

WIDEST = 2**16
"""Entries of the table of a column at most."""


class Translation:
    """What a schema makes of the symbols of every column, read off rows that show each of them."""

    def __init__(self, schema: Schema, reader: Reader, rows: Any) -> None:
        self.schema, self.reader = schema, reader
        self.known: list[dict[Any, int]] = []
        tokens = schema.encode(rows).numpy()
        for place, site in enumerate(schema.order):
            index, values = reader.column(rows, site)
            own = index.tolist() if values is None else [values[k] for k in index]
            self.known.append(dict(zip(own, tokens[:, place].tolist(), strict=True)))

    def __call__(self, rows: Any) -> Tensor:
        """Translate rows as the schema does, (N, sites) uint8."""
        parts = []
        for place, site in enumerate(self.schema.order):
            index, values = self.reader.column(rows, site)
            known, low = self.known[place], 0
            if values is None:
                low, high = int(index.min()), int(index.max())
                if high - low >= WIDEST:
                    return self.schema.encode(rows)
                # A bool is a number here, and equal to one.
                values = range(low, high + 1)
            table = np.array([known.get(value, -1) for value in values], dtype=np.int16)
            tokens = table[index.astype(np.int64) - low]
            if (tokens < 0).any():
                return self.schema.encode(rows)  # which says what is wrong
            parts.append(tokens.astype(np.uint8))
        return torch.from_numpy(np.ascontiguousarray(np.stack(parts).T))
