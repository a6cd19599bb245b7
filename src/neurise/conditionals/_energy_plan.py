"""Which sites the tables of an energy look at where sites are summed out in the order of the noise, and what they cost."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neurise.energies.elimination_order import EliminationPlan
from neurise.energies.frontier import frontier
from neurise.space import Space

LARGEST = 4
"""Sites of a product, at most: fewer are followed by −1."""


def adjacency(edges: Tensor, sites: int, products: Tensor | None = None) -> Tensor:
    """Write pairs (m, 2) as booleans (sites, sites), and those within products (n, 4)."""
    near = torch.zeros(sites, sites, dtype=torch.bool, device=edges.device)
    if products is not None and len(products):
        both = torch.combinations(torch.arange(LARGEST, device=edges.device))
        inside = products[:, both].reshape(-1, 2)
        edges = torch.cat([edges, inside[(inside >= 0).all(1)]])
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    return near


def signs(sites: int) -> Tensor:
    """Return the product of so many spins at all of their configurations, (2^sites,)."""
    one = found = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    for _ in range(sites - 1):
        found = torch.kron(found, one)
    return found


def plan_in_order(edges: np.ndarray, space: Space, products: Tensor | None = None) -> EliminationPlan:
    """Eliminate the sites in the order of the noise, 0, 1, …"""
    seen = frontier(adjacency(torch.from_numpy(edges), space.sites, products))
    scopes = tuple(tuple(torch.nonzero(own).flatten().tolist()) for own in seen)
    entries = sum((space.states - 1) * space.states ** len(scope) for scope in scopes)
    return EliminationPlan(tuple(range(space.sites)), scopes, entries)


def entries(edges: np.ndarray, space: Space, kinds: int = 1, products: Tensor | None = None) -> int:
    """Return how many numbers the tables of all sites would hold."""
    return kinds * plan_in_order(edges, space, products).entries
