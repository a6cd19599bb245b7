"""Pairs of sites that may interact, by regressions.

Every site is regressed on all others. What the loss of a pair would cost both of its sites, in nats of all rows, is
a first score of it: half of Wald's statistic, each way. Pairs above a low bar are candidates; the bar rises until the laws on them
can be summed exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neurise.energies import small_regressions
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.regressions import sample_of
from neurise.energies.small_regressions import Design, solve
from neurise.energies.solved import ExactLaws
from neurise.rows import Rows
from neurise.space import Space

BARS = (2.5, 3.5, 5.0, 7.0, 10.0, 15.0, 25.0)
"""Nats that a candidate's loss costs at least, a number of its table; the first with which the laws can be summed is taken."""
WIDE = 30.0
"""Scale of the prior of the regressions: so wide that its curvature is that of the normal law beside it."""
LEAST_TAIL = 2e-4
"""Curvature of that law for each row where a site has more than two states: the features of a site add up to nothing, and sums
of many rows in float32 do not show this."""


@dataclass(frozen=True)
class Regressed:
    """What regressions of every site on all others say about the pairs."""

    costs: Tensor  # (sites, sites): nats of all rows that the loss of a pair would cost both sites
    tables: Tensor  # (sites, sites, states, states): the tables of both directions, averaged

    def start(self, family: Family) -> Tensor:
        """Return couplings to begin with; fields are 0."""
        first, second = torch.from_numpy(family.edges).unbind(1)
        sizes = torch.tensor(family.space.digits, dtype=torch.float64)
        dual = family.basis / sizes[:, None, None]
        couplings = dual[first].mT @ self.tables[first, second] @ dual[second]
        one, two, pair = family.pairs.unbind(1)
        number = family.columns[:, 1]
        return torch.cat([torch.zeros(family.num_fields).double(), couplings[pair, number[one], number[two]]])


@torch.no_grad()
def regress(rows: Rows, states: int, *, classes: int = 0) -> Regressed:
    """Regress every site on all others."""
    sample = sample_of(rows, states, torch.device("cpu"))
    base = sample.features.new_ones(len(sample.features), 1)
    if classes and rows.y is not None:
        base = torch.nn.functional.one_hot(rows.y.cpu()[sample.place].long(), classes).to(sample.features)
    sites, outcomes = rows.x.shape[1], sample.outcomes
    tail = 1.0 if outcomes == 1 else max(1.0, LEAST_TAIL * float(sample.count.sum()))
    design = Design(sample, base, small_regressions.Prior(WIDE, tail))
    every = torch.arange(sites)
    chosen = torch.stack([torch.cat([every[:u], every[u + 1 :]]) for u in range(sites)])
    theta = solve(design, chosen, None, rounds=12)
    costs = design.costs(chosen, theta) * float(sample.count.sum())
    found = torch.zeros(sites, sites, dtype=costs.dtype).scatter_(1, chosen, costs)
    own = theta[:, :, base.shape[1] :].double().view(sites, outcomes, sites - 1, outcomes).permute(0, 2, 1, 3)
    tables = torch.zeros(sites, sites, outcomes, outcomes, dtype=torch.float64)
    tables[every[:, None], chosen] = own
    if outcomes == 1:  # one number for token 1 beside token 0, in both sites
        spins = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
        tables = tables / 4 * spins
    return Regressed(found + found.T, (tables + tables.permute(1, 0, 3, 2)) / 2)


def candidates(
    costs: Tensor, space: Space, classes: int = 0, device: torch.device | None = None, *, highest: float = math.inf
) -> ExactLaws | None:
    """Return the laws of the pairs above the lowest bar with which they can be summed; None if none up to ``highest`` will do."""
    whole = Family.dense(space, classes)
    cost = costs[tuple(torch.from_numpy(whole.edges).T)].numpy() / whole.numbers
    for bar in (bar for bar in BARS if bar <= highest):
        laws = exact_laws(whole.restricted(cost > bar)[0], device)
        if laws is not None:
            return laws
    return None
