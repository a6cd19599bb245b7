r"""The reverse chain at O(width) a step for the first layer: only one site changes, so only one column does.

.. math:: h = \text{context}_t + \sum_{i\ \mathrm{visible}} W_{i, x_i}, \qquad x_u: a \to b \ \text{adds}\ W_{u,b} - W_{u,a} .

The running sum is made afresh at the start of every cycle. Within one it takes at most 2q additions, whose rounding errors
add up like a random walk to about :math:`\sqrt{2q}\,2^{-24}` of its size: 6e-6 at 5000 sites, and never more.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from neurise.conditionals import Conditionals
from neurise.sampling import _plan
from neurise.sampling._plan import Plan
from neurise.sampling.categorical import draw, uniforms

BLOCK = 32
"""Sites whose pairwise terms are summed at once, by one matrix product."""
CACHE = 2**20
"""Bytes of one layer of a block of rows on a CPU: a few of them stay in the cache from one step to the next."""


@torch.no_grad()
def reverse(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    precision: str = "float32",
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens, as :func:`neurise.sampling.reverse.reverse` does."""
    return run(_plan.make(conditionals, precision), x, y, generator=generator)


@torch.no_grad()
def run(plans: list[Plan], x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Run all cycles of the members' plans from rows x, (n, sites)."""
    plan = plans[0]
    state = x.T.clone(
        memory_format=torch.contiguous_format
    )  # (sites, n): a step reads and writes one stretch of memory
    sites, n = state.shape
    width = plan.context.shape[-1]
    size = n if x.is_cuda else max(64, CACHE // (width * plan.context.element_size()))
    for cycle in reversed(range(plan.noise.cycles)):
        level = uniforms(sites * n, generator=generator).view(sites, n)
        if cycle >= plan.cycles:
            continue  # forgotten: see Plan
        for start in range(0, n, size):
            rows = slice(start, start + size)
            part, labels = state[:, rows].contiguous(), None if y is None else y[rows]
            run_cycle([Walk(one, one.context[cycle], one.known[cycle], part, labels) for one in plans], level[:, rows])
            state[:, rows] = part
    return state.T.contiguous()


def run_cycle(walks: list[Walk], level: Tensor) -> None:
    """Run one cycle of the members of a committee, in place on the tokens they were given.

    ``level`` holds its uniform numbers in the order of the steps, (sites, n).
    """
    plan, x = walks[0].plan, walks[0].x
    if plan.binary:
        level = torch.log1p(-level) - level.log()  # a threshold on the log-odds: see choose
    for step, u in enumerate(reversed(range(len(x)))):
        logits = walks[0].logits(u)
        if len(walks) > 1:
            logits = torch.stack([logits, *(walk.logits(u) for walk in walks[1:])]).mean(0)
        token = choose(plan, logits, x[u], level[step])
        for walk in walks:
            walk.put(u, token)
    walks[0].given.copy_(x)


def choose(plan: Plan, logits: Tensor, x_u: Tensor, level: Tensor) -> Tensor:
    r"""Draw from the Bayes kernel of a step by inverse CDF, (n,) tokens.

    With two states, :math:`U \ge P(0) = 1/(1 + e^f)` is :math:`f \ge \log\frac{1-U}{U}`, and ``level`` is the right side.
    """
    if plan.binary:
        odds = logits.squeeze(-1)
        if plan.bonus:
            level = level - plan.bonus * (2 * x_u - 1)
        return torch.ge(odds, level, out=torch.empty_like(x_u))
    if plan.bonus:
        present = x_u[:, None] == torch.arange(logits.shape[-1], device=x_u.device)
        logits = logits + plan.bonus * present
    return draw(logits - logits.amax(-1, keepdim=True), level).to(x_u.dtype)


class Walk:
    """A block of rows on its way through one cycle: their tokens and their first layer, which change together."""

    def __init__(self, plan: Plan, context: Tensor, known: Tensor, x: Tensor, y: Tensor | None) -> None:
        self.plan, self.context, self.known = plan, context, known  # (sites, width), (sites, outputs)
        self.given = x
        self.x = x.to(context.dtype if plan.binary else torch.int64)  # (sites, n): as features, or as places of columns
        n, width = x.shape[1], context.shape[-1]
        labels = context.new_zeros(n, width) if y is None else plan.label[y]
        self.sum = labels if plan.grows else torch.addmm(labels, self._features(), plan.columns.flatten(0, 1))
        self._near = labels  # (n, sites of the block · outputs): pairwise terms of the block of sites at hand
        self._low = 0  # its first site

    def logits(self, u: int) -> Tensor:
        """Return the logits of site u, (n, states); for two states the log-odds, (n, 1)."""
        plan, n = self.plan, self.x.shape[1]
        pairs = self._pairs(u)  # also where it is not asked for: a block begins at its last site
        if plan.constant[u]:
            return self.known[u].expand(n, -1)
        if plan.grows:
            h = self.sum + self.context[u]
        elif plan.binary:
            h = self.sum + self.context[u]
            h.addr_(self.x[u], plan.columns[u, 0], alpha=-1)
        else:
            h = self.sum + (self.context[u] - plan.columns[u]).index_select(0, self.x[u])
        h = _blocks(plan, h)
        logits = functional.linear(h, plan.head[u % len(plan.head)], plan.offset[u])
        return logits if pairs is None else logits + pairs

    def put(self, u: int, token: Tensor) -> None:
        """Set site u to its new token, and let the first layer follow."""
        old = None if self.plan.grows else self.x[u]
        _change(self.sum, self.plan.columns[u], old, token)
        if self.plan.pair is not None and u > self._low:
            outputs = self.plan.offset.shape[-1]
            later = self._near[:, : (u - self._low) * outputs]
            # The terms of a block begin with all tokens, also those that are still noise.
            _change(later, self.plan.pair[self._low : u, :, u].flatten(0, 1).T, self.x[u], token)
        self.x[u] = token

    def _pairs(self, u: int) -> Tensor | None:
        """Return the pairwise terms of site u, (n, outputs)."""
        if self.plan.pair is None:
            return None
        outputs = self.plan.offset.shape[-1]
        if (u + 1) % BLOCK == 0 or u + 1 == len(self.x):
            self._low = u // BLOCK * BLOCK
            terms = self.plan.pair[self._low : u + 1].flatten(0, 1).flatten(1)  # (block · outputs, sites · features)
            self._near = self._features() @ terms.T
        place = (u - self._low) * outputs
        return self._near[:, place : place + outputs]

    def _features(self) -> Tensor:
        """Tokens as the columns take them, (n, sites · features)."""
        if self.plan.binary:
            return self.x.T
        tokens = torch.arange(self.plan.noise.space.states, device=self.x.device)
        return (self.x.T[..., None] == tokens).to(self.context.dtype).flatten(1)


def _change(total: Tensor, columns: Tensor, old: Tensor | None, new: Tensor) -> None:
    """Add the column of the new token and take away that of the old one, (n, width) in place; columns (features, width)."""
    if len(columns) == 1:
        total.addr_(new.to(total.dtype) if old is None else (new - old).to(total.dtype), columns[0])
        return
    total += columns.index_select(0, new)
    if old is not None:
        total -= columns.index_select(0, old)


def _blocks(plan: Plan, h: Tensor) -> Tensor:
    """Run the hidden blocks, as the network's own do; each block is a new tensor, changed in place."""
    shape, full = h.shape[-1:], h.dtype
    h = functional.silu(functional.layer_norm(h, shape, plan.scales[0], plan.shifts[0], plan.eps), inplace=True)
    for weight, bias, scale, shift in zip(plan.weights, plan.biases, plan.scales[1:], plan.shifts[1:], strict=True):
        block = functional.linear(h.to(weight.dtype), weight, bias).to(full)
        block = functional.silu(functional.layer_norm(block, shape, scale, shift, plan.eps), inplace=True)
        h = block.add_(h) if plan.residual else block
    return h
