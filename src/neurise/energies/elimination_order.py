"""In which order to eliminate the sites of a graph, and what it costs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from neurise.interactions import Interactions

MAX_ENTRIES = 2**28
"""Numbers that may be kept: a gigabyte in single precision."""
MAX_TABLE = 2**25
"""Numbers of the largest table at work: a quarter of a gigabyte in double precision."""

Graph = list[set[int]]


@dataclass(frozen=True)
class EliminationPlan:
    """An order of elimination. A scope is what a site's conditional looks at: its neighbours when its turn comes."""

    order: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]  # each in the order of elimination
    entries: int  # numbers to be kept

    @property
    def width(self) -> int:
        """Sites in the largest scope."""
        return max(len(scope) for scope in self.scopes)


def find_plan(model: Interactions) -> EliminationPlan | None:
    """Find the cheaper of two orders, the sites' own (best for lattices) and min-fill; None where both are too wide."""
    plans = [_plan(model, choose) for choose in (_own_order, _MinFill)]
    possible = [plan for plan in plans if plan is not None and plan.entries <= MAX_ENTRIES]
    return min(possible, key=lambda plan: plan.entries, default=None)


def _plan(model: Interactions, choose: Callable[[Graph], Callable[[], int]]) -> EliminationPlan | None:
    graph: Graph = [set(near) for near in model.neighbours]
    pick = choose(graph)
    order, scopes = [], []
    for _ in range(model.sites):
        site = pick()
        near = graph[site]
        if model.states ** (len(near) + 1) > MAX_TABLE:
            return None
        order.append(site)
        scopes.append(near.copy())
        for other in near:
            graph[other] |= near
            graph[other] -= {other, site}
    place = {site: number for number, site in enumerate(order)}
    sorted_scopes = tuple(tuple(sorted(scope, key=place.__getitem__)) for scope in scopes)
    entries = sum((model.states - 1) * model.states ** len(scope) for scope in scopes)
    return EliminationPlan(tuple(order), sorted_scopes, entries)


def _own_order(graph: Graph) -> Callable[[], int]:
    return iter(range(len(graph))).__next__


class _MinFill:
    """Pick the site whose elimination ties the fewest pairs that were not neighbours yet."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ranks: dict[int, tuple[int, int, int]] = {}  # of the sites that are left
        self.queue: list[tuple[int, int, int]] = []  # also holds ranks that are no longer true
        self._rank(range(len(graph)))
        self.stale: set[int] = set()

    def _rank(self, sites: Iterable[int]) -> None:
        for site in sites:
            near = self.graph[site]
            ties = sum(len(near) - 1 - len(near & self.graph[other]) for other in near)
            self.ranks[site] = (ties, len(near), site)
            heapq.heappush(self.queue, self.ranks[site])

    def __call__(self) -> int:
        self._rank(self.stale & self.ranks.keys())
        rank = heapq.heappop(self.queue)
        while self.ranks.get(rank[2]) != rank:
            rank = heapq.heappop(self.queue)
        site = rank[2]
        del self.ranks[site]
        # Pairs become tied among the neighbours, which matters to whoever is next to two of them, and to themselves.
        self.stale = set(self.graph[site]).union(*(self.graph[other] for other in self.graph[site]))
        return site
