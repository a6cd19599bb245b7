"""Glauber (heat-bath) sweeps of anything that gives conditionals of single sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor


class FlipConditionals(Protocol):
    r"""Something that knows :math:`\mu(x_u \mid x_{-u})`."""

    @property
    def groups(self) -> Sequence[Tensor]:
        """Sites that are redrawn together, group after group: none of them may see another of its group."""

    def logits(self, group: int, x: Tensor) -> Tensor:
        r"""Logarithm of :math:`\mu(x_u = a \mid x_{-u})` up to a constant, (chains, sites of the group, states)."""


@dataclass(frozen=True)
class SiteBySite:
    """FlipConditionals of one site at a time, given as a function of site and rows: (u, x) → (chains, states)."""

    log_conditional: Callable[[int, Tensor], Tensor]
    order: Sequence[int]

    @property
    def groups(self) -> Sequence[Tensor]:
        """Each site alone."""
        return [torch.tensor([site]) for site in self.order]

    def logits(self, group: int, x: Tensor) -> Tensor:
        """Ask the function."""
        return self.log_conditional(self.order[group], x)[:, None, :]


def sweep(conditionals: FlipConditionals, x: Tensor, *, generator: Generator, beta: Tensor | None = None) -> Tensor:
    r"""Redraw every site from its conditional, in place; return the change of each chain's log-weight, (chains,).

    With ``beta``, one number per chain, the law is :math:`\mu^\beta`, whose conditionals are
    :math:`\propto \mu(x_u \mid x_{-u})^\beta`. A conditional's ratio is the law's, so that
    :math:`\log\mu(x') - \log\mu(x)` adds up from the logits alone.
    """
    gain = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    cells = x.T  # chains last: a group is then a handful of whole rows where x was made that way
    for group, sites in enumerate(conditionals.groups):
        logits = conditionals.logits(group, x).permute(2, 1, 0)  # (states, sites, chains)
        sites = sites.to(x.device)
        old = cells.index_select(0, sites)
        uniform = torch.rand(old.shape, generator=generator, dtype=torch.float64, device=x.device)
        redraw = _redraw_two if len(logits) == 2 else _redraw
        new, change = redraw(logits, old, uniform, beta)
        gain += change.sum(0, dtype=torch.float64)
        cells.index_copy_(0, sites, new)
    return gain


def _redraw(logits: Tensor, old: Tensor, uniform: Tensor, beta: Tensor | None) -> tuple[Tensor, Tensor]:
    """Inverse-CDF draw over the leading axis, and the change of the log-weight; both (sites, chains)."""
    # What is impossible stays so at every temperature, also where β = 0.
    tempered = (
        logits if beta is None else (beta.to(logits.dtype) * logits).masked_fill(logits == -torch.inf, -torch.inf)
    )
    weight = torch.exp(tempered - tempered.amax(0)).to(uniform.dtype)
    level = uniform * weight.sum(0)
    below = torch.zeros_like(level)
    new = torch.zeros_like(old)
    for part in weight[:-1]:
        below += part
        new += level >= below
    return new, (logits.gather(0, new.long()[None]) - logits.gather(0, old.long()[None])).squeeze(0)


def _redraw_two(logits: Tensor, old: Tensor, uniform: Tensor, beta: Tensor | None) -> tuple[Tensor, Tensor]:
    """Do the same for two states, where it is one threshold."""
    largest = torch.finfo(logits.dtype).max  # instead of ∞ where a state is certain: no change must weigh 0, not 0 · ∞
    odds = (logits[1] - logits[0]).clamp_(-largest, largest)
    chance = torch.sigmoid(odds if beta is None else beta.to(odds.dtype) * odds)
    new = (uniform < chance).to(old.dtype)
    return new, (new.to(torch.int8) - old.to(torch.int8)) * odds
