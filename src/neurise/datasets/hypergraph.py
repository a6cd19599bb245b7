"""Random hypergraphs: three- and four-body terms."""

from __future__ import annotations

import math

import numpy as np

from neurise import checks
from neurise.dataset import Dataset
from neurise.datasets._pairwise.lattice import check_strength
from neurise.datasets._products.law import products_dataset

MOST = 2**16
"""Sites, and terms of each order."""


def hypergraph(
    sites: int = 16,
    seed: int = 0,
    *,
    threes: int = 16,
    fours: int = 16,
    J: float = 0.6,
    h: float = 0.05,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""Spins with random three- and four-body terms,

    .. math:: \mu(\sigma) \propto \exp\Bigl(\sum_T J_T \prod_{i \in T}\sigma_i + \sum_i h_i\sigma_i\Bigr), \qquad
       |T| \in \{3, 4\}, \quad J_T \in \{\pm J\}, \quad h_i \in \{\pm h\}.

    From seed to instance: ``rng = numpy.random.default_rng(seed)``; first the ``threes``, then the ``fours``, one after the
    other by ``rng.choice(sites, order, replace=False)``, sorted, and drawn again where the term is there already; then the
    strengths, ``rng.choice([-J, J], terms)``; then the fields, ``rng.choice([-h, h], sites)``. ``info`` has ``terms``,
    ``strengths`` and ``fields``.

    The pmf and log Z are there up to 2^26 configurations; ``sampler`` (``"enumerate"``, ``"tempering"`` or ``"auto"``) and
    ``sweeps`` are those of :func:`neurise.datasets.ising`.

    >>> import neurise
    >>> neurise.datasets.hypergraph(6, threes=2, fours=1).sample(5, seed=0).shape
    (5, 6)
    """
    sites = checks.count("sites", sites, MOST)
    check_strength(J=J, h=h)
    rng = np.random.default_rng(seed)
    terms: dict[tuple[int, ...], None] = {}  # in the order in which they are drawn
    for option, order, wanted in (("threes", 3, threes), ("fours", 4, fours)):
        count = checks.whole(option, wanted, MOST)
        possible = math.comb(sites, order)
        if count > possible:
            raise ValueError(f"{option} is {count}; {sites} sites have {possible} different terms of {order}")
        known = len(terms)
        while len(terms) < known + count:
            terms.setdefault(tuple(sorted(rng.choice(sites, order, replace=False).tolist())))
    strengths = rng.choice([-J, J], len(terms))
    fields = rng.choice([-h, h], sites)
    name = f"hypergraph(sites={sites}, seed={seed}, threes={threes}, fours={fours})"
    return products_dataset(list(terms), strengths, fields, name=name, sampler=sampler, sweeps=sweeps)
