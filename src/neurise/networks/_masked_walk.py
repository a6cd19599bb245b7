"""Rows that a masked perceptron generates: a step computes the hidden units whose sites have just become known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from neurise.networks.parts.layers import relative_one_hot
from neurise.networks.parts.walk import Walk

if TYPE_CHECKING:
    from neurise.networks.masked import Masked

BLOCK = 32
"""Sites whose units and outputs are given what is known before the first of them is drawn, by one product per layer."""


class MaskedWalk(Walk):
    r"""The state of n rows, one column each: features of the tokens so far, and the hidden units that these determine.

    Every weight is used once in a row: a block of sites begins with the products of its units and outputs with all that is
    known, and a step adds what became known within the block. A mask need not be looked at, because a step takes just those
    stretches of the weights that are there.
    """

    def __init__(self, network: Masked, x: Tensor, y: Tensor | None, *, precision: str) -> None:
        rows, like = x.shape[1], network.first.detach()
        self.network, self.size = network, network.space.states - 1
        self.low = torch.bfloat16 if precision == "bfloat16" else like.dtype  # of the products of a block
        self.y, self.bottom, self.top = y, len(x), len(x)  # of the block at hand, [bottom, top)
        self.shown = like.new_zeros(len(network.offset), rows)  # (sites · features, n)
        self.active = [like.new_zeros(network.width, rows) for _ in range(network.depth)]
        self.partial = list[Tensor]()  # of the block's units, layer by layer
        self.outputs = self.shown  # of the block's sites, (sites · features, n)

    def logits(self, u: int) -> Tensor:
        """Compute the units that look at the sites after u and at no other, and the outputs of u."""
        if u < self.bottom:
            self._begin(u + 1)
        network, known = self.network, self.network.units_from(self.top + 1)
        units, place = self._units(u, u + 1), network.units_from(self.bottom + 1)
        near = slice((u + 1) * self.size, self.top * self.size)  # what became known within the block
        if units.stop > units.start:
            own, seen = slice(units.start - place, units.stop - place), slice(units.start, known)
            h = torch.addmm(self.partial[0][own], network.first[units, near], self.shown[near])
            torch.clamp(h, min=0, out=self.active[0][units])
            for weight, below, here, partial in zip(
                network.hidden, self.active, self.active[1:], self.partial[1:], strict=False
            ):
                h = h + torch.addmm(partial[own], weight[units, seen], below[seen])
                torch.clamp(h, min=0, out=here[units])
        asked, seen = slice(u * self.size, (u + 1) * self.size), slice(units.start, known)
        start = self.bottom * self.size
        total = torch.addmm(self.outputs[asked.start - start : asked.stop - start], network.last[asked, seen], self.active[-1][seen])
        if near.stop > near.start:
            total = torch.addmm(total, network.direct[asked, near], self.shown[near])
        return total.T if self.size == 1 else functional.pad(total.T, (1, 0))

    def put(self, u: int, token: Tensor) -> None:
        """Write the features of the new tokens down."""
        self.shown[u * self.size : (u + 1) * self.size] = relative_one_hot(token, self.size + 1, self.shown.dtype).T

    def _begin(self, top: int) -> None:
        """Begin the block of sites below ``top``: give its units and outputs what is known of all others."""
        network = self.network
        self.top, self.bottom = top, (top - 1) // BLOCK * BLOCK
        known, units = slice(network.units_from(top + 1), network.width), self._units(self.bottom, top)
        later, asked = slice(top * self.size, None), slice(self.bottom * self.size, top * self.size)
        biases, offset = [bias[units, None] for bias in network.biases], network.offset[asked, None]
        if self.y is not None:
            biases[0] = biases[0] + network.label[:, units].T.index_select(1, self.y)
            offset = offset + network.label_offset[:, asked].T.index_select(1, self.y)
        self.partial = [biases[0] + self._product(network.first[units, later], self.shown[later])]
        for weight, bias, below in zip(network.hidden, biases[1:], self.active, strict=False):
            self.partial.append(bias + self._product(weight[units, known], below[known]))
        self.outputs = offset + self._product(network.last[asked, known], self.active[-1][known])
        self.outputs += self._product(network.direct[asked, later], self.shown[later])

    def _units(self, bottom: int, top: int) -> slice:
        """Return the units that the sites [bottom, top) wait for: those that look at the sites from bottom + 1 … top on."""
        return slice(self.network.units_from(bottom + 1), self.network.units_from(top + 1))

    def _product(self, weight: Tensor, state: Tensor) -> Tensor:
        return (weight.to(self.low) @ state.to(self.low)).to(state.dtype)
