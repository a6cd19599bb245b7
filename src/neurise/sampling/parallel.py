"""Reverse chains that change all sites at once: drawing from them, and their exact law on small spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Generator, Tensor

from neurise.batching import batches, budget_on
from neurise.categorical import draw, uniforms
from neurise.space import Space

LIMIT = 2**15
"""Configurations, masks included, up to which the law is written out: a step costs their number squared."""


class ParallelChain(Protocol):
    """A chain whose sites move independently of each other, given the present state of all of them."""

    @property
    def space(self) -> Space:
        """Return the space of the data."""

    @property
    def tokens(self) -> int:
        """How many tokens a site may hold on the way: p, or p + 1 with a mask."""

    @property
    def num_steps(self) -> int:
        """How many steps lead from noise to data."""

    @property
    def device(self) -> torch.device:
        """Where the computation takes place."""

    @property
    def bytes_per_row(self) -> int:
        """Roughly how much memory one row takes in one step."""

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states that the chain starts from, (n, sites)."""

    def start_law(self) -> Tensor:
        """Return the law of each site at the start, (sites, tokens) float64."""

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, given all sites before it, (n, sites, tokens).

        Steps count down: ``num_steps`` − 1 comes first, and 0 leads to the data, where no mask is left.
        """


@torch.no_grad()
def sample(chain: ParallelChain, n: int, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Draw n configurations, (n, sites) tokens, in batches that fit the memory budget."""
    parts = []
    for rows in batches(n, chain.bytes_per_row, budget_on(chain.device)):
        x = chain.start(rows.stop - rows.start, generator=generator)
        labels = None if y is None else y[rows]
        for step in reversed(range(chain.num_steps)):
            uniform = uniforms(x.numel(), generator=generator).view(x.shape)
            x = draw(chain.log_step(step, x, labels), uniform).to(x.dtype)
        parts.append(x.to(torch.uint8).cpu())
    return torch.cat(parts)


@torch.no_grad()
def law(chain: ParallelChain, label: Tensor | None = None) -> Tensor:
    r"""Exact law of :func:`sample`, (p^q,) float64.

    .. math:: \nu_{k}(y) = \sum_x \nu_{k+1}(x) \prod_i K_k(y_i \mid x)

    With the sites cut into a left and a right half the sum over x is one matrix product.
    """
    space = chain.space if chain.tokens == chain.space.states else Space(chain.space.sites, chain.tokens)
    if space.size > LIMIT:
        raise NotImplementedError(
            f"the law of a chain that changes all sites at once needs the square of its "
            f"{space.size:,} configurations at every step, and {LIMIT:,} is the limit; compare samples instead"
        )
    cut = space.sites // 2
    current, half = _product(chain.start_law().to(chain.device)[None], space.digits)[0], math.prod(space.digits[:cut])
    for step in reversed(range(chain.num_steps)):
        after = torch.zeros(half, space.size // half, dtype=torch.float64, device=chain.device)
        possible = torch.nonzero(current).flatten()
        for rows in batches(len(possible), chain.bytes_per_row + 8 * (half + space.size // half)):
            index = possible[rows]
            x = _configurations(index, space)
            kernel = chain.log_step(step, x, label).double().exp()  # (n, sites, tokens)
            left, right = _product(kernel[:, :cut], space.digits[:cut]), _product(kernel[:, cut:], space.digits[cut:])
            after += (left * current[index, None]).T @ right
        current = after.flatten()
    return current.view(space.digits)[tuple(slice(0, states) for states in chain.space.digits)].reshape(-1)


def _product(factors: Tensor, digits: Sequence[int]) -> Tensor:
    """Joint law of independent sites, (n, sites, tokens) → (n, product of the digits), first site most significant."""
    joint = factors.new_ones(len(factors), 1)
    for factor, states in zip(factors.unbind(1), digits, strict=True):
        joint = (joint[:, :, None] * factor[:, None, :states]).flatten(1)
    return joint


def _configurations(index: Tensor, space: Space) -> Tensor:
    after = [math.prod(space.digits[site + 1 :]) for site in range(space.sites)]
    found = [(index // size) % states for size, states in zip(after, space.digits, strict=True)]
    return torch.stack(found, dim=-1).to(torch.int16)
