"""Square lattices."""

from __future__ import annotations

import numpy as np

from neurise import checks

MOST_SIDE = 2**10
"""A million sites."""


def check_side(side: int) -> int:
    """Insist on a side that makes a lattice."""
    if isinstance(side, bool) or side != int(side) or side < 2:
        raise ValueError(f"side must be a whole number, at least 2, got {side}")
    return checks.count("side", side, MOST_SIDE)


def square_lattice(side: int, *, wraps: bool) -> np.ndarray:
    """Edges of a side × side lattice, (couplers, 2): row by row, site by site, to the right neighbour and to the lower one.

    Site index = row · side + column. Across the border an edge wraps around, or is left out. A lattice of side 2 that wraps
    around couples each pair of neighbours twice.
    """
    edges = []
    for row in range(side):
        for column in range(side):
            for below, beside in ((row, column + 1), (row + 1, column)):
                if wraps or (below < side and beside < side):
                    edges.append((row * side + column, below % side * side + beside % side))
    return np.array(edges)


def check_strength(**strengths: float) -> None:
    """Refuse strengths of couplings and fields that are not finite, by name."""
    for name, strength in strengths.items():
        if not np.isfinite(strength):
            raise ValueError(f"{name} must be finite, got {strength}")
