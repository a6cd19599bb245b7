"""The law of a pairwise model with some sites given: its weight, its sum, written out, and drawn from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from neurise.energies.elimination import Elimination
from neurise.energies.elimination_order import find_plan
from neurise.enumeration import draw_from_law, pairwise_law, tokens_at
from neurise.interactions import Interactions
from neurise.mcmc import Diagnostics, Target, parallel_tempering
from neurise.models._pairwise.dense import DenseInteractions

LIMIT = 2**25
"""Configurations up to which a law is written out: a second's work, and half a gigabyte while it lasts."""
MOST_ENTRIES = 2**24
"""Numbers that are kept while sites are summed out one after another, where there are more configurations."""
DENSE = 64
"""Neighbours of a site, on average, from which a matrix product over all sites is better than looking them up."""


class PairwiseLaw:
    r"""Rows x of a pairwise model that hold given tokens at some sites: the law of the others is pairwise too.

    With F free and G given,

    .. math:: H(x) = \sum_{i<j \in F} W_{ij}(x_i, x_j) + \sum_{i \in F} \Bigl[f_i(x_i) + \sum_{j \in G} W_{ij}(x_i, x_j)\Bigr]
       + H_G(x_G) .

    ``given`` is (sites,): tokens, and −1 where a site is free.
    """

    def __init__(self, model: Interactions, given: np.ndarray) -> None:
        self.given, self.digits, self.free = given, np.array(model.space.digits), given < 0
        first, second = model.edges.T
        fields, free, held = model.fields.copy(), self.free, ~self.free
        here, there, both = free[first] & held[second], held[first] & free[second], held[first] & held[second]
        np.add.at(fields, first[here], model.tables[here, :, given[second[here]]])
        np.add.at(fields, second[there], model.tables[there, given[first[there]], :])
        own = model.fields[held, given[held]].sum()
        self.weight = float(own + model.tables[both, given[first[both]], given[second[both]]].sum())  # H_G
        self.rest: Interactions | None = None  # where nothing is free
        if free.any():
            inside, number = free[first] & free[second], np.cumsum(free) - 1
            own, tables = self.digits[free], model.tables[inside]
            most = own.max()  # of the sites that are free
            tables, fields = tables[:, :most, :most], fields[free, :most]
            self.rest = Interactions(number[model.edges[inside]], tables, fields, own.tolist())

    @property
    def enumerable(self) -> bool:
        """Whether there are few enough configurations to write the law out."""
        return self.rest is None or self.rest.space.size <= LIMIT

    @property
    def summable(self) -> bool:
        """Whether the sum over all configurations can be done: they are few, or the graph is narrow."""
        return self.enumerable or self._elimination is not None

    @cached_property
    def _elimination(self) -> Elimination | None:
        """The sites summed out one after another, where the graph is narrow enough."""
        plan = None if self.rest is None else find_plan(self.rest)
        return (
            None if plan is None or plan.entries > MOST_ENTRIES or self.rest is None else Elimination(self.rest, plan)
        )

    def log_weight(self, x: Tensor) -> Tensor:
        """H of each row, (N, sites) → (N,) float64; −∞ where a row is against what is given."""
        agrees = ((x.long() == torch.from_numpy(self.given)) | torch.from_numpy(self.free)).all(1)
        free = 0.0 if self.rest is None else self.rest.log_weight(x[:, torch.from_numpy(self.free)])
        return torch.where(agrees, self.weight + free, -torch.inf).double()

    def log_z(self) -> float:
        r"""Return :math:`\log \sum_x e^{H(x)}` over the free sites."""
        if self.rest is None:
            return self.weight
        if self.enumerable or self._elimination is None:
            return self.weight + pairwise_law(self.rest)[1]
        return self.weight + self._elimination.log_z

    def probabilities(self) -> Tensor:
        """Return the law over all configurations, (p^q,) float64; those against what is given have none."""
        if self.free.all() and self.rest is not None:
            return torch.from_numpy(pairwise_law(self.rest)[0])
        full = torch.zeros(self.digits.tolist(), dtype=torch.float64)
        place = tuple(slice(None) if token < 0 else token for token in self.given.tolist())
        free = torch.ones(1) if self.rest is None else torch.from_numpy(pairwise_law(self.rest)[0])
        full[place] = free.view(self.digits[self.free].tolist()).double()
        return full.view(-1)

    def draw(self, n: int, *, generator: Generator, sweeps: int | None) -> tuple[Tensor, Diagnostics | None]:
        """Draw n rows of tokens: exactly where the sums can be done, else by parallel tempering, with its diagnostics."""
        x, found = torch.from_numpy(self.given).to(torch.uint8).repeat(n, 1), None
        if self.rest is not None and self.enumerable:
            x[:, torch.from_numpy(self.free)] = draw_exactly(self.rest, n, generator=generator)
        elif self._elimination is not None:
            rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator, device=generator.device)))
            x[:, torch.from_numpy(self.free)] = torch.from_numpy(self._elimination.draw(n, rng))
        elif self.rest is not None:
            rows, found = draw_by_tempering(self.rest, n, generator=generator, sweeps=sweeps)
            x[:, torch.from_numpy(self.free)] = rows
        return x, found


def draw_exactly(model: Interactions, n: int, *, generator: Generator) -> Tensor:
    """Draw n independent rows of tokens by inverting the law written out."""
    seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
    places = draw_from_law(pairwise_law(model)[0], n, np.random.default_rng(seed))
    return torch.from_numpy(tokens_at(model.space, places))


def draw_by_tempering(
    model: Interactions, n: int, *, generator: Generator, sweeps: int | None
) -> tuple[Tensor, Diagnostics]:
    """Draw n rows of tokens by parallel tempering, as nearly independent as the diagnostics say."""
    crowded = len(model.edges) > DENSE / 2 * model.sites
    target: Target = DenseInteractions(model) if crowded else model
    drawn = parallel_tempering(target, n, generator=generator, sweeps=sweeps)
    rows = drawn.rows.reshape(-1, model.sites)
    # Rows of a chain side by side would be alike.
    return rows[torch.randperm(len(rows), generator=generator)[:n]], drawn.diagnostics
