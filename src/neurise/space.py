"""The configuration space Σ^q: the one owner of "how many sites, how many states"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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

    Columns of a table have alphabets of their own: site i holds the tokens :math:`0 \dots p_i - 1` then, ``sizes`` says how many,
    and :math:`p = \max p_i`. A law has :math:`\prod_i p_i` probabilities, one for each configuration that is possible, and
    what has a place for each of p states is zero at the impossible ones. ``sizes`` is None where all sites have p states.

    >>> import neurise
    >>> space = neurise.Space(sites=3, states=4)
    >>> space.size
    64
    """

    sites: int
    states: int
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.sites < 1:
            raise ValueError(f"a space needs at least one site, got sites={self.sites}")
        if not 1 <= self.states <= MAX_STATES:
            raise ValueError(f"a space has between 1 and {MAX_STATES} states per site, got states={self.states}")
        if self.sizes is not None:
            if len(self.sizes) != self.sites or min(self.sizes) < 1 or max(self.sizes) != self.states:
                raise ValueError(
                    f"sizes must say how many of the {self.states} states each of the {self.sites} sites has, one all of "
                    f"them; got {self.sizes}"
                )
            if min(self.sizes) == self.states:
                object.__setattr__(self, "sizes", None)  # equal spaces are equal values

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Space:
        """Make the space of sites that have so many states each."""
        return cls(len(sizes), max(sizes), tuple(sizes))

    @property
    def digits(self) -> tuple[int, ...]:
        """How many states each site has, (sites)."""
        return (self.states,) * self.sites if self.sizes is None else self.sizes

    @property
    def size(self) -> int:
        """How many configurations there are, p^q, or the product of the sizes."""
        return math.prod(self.digits)

    def allowed(self, device: torch.device | None = None) -> Tensor:
        """Return which states each site has, (sites, states) booleans. The same tensor every time: do not change it."""
        return _allowed(self, device or torch.device("cpu"))

    def part(self, start: int, stop: int) -> Space:
        """Return the space of the sites start … stop − 1, with as many states as the largest of them has."""
        return Space.of(self.digits[start:stop])

    def in_order(self, order: Sequence[int]) -> Space:
        """Return the space of the sites in another order, given as the site at each place."""
        return self if self.sizes is None else Space.of([self.sizes[site] for site in order])

    @property
    def count(self) -> str:
        """Say how many configurations there are, as p^q where all sites have as many states."""
        return f"{self.states}^{self.sites}" if self.sizes is None else f"{self.size:,}"

    def require_enumerable(self, limit: int = 2**28) -> None:
        """Refuse what needs one number for every configuration when there are too many of them."""
        if self.size > limit:
            raise ValueError(
                f"{self.count} configurations are too many to enumerate (the limit is {limit:,}); "
                "use samples and metrics on samples instead"
            )

    def uniform(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n uniform configurations, (n, sites) tokens, on the generator's device."""
        shape, device = (n, self.sites), generator.device
        if self.sizes is None:
            return torch.randint(self.states, shape, generator=generator, device=device, dtype=torch.uint8)
        exact = torch.float32 if device.type == "mps" else torch.float64
        level = torch.rand(shape, generator=generator, device=device, dtype=exact)
        return (level * self.allowed(device).sum(1)).to(torch.uint8)

    def index(self, x: Tensor) -> Tensor:
        """Place of each configuration in a law: (..., sites) tokens to (...) integers."""
        index = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
        for site, states in enumerate(self.digits):
            index = index * states + x[..., site]
        return index

    def configurations(self, start: int = 0, stop: int | None = None, *, device: torch.device | None = None) -> Tensor:
        """Configurations number start … stop−1 in the order of a law, (stop − start, sites) tokens."""
        index = torch.arange(start, self.size if stop is None else stop, device=device)
        x = torch.empty((len(index), self.sites), dtype=torch.uint8, device=device)
        for site, states in reversed(list(enumerate(self.digits))):
            x[:, site] = (index % states).to(torch.uint8)
            index = index // states
        return x


@lru_cache(maxsize=256)
def _allowed(space: Space, device: torch.device) -> Tensor:
    """Found once for a device: to copy numbers there is to wait, which a recording must not."""
    return torch.arange(space.states, device=device) < torch.tensor(space.digits, device=device)[:, None]


def possible(logits: Tensor, space: Space, u: Tensor | None = None) -> Tensor:
    """Give the states that a site does not have −∞: logits (..., states) of the sites u (...), or (..., sites, states) of all.

    The gradient of what is impossible is zero.
    """
    if space.sizes is None:
        return logits
    allowed = space.allowed(logits.device)
    return logits.masked_fill(~(allowed if u is None else allowed[u]), -torch.inf)


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
