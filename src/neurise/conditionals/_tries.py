r"""Grow the trees of contexts that :class:`~neurise.conditionals.counts.Counts` asks, one tree per site, from rows.

The context of a site u is a list of sites :math:`i_1, i_2, \dots` that are generated before it. A node s at depth d stands for
the values of the first d of them, and holds how often each token a of u was seen there, :math:`n_{sa}`. The law of a node leans
on that of its parent s′,

.. math:: p_s(a) = \frac{n_{sa} + c_d\, p_{s'}(a)}{n_s + c_d}, \qquad p_{s'} = 1/p \text{ above the root,}

so that a law follows its counts where they are many, and shorter contexts where they are few. Each :math:`c_d` is the one of
:data:`CONCENTRATIONS` under which the rows, each left out of the counts in its turn, are most likely:

.. math:: \ell = \sum_{s,a} n_{sa} \log \frac{n_{sa} - 1 + c_d\, \tilde p_{s'}(a)}{n_s - 1 + c_d},

with :math:`\tilde p_{s'}` the law of the parent without the same row. A depth that does not raise ℓ by more than the logarithm of
the number of sites that were compared since the last one that did, has :math:`c_d = \infty`: it says nothing of its own, but
deeper ones may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise.conditionals._seen import Seen, seen_in, sums
from neurise.deadline import Work
from neurise.rows import Rows
from neurise.space import Space

CONCENTRATIONS = tuple(2.0**power for power in range(-5, 12))
"""Values of c that are compared: from a 32nd of an observation, for laws of few configurations, to 2048."""
LEAST = 2
"""Observations that a context needs to be kept. What a single row had is in no tree."""
CHOICES = 16
"""Sites among which the next one of a context is chosen, from the second on: those that say most by themselves."""
SAMPLE = 2**14
"""Rows that the sites of a context are chosen by."""
MANY = 2**10
"""Contexts from which on the next site is no longer compared with others: too few rows are left in each."""
MOST_NUMBERS = 2**22
"""Probabilities in all trees together. Deeper contexts are left out where there would be more."""


class Trees(NamedTuple):
    """All trees in one numbering: node u is the root of site u."""

    asks: Tensor  # (nodes,) int32: the site whose token leads on, the number of sites for the label, −1 for a leaf
    first: Tensor  # (nodes,) int32: where the children of a node begin in ``branches``
    branches: Tensor  # (slots,) int32: the node for each token, −1 where there is none
    laws: Tensor  # (nodes, states) float32: log p_s, 0 for states that a site does not have
    depth: int
    contexts: list[list[int]]  # the sites that each site's context consists of
    concentrations: list[list[float]]  # c_0, c_1 … of each site
    left_out: float  # Σ ℓ over the sites: the log-likelihood of all rows, each left out in its turn


@dataclass
class Level:
    """The nodes of one depth of one site's tree."""

    asks: int  # which site their parents ask
    parent: Tensor  # (nodes,) numbers in the level before
    value: Tensor  # (nodes,) the token of that site
    law: Tensor  # (nodes, tokens) p_s
    without: Tensor  # (nodes, tokens) the probability of a token where one observation of it is left out
    concentration: float


