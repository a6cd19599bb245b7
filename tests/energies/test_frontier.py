"""What a conditional of the chain can depend on, given a graph: by enumeration of a law that is Markov on it."""

import itertools

import networkx
import pytest
import torch

from neurise.energies.frontier import adjacency, frontier

GRAPHS = {
    "chain": (5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "chain out of order": (5, [(0, 3), (0, 4), (1, 4), (1, 2)]),
    "star": (5, [(0, 1), (0, 2), (0, 3), (0, 4)]),
    "ring": (6, [(0, 3), (3, 1), (1, 5), (5, 2), (2, 4), (4, 0)]),
    "two parts": (5, [(0, 2), (1, 4)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_what_the_conditional_depends_on(name: str) -> None:
    """Three symbols and couplings that are drawn: whatever can matter does."""
    sites, pairs = GRAPHS[name]
    generator = torch.Generator().manual_seed(0)
    energy = torch.zeros([3] * sites, dtype=torch.float64)
    for i, j in pairs:
        shape = [3 if site in (i, j) else 1 for site in range(sites)]
        energy = energy + torch.randn(3, 3, generator=generator, dtype=torch.float64).reshape(shape)
    law = energy.flatten().softmax(0).view([3] * sites)
    found = frontier(adjacency(pairs, range(sites)))
    for u in range(sites):
        ahead = law.sum(dim=tuple(range(u))) if u else law  # over (x_u, …), the sites before are summed over
        conditional = ahead / ahead.sum(0, keepdim=True)
        for w in range(sites):
            depends = w > u and bool((conditional - conditional.roll(1, w - u)).abs().max() > 1e-9)
            assert bool(found[u, w]) == depends, (u, w)


def test_it_is_what_paths_through_earlier_sites_reach() -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        near = torch.rand(9, 9, generator=generator) < 0.2
        near = (near | near.T) & ~torch.eye(9, dtype=torch.bool)
        graph = networkx.from_numpy_array(near.numpy())
        found = frontier(near)
        for u, w in itertools.product(range(9), repeat=2):
            between = graph.subgraph([*range(u), u, w])
            assert bool(found[u, w]) == (w > u and networkx.has_path(between, u, w))
