"""The paper's spin glass: random ±J couplings and ±h fields on a square lattice."""

from __future__ import annotations

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._pairwise.lattice import check_side, check_strength, square_lattice
from neurise.datasets.ising import ising


def edwards_anderson(
    side: int = 5,
    seed: int = 0,
    preset: str = "paper",
    *,
    J: float = 1.2,
    h: float = 0.05,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""Edwards–Anderson model of side × side spins, :math:`J_{ij} \in \{\pm J\}`, :math:`h_i \in \{\pm h\}`.

    Each site is coupled to its right and its lower neighbour. ``preset="paper"`` is the model of the paper's text: a
    periodic lattice, 2·side² couplers. ``preset="released"`` is what the authors' scripts generate, another model: no
    wrap-around (40 couplers at side 5), and each pair counted twice, so that a coupler weighs 2J. Figures of the two must
    never be mixed. Site index = row · side + column.

    From seed to instance: ``rng = numpy.random.default_rng(seed)``; couplings are drawn first,
    ``rng.choice([-J, J], couplers)``, in the order of the sites, right before down; then the fields,
    ``rng.choice([-h, h], sites)``.

    The pmf is there up to side 5; ``paper`` samples are exact up to side 10, and beyond come from parallel tempering, which
    tells how well it mixed. ``sampler`` and ``sweeps`` are those of :func:`neurise.datasets.ising`.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=3, seed=0)
    >>> data.sample(5, seed=0).shape, data.pmf.shape
    ((5, 9), (512,))
    """
    side = check_side(side)
    if preset not in ("paper", "released"):
        raise ValueError(f"preset must be 'paper' or 'released', got {preset!r}")
    check_strength(J=J, h=h)
    edges = square_lattice(side, wraps=preset == "paper")
    rng = np.random.default_rng(seed)
    couplings = rng.choice([-J, J], len(edges))
    fields = rng.choice([-h, h], side * side)
    strength = 1.0 if preset == "paper" else 2.0
    name = f"edwards_anderson(side={side}, seed={seed}, preset={preset!r})"
    return ising(edges, strength * couplings, fields, name=name, shape=(side, side), sampler=sampler, sweeps=sweeps)
