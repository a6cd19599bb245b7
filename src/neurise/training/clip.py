"""Clipping of gradients, for one network or for many that are stacked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def clip_(gradients: Sequence[Tensor], clip_norm: float, *, stacked: bool = False) -> None:
    r"""Multiply the gradients g of a network by :math:`\min(1, c / (\lVert g \rVert + 10^{-6}))`, in place.

    The norm runs over all of its parameters together. Where networks are stacked, the first axis of every gradient counts
    them, and each has a norm of its own: one that explodes does not slow the others down. Nothing waits for the device.
    """
    if not stacked:
        norm = torch.nn.utils.get_total_norm(gradients)
        torch._foreach_mul_(list(gradients), _factor(norm, clip_norm))
        return
    # One long row a network: a norm for every parameter would be many small kernels on a GPU.
    norm = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1).norm(dim=1)
    factor = _factor(norm, clip_norm)
    for gradient in gradients:
        gradient.mul_(factor.reshape(-1, *[1] * (gradient.dim() - 1)))


def _factor(norm: Tensor, clip_norm: float) -> Tensor:
    return (clip_norm / (norm + 1e-6)).clamp(max=1.0)
