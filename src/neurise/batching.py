"""Cutting work into pieces that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch

MEMORY_BUDGET = 2**28
"""Bytes that one piece may take. A constant, so that a seed gives the same samples on every machine."""
CACHE = 2**22
"""Bytes of a piece on a CPU that is gone through many times, so that it stays in the cache."""
ON_GPU = 4
"""So many times as much on a GPU, which small pieces would leave idle."""


def budget_on(device: torch.device) -> int:
    """Return the bytes that one piece may take on a device."""
    return MEMORY_BUDGET * (ON_GPU if device.type == "cuda" else 1)


def batches(n: int, bytes_per_row: int, budget: int | None = None) -> Iterator[slice]:
    """Cut n rows into slices that fit the budget."""
    size = max(1, (budget or MEMORY_BUDGET) // bytes_per_row)
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))
