"""The paper's Potts glass: random ±J couplings of equal states and ±h fields on each state."""

from __future__ import annotations

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._pairwise.lattice import check_side, check_strength, square_lattice
from neurise.datasets._pairwise.law import PairwiseLaw
from neurise.interactions import Interactions
from neurise.space import MAX_STATES


def potts(
    side: int = 3,
    states: int = 3,
    seed: int = 0,
    *,
    J: float = 1.2,
    h: float = 0.05,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""Potts model of side × side sites with states 0 … p−1 on a periodic lattice,

    .. math:: \mu(x) \propto \exp\Bigl(\sum_{(i,j)} J_{ij}\, 1\{x_i = x_j\} + \sum_i h_{i, x_i}\Bigr), \qquad
       J_{ij} \in \{\pm J\}, \quad h_{ia} \in \{\pm h\}.

    A positive coupling favours equal states. Each site is coupled to its right and its lower neighbour; at side 2 each pair
    of neighbours is thereby coupled twice. The paper gives neither J nor h: the defaults are those of its Edwards–Anderson
    model. Site index = row · side + column. ``couplings`` is (couplers,), ``fields`` (sites, states).

    From seed to instance: ``rng = numpy.random.default_rng(seed)``; couplings are drawn first,
    ``rng.choice([-J, J], couplers)``, in the order of the sites, right before down; then the fields,
    ``rng.choice([-h, h], (sites, states))``.

    The pmf is there up to 2^26 configurations (3 × 3 up to seven states, 4 × 4 up to three). ``sampler`` and ``sweeps`` are
    those of :func:`neurise.datasets.ising`: beyond the pmf rows are still exact where sites can be eliminated (6 × 6 with
    three states), and else come from parallel tempering, which tells how well it mixed.

    >>> import neurise
    >>> sorted(set(neurise.datasets.potts(side=2, states=3).sample(50, seed=0).ravel().tolist()))
    [0, 1, 2]
    """
    side = check_side(side)
    if isinstance(states, bool) or states != int(states) or not 2 <= states <= MAX_STATES:
        raise ValueError(f"states must be a whole number from 2 to {MAX_STATES}, got {states}")
    states = int(states)
    check_strength(J=J, h=h)
    edges = square_lattice(side, wraps=True)
    rng = np.random.default_rng(seed)
    couplings = rng.choice([-J, J], len(edges))
    fields = rng.choice([-h, h], (side * side, states))
    interactions = Interactions.potts(edges, couplings, fields)
    symbols = np.arange(states, dtype=np.int8 if states <= 128 else np.int16)
    name = f"potts(side={side}, states={states}, seed={seed})"
    law = PairwiseLaw(interactions, symbols, name=name, sampler=sampler, sweeps=sweeps)
    sites = list(range(side * side))
    return law.dataset(sites, edges=edges, couplings=couplings, fields=fields, shape=(side, side))
