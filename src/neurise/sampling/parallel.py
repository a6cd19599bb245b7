"""Reverse chains that change all sites at once: drawing from them, and their exact law on small spaces."""

from __future__ import annotations

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
    space = Space(chain.space.sites, chain.tokens)
    if space.size > LIMIT:
        raise NotImplementedError(
            f"the law of a chain that changes all sites at once needs the square of its {space.states}^{space.sites} = "
            f"{space.size:,} configurations at every step, and {LIMIT:,} is the limit; compare samples instead"
        )
    current = _product(chain.start_law().to(chain.device)[None])[0]
    half = space.states ** (space.sites // 2)
    for step in reversed(range(chain.num_steps)):
        after = torch.zeros(half, space.size // half, dtype=torch.float64, device=chain.device)
        possible = torch.nonzero(current).flatten()
        for rows in batches(len(possible), chain.bytes_per_row + 8 * (half + space.size // half)):
            index = possible[rows]
            x = _configurations(index, space)
            kernel = chain.log_step(step, x, label).double().exp()  # (n, sites, tokens)
            left, right = (_product(part) for part in (kernel[:, : space.sites // 2], kernel[:, space.sites // 2 :]))
            after += (left * current[index, None]).T @ right
        current = after.flatten()
    clean = current.view([chain.tokens] * space.sites)[(slice(0, chain.space.states),) * space.sites]
    return clean.reshape(-1)


def _product(factors: Tensor) -> Tensor:
    """Joint law of independent sites, (n, sites, tokens) → (n, tokens^sites), first site most significant."""
    joint = factors.new_ones(len(factors), 1)
    for factor in factors.unbind(1):
        joint = (joint[:, :, None] * factor[:, None, :]).flatten(1)
    return joint


def _configurations(index: Tensor, space: Space) -> Tensor:
    digits = [(index // space.states**place) % space.states for place in reversed(range(space.sites))]
    return torch.stack(digits, dim=-1).to(torch.int16)
