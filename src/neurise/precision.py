"""Arithmetic of matrix products on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

SHORT = ~0x1FFF
"""The bits of a float32 that a product keeps which rounds to eleven of them: all but the last thirteen."""


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


def product_in_two(features: Tensor, factor: Tensor) -> Tensor:
    """Multiply features that have one bit, ±½, by numbers that are cut into two parts of which nothing much is lost.

    A GPU is several times faster where it may round factors to eleven bits.
    """
    high = (factor.contiguous().view(torch.int32) & SHORT).view(torch.float32)
    with arithmetic("tf32"):
        return features @ high + features @ (factor - high)
