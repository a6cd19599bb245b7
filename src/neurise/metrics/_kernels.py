"""Similarities of two rows, as functions of how many of their sites agree."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from neurise.space import Space

Kernel = Callable[[Tensor], Tensor]
"""From numbers of agreeing sites to values of the kernel, in float64."""

BANDWIDTH = 0.25
"""Of the exponential kernel, as a share of the sites, where none is given."""


def polynomial(space: Space, bandwidth: float | None) -> Kernel:
    r"""The kernel :math:`k(x, y) = (\tfrac1q \langle x, y \rangle + 1)^3`.

    Rows are spins ±1 for two states, :math:`\langle x, y \rangle = 2a - q` with a agreeing sites, and one-hot for more,
    :math:`\langle x, y \rangle = a`.
    """
    if bandwidth is not None:
        raise ValueError(
            f"the polynomial kernel has no bandwidth, got {bandwidth}; kernel='exponential_hamming' has one"
        )
    scale, shift = (2.0, 0.0) if space.states <= 2 else (1.0, 1.0)
    return lambda agreement: (agreement.double() * (scale / space.sites) + shift) ** 3


def exponential_hamming(space: Space, bandwidth: float | None) -> Kernel:
    r"""The kernel :math:`k(x, y) = \exp(-d_H(x, y) / (b q))`, with b the bandwidth as a share of the sites."""
    share = BANDWIDTH if bandwidth is None else bandwidth
    if not (math.isfinite(share) and share > 0):
        raise ValueError(f"bandwidth must be a positive number, a share of the sites; got {bandwidth}")
    return lambda agreement: torch.exp((agreement.double() - space.sites) / (share * space.sites))


KERNELS: dict[str, Callable[[Space, float | None], Kernel]] = {
    "polynomial": polynomial,
    "exponential_hamming": exponential_hamming,
}


def find(name: str, space: Space, bandwidth: float | None) -> Kernel:
    """Return the kernel of a name on a space."""
    if name not in KERNELS:
        raise ValueError(f"unknown kernel {name!r}; there are: {', '.join(KERNELS)}")
    return KERNELS[name](space, bandwidth)
