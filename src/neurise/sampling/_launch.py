"""How the work of the fused kernels is cut up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """How the work is cut up; changes nothing but the speed."""

    rows: int = 128  # of a block: 64 for each group of four warps, so that a norm stays within a warp
    warps: int = 8
    held: int = 150_000  # bytes of weights that may stay on the chip
    narrow: int = 256  # width up to which hidden layers stay in registers
    tile: int = 128  # columns of a wider layer that are made at a time
    chunk: int = 64  # and of those that enter a product at a time
    stages: int = 2  # chunks on their way to a product
