r"""Exact log Z, moments and draws of the laws of a family: by elimination where the graph is narrow, else by enumeration.

The moments are the gradient of log Z, :math:`\langle f \rangle_\theta = \partial \log Z / \partial \theta`, which differentiates
itself through the elimination.

**Enumeration.** The sites are cut into two halves A and B: :math:`H = H_A(x_A) + H_B(x_B) + g(x_A) \cdot \varphi(x_B)`, so that the
law is a matrix of :math:`p^{|A|} \times p^{|B|}` entries made by one matrix product, and so are its moments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from neurise.energies.elimination import Elimination, log_z
from neurise.energies.elimination_order import EliminationPlan, find_plan
from neurise.energies.family import Family
from neurise.interactions import Interactions
from neurise.space import Space

MOST_ENTRIES = 2**21
"""Numbers that an elimination may keep where it is done over and over."""
MOST_STATES = 2**25
"""Configurations that are enumerated over and over: a second each time."""
BLOCK = 2**21
"""Entries of the law that are held at a time."""


class ExactLaws(Protocol):
    """What is known of the laws of a family."""

    def value(self, theta: Tensor, kind: int) -> tuple[float, Tensor]:
        """Return log Z and its gradient, (size,)."""

    def draw(self, theta: Tensor, kind: int, n: int, rng: np.random.Generator) -> Tensor:
        """Draw n rows of tokens."""


def exact_laws(family: Family) -> ExactLaws | None:
    """Return the cheaper of both ways; None where neither will do."""
    plan = find_plan(_empty(family))
    by_plan = plan is not None and plan.entries <= MOST_ENTRIES
    if family.space.size <= MOST_STATES and not (plan is not None and by_plan and plan.entries < family.space.size / 8):
        return Enumerated(family)
    return Eliminated(family, plan) if plan is not None and by_plan else None


def _empty(family: Family) -> Interactions:
    space = family.space
    return Interactions(
        family.edges, np.zeros((len(family.edges), space.states, space.states)), np.zeros((space.sites, space.states))
    )


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Laws whose sites are summed out one after the other."""

    family: Family
    plan: EliminationPlan

    def value(self, theta: Tensor, kind: int) -> tuple[float, Tensor]:
        """Return log Z and its gradient."""
        free = theta.clone().requires_grad_()
        with torch.enable_grad():
            fields, tables = self.family.tables(free, kind)
            total = log_z(self.plan, self.family.edges, fields, tables)
            (gradient,) = torch.autograd.grad(total, free)
        return total.item(), gradient

    def draw(self, theta: Tensor, kind: int, n: int, rng: np.random.Generator) -> Tensor:
        """Draw independent rows in the opposite order."""
        return torch.from_numpy(Elimination(self.family.interactions(theta, kind), self.plan).draw(n, rng))


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Laws that are written out."""

    family: Family

    @cached_property
    def _halves(self) -> tuple[Tensor, Tensor]:
        """All configurations of the first and of the second half, tokens."""
        sites, states = self.family.space.sites, self.family.space.states
        cut = max(1, sites // 2)
        first = Space(cut, states).configurations()
        second = Space(sites - cut, states).configurations() if sites > cut else torch.zeros(1, 0, dtype=torch.uint8)
        return first, second

    @cached_property
    def _seen(self) -> tuple[Tensor, Tensor]:
        """The contrasts of both, flat, (configurations, sites of the half · inner)."""
        first, second = (self.family.basis[half.long()].flatten(1) for half in self._halves)
        return first, second

    @cached_property
    def _pairs(self) -> Tensor:
        """Where the couplings of all pairs stand in a matrix over (site, contrast), flat, (pairs · inner²,)."""
        inner, sites = self.family.inner, self.family.space.sites
        first, second = torch.from_numpy(self.family.edges).unbind(1)
        line = first[:, None] * inner + torch.arange(inner)
        column = second[:, None] * inner + torch.arange(inner)
        return (line[:, :, None] * (sites * inner) + column[:, None, :]).flatten()

    def _weights(self, theta: Tensor, kind: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return H of each half alone, and the couplings between them."""
        family, width = self.family, self.family.space.sites * self.family.inner
        fields = theta[: family.num_fields].view(family.kinds, width)[kind]
        matrix = theta.new_zeros(width * width)
        matrix[self._pairs] = theta[family.num_fields :]
        matrix = matrix.view(width, width)
        first, second = self._seen
        cut = first.shape[1]
        own = first @ fields[:cut] + (first @ matrix[:cut, :cut] * first).sum(1)
        other = second @ fields[cut:] + (second @ matrix[cut:, cut:] * second).sum(1)
        return own, other, first @ matrix[:cut, cut:]

    def value(self, theta: Tensor, kind: int) -> tuple[float, Tensor]:
        """Return log Z and its gradient, block by block of the first half, in float32 beside sums in float64."""
        own, other, between = self._weights(theta, kind)
        first, second = self._seen
        seen, pull = second.float(), between.float()
        step = max(1, BLOCK // len(second))
        tops, masses, columns, cross = [], [], torch.zeros(len(second), dtype=torch.float64), []
        height = -math.inf
        lines = list[Tensor]()
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            exponents = (pull[part] @ seen.T).add_(other.float()).add_(own[part, None].float())
            top = float(exponents.max())
            law = exponents.sub_(top).exp_()
            if top > height:
                columns *= math.exp(height - top)
                height = top
            columns += law.sum(0).double() * math.exp(top - height)
            tops.append(top)
            lines.append(law.sum(1).double())
            cross.append((law @ seen).double())
            masses.append(len(lines[-1]))
        scale = torch.cat([torch.full((count,), math.exp(top - height)) for top, count in zip(tops, masses, strict=True)])
        line = torch.cat(lines) * scale
        total = float(line.sum())
        met = first.T @ (torch.cat(cross) * scale[:, None]) / total
        return height + math.log(total), self._gradient(line / total, columns / columns.sum(), met, kind)

    def _gradient(self, line: Tensor, column: Tensor, met: Tensor, kind: int) -> Tensor:
        """Put the moments where the parameters stand."""
        family, width = self.family, self.family.space.sites * self.family.inner
        first, second = self._seen
        cut = first.shape[1]
        square = torch.zeros(width, width, dtype=torch.float64)
        square[:cut, :cut] = first.T @ (first * line[:, None])
        square[cut:, cut:] = second.T @ (second * column[:, None])
        square[:cut, cut:] = met
        found = torch.zeros(family.size, dtype=torch.float64)
        found[kind * width : (kind + 1) * width] = torch.cat([line @ first, column @ second])
        found[family.num_fields :] = square.view(-1)[self._pairs]
        return found

    def draw(self, theta: Tensor, kind: int, n: int, rng: np.random.Generator) -> Tensor:
        """Draw the first half by its marginal, then the second given the first."""
        own, other, between = self._weights(theta, kind)
        second, step = self._seen[1], max(1, BLOCK // len(self._seen[1]))
        marginal = [
            torch.logsumexp(between[start : start + step] @ second.T + other, 1) for start in range(0, len(own), step)
        ]
        chance = torch.softmax(own + torch.cat(marginal), 0).numpy()
        counts = torch.from_numpy(rng.multinomial(n, chance / chance.sum()))
        places, rows = torch.nonzero(counts).flatten(), list[Tensor]()
        uniform = torch.from_numpy(rng.random(n))
        begin = 0
        for start in range(0, len(places), step):
            some = places[start : start + step]
            law = torch.softmax(between[some] @ second.T + other, 1).cumsum_(1)
            times = counts[some]
            level = uniform[begin : begin + int(times.sum())]
            begin += len(level)
            which = torch.repeat_interleave(torch.arange(len(some)), times)
            for part in range(0, len(which), step):
                here = which[part : part + step]
                found = torch.searchsorted(law[here], level[part : part + step, None]).squeeze(1)
                found.clamp_(max=len(second) - 1)
                rows.append(torch.cat([self._halves[0][some[here]], self._halves[1][found]], 1))
        drawn = torch.cat(rows)
        return drawn[torch.from_numpy(rng.permutation(len(drawn)))]