def grow(
    rows: Rows, space: Space, *, classes: int = 0, ignored: Tensor | None = None, work: Work | None = None
) -> Trees:
    """Grow the trees of all sites. A site whose turn comes after the time is over has its root alone."""
    seen, work = seen_in(rows, space, classes), work or Work()
    passed = [False] * space.sites if ignored is None else ignored.tolist()
    trees, score = list[list[Level]](), 0.0
    for u in range(space.sites):
        others = [site for site in range(u + 1, space.sites) if not passed[site]] + [space.sites] * (classes > 0)
        allowed = others if not passed[u] and work.left() else []
        levels, own = _grown(seen, u, allowed, MOST_NUMBERS // space.sites)
        trees.append(levels)
        score += own
    return _numbered(trees, seen.sizes, space.states, score)


class Place(NamedTuple):
    """The rows that are still in a tree at some depth."""

    here: Tensor  # (n,) which rows
    own: Tensor  # (n,) their tokens of the site
    often: Tensor  # (n,) how often they were seen
    node: Tensor  # (n,) the node of each, in its level
    nodes: int
    tokens: int

    def take(self, index: Any) -> Place:
        """Pick rows."""
        here, own, often, node = (part[index] for part in self[:4])
        return self._replace(here=here, own=own, often=often, node=node)


def _grown(seen: Seen, u: int, allowed: Sequence[int], room: int) -> tuple[list[Level], float]:
    """Grow the tree of one site, a depth at a time, until no context is left that was seen often enough."""
    tokens, here = seen.sizes[u], torch.nonzero(seen.columns[u] >= 0).flatten()
    place = Place(here, seen.columns[u, here].long(), seen.often[here], torch.zeros_like(here), 1, tokens)
    mass = sums(place.own, place.often, tokens)[None]
    above, none = torch.full_like(mass, 1 / tokens), torch.zeros(1, dtype=torch.int64)
    chosen = _concentration(mass, above)
    levels = [Level(-1, none, none, *_laws(mass, above, above, chosen.concentration), chosen.concentration)]
    score, ranked, compared = chosen.gain - float(mass.sum()) * math.log(tokens), list(allowed), 0
    while ranked:
        last, few = levels[-1], place.take(slice(0, SAMPLE))
        left = ranked[: CHOICES if len(levels) > 1 else None]
        compared += len(left)
        doubt = math.log(compared)
        if place.nodes <= MANY and len(left) > 1:
            gains = {}
            for site in left:
                split = _split(few, seen.columns[site, few.here], seen.sizes[site])
                gains[site] = max(0.0, _concentration(split.mass, last.without[split.parent]).gain - doubt)
            # Of sites that say nothing the nearest comes first.
            ranked = sorted(left, key=lambda site: (-gains[site], site)) + ranked[len(left) :]
        site = ranked.pop(0)
        if place.nodes * seen.sizes[site] * tokens > MOST_NUMBERS:
            break
        split = _split(place, seen.columns[site, place.here], seen.sizes[site])
        room -= split.mass.numel()
        if room < 0 or not len(split.mass):
            break
        chosen = _concentration(split.mass, last.without[split.parent])
        chosen, compared = (chosen, 0) if chosen.gain > doubt else (Chosen(0.0, math.inf), compared)
        laws = _laws(split.mass, last.law[split.parent], last.without[split.parent], chosen.concentration)
        levels.append(Level(site, split.parent, split.value, *laws, chosen.concentration))
        score += chosen.gain
        node = torch.where(seen.columns[site, place.here] >= 0, split.number[split.key], -1)
        place = place._replace(node=node, nodes=len(split.mass)).take(torch.nonzero(node >= 0).flatten())
    while len(levels) > 1 and levels[-1].concentration == math.inf:
        levels.pop()
    return levels, score


class Split(NamedTuple):
    """The children of all nodes of a level that were seen often enough."""

    key: Tensor  # (n,) where each row falls
    number: Tensor  # (keys,) the child there, −1 for none
    parent: Tensor  # (children,)
    value: Tensor  # (children,)
    mass: Tensor  # (children, tokens) n_sa


def _split(place: Place, column: Tensor, size: int) -> Split:
    """Divide the rows of each node by their value in a column."""
    keys = place.nodes * size
    key = place.node * size + column.long().clamp(min=0)
    table = sums(key * place.tokens + place.own, place.often * (column >= 0), keys * place.tokens)
    table = table.view(keys, place.tokens)
    kept = torch.nonzero(table.sum(1) >= LEAST).flatten()
    number = torch.full((keys,), -1).index_put_((kept,), torch.arange(len(kept)))
    return Split(key, number, kept // size, kept % size, table[kept])


class Chosen(NamedTuple):
    """How far the rows become more likely, each left out in its turn, by the best concentration."""

    gain: float
    concentration: float


def _concentration(mass: Tensor, without: Tensor) -> Chosen:
    """Find the best c of a level: counts (nodes, tokens), and the parents' laws without one observation of each token."""
    taken = mass.clamp(max=1)
    others = mass.sum(1, keepdim=True) - taken  # a context is kept if enough is left of it
    place = torch.nonzero(((mass > 0) & (others >= LEAST)).flatten()).flatten()
    weight, base, rest = mass.flatten()[place], without.flatten()[place], (mass - taken).flatten()[place]
    grid = torch.tensor(CONCENTRATIONS, dtype=torch.float64)[:, None]
    ratio = (rest / base + grid) / (others.flatten()[place] + grid)
    gains = ratio.log() @ weight
    best = int(gains.argmax())
    return Chosen(float(gains[best]), CONCENTRATIONS[best]) if gains[best] > 0 else Chosen(0.0, math.inf)


def _laws(mass: Tensor, parents: Tensor, without: Tensor, concentration: float) -> tuple[Tensor, Tensor]:
    """Return the laws of nodes, and the probability of each token where one observation of it is left out."""
    if concentration == math.inf:
        return parents, without
    taken = mass.clamp(max=1)
    others = mass.sum(1, keepdim=True) - taken
    law = (mass + concentration * parents) / (mass.sum(1, keepdim=True) + concentration)
    told = (mass - taken + concentration * without) / (others + concentration)
    return law, torch.where(others >= LEAST, told, without)


def _numbered(trees: Sequence[list[Level]], sizes: Sequence[int], states: int, score: float) -> Trees:
    """Give the nodes of all trees one numbering, roots first, and every node its slots for children."""
    total = sum(len(level.law) for levels in trees for level in levels)
    asks, first = torch.full((total,), -1, dtype=torch.int32), torch.zeros(total, dtype=torch.int32)
    laws, children = torch.zeros(total, states), [torch.empty(0, dtype=torch.int32)]
    count, slots = len(trees), 0
    for u, levels in enumerate(trees):
        number = torch.tensor([u])
        for level, below in zip(levels, [*levels[1:], None], strict=True):
            laws[number, : level.law.shape[1]] = level.law.log().float()
            if below is None:
                break
            size = sizes[below.asks]
            asks[number], first[number] = below.asks, (slots + size * torch.arange(len(number))).to(torch.int32)
            table = torch.full((size * len(number),), -1, dtype=torch.int32)
            number = torch.arange(count, count + len(below.law))
            table[below.parent * size + below.value] = number.to(torch.int32)
            children.append(table)
            count, slots = count + len(number), slots + len(table)
    contexts = [[level.asks for level in levels[1:]] for levels in trees]
    concentrations = [[level.concentration for level in levels] for levels in trees]
    depth = max(map(len, contexts))
    return Trees(asks, first, torch.cat(children), laws, depth, contexts, concentrations, score)
