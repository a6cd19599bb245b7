r"""Pairwise laws on a graph as an exponential family, whose parameters are free.

With a basis of contrasts :math:`\varphi(a) \in \mathbb{R}^{p-1}` that sums to zero over the states, and a label y if there is one,

.. math:: \mu_\theta(x \mid y) \propto \exp\Bigl(\sum_i h_{yi} \cdot \varphi(x_i)
   + \sum_{(i,j)} \varphi(x_i)^\top J_{ij}\, \varphi(x_j)\Bigr) = e^{\theta \cdot f(x, y)} .

Classes have fields of their own and share the couplings. For two states :math:`\varphi = \mp 1`: h and J are those of spins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neurise.interactions import Interactions, contrasts
from neurise.rows import Rows
from neurise.space import Space

BLOCK = 2**22
"""Numbers of features that are held at a time."""


@dataclass(frozen=True, eq=False)
class Family:
    """The graph, and where each parameter stands: first the fields of all classes, then the couplings."""

    space: Space
    edges: np.ndarray  # (pairs, 2), i < j, each once
    classes: int = 0

    @property
    def kinds(self) -> int:
        """How many laws there are: one for each class, or one."""
        return max(1, self.classes)

    @property
    def inner(self) -> int:
        """Numbers that tell the states of a site apart, p − 1."""
        return self.space.states - 1

    @property
    def num_fields(self) -> int:
        """How many of the parameters are fields."""
        return self.kinds * self.space.sites * self.inner

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.num_fields + len(self.edges) * self.inner**2

    @cached_property
    def basis(self) -> Tensor:
        r"""The contrasts φ, (states, p − 1)."""
        return torch.from_numpy(contrasts(self.space.states))

    def restricted(self, kept: np.ndarray) -> Family:
        """Return the family of fewer pairs."""
        return Family(self.space, self.edges[kept], self.classes)

    def edges_of(self, theta: Tensor) -> Tensor:
        """Return the couplings, (pairs, p − 1, p − 1)."""
        return theta[self.num_fields :].view(-1, self.inner, self.inner)

    def tables(self, theta: Tensor, kind: int = 0) -> tuple[Tensor, Tensor]:
        """Return fields (sites, states) and tables (pairs, states, states) of the law of a class; they can be differentiated."""
        fields = theta[: self.num_fields].view(self.kinds, self.space.sites, self.inner)[kind]
        return fields @ self.basis.T, self.basis @ self.edges_of(theta) @ self.basis.T

    def interactions(self, theta: Tensor, kind: int = 0) -> Interactions:
        """Return the law of a class."""
        fields, tables = self.tables(theta, kind)
        return Interactions(self.edges, tables.numpy(), fields.numpy())

    def features(self, x: Tensor, kind: int = 0) -> Tensor:
        """Return f of rows of tokens of one class, (n, size) float64."""
        shown = self.basis[x.long()]  # (n, sites, inner)
        found = shown.new_zeros(len(x), self.size)
        own = self.space.sites * self.inner
        found[:, kind * own : (kind + 1) * own] = shown.flatten(1)
        first, second = torch.from_numpy(self.edges).unbind(1)
        pairs = shown[:, first, :, None] * shown[:, second, None, :]
        found[:, self.num_fields :] = pairs.flatten(1)
        return found

    def mean(self, rows: Rows) -> Tensor:
        """Return the mean of f over rows with their weights, (size,)."""
        total = torch.zeros(self.size, dtype=torch.float64)
        for kind, x, weight in by_class(rows, self.kinds):
            for part in range(0, len(x), self._at_once):
                piece = slice(part, part + self._at_once)
                total += weight[piece] @ self.features(x[piece], kind)
        return total

    def covariance(self, samples: list[Tensor], shares: Tensor) -> Tensor:
        """Return the mean over the classes of the covariance of f in samples of each, (size, size): the Fisher information."""
        total = torch.zeros(self.size, self.size, dtype=torch.float64)
        for kind, x in enumerate(samples):
            mean, square = torch.zeros(self.size, dtype=torch.float64), torch.zeros_like(total)
            for part in range(0, len(x), self._at_once):
                found = self.features(x[part : part + self._at_once], kind)
                mean += found.sum(0) / len(x)
                square += found.T @ found / len(x)
            total += shares[kind] * (square - torch.outer(mean, mean))
        return total

    def mean_of(self, samples: list[Tensor], shares: Tensor) -> Tensor:
        """Return the mean of f over samples of each class, (size,)."""
        total = torch.zeros(self.size, dtype=torch.float64)
        for kind, x in enumerate(samples):
            for part in range(0, len(x), self._at_once):
                total += shares[kind] * self.features(x[part : part + self._at_once], kind).sum(0) / len(x)
        return total

    @property
    def _at_once(self) -> int:
        return max(1, BLOCK // self.size)


def by_class(rows: Rows, kinds: int) -> list[tuple[int, Tensor, Tensor]]:
    """Return class, tokens and weights of the rows of each class; all weights together sum to 1."""
    weights = torch.ones(len(rows), dtype=torch.float64) if rows.weights is None else rows.weights.double().cpu()
    weights, x = weights / weights.sum(), rows.x.cpu()
    if rows.y is None:
        return [(0, x, weights)]
    labels = rows.y.cpu()
    return [(kind, x[labels == kind], weights[labels == kind]) for kind in range(kinds)]


def shares_of(rows: Rows, kinds: int) -> Tensor:
    """Return the share of each class, (kinds,)."""
    return torch.stack([weight.sum() for _, _, weight in by_class(rows, kinds)])
