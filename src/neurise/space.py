"""The configuration space Σ^q: the one owner of "how many sites, how many states"."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

MAX_STATES = 256
"""Tokens are stored as bytes."""
ROOM = 2**62
"""Numbers below this are whole in 64 bits."""


@dataclass(frozen=True)
class Space:
    r"""Configurations :math:`x \in \{0, \dots, p-1\}^q` of ``sites`` q over ``states`` p.

    A law on the space is a vector of :math:`p^q` probabilities in which the *first site is the most significant
    digit*: :meth:`index` and :meth:`configurations` are inverse to each other.
    """

    sites: int
    states: int

    def __post_init__(self) -> None:
        if self.sites < 1:
            raise ValueError(f"a space needs at least one site, got sites={self.sites}")
        if not 1 <= self.states <= MAX_STATES:
            raise ValueError(f"a space has between 1 and {MAX_STATES} states a site, got states={self.states}")

    @property
    def size(self) -> int:
        """How many configurations there are, p^q."""
        size: int = self.states**self.sites
        return size

    def require_enumerable(self, limit: int = 2**28) -> None:
        """Refuse what needs one number for every configuration when there are too many of them."""
        if self.size > limit:
            raise ValueError(
                f"{self.states}^{self.sites} configurations are too many to enumerate (the limit is {limit:,}); "
                "use samples and metrics on samples instead"
            )

    def uniform(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n uniform configurations, (n, sites) tokens, on the generator's device."""
        shape = (n, self.sites)
        return torch.randint(self.states, shape, generator=generator, device=generator.device, dtype=torch.uint8)

    def index(self, x: Tensor) -> Tensor:
        """Place of each configuration in a law: (..., sites) tokens to (...) integers."""
        index = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
        for site in range(self.sites):
            index = index * self.states + x[..., site]
        return index

    def configurations(self, start: int = 0, stop: int | None = None, *, device: torch.device | None = None) -> Tensor:
        """Configurations number start … stop−1 in the order of a law, (stop − start, sites) tokens."""
        index = torch.arange(start, self.size if stop is None else stop, device=device)
        x = torch.empty((len(index), self.sites), dtype=torch.uint8, device=device)
        for site in reversed(range(self.sites)):
            x[:, site] = (index % self.states).to(torch.uint8)
            index = index // self.states
        return x


def row_ids(*sets: Tensor, states: int) -> tuple[Tensor, ...]:
    """Number the distinct rows of sets of tokens, (n,) each, equal for equal rows; any number of sites will do.

    Rows are read a stretch of sites at a time. What was read so far is replaced by its rank, so that the numbers fit.
    """
    x = torch.cat(sets)
    stretch = max(1, int(math.log(ROOM / len(x)) / math.log(max(2, states))))
    ids = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    for columns in torch.split(x, stretch, dim=1):
        space = Space(columns.shape[1], states)
        ids = torch.unique(ids * space.size + space.index(columns), return_inverse=True)[1]
    return tuple(torch.split(ids, [len(part) for part in sets]))
