"""Families of every kind with their laws by explicit loops over all configurations that are possible."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from neurise.energies.family import Family
from neurise.interactions import contrasts
from neurise.space import Space

RING = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]])

FAMILIES = {
    "spins": Family(Space(5, 2), RING),
    "all spins": Family.dense(Space(6, 2)),
    "three states": Family(Space(4, 3), RING),
    "labels": Family(Space(5, 2), RING, classes=3),
    "own alphabets": Family(Space(5, 4, (3, 4, 1, 2, 3)), np.array([[0, 1], [1, 3], [3, 4], [0, 4]])),
    "own alphabets and labels": Family(Space(4, 3, (2, 3, 3, 2)), RING, classes=2),
    "no pairs": Family(Space(3, 2), np.empty((0, 2), dtype=np.int64)),
}


def parameters(family: Family, seed: int = 0, size: float = 0.7) -> Tensor:
    return size * torch.randn(family.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def configurations(space: Space) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(states) for states in space.digits)))


def features(family: Family, x: tuple[int, ...], kind: int) -> list[float]:
    """f(x, y) entry by entry."""
    shown = [contrasts(states)[token] for states, token in zip(family.space.digits, x, strict=True)]
    fields = [number * (kind == own) for own in range(family.kinds) for site in shown for number in site]
    return fields + [a * b for i, j in family.edges for a in shown[i] for b in shown[j]]


def law(family: Family, theta: Tensor, kind: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Probabilities, log Z and the matrix of features."""
    matrix = np.array([features(family, x, kind) for x in configurations(family.space)])
    weight = np.exp(matrix @ theta.numpy())
    return weight / weight.sum(), math.log(weight.sum()), matrix
