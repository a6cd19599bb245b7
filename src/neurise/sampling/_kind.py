"""What sets one fused kernel apart from another: each kind is compiled, and tried, once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neurise.networks.parts.plan import Layers, Plan, View
from neurise.sampling._launch import Launch

MAX_WIDTH = 1024
"""The weights of wider layers leave the cache between two steps."""
MAX_STATES = 64


@dataclass(frozen=True)
class Kind:
    """What a kernel is compiled for."""

    width: int
    depth: int
    states: int
    residual: bool
    grows: bool
    eps: float
    several: bool  # more than one network
    pairs: bool

    @property
    def wide(self) -> bool:
        """Whether hidden layers do not fit in registers, unless a launch says otherwise."""
        return self.width > Launch.narrow


def kind_of(plan: Plan, view: View) -> Kind | None:
    """Find what kind of kernel a plan needs; None where no kernel serves it.

    A kernel runs networks of one shape, in float32, through cycles that touch every site.
    """
    if not plan.layers:
        return None
    noise, (first, *others) = view.noise, [layers for _, layers in plan.layers]
    if any(_shape(layers) != _shape(first) for layers in others) or first.columns.dtype != torch.float32:
        return None
    if noise.num_steps != noise.cycles * noise.space.sites:
        return None
    kind = Kind(
        width=first.columns.shape[-1],
        depth=len(first.scales),
        states=noise.space.states,
        residual=first.residual,
        grows=view.grows,
        eps=first.eps,
        several=bool(others),
        pairs=plan.pair is not None,
    )
    return kind if kind.width <= MAX_WIDTH and kind.states <= MAX_STATES else None


def _shape(layers: Layers) -> tuple[object, ...]:
    """List what all networks of a kernel share: width, depth, labels, heads, and how a block is made."""
    tensors = (layers.columns, layers.label, layers.head)
    return *(tensor.shape for tensor in tensors), layers.columns.dtype, len(layers.scales), layers.residual, layers.eps
