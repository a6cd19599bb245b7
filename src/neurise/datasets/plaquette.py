"""Plaquette models: four-body terms on the squares of a lattice."""

from __future__ import annotations

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._pairwise.lattice import check_side, check_strength
from neurise.datasets._products.law import products_dataset


def plaquette(
    side: int = 4,
    seed: int = 0,
    *,
    wraps: bool = True,
    J: float = 1.2,
    h: float = 0.05,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""Plaquette model of side × side spins, a law that no pairwise one resembles,

    .. math:: \mu(\sigma) \propto \exp\Bigl(\sum_P J_P\, \sigma_i\sigma_j\sigma_k\sigma_l + \sum_i h_i\sigma_i\Bigr), \qquad
       J_P \in \{\pm J\}, \quad h_i \in \{\pm h\}.

    A plaquette P is a site, its right neighbour and the two below them. With ``wraps`` there is one for every site; without,
    (side − 1)². Flipping a whole row or column changes no product, so that without fields two spins are uncorrelated
    whatever J is. Site index = row · side + column. ``info`` has ``terms``, ``strengths`` and ``fields``.

    From seed to instance: ``rng = numpy.random.default_rng(seed)``; strengths are drawn first, ``rng.choice([-J, J],
    plaquettes)``, in the order of their first sites; then the fields, ``rng.choice([-h, h], sites)``.

    The pmf and log Z are there up to 2^26 configurations; ``sampler`` (``"enumerate"``, ``"tempering"`` or ``"auto"``) and
    ``sweeps`` are those of :func:`neurise.datasets.ising`.

    >>> import neurise
    >>> neurise.datasets.plaquette(side=3).sample(5, seed=0).shape
    (5, 9)
    """
    side = check_side(side)
    if wraps and side < 3:
        raise ValueError(
            "side must be at least 3 where the lattice wraps around: at 2 a plaquette meets itself; wraps=False"
        )
    check_strength(J=J, h=h)
    last = side if wraps else side - 1
    terms = [
        tuple((row + down) % side * side + (column + right) % side for down in (0, 1) for right in (0, 1))
        for row in range(last)
        for column in range(last)
    ]
    rng = np.random.default_rng(seed)
    strengths = rng.choice([-J, J], len(terms))
    fields = rng.choice([-h, h], side * side)
    name = f"plaquette(side={side}, seed={seed}, wraps={wraps})"
    return products_dataset(terms, strengths, fields, shape=(side, side), name=name, sampler=sampler, sweeps=sweeps)
