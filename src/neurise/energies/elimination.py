r"""Exact samples and log Z of pairwise models whose graph is narrow, by eliminating one site after the other.

Summing site v out of :math:`e^H` leaves a table over its neighbours N at that time, which become neighbours of each other:

.. math:: m_v(x_N) = \log \sum_a e^{T_v(a, x_N)}, \qquad \mu(x_v = a \mid x_N) = e^{T_v(a, x_N) - m_v(x_N)},

where :math:`T_v` adds up v's field, its couplings and the messages that reached it. The last message is log Z; drawn in the
opposite order, every site's conditional is at hand. Row by row, an L × L torus has at most 2L spins in N: the row that is
being eliminated and the one that the first row is tied to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from neurise.energies.elimination_order import EliminationPlan
from neurise.interactions import Interactions

DOUBLE = 2**24
"""Conditionals up to which they are kept in double precision. Their logits are of the size of a site's couplings, so that
single precision changes probabilities by a few parts in ten millions."""
ROWS = 2**16
"""Rows that are drawn at a time."""

Factor = tuple[tuple[int, ...], Tensor]
"""Sites in the order in which they are eliminated, and one number for each of their configurations."""


class Elimination:
    """One pass over the sites of a plan: log Z, and the conditional of each site given those eliminated later."""

    def __init__(self, model: Interactions, plan: EliminationPlan) -> None:
        self.space, self.plan = model.space, plan
        dtype = torch.float64 if plan.entries <= DOUBLE else torch.float32
        self.kept: list[np.ndarray] = []  # for each site, logits relative to state 0, (states − 1, configurations of N)

        def keep(values: Tensor) -> None:
            self.kept.append((values[1:] - values[0]).to(dtype).numpy())

        fields, tables = torch.from_numpy(model.fields), torch.from_numpy(model.tables)
        self.log_z = float(log_z(plan, model.edges, fields, tables, keep))

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent rows, (n, sites) tokens."""
        parts = [self._draw(min(ROWS, n - start), rng) for start in range(0, n, ROWS)]
        return np.concatenate(parts)

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        uniform = rng.random((n, self.space.sites))  # a row's draws do not depend on how many rows there are
        x = np.empty((self.space.sites, n), dtype=np.uint8)
        for site, scope, kept in zip(*map(reversed, (self.plan.order, self.plan.scopes, self.kept)), strict=True):
            index = np.zeros(n, dtype=np.int64)
            for other in scope:
                index *= self.space.states
                index += x[other]
            logits = np.zeros((self.space.states, n))
            logits[1:] = kept[:, index]
            weight = np.exp(logits - logits.max(axis=0))
            x[site] = (uniform[:, site] * weight.sum(axis=0) >= weight.cumsum(axis=0)[:-1]).sum(axis=0)
        return np.ascontiguousarray(x.T)


def log_z(
    plan: EliminationPlan,
    edges: np.ndarray,
    fields: Tensor,
    tables: Tensor,
    keep: Callable[[Tensor], None] = lambda values: None,
    others: Sequence[Factor] = (),
) -> Tensor:
    r"""Return :math:`\log \sum_x e^{H(x)}` of fields (sites, states) and tables (pairs, states, states), a scalar.

    It can be differentiated: :math:`\partial \log Z / \partial W_{ij}(a, b) = \mu(x_i = a, x_j = b)`, and likewise for
    fields. ``keep`` is shown :math:`T_v` of every site, (states, configurations of N), in the order of elimination. ``others``
    are terms of H that look at more sites; the plan must count those of each as neighbours.
    """
    states = fields.shape[1]
    place = {site: number for number, site in enumerate(plan.order)}
    waiting: list[list[Factor]] = [[((site,), field)] for site, field in enumerate(fields)]
    for (i, j), table in zip(edges.tolist(), tables, strict=True):
        first, second = sorted((i, j), key=place.__getitem__)
        oriented = table if first == i else table.T
        waiting[first].append(((first, second), oriented.reshape(-1)))
    for sites, table in others:
        waiting[sites[0]].append((sites, table))
    total = fields.new_zeros(())
    for site, scope in zip(plan.order, plan.scopes, strict=True):
        factors, waiting[site] = sorted(waiting[site], key=lambda factor: len(factor[0])), []
        joint = factors[0]
        for factor in factors[1:]:  # the small ones first: only the last sums are large
            joint = _added(joint, factor, place, states)
        values = joint[1].view(states, -1)
        keep(values)
        message = torch.logaddexp(values[0], values[1]) if states == 2 else torch.logsumexp(values, 0)
        if scope:
            waiting[scope[0]].append((scope, message))
        else:
            total = total + message.squeeze(0)
    return total


def _added(one: Factor, two: Factor, place: dict[int, int], states: int) -> Factor:
    """Sum of two factors over the sites of both."""
    scope = tuple(sorted({*one[0], *two[0]}, key=place.__getitem__))
    shapes: tuple[list[int], list[int]] = ([], [])
    # Neighbouring sites that are in the same factors are one axis: an array of twenty axes would be slow.
    for inside, run in groupby(scope, lambda site: (site in one[0], site in two[0])):
        size = states ** len(list(run))
        for shape, present in zip(shapes, inside, strict=True):
            shape.append(size if present else 1)
    return scope, (one[1].reshape(shapes[0]) + two[1].reshape(shapes[1])).view(-1)
