"""Small pairwise models without any symmetry, and their laws by explicit loops."""

from __future__ import annotations

import math

import numpy as np
import oracles
import torch

from neurise.interactions import Interactions
from neurise.space import Space

SPACES = [Space(sites=5, states=2), Space(sites=4, states=3)]  # sites != states, so that mixing them up fails


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_model(space: Space, seed: int = 0) -> tuple[Interactions, np.ndarray, np.ndarray, np.ndarray]:
    """A ring with one pair that is given three times, once turned round, and tables without any symmetry."""
    rng = np.random.default_rng(seed)
    edges = np.array([(i, (i + 1) % space.sites) for i in range(space.sites)] + [(0, 1), (1, 0)])
    tables = rng.normal(size=(len(edges), space.states, space.states))
    fields = rng.normal(size=(space.sites, space.states))
    return Interactions(edges, tables, fields), edges, tables, fields


def law_of(space: Space, edges: np.ndarray, tables: np.ndarray, fields: np.ndarray, beta: float = 1.0) -> np.ndarray:
    weights = []
    for x in oracles.configurations(space):
        total = 0.0
        for (i, j), table in zip(edges, tables, strict=True):
            total += table[x[i], x[j]]
        for i in range(space.sites):
            total += fields[i, x[i]]
        weights.append(math.exp(beta * total))
    return np.array(weights) / sum(weights)
