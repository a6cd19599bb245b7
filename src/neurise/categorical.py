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
    probs = log_probs.to(uniform.dtype).exp()
    # Token by token: a running sum along a short last axis is far slower, on a GPU above all.
    level = uniform * _total(probs)
    below, token = torch.zeros_like(level), torch.zeros_like(level, dtype=torch.int16)
    for prob in probs.unbind(-1)[:-1]:
        below = below + prob
        token += level >= below
    return token.to(torch.uint8) if log_probs.shape[-1] <= 256 else token


def _total(probs: Tensor) -> Tensor:
    """Add up the last axis in the order in which the levels are found, so that the last of them is the sum to the bit."""
    total = torch.zeros_like(probs[..., 0])
    for prob in probs.unbind(-1):
        total = total + prob
    return total
