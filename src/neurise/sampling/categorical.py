"""Drawing tokens."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def uniforms(n: int, *, generator: Generator) -> Tensor:
    """Draw n uniform numbers in float64 where the device has it: float32 would round small probabilities away."""
    device = generator.device
    dtype = torch.float32 if device.type == "mps" else torch.float64
    return torch.rand(n, generator=generator, device=device, dtype=dtype)


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    r"""Inverse-CDF draw: the token a with :math:`F_{a-1} \le \text{uniform} < F_a`, (..., states) → (...) tokens.

    A token of probability zero is never drawn. For two states this is one threshold.
    """
    cdf = log_probs.to(uniform.dtype).exp().cumsum(dim=-1)
    level = uniform[..., None] * cdf[..., -1:]
    return (level >= cdf[..., :-1]).sum(dim=-1).to(torch.uint8 if log_probs.shape[-1] <= 256 else torch.int16)
