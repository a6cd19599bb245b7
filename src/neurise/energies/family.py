r"""Pairwise laws on a graph as an exponential family, whose parameters are free.

With a basis of contrasts :math:`\varphi_i(a) \in \mathbb{R}^{p_i-1}` that sums to zero over the states of site i, and a label y if
there is one,

.. math:: \mu_\theta(x \mid y) \propto \exp\Bigl(\sum_i h_{yi} \cdot \varphi_i(x_i)
   + \sum_{(i,j)} \varphi_i(x_i)^\top J_{ij}\, \varphi_j(x_j)\Bigr) = e^{\theta \cdot f(x, y)} .

Classes have fields of their own and share the couplings. For two states :math:`\varphi = \mp 1`: h and J are those of spins. A
*column* is one number of one site, :math:`\varphi_i(x_i)_k`; a coupling belongs to the product of two columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neurise.interactions import Interactions, contrasts
from neurise.rows import Rows, are_counts
from neurise.space import Space

BLOCK = 2**22
"""Numbers of features that are held at a time."""


@dataclass(frozen=True, eq=False)
class Family:
    """The graph, and where each parameter stands: first the fields of all classes, then the couplings."""

    space: Space
    edges: np.ndarray  # (pairs, 2), i < j, each once
    classes: int = 0

    @classmethod
    def dense(cls, space: Space, classes: int = 0) -> Family:
        """Return the family of all pairs of sites that have more than one state."""
        first, second = np.triu_indices(space.sites, 1)
        edges = np.stack([first, second], axis=1)
        varies = np.array(space.digits) > 1
        return cls(space, edges[varies[edges].all(1)], classes)

    @property
    def kinds(self) -> int:
        """How many laws there are: one for each class, or one."""
        return max(1, self.classes)

    @cached_property
    def basis(self) -> Tensor:
        r"""The contrasts φ of each site, (sites, states, p − 1); 0 beyond the states that it has."""
        found = torch.zeros(self.space.sites, self.space.states, max(0, self.space.states - 1), dtype=torch.float64)
        for site, states in enumerate(self.space.digits):
            found[site, :states, : states - 1] = torch.from_numpy(contrasts(states))
        return found

    @cached_property
    def columns(self) -> Tensor:
        """Site and contrast of each column, (columns, 2), site after site."""
        return torch.tensor(
            [[site, number] for site, states in enumerate(self.space.digits) for number in range(states - 1)]
        ).view(-1, 2)

    @cached_property
    def pairs(self) -> Tensor:
        """The two columns of each coupling, (couplings, 2), and the pair that it belongs to: (couplings, 3), pair after pair."""
        inner = np.array(self.space.digits) - 1
        start = np.cumsum(inner) - inner
        found = [np.empty((0, 3), dtype=np.int64)]
        for pair, (i, j) in enumerate(self.edges.tolist()):
            line, column = np.divmod(np.arange(inner[i] * inner[j]), max(1, inner[j]))
            found.append(np.stack([start[i] + line, start[j] + column, np.full_like(line, pair)], axis=1))
        return torch.from_numpy(np.concatenate(found))

    @cached_property
    def numbers(self) -> np.ndarray:
        """How many couplings each pair has, (pairs,)."""
        inner = np.array(self.space.digits) - 1
        return np.asarray(inner[self.edges].prod(1))

    @cached_property
    def sizes(self) -> Tensor:
        r"""How large tables are beside couplings, (pairs,): :math:`\lVert W \rVert_F^2 / 4 \lVert J \rVert^2 = p_i p_j / 4`."""
        return torch.from_numpy(np.array(self.space.digits)[self.edges].prod(1)).double() / 4

    @property
    def num_fields(self) -> int:
        """How many of the parameters are fields."""
        return self.kinds * len(self.columns)

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.num_fields + int(self.numbers.sum())

    def restricted(self, kept: np.ndarray) -> tuple[Family, Tensor]:
        """Return the family of fewer pairs, and which of the parameters it keeps, (size,) booleans."""
        whole = torch.ones(self.num_fields, dtype=torch.bool)
        return Family(self.space, self.edges[kept], self.classes), torch.cat(
            [whole, torch.from_numpy(kept)[self.pairs[:, 2]]]
        )

    def carried(self, theta: Tensor, other: Family) -> Tensor:
        """Return parameters of this family as those of another of the same space; pairs that are new have 0."""
        places = {tuple(pair): number for number, pair in enumerate(self.edges.tolist())}
        ends = np.cumsum(self.numbers) + self.num_fields
        found = [theta[: self.num_fields]]
        for pair, number in zip(map(tuple, other.edges.tolist()), other.numbers.tolist(), strict=True):
            place = places.get(pair)
            found.append(theta.new_zeros(number) if place is None else theta[ends[place] - number : ends[place]])
        return torch.cat(found)

    def tables(self, theta: Tensor, kind: int = 0) -> tuple[Tensor, Tensor]:
        """Return fields (sites, states) and tables (pairs, states, states) of the law of a class; they can be differentiated.

        The field of a state that a site does not have is −∞.
        """
        sites, inner = self.space.sites, self.basis.shape[2]
        site, number = self.columns.unbind(1)
        fields = theta.new_zeros(sites, inner).index_put(
            (site, number), theta[: self.num_fields].view(self.kinds, -1)[kind]
        )
        first, second, pair = self.pairs.unbind(1)
        couplings = theta.new_zeros(len(self.edges), inner, inner).index_put(
            (pair, number[first], number[second]), theta[self.num_fields :]
        )
        left, right = self.basis[torch.from_numpy(self.edges)].unbind(1)  # (pairs, states, inner)
        own = (self.basis @ fields[:, :, None]).squeeze(2)
        return own.masked_fill(~self.space.allowed(), -torch.inf), left @ couplings @ right.mT

    def interactions(self, theta: Tensor, kind: int = 0) -> Interactions:
        """Return the law of a class."""
        fields, tables = self.tables(theta, kind)
        return Interactions(self.edges, tables.numpy(), fields.numpy(), self.space.sizes)

    def shown(self, x: Tensor) -> Tensor:
        """Return the columns of rows of tokens, (n, columns) float64."""
        site, number = self.columns.unbind(1)
        return self.basis[site, x.long()[:, site], number]

    def features(self, x: Tensor, kind: int = 0) -> Tensor:
        """Return f of rows of tokens of one class, (n, size) float64."""
        shown = self.shown(x)
        found = shown.new_zeros(len(x), self.size)
        found[:, kind * shown.shape[1] : (kind + 1) * shown.shape[1]] = shown
        first, second, _ = self.pairs.unbind(1)
        found[:, self.num_fields :] = shown[:, first] * shown[:, second]
        return found

    def mean(self, rows: Rows) -> Tensor:
        """Return the mean of f over rows with their weights, (size,)."""
        return sum(
            (self.sums(x, weight, kind) for kind, x, weight in by_class(rows, self.kinds)),
            torch.zeros(self.size, dtype=torch.float64),
        )

    def mean_of(self, samples: list[Tensor], shares: Tensor, power: int = 1) -> Tensor:
        """Return the mean of f, or of a power of it, over samples of each class, (size,)."""
        total = torch.zeros(self.size, dtype=torch.float64)
        for kind, x in enumerate(samples):
            total += self.sums(x, torch.full((len(x),), float(shares[kind]) / len(x), dtype=torch.float64), kind, power)
        return total

    def sums(self, x: Tensor, weight: Tensor, kind: int, power: int = 1) -> Tensor:
        """Return the sum of f, or of a power of it, with weights, by one product over the columns."""
        shown = self.shown(x) ** power
        products = (shown * weight[:, None]).T @ shown
        own = torch.zeros(self.kinds, shown.shape[1], dtype=torch.float64)
        own[kind] = weight @ shown
        first, second, _ = self.pairs.unbind(1)
        return torch.cat([own.flatten(), products[first, second]])

    def covariance(self, samples: list[Tensor], shares: Tensor, other: Family | None = None) -> Tensor:
        """Return the mean over the classes of the covariance of f in samples of each, (size, size): the Fisher information.

        With ``other``, it is that with the f of another family of the same space, (size, size of the other).
        """
        total = torch.zeros(self.size, (other or self).size, dtype=torch.float64)
        step = max(1, BLOCK // max(total.shape))
        for kind, x in enumerate(samples):
            square = torch.zeros_like(total)
            mean, beside = square.new_zeros(total.shape[0]), square.new_zeros(total.shape[1])
            for part in range(0, len(x), step):
                found = self.features(x[part : part + step], kind).float()  # whole numbers for spins, and exact
                also = found if other is None else other.features(x[part : part + step], kind).float()
                mean += found.sum(0).double() / len(x)
                beside += also.sum(0).double() / len(x)
                square += (found.T @ also).double() / len(x)
            total += shares[kind] * (square - torch.outer(mean, beside))
        return total


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


def count_of(rows: Rows) -> float:
    r"""Return how many observations the rows are: counts add up; other weights are worth :math:`(\sum w)^2 / \sum w^2` rows."""
    if rows.weights is None:
        return float(len(rows))
    weights = rows.weights.double()
    return float(weights.sum() if are_counts(weights) else weights.sum() ** 2 / weights.square().sum())
