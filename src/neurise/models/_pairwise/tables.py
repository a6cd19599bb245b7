r"""The tables of a pairwise model as parameters, and what is minimised to learn them.

Tables are kept in the zero-sum gauge by a basis of contrasts :math:`\varphi(a) \in \mathbb{R}^{p-1}` that sums to zero over
the states:

.. math:: W_{ij}(a, b) = \varphi(a)^\top K_{ij}\, \varphi(b), \qquad f_i(a) = \varphi(a)^\top k_i .

Where sites have alphabets of their own, the contrasts of site i sum to zero over the states that it has, and there are
:math:`p_i - 1` of them; whatever stands beyond is zero. For two states :math:`\varphi = \mp 1`, so that :math:`K_{ij}` is
the coupling J and :math:`k_i` the field h of Ising spins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from neurise.energies.family import Family
from neurise.interactions import Interactions, contrasts
from neurise.losses import Loss, cross_entropy
from neurise.rows import Batch
from neurise.space import Space
from neurise.training.objective import Prediction


class PairwiseTables(nn.Module):
    r"""Rows x → logits of all single-site conditionals at once, :math:`f_i(a) + \sum_{j} W_{ij}(a, x_j)`.

    A pair has one table, which both of its sites see, one of them transposed; no site sees itself. Each class has tables of
    its own.
    """

    def __init__(self, space: Space, pairs: np.ndarray, device: torch.device, *, classes: int = 0) -> None:
        super().__init__()
        self.space, self.pairs = space, pairs  # (pairs, 2), i < j
        kinds, features = max(1, classes), space.states - 1
        self.couplings = nn.Parameter(torch.empty(kinds, len(pairs), features, features))
        self.fields = nn.Parameter(torch.empty(kinds, space.sites, features))
        # Adam moves every weight by the learning rate: with many neighbours each must move less, or a field would jump.
        self.scale = max(1.0, 2 * len(pairs) / space.sites) ** -0.5
        # Not weights: they are put where they are needed at once, since modules are made on the meta device.
        self.place = torch.from_numpy(pairs @ [space.sites, 1]).to(device)
        precise = torch.float32 if device.type == "mps" else torch.float64
        self.contrasts = torch.from_numpy(self._basis()).to(device, precise)

    def reset(self, generator: Generator) -> None:
        """Start from the uniform law: the problem is convex, so that nothing needs to be drawn."""
        nn.init.zeros_(self.couplings)
        nn.init.zeros_(self.fields)

    def forward(self, x: Tensor | None, y: Tensor | None = None, site: int | None = None) -> Tensor:
        """Return logits, (n, sites, states), or of one site, (n, 1, states); without rows the couplings K, to be penalised."""
        tables: Tensor = self.scale * self.couplings
        fields: Tensor = self.scale * self.fields
        if x is None:
            return tables
        basis, features = self.contrasts.to(fields.dtype), self.space.states - 1
        asked = slice(None) if site is None else slice(site * features, (site + 1) * features)
        if self.space.sizes is None:
            seen = basis[x.long()].flatten(1)  # (n, sites · features)
        else:
            seen = basis[torch.arange(self.space.sites, device=x.device), x.long()].flatten(1)
        if y is None:
            pull = fields[0].flatten()[asked] + seen @ self._matrix(tables[0])[:, asked]
        else:
            pull = fields[y].flatten(1)[:, asked]
            for label, table in enumerate(tables):
                pull = pull + (seen * (y == label)[:, None]) @ self._matrix(table)[:, asked]
        pull = pull.view(len(x), self.space.sites if site is None else 1, features)
        if self.space.sizes is None:
            return pull @ basis.T
        places = slice(None) if site is None else slice(site, site + 1)
        logits = torch.einsum("nsf,saf->nsa", pull, basis[places])
        return logits.masked_fill(~self.space.allowed(x.device)[places], -torch.inf)

    def tables(self, kind: int) -> np.ndarray:
        """Return the table of each pair of one class in the zero-sum gauge, (pairs, states, states) float64."""
        basis, couplings = self._basis(), self.scale * self.couplings[kind].double().numpy(force=True)
        if self.space.sizes is None:
            tables: np.ndarray = basis @ couplings @ basis.T
            return tables
        first, second = self.pairs.T
        return np.asarray(basis[first] @ couplings @ basis[second].swapaxes(1, 2))

    def site_fields(self, kind: int) -> np.ndarray:
        """Return the fields of one class in the zero-sum gauge, (sites, states) float64; 0 for states that a site has not."""
        basis, fields = self._basis(), self.scale * self.fields[kind].double().numpy(force=True)
        found = fields @ basis.T if self.space.sizes is None else np.einsum("sf,saf->sa", fields, basis)
        return np.asarray(found)

    def interactions(self, kind: int) -> Interactions:
        """Return the law of one class; pairs without any coupling are not part of it."""
        tables = self.tables(kind)
        there = tables.any((1, 2))
        return Interactions(self.pairs[there], tables[there], self.site_fields(kind), self.space.sizes)

    def adopt(self, kind: int, family: Family, theta: Tensor, of: int, sites: np.ndarray) -> None:
        """Take over the law of a class ``of`` a family, whose sites have these numbers here; all other couplings are 0."""
        place = {tuple(pair): number for number, pair in enumerate(self.pairs.tolist())}
        couplings, fields = torch.zeros_like(self.couplings[kind]), torch.zeros_like(self.fields[kind])
        number = family.columns[:, 1]
        first, second, pair = family.pairs.unbind(1)
        here = torch.tensor([place[tuple(sorted(sites[edge].tolist()))] for edge in family.edges], dtype=torch.int64)
        values = (theta / self.scale).to(couplings)
        if len(here):
            couplings[here[pair], number[first], number[second]] = values[family.num_fields :]
        site = torch.from_numpy(sites)[family.columns[:, 0]]
        fields[site, number] = values[: family.num_fields].view(family.kinds, -1)[of]
        with torch.no_grad():
            self.couplings[kind], self.fields[kind] = couplings, fields

    def _basis(self) -> np.ndarray:
        """Return the contrasts, (states, states − 1), or those of each site, (sites, states, states − 1)."""
        space = self.space
        if space.sizes is None:
            return contrasts(space.states)
        basis = np.zeros((space.sites, space.states, space.states - 1))
        for site, states in enumerate(space.sizes):
            basis[site, :states, : states - 1] = contrasts(states)
        return basis

    def _matrix(self, couplings: Tensor) -> Tensor:
        """Lay the tables of all pairs out as one symmetric matrix, (sites · features, sites · features)."""
        sites, features = self.space.sites, self.space.states - 1
        empty = couplings.new_zeros(sites * sites, features, features)
        upper = empty.index_copy(0, self.place, couplings).view(sites, sites, features, features)
        upper = upper.transpose(1, 2).reshape(sites * features, sites * features)
        return upper + upper.T


@dataclass(frozen=True)
class PairwiseObjective:
    r"""Mean over the sites that vary of the loss of their conditionals, and a penalty on the couplings:

    .. math:: \frac1q \sum_i \Bigl[\ell_i + \sum_{j \ne i} \bigl(\lambda_1 \|K_{ij}\| + \lambda_2 \|K_{ij}\|^2\bigr)\Bigr],
       \qquad \|K_{ij}\| = \|W_{ij}\|_F / p ,

    which is \|J\| for two states. A row is charged for the tables of its own class.
    """

    noisings: ClassVar[int] = 1

    network: PairwiseTables
    loss: Loss
    varies: Tensor  # (varying sites,) their numbers
    l1: float
    l2: float

    @property
    def bytes_per_example(self) -> int:
        """A few numbers per site, state and class, forward and back."""
        return 40 * self.network.space.sites * self.network.space.states * len(self.network.couplings)

    def draw(self, batch: Batch, *, generator: Generator) -> Any:
        """Take the rows as they are: there is no noise."""
        return batch.x, batch.y

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the chosen loss with the penalty."""
        value = self._mean(self.loss, network, drawn)
        if not (self.l1 or self.l2):
            return value
        couplings, y = network(None), drawn[1]
        penalty = couplings.new_zeros(len(couplings))
        if self.l1:
            penalty = penalty + self.l1 * torch.linalg.vector_norm(couplings, dim=(2, 3)).sum(1)
        if self.l2:
            penalty = penalty + self.l2 * couplings.square().sum((1, 2, 3))
        return value + 2 / len(self.varies) * (penalty if y is None else penalty[y])

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the pseudo-likelihood, in nats per site with the sign of a loss: a proper score, whatever the training loss."""
        return self._mean(cross_entropy, network, drawn)

    def _mean(self, loss: Loss, network: Prediction, drawn: Any) -> Tensor:
        x, y = drawn
        logits, space = network(x, y)[:, self.varies], self.network.space
        own = () if space.sizes is None else (space.allowed(x.device)[self.varies],)
        return loss(logits, x[:, self.varies], *own).mean(1)
