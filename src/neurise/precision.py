"""Arithmetic of matrix products on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Multiply matrices on a GPU in a precision; on a CPU it changes nothing.

    "tf32" rounds the factors of a product to 10 bits and adds up in float32; "bfloat16" rounds them, and what goes from layer
    to layer, to 7 bits. Weights, the optimiser and the average stay in float32.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
