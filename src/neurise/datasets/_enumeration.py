"""Laws of two-state pairwise models, written out in full."""

from __future__ import annotations

import numpy as np

from neurise.space import Space

LIMIT = 2**26
"""Beyond this a law does not fit in a laptop's memory."""


def spins(space: Space, index: np.ndarray) -> np.ndarray:
    """Configurations of ±1 at given places of a law, (n, sites) int8."""
    shifts = np.arange(space.sites - 1, -1, -1)
    return (2 * (index[:, None] >> shifts & 1) - 1).astype(np.int8)


def pairwise_law(edges: np.ndarray, couplings: np.ndarray, fields: np.ndarray) -> np.ndarray:
    r"""All 2^q probabilities of :math:`\mu \propto \exp(\sum J\sigma\sigma + \sum h\sigma)`, float64.

    The sites are cut in two halves A and B. With :math:`H = H_A + H_B + \sigma_A^\top J_{AB}\,\sigma_B`, all exponents are one
    matrix product of (2^|A|, |A| + 2) by (|A| + 2, 2^|B|).
    """
    sites = len(fields)
    if 2**sites > LIMIT:
        raise ValueError(f"2^{sites} configurations are too many to write out; draw samples instead")
    matrix = np.zeros((sites, sites))
    np.add.at(matrix, (edges[:, 0], edges[:, 1]), couplings)
    matrix = matrix + matrix.T
    cut = sites // 2
    first, second = (spins(Space(n, 2), np.arange(2**n)).astype(float) if n else np.zeros((1, 0)) for n in (cut, sites - cut))
    own_first = first @ fields[:cut] + 0.5 * np.einsum("ci,ij,cj->c", first, matrix[:cut, :cut], first)
    own_second = second @ fields[cut:] + 0.5 * np.einsum("ci,ij,cj->c", second, matrix[cut:, cut:], second)
    left = np.column_stack([first @ matrix[:cut, cut:], own_first, np.ones(len(first))])
    right = np.column_stack([second, np.ones(len(second)), own_second])
    law = left @ right.T
    law -= law.max()
    np.exp(law, out=law)
    law /= law.sum()
    return law.ravel()


def draw_from_law(law: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n places of a law by inverting its cumulative sum."""
    cumulative = np.cumsum(law)
    return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right").clip(max=len(law) - 1)
