"""Models whose energy is a sum of products of spins: their weight, and the conditional of a site given the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neurise.space import Space
from neurise.walsh import place_of, values_of

BLOCK = 2**22
"""Spins that are multiplied at a time when many rows are weighed."""


class SpinProducts:
    r"""The law :math:`\mu \propto e^H`, :math:`H(x) = \sum_T J_T \prod_{i \in T} \sigma_i + \sum_i h_i \sigma_i`, on tokens.

    Spins are :math:`\sigma = 2x - 1`. A term T is a tuple of different sites; one that is given several times adds up.
    """

    states = 2

    def __init__(self, terms: Sequence[Sequence[int]], strengths: np.ndarray, fields: np.ndarray) -> None:
        self.space = Space(len(fields), 2)
        self.terms = [tuple(term) for term in terms]
        self.strengths, self.fields = np.array(strengths, dtype=np.float64), np.array(fields, dtype=np.float64)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return self.space.sites

    def log_weight(self, x: Tensor) -> Tensor:
        """H of each row of tokens, (N, sites) → (N,) float64."""
        members = torch.from_numpy(self._padded(self.terms)).to(x.device)
        strengths, fields = (torch.from_numpy(part).to(x.device) for part in (self.strengths, self.fields))
        result = torch.empty(len(x), dtype=torch.float64, device=x.device)
        step = max(1, BLOCK // (members.numel() + self.sites))
        for start in range(0, len(x), step):
            spins = _spins(x[start : start + step])
            products = spins[:, members].prod(-1)
            result[start : start + step] = products @ strengths + spins[:, :-1] @ fields
        return result

    def written_out(self) -> np.ndarray:
        """H at all 2^q configurations."""
        coefficients = np.zeros(self.space.size)
        for term, strength in zip(self.terms, self.strengths, strict=True):
            coefficients[place_of(self.sites, term)] += strength
        for site, field in enumerate(self.fields):
            coefficients[place_of(self.sites, [site])] += field
        return values_of(coefficients)

    @cached_property
    def groups(self) -> Sequence[Tensor]:
        """Colour classes: no two sites of a group are in one term."""
        together: list[set[int]] = [set() for _ in range(self.sites)]
        for term in self.terms:
            for site in term:
                together[site].update(term)
        groups: list[list[int]] = []
        colour = np.full(self.sites, -1)
        for site, others in enumerate(together):
            taken = {int(colour[other]) for other in others}
            colour[site] = next(number for number in range(self.sites) if number not in taken)
            if colour[site] == len(groups):
                groups.append([])
            groups[colour[site]].append(site)
        return [torch.tensor(group) for group in groups]

    def logits(self, group: int, x: Tensor) -> Tensor:
        r"""Logarithm of :math:`\mu(x_u = a \mid x_{-u})` up to a constant, (chains, sites of the group, states).

        It is :math:`\pm g_u`, :math:`g_u = h_u + \sum_{T \ni u} J_T \prod_{i \in T \setminus u} \sigma_i`.
        """
        others, strengths, fields = (part.to(x.device) for part in self._seen[group])
        products = _spins(x)[:, others].prod(-1)  # (chains, sites, terms)
        own = (products * strengths).sum(-1) + fields
        return torch.stack([-own, own], dim=-1)

    @cached_property
    def _seen(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For each group: the other members of each site's terms (sites, terms, members), strengths, and fields."""
        numbers: list[list[int]] = [[] for _ in range(self.sites)]  # of the terms that a site is in
        for number, term in enumerate(self.terms):
            for site in term:
                numbers[site].append(number)
        seen = []
        for group in self.groups:
            sites = group.tolist()
            most = max(len(numbers[site]) for site in sites)
            strengths = np.zeros((len(sites), most))
            others: list[tuple[int, ...]] = []
            for row, site in enumerate(sites):
                strengths[row, : len(numbers[site])] = self.strengths[numbers[site]]
                others += [tuple(i for i in self.terms[number] if i != site) for number in numbers[site]]
                others += [()] * (most - len(numbers[site]))
            members = self._padded(others).reshape(len(sites), most, -1)
            parts = members, strengths, self.fields[sites]
            seen.append(tuple(torch.from_numpy(part) for part in parts))
        return seen  # type: ignore[return-value]

    def _padded(self, terms: Sequence[Sequence[int]]) -> np.ndarray:
        """Terms as one array, (terms, members); short ones are filled with a site behind the last, whose spin is 1."""
        table = np.full((len(terms), max(map(len, terms), default=0)), self.sites, dtype=np.int64)
        for row, term in enumerate(terms):
            table[row, : len(term)] = term
        return table


def _spins(x: Tensor) -> Tensor:
    """Spins of tokens, and a last one that is always 1: (N, sites) → (N, sites + 1)."""
    return torch.cat([2.0 * x - 1.0, torch.ones(len(x), 1, device=x.device)], dim=1).double()
