"""Arithmetic of the products in a training step on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

PRECISIONS = ("float32", "tf32", "bfloat16")


@contextmanager
def arithmetic(precision: str, device: torch.device) -> Iterator[None]:
    """Multiply matrices in a precision. On a CPU all is float32, whatever is asked for.

    "tf32" rounds the factors of a product to 10 bits and adds up in float32; "bfloat16" rounds them, and what goes from layer
    to layer, to 7 bits. Weights, the optimiser and the average stay in float32.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
