"""Pairwise models of any number of states: their weight, and the conditional of a site given the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neurise.space import Space

BLOCK = 2**22
"""Numbers that are held at a time when many rows are weighed."""
FEW = 32
"""Neighbours times states up to which a sum over them is faster than a matrix product, which wants threads."""


class Interactions:
    r"""The law :math:`\mu \propto e^{H}`, :math:`H(x) = \sum_{(i,j)} W_{ij}(x_i, x_j) + \sum_i f_i(x_i)`, on tokens.

    A pair may be given several times: its tables add up. Inside, every pair is there once, as i < j. ``sizes`` says how many
    of the states each site has, where they differ: the fields of the others are −∞.
    """

    def __init__(
        self, edges: np.ndarray, tables: np.ndarray, fields: np.ndarray, sizes: Sequence[int] | None = None
    ) -> None:
        self.fields = np.array(fields, dtype=np.float64)  # (sites, states); a copy, so that nobody changes the law
        sites, states = self.fields.shape
        self.space = Space(sites, states, None if sizes is None else tuple(sizes))
        if self.space.sizes is not None:
            self.fields[~self.space.allowed().numpy()] = -np.inf
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        given = np.asarray(tables, dtype=np.float64).reshape(-1, self.space.states, self.space.states)
        turned = pairs[:, 0] > pairs[:, 1]
        given = np.where(turned[:, None, None], given.transpose(0, 2, 1), given)
        keys, place = np.unique(np.sort(pairs, axis=1) @ [self.space.sites, 1], return_inverse=True)
        self.edges = np.stack(np.divmod(keys, self.space.sites), axis=1)  # (pairs, 2)
        self.tables = np.zeros((len(keys), self.space.states, self.space.states))
        np.add.at(self.tables, place, given)

    @classmethod
    def ising(cls, edges: np.ndarray, couplings: np.ndarray, fields: np.ndarray) -> Interactions:
        r"""Spins :math:`\sigma = 2x - 1`: :math:`W_{ij} = J_{ij}\sigma_i\sigma_j`, :math:`f_i = h_i\sigma_i`; h is (sites,)."""
        spin = np.array([-1.0, 1.0])
        return cls(edges, couplings[:, None, None] * np.outer(spin, spin), fields[:, None] * spin)

    @classmethod
    def potts(cls, edges: np.ndarray, couplings: np.ndarray, fields: np.ndarray) -> Interactions:
        r"""Couplings of equal states: :math:`W_{ij} = J_{ij} 1\{x_i = x_j\}`, :math:`f_i = h_{i x_i}`; h is (sites, states)."""
        return cls(edges, couplings[:, None, None] * np.eye(fields.shape[1]), fields)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return self.space.sites

    @property
    def states(self) -> int:
        """How many states a site has."""
        return self.space.states

    def log_weight(self, x: Tensor) -> Tensor:
        """H of each row of tokens, (N, sites) → (N,) float64."""
        device = x.device
        tables, own_fields = (torch.from_numpy(numbers).to(device).view(-1) for numbers in (self.tables, self.fields))
        first, second = torch.from_numpy(self.edges).to(device).unbind(1)
        base = torch.arange(len(self.edges), device=device) * self.states**2
        own = torch.arange(self.sites, device=device) * self.states
        step = max(1, BLOCK // (len(self.edges) + self.sites))
        result = torch.empty(len(x), dtype=torch.float64, device=device)
        for start in range(0, len(x), step):
            rows = x[start : start + step].long()
            pairs = tables[base + rows[:, first] * self.states + rows[:, second]].sum(1)
            result[start : start + step] = pairs + own_fields[own + rows].sum(1)
        return result

    @cached_property
    def neighbours(self) -> list[dict[int, np.ndarray]]:
        """For each site its neighbours, with the table of the pair as (own state, neighbour's state)."""
        near: list[dict[int, np.ndarray]] = [{} for _ in range(self.sites)]
        for (i, j), table in zip(self.edges.tolist(), self.tables, strict=True):
            near[i][j], near[j][i] = table, table.T
        return near

    @property
    def groups(self) -> Sequence[Tensor]:
        """Colour classes of the graph: no site interacts with another of its group."""
        return [group.sites for group in self._groups_on(torch.device("cpu"))]

    def logits(self, group: int, x: Tensor) -> Tensor:
        r"""Logarithm of :math:`\mu(x_u = a \mid x_{-u})` up to a constant, (chains, sites of the group, states).

        Everything is taken relative to state 0. With :math:`V(a, b) = W(a, b) - W(0, b)`,

        .. math:: \mathrm{logit}_a = f(a) - f(0) + \sum_v V_v(a, 0)
           + \sum_v \sum_{b \ge 1} [V_v(a, b) - V_v(a, 0)]\, 1\{x_v = b\},

        which for two states is one sum over the neighbours. Fastest where ``x.T`` is contiguous.
        """
        own, cells = self._groups_on(x.device)[group], x.T
        logits = own.offset[:, :, None].repeat(1, 1, len(x))  # (sites, states, chains)
        above = logits[:, 1:]
        if len(own.tokens) > FEW:
            seen = (cells[own.neighbours] == own.tokens[:, None]).to(logits.dtype)  # (sites, features, chains)
            above.baddbmm_(own.slopes, seen)
        else:
            for near, token, slope in zip(own.neighbours.T, own.tokens, own.slopes.unbind(2), strict=True):
                seen = cells.index_select(0, near)
                seen = seen if self.states == 2 else seen == token
                above.addcmul_(slope[:, :, None], seen.to(logits.dtype)[:, None])
        return logits.permute(2, 0, 1)

    def _groups_on(self, device: torch.device) -> list[_Group]:
        """Return the groups with their numbers on a device; they are carried there once."""
        if device not in self._carried:
            self._carried[device] = [group.to(device) for group in self._groups]
        return self._carried[device]

    @cached_property
    def _carried(self) -> dict[torch.device, list[_Group]]:
        return {}

    @cached_property
    def _groups(self) -> list[_Group]:
        colours: list[list[int]] = []
        colour = np.full(self.sites, -1)
        for site in range(self.sites):
            taken = set(colour[list(self.neighbours[site])].tolist())
            colour[site] = next(c for c in range(self.sites) if c not in taken)
            if colour[site] == len(colours):
                colours.append([])
            colours[colour[site]].append(site)
        return [self._group(sites) for sites in colours]

    def _group(self, sites: list[int]) -> _Group:
        others, width = self.states - 1, max(len(self.neighbours[site]) for site in sites)
        near = np.zeros((len(sites), width), dtype=np.int64)  # where a site has fewer, site 0 is seen with slope 0
        slopes = np.zeros((len(sites), others, width, others))
        offset = np.zeros((len(sites), self.states))
        for row, site in enumerate(sites):
            offset[row] = self.fields[site] - self.fields[site, 0]
            for place, (other, table) in enumerate(self.neighbours[site].items()):
                relative = table - table[0]
                near[row, place] = other
                offset[row] += relative[:, 0]
                slopes[row, :, place] = relative[1:, 1:] - relative[1:, :1]
        return _Group(
            sites=torch.tensor(sites),
            neighbours=torch.from_numpy(near.repeat(others, axis=1)),
            tokens=torch.arange(1, self.states, dtype=torch.uint8).repeat(width),
            slopes=torch.from_numpy(slopes.reshape(len(sites), others, -1)),
            offset=torch.from_numpy(offset),
        )


@dataclass(frozen=True, eq=False)
class _Group:
    """Sites that do not see each other, and what their conditionals are made of: a feature is 1{x_v = b}, b ≥ 1."""

    sites: Tensor
    neighbours: Tensor  # (sites, features): v
    tokens: Tensor  # (features,): b
    slopes: Tensor  # (sites, states − 1, features)
    offset: Tensor  # (sites, states)

    def to(self, device: torch.device) -> _Group:
        """Return the same numbers on a device."""
        return _Group(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def contrasts(states: int) -> np.ndarray:
    r"""Corners of a regular simplex, (states, states − 1): :math:`\varphi(a) \cdot \varphi(b) = p\,\delta_{ab} - 1`.

    All states are alike in it. Column k compares state k + 1 with the mean of those before it.
    """
    basis = np.zeros((states, states - 1))
    for column in range(states - 1):
        basis[: column + 1, column], basis[column + 1, column] = -1.0, column + 1.0
        basis[:, column] *= np.sqrt(states / ((column + 1) * (column + 2)))
    return basis
