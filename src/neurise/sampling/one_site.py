"""Reverse chains that choose which site to move: drawing from them, and their exact law on small spaces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from neurise.batching import batches, budget_on
from neurise.categorical import draw, uniforms
from neurise.sampling.parallel import LIMIT
from neurise.sampling.stepwise import Move
from neurise.space import Space


class Plan(NamedTuple):
    """What one step may do to each row: one of its sites is chosen, and its token is drawn from a law of that site."""

    log_choice: Tensor  # (n, sites): logarithm of the probability that the site is chosen
    log_law: Tensor  # (n, sites, tokens): of the token of each site, if it is the one that is chosen
    left: Tensor  # (n, sites): the share of noise that is left then

    def marginal(self, x: Tensor) -> Tensor:
        """Return the logarithm of the law of each site after the step, be it chosen or not, (n, sites, tokens)."""
        chosen = self.log_choice.exp()[..., None]
        held = torch.nn.functional.one_hot(x.long(), self.log_law.shape[-1])
        return ((1 - chosen).clamp(min=0) * held + chosen * self.log_law.exp()).log()


class OneSiteChain(Protocol):
    """A chain in which a step moves one site, and the last step all that is still noise.

    ``left`` is the share of each row that the chain takes for noise, (n,) or (1,): 1 at the start.
    """

    @property
    def space(self) -> Space:
        """Return the space of the data, whose tokens are all that a site may hold on the way."""

    @property
    def num_steps(self) -> int:
        """How many steps lead from noise to data, the last one counted."""

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

    def plan(self, step: int, x: Tensor, y: Tensor | None, left: Tensor) -> Plan:
        """Return what a step may do to rows (n, sites). Steps count down from ``num_steps`` − 1 to 1."""

    def finish(self, x: Tensor, y: Tensor | None, left: Tensor) -> Tensor:
        """Return the logarithm of the law of each site after the last step, in which all move, (n, sites, tokens)."""


@torch.no_grad()
def sample(chain: OneSiteChain, n: int, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Draw n configurations, (n, sites) tokens, in batches that fit the memory budget."""
    parts = []
    for rows in batches(n, chain.bytes_per_row, budget_on(chain.device)):
        x = chain.start(rows.stop - rows.start, generator=generator)
        labels, left = None if y is None else y[rows], _all_noise(chain, len(x))
        for step in reversed(range(1, chain.num_steps)):
            x, left = _moved(chain.plan(step, x, labels, left), x, generator)
        parts.append(_drawn(chain.finish(x, labels, left), generator).to(torch.uint8).cpu())
    return torch.cat(parts)


@torch.no_grad()
def moves(chain: OneSiteChain, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Iterator[Move]:
    """Run a chain from x, (n, sites), back to the data, as :func:`sample` does. Laws are those of all sites of a row."""
    left = _all_noise(chain, len(x))
    for step in reversed(range(1, chain.num_steps)):
        plan = chain.plan(step, x, y, left)
        law = plan.marginal(x)
        x, left = _moved(plan, x, generator)
        yield Move(step, None, x.clone(), law)
    law = chain.finish(x, y, left)
    yield Move(0, None, _drawn(law, generator), law)


@torch.no_grad()
def law(chain: OneSiteChain, label: Tensor | None = None) -> Tensor:
    r"""Exact law of :func:`sample`, (p^q,) float64, of a chain that does not look at ``left``.

    .. math:: \nu_k(y) = \sum_x \nu_{k+1}(x) \sum_i c_i(x) \sum_a K_i(a \mid x)\,1\{y = x^{i \to a}\}

    with c the choice of the site. In the last step all sites move, as in :func:`neurise.sampling.parallel.law`.
    """
    space, device = chain.space, chain.device
    if space.size > LIMIT:
        raise NotImplementedError(
            f"the law of a chain that ends with a step of all sites needs the square of its {space.size:,} "
            f"configurations, and {LIMIT:,} is the limit; compare samples instead"
        )
    every, left = space.configurations(device=device), _all_noise(chain, 1)
    stride = torch.tensor([math.prod(space.digits[site + 1 :]) for site in range(space.sites)], device=device)
    tokens = torch.arange(space.states, device=device)
    current = _joint(chain.start_law().to(device)[None], space)[0]
    for step in reversed(range(1, chain.num_steps)):
        after = torch.zeros_like(current)
        for rows in batches(space.size, chain.bytes_per_row):
            x = every[rows]
            plan = chain.plan(step, x, label, left)
            chance = (plan.log_choice[..., None] + plan.log_law).exp() * current[rows, None, None]
            moved = space.index(x)[:, None, None] + (tokens - x.long()[..., None]) * stride[:, None]
            # A token that a site does not have has no chance, wherever it would lead.
            after.index_add_(0, moved.clamp(0, space.size - 1).flatten(), chance.flatten())
        current = after
    after = torch.zeros_like(current)
    for rows in batches(space.size, chain.bytes_per_row + 8 * space.size):
        after += current[rows] @ _joint(chain.finish(every[rows], label, left).exp(), space)
    return after


def _all_noise(chain: OneSiteChain, n: int) -> Tensor:
    return torch.ones(n, dtype=torch.float64, device=chain.device)


def _moved(plan: Plan, x: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Choose a site of each row and draw its token: the rows, and the share of noise that is left."""
    site = _drawn(plan.log_choice, generator).long()[:, None]
    log_law = plan.log_law.gather(1, site[..., None].expand(-1, 1, plan.log_law.shape[-1]))
    return x.scatter(1, site, _drawn(log_law, generator).to(x.dtype)), plan.left.gather(1, site).squeeze(1)


def _drawn(log_law: Tensor, generator: Generator) -> Tensor:
    uniform = uniforms(log_law[..., 0].numel(), generator=generator).view(log_law.shape[:-1])
    return draw(log_law, uniform)


def _joint(law: Tensor, space: Space) -> Tensor:
    """Joint law of independent sites, (n, sites, tokens) → (n, p^q), first site most significant."""
    joint = law.new_ones(len(law), 1)
    for factor, states in zip(law.unbind(1), space.digits, strict=True):
        joint = (joint[:, :, None] * factor[:, None, :states]).flatten(1)
    return joint
