"""Hidden layers of the paper's networks: Linear → LayerNorm → SiLU, on a GPU as fused kernels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Blocks(nn.Module):
    """LayerNorm → SiLU after a first Linear that the network has of its own, then depth − 1 times Linear → LayerNorm → SiLU.

    With ``residual``, each of the depth − 1 blocks adds what enters it to what leaves it.
    """

    def __init__(self, width: int, depth: int, *, residual: bool = False) -> None:
        super().__init__()
        self.residual = residual
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)])
        self.linears = nn.ModuleList([nn.Linear(width, width) for _ in range(depth - 1)])

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        for linear in self.linears:
            assert isinstance(linear, nn.Linear)  # for the type checker
            nn.init.kaiming_uniform_(linear.weight, a=5**0.5, generator=generator)
            nn.init.zeros_(linear.bias)
        for norm in self.norms:
            assert isinstance(norm, nn.LayerNorm)
            norm.reset_parameters()

    def forward(self, h: Tensor) -> Tensor:
        """Return the last block, (..., width)."""
        norms = [norm for norm in self.norms if isinstance(norm, nn.LayerNorm)]  # all of them, with their type
        h = normed(h, norms[0])
        for linear, norm in zip(self.linears, norms[1:], strict=True):
            assert isinstance(linear, nn.Linear)  # for the type checker
            h = normed(h, norm, linear, residual=self.residual)
        return h


def normed(h: Tensor, norm: nn.LayerNorm, linear: nn.Linear | None = None, *, residual: bool = False) -> Tensor:
    """Apply (Linear →) LayerNorm → SiLU, and add what entered if asked to, (..., width)."""
    if h.is_cuda:
        from neurise.networks.parts import _normed

        if _normed.serves(h):
            return _normed.apply(h, norm, linear, residual=residual)
    block = functional.silu(norm(h if linear is None else linear(h)))
    return h + block if residual else block
