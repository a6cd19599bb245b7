"""A pairwise model in which nearly every pair interacts, as Markov chains want to see it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from neurise.interactions import Interactions
from neurise.space import Space


class DenseInteractions:
    r"""The law of :class:`Interactions`, one site at a time: its logits are one product with a row of a (q·p)² matrix.

    Everything is taken relative to state 0 of the neighbours, whose one-hot is left out:
    :math:`\mathrm{logit}_a = f(a) + \sum_v W_v(a, 0) + \sum_v \sum_{b \ge 1} [W_v(a, b) - W_v(a, 0)]\, 1\{x_v = b\}`.
    """

    def __init__(self, model: Interactions) -> None:
        self.model, others = model, model.states - 1
        first, second = torch.from_numpy(model.edges).unbind(1)
        tables = torch.from_numpy(model.tables)
        relative = torch.zeros(model.sites, model.states, model.sites, others, dtype=torch.float64)
        offset = torch.from_numpy(model.fields).clone()  # (sites, states)
        for own, other, table in ((first, second, tables), (second, first, tables.transpose(1, 2))):
            relative[own, :, other] = table[:, :, 1:] - table[:, :, :1]
            offset.index_add_(0, own, table[:, :, 0])
        self.offset, self.slopes = offset, relative.flatten(2)  # (sites, states, sites · others)
        self.tokens = torch.arange(1, model.states, dtype=torch.uint8)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return self.model.sites

    @property
    def space(self) -> Space:
        """Return the space of the law."""
        return self.model.space

    @property
    def states(self) -> int:
        """How many states a site has."""
        return self.model.states

    @cached_property
    def groups(self) -> Sequence[Tensor]:
        """Each site alone."""
        return list(torch.arange(self.sites).view(-1, 1))

    def logits(self, group: int, x: Tensor) -> Tensor:
        """Logits of one site, (chains, 1, states)."""
        seen = x.T if self.states == 2 else (x.T[:, None] == self.tokens[:, None]).flatten(0, 1)
        logits = torch.addmm(self.offset[group][:, None], self.slopes[group], seen.to(self.slopes.dtype))
        return logits.T[:, None]

    def log_weight(self, x: Tensor) -> Tensor:
        """H of each row of tokens, (N,)."""
        return self.model.log_weight(x)
