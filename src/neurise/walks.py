r"""Walks: rows whose sites change one at a time, and the logits of the site that comes next.

A reverse chain and a sweep ask for one site after another, u = q − 1 … 0, and change it. A walk follows them and answers
each question as cheaply as it can: :class:`Recomputed` evaluates the conditionals anew, :class:`Planned` updates the first
layer by one column,

.. math:: h = \text{context}_t + \sum_{i\ \mathrm{visible}} W_{i, x_i}, \qquad x_u: a \to b \ \text{adds}\ W_{u,b} - W_{u,a} .

The running sum is made afresh at the start of every cycle. Within one it takes at most 2q additions, whose rounding errors
add up like a random walk to about :math:`\sqrt{2q}\,2^{-24}` of its size: 6e-6 at 5000 sites, and never more.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from neurise.networks.parts.plan import Layers, Plan, View
from neurise.networks.parts.walk import Walk, relative

BLOCK = 32
"""Sites whose pairwise terms are summed at once, by one matrix product."""
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
"""In which numbers the hidden layers multiply; None is as they are. Sums, norms and draws are never shorter than float32."""


class Asked(Protocol):
    """What :class:`Recomputed` asks."""

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logarithm of the conditional of site u at time t, (n, states)."""


class Recomputed(Walk):
    """The reference: every question is answered by evaluating the conditionals on the whole rows."""

    def __init__(self, asked: Asked, times: Tensor, x: Tensor, y: Tensor | None) -> None:
        self.asked, self.times, self.x, self.y = asked, times, x.T.clone(), y  # (n, sites)
        self.sites = torch.arange(self.x.shape[1], device=x.device)

    def logits(self, u: int) -> Tensor:
        """Evaluate the conditionals."""
        log_conditional = self.asked.log_conditional(self.times[u : u + 1], self.sites[u : u + 1], self.x, self.y)
        return relative(log_conditional)

    def put(self, u: int, token: Tensor) -> None:
        """Write the tokens down."""
        self.x[:, u] = token


def log_law(logits: Tensor, states: int) -> Tensor:
    """Return the log-law of what :meth:`Walk.logits` gave, (n, states)."""
    if states != 2:
        return torch.log_softmax(logits, dim=-1)
    return torch.cat([functional.logsigmoid(-logits), functional.logsigmoid(logits)], dim=-1)


class Planned(Walk):
    """The fast form: sums of columns that follow the tokens, and pairwise terms a block of sites at a time."""

    def __init__(
        self,
        plan: Plan,
        view: View,
        cycle: Tensor,
        x: Tensor,
        y: Tensor | None,
        *,
        top: int,
        precision: str = "float32",
    ) -> None:
        self.plan, self.view = plan, view
        kind = plan.offset.dtype if view.binary else torch.int64
        self.x = x.to(kind)  # (sites, n): as features, or as places of columns
        self.low = PRECISIONS[precision]
        self.contexts = [layers.context.index_select(0, cycle).squeeze(0) for _, layers in plan.layers]
        self.sums = [self._first(layers, y, top) for _, layers in plan.layers]
        self._near = plan.offset  # (n, sites of the block · outputs): pairwise terms of the block of sites at hand
        self._low: int | None = None  # its first site

    def _first(self, layers: Layers, y: Tensor | None, top: int) -> Tensor:
        """Sum the columns of all tokens that a step may see before the first one is drawn, (n, width)."""
        start = layers.columns.new_zeros(self.x.shape[1], layers.columns.shape[-1]) if y is None else layers.label[y]
        if not self.view.grows:
            return torch.addmm(start, self._features(), layers.columns.flatten(0, 1))
        if top == len(self.x):
            return start
        return torch.addmm(start, self._features(top), layers.columns[top:].flatten(0, 1))

    def logits(self, u: int) -> Tensor:
        """Add up what the parts say, (n, outputs)."""
        total = self.plan.offset[u] if self.plan.pair is None else self.plan.offset[u] + self._pairs(self.plan.pair, u)
        for (weight, layers), context, first in zip(self.plan.layers, self.contexts, self.sums, strict=True):
            h = self._hidden(layers, self._seen(layers, context[u], first, u))
            logits = functional.linear(h, layers.head[u % len(layers.head)])
            total = total + (logits if weight == 1 else weight * logits)
        return total.expand(self.x.shape[1], -1)

    def put(self, u: int, token: Tensor) -> None:
        """Let the first layers and the pairwise terms follow."""
        token = token.to(self.x.dtype)
        for (_, layers), first in zip(self.plan.layers, self.sums, strict=True):
            _change(first, layers.columns[u], None if self.view.grows else self.x[u], token)
        if self.plan.pair is not None and self._low is not None and u > self._low:
            outputs = self.plan.offset.shape[-1]
            later = self._near[:, : (u - self._low) * outputs]
            # The terms of a block begin with all tokens, also those that are still noise.
            _change(later, self.plan.pair[self._low : u, :, u].flatten(0, 1).T, self.x[u], token)
        self.x[u] = token

    def _seen(self, layers: Layers, context: Tensor, first: Tensor, u: int) -> Tensor:
        """Return the first layer of step u: without the site's own token."""
        if self.view.grows:
            return first + context
        if self.view.binary:
            return (first + context).addr_(self.x[u], layers.columns[u, 0], alpha=-1)
        return first + (context - layers.columns[u]).index_select(0, self.x[u])

    def _hidden(self, layers: Layers, h: Tensor) -> Tensor:
        """Run the hidden blocks, as the network's own do; each block is a new tensor, changed in place."""
        shape, full = h.shape[-1:], h.dtype
        low = self.low or full
        h = functional.silu(
            functional.layer_norm(h, shape, layers.scales[0], layers.shifts[0], layers.eps), inplace=True
        )
        parts = zip(layers.weights, layers.biases, layers.scales[1:], layers.shifts[1:], strict=True)
        for weight, bias, scale, shift in parts:
            block = functional.linear(h.to(low), weight.to(low), bias.to(low)).to(full)
            block = functional.silu(functional.layer_norm(block, shape, scale, shift, layers.eps), inplace=True)
            h = block.add_(h) if layers.residual else block
        return h

    def _pairs(self, pair: Tensor, u: int) -> Tensor:
        """Return the pairwise terms of site u, (n, outputs)."""
        outputs = self.plan.offset.shape[-1]
        if self._low is None or u < self._low:
            self._low = u // BLOCK * BLOCK
            terms = pair[self._low : u + 1].flatten(0, 1).flatten(1)  # (block · outputs, sites · features)
            self._near = self._features() @ terms.T
        place = (u - self._low) * outputs
        return self._near[:, place : place + outputs]

    def _features(self, first: int = 0) -> Tensor:
        """Tokens of the sites from ``first`` on as the columns take them, (n, sites · features)."""
        x = self.x[first:].T
        if self.view.binary:
            return x
        tokens = torch.arange(self.view.noise.space.states, device=x.device)
        return (x[..., None] == tokens).to(self.plan.offset.dtype).flatten(1)


def _change(total: Tensor, columns: Tensor, old: Tensor | None, new: Tensor) -> None:
    """Add the column of the new token and take away that of the old one, (n, width) in place; columns (features, width)."""
    if len(columns) == 1:
        total.addr_(new.to(total.dtype) if old is None else (new - old).to(total.dtype), columns[0])
        return
    total += columns.index_select(0, new)
    if old is not None:
        total -= columns.index_select(0, old)
