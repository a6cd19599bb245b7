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
        """Add what became known within the block to the outputs of site u, (n, states), or (n, 1) for two states."""
        self._enter(u)
        network, own, units = self.network, self._columns(u, u + 1), self._units(u + 1, self.top)
        near, start = self._columns(u + 1, self.top), self.bottom * self.size
        total = self.outputs[own.start - start : own.stop - start]
        if units.stop > units.start:
            total = torch.addmm(total, network.last[own, units], self.active[-1][units])
        if near.stop > near.start:
            total = torch.addmm(total, network.direct[own, near], self.shown[near])
        return total.T if self.size == 1 else functional.pad(total.T, (1, 0))

    def put(self, u: int, token: Tensor) -> None:
        """Write the features of the new tokens down, and compute the units that look at the sites from u on."""
        self._enter(u)
        network, units, seen = self.network, self._units(u, u + 1), self._units(u, self.top)
        near, start = self._columns(u, self.top), network.units_from(self.bottom)
        self.shown[self._columns(u, u + 1)] = relative_one_hot(token, self.size + 1, self.shown.dtype).T
        if units.stop == units.start:
            return
        own = slice(units.start - start, units.stop - start)
        h = torch.addmm(self.partial[0][own], network.first[units, near], self.shown[near])
        torch.clamp(h, min=0, out=self.active[0][units])
        for layer, weight in enumerate(network.hidden, 1):
            h = h + torch.addmm(self.partial[layer][own], weight[units, seen], self.active[layer - 1][seen])
            torch.clamp(h, min=0, out=self.active[layer][units])

    def _enter(self, u: int) -> None:
        """Begin the block of site u, unless it has begun: give its units and outputs what is known of all others."""
        if u >= self.bottom:
            return
        network = self.network
        self.top, self.bottom = u + 1, u // BLOCK * BLOCK
        known, units = slice(network.units_from(self.top), network.width), self._units(self.bottom, self.top)
        later, asked = slice(self.top * self.size, None), self._columns(self.bottom, self.top)
        biases, offset = [bias[units, None] for bias in network.biases], network.offset[asked, None]
        if self.y is not None:
            biases[0] = biases[0] + network.label[:, units].T.index_select(1, self.y)
            offset = offset + network.label_offset[:, asked].T.index_select(1, self.y)
        self.partial = [biases[0] + self._product(network.first[units, later], self.shown[later])]
        for layer, weight in enumerate(network.hidden, 1):
            self.partial.append(biases[layer] + self._product(weight[units, known], self.active[layer - 1][known]))
        self.outputs = offset + self._product(network.last[asked, known], self.active[-1][known])
        self.outputs = self.outputs + self._product(network.direct[asked, later], self.shown[later])

    def _units(self, bottom: int, top: int) -> slice:
        """Return the units whose first site is one of [bottom, top)."""
        return slice(self.network.units_from(bottom), self.network.units_from(top))

    def _columns(self, bottom: int, top: int) -> slice:
        """Return the features, or the outputs, of the sites [bottom, top)."""
        return slice(bottom * self.size, top * self.size)

    def _product(self, weight: Tensor, state: Tensor) -> Tensor:
        return (weight.to(self.low) @ state.to(self.low)).to(state.dtype)
