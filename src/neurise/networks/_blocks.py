"""The paper's hidden layers, which its networks share."""

from __future__ import annotations

import torch
from torch import nn


def blocks(width: int, depth: int) -> nn.Sequential:
    """LayerNorm → SiLU after a first Linear that the network has of its own, then depth − 1 times Linear → LayerNorm → SiLU."""
    layers: list[nn.Module] = [nn.LayerNorm(width), nn.SiLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU()]
    return nn.Sequential(*layers)


def reset_blocks(hidden: nn.Sequential, generator: torch.Generator) -> None:
    """Draw their weights."""
    for layer in hidden:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
            nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.LayerNorm):
            layer.reset_parameters()
