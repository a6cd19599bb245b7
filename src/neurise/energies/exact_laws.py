r"""Exact log Z, moments and draws of the laws of a family: by elimination where the graph is narrow, else by enumeration.

The moments are the gradient of log Z, :math:`\langle f \rangle_\theta = \partial \log Z / \partial \theta`, which differentiates
itself through the elimination (:mod:`neurise.energies.written_out` has the enumeration).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neurise.energies.elimination import Elimination, log_z
from neurise.energies.elimination_order import EliminationPlan, find_plan
from neurise.energies.family import Family
from neurise.energies.solved import ExactLaws, Solved
from neurise.energies.written_out import MOST_STATES, Enumerated
from neurise.interactions import Interactions

MOST_ENTRIES = 2**21
"""Numbers that an elimination may keep where it is done over and over."""
MOST_PARAMETERS = 2000
"""Parameters at most: every step of a fit solves with a matrix of this size."""
SLOWER = 16
"""So many entries of an enumeration take the time of one of an elimination."""


def exact_laws(family: Family, device: torch.device | None = None) -> ExactLaws | None:
    """Return the cheaper of both ways; None where neither will do."""
    if family.size > MOST_PARAMETERS:
        return None
    plan = find_plan(_empty(family))
    cost = plan.entries if plan is not None and plan.entries <= MOST_ENTRIES else None
    if family.space.size <= MOST_STATES and (cost is None or cost * SLOWER > family.space.size):
        return Enumerated(family, device or torch.device("cpu"))
    return None if plan is None or cost is None else Eliminated(family, plan)


def _empty(family: Family) -> Interactions:
    space = family.space
    tables = np.zeros((len(family.edges), space.states, space.states))
    return Interactions(family.edges, tables, np.zeros((space.sites, space.states)), space.sizes)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Laws whose sites are summed out one after the other."""

    family: Family
    plan: EliminationPlan

    def solve(self, theta: Tensor, kind: int) -> Solved:
        """Sum all sites out, and go back for the gradient."""
        free = theta.clone().requires_grad_()
        with torch.enable_grad():
            fields, tables = self.family.tables(free, kind)
            total = log_z(self.plan, self.family.edges, fields, tables)
            (gradient,) = torch.autograd.grad(total, free)

        def draw(n: int, rng: np.random.Generator) -> Tensor:
            return torch.from_numpy(Elimination(self.family.interactions(theta, kind), self.plan).draw(n, rng))

        return Solved(total.item(), gradient, draw)
