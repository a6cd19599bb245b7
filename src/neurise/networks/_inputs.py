"""What the networks are shown: one-hots of tokens."""

from __future__ import annotations

import torch
from torch import Tensor


def one_hot(x: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of tokens, (..., states); all-zero where a token is none of the states, as a mask is."""
    return (x[..., None] == torch.arange(states, device=x.device, dtype=x.dtype)).to(dtype)


def visible_one_hot(x: Tensor, u: Tensor, hidden: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of x, all-zero at site u and at every hidden site, (..., sites · states)."""
    sites = torch.arange(x.shape[-1], device=x.device)
    visible = ~(hidden | (sites == u[..., None]))
    tokens = torch.arange(states, device=x.device, dtype=x.dtype)
    return ((x[..., None] == tokens) & visible[..., None]).to(dtype).flatten(-2)
