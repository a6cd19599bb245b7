"""A spin glass of which some spins are not shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._hidden_sums import HiddenSums
from neurise.datasets.edwards_anderson import edwards_anderson
from neurise.enumeration import LIMIT
from neurise.space import Space


def hidden_spins(
    side: int = 5,
    seed: int = 0,
    preset: str = "paper",
    *,
    hidden: float = 1 / 3,
    J: float = 1.2,
    h: float = 0.05,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""The visible spins of an Edwards–Anderson model of side × side spins, a share ``hidden`` of which is not shown.

    .. math:: \mu(\sigma_V) = \sum_{\sigma_H} \mu(\sigma_V, \sigma_H)

    Summing over hidden spins couples all visible neighbours of a hidden cluster with each other, by terms of every even
    order (and odd ones where there are fields): the law of the visible spins is not pairwise.

    The whole lattice is ``edwards_anderson(side, seed, preset, J=J, h=h)``; the hidden sites are ``rng.choice(side²,
    round(hidden · side²), replace=False)`` with ``rng = numpy.random.default_rng([seed, 1])``. The columns are the visible
    sites in their order; ``info`` has the sites of the lattice that they are (``nodes``), those that are not shown
    (``hidden``), and the couplers of the whole lattice (``edges``, ``couplings``, ``fields``).

    Rows are drawn with the whole lattice, exactly up to side 10. Hidden spins are summed over cluster by cluster, so that
    ``energy`` is exact at any side where no cluster of hidden spins is large (with a third of them hidden, none is); the
    pmf is there up to 26 visible spins. ``sampler`` and ``sweeps`` are those of :func:`neurise.datasets.ising`.

    >>> import neurise
    >>> neurise.datasets.hidden_spins(side=3).sample(5, seed=0).shape
    (5, 6)
    """
    if not isinstance(hidden, int | float | np.floating) or not 0 <= hidden < 1:
        raise ValueError(f"hidden must be a share from 0 to less than 1, got {hidden!r}")
    whole: Any = edwards_anderson(side, seed, preset, J=J, h=h, sampler=sampler, sweeps=sweeps)  # all of it is known
    sites = whole.space.sites
    count = round(hidden * sites)
    if count == sites:
        raise ValueError(f"hidden={hidden} leaves none of {sites} spins to be seen; hide fewer")
    unseen = np.sort(np.random.default_rng([seed, 1]).choice(sites, count, replace=False))
    visible = np.setdiff1d(np.arange(sites), unseen)
    space = Space(len(visible), 2)
    sums = HiddenSums(whole.edges, whole.couplings, whole.fields, visible)
    facts = {"nodes": visible.tolist(), "hidden": unseen.tolist()}
    for name, value in {**facts, "edges": whole.edges, "couplings": whole.couplings, "fields": whole.fields}.items():
        whole.info.put(name, value)

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return np.ascontiguousarray(whole.draw(n, rng)[:, visible])

    return Dataset(
        f"hidden_spins(side={side}, seed={seed}, preset={preset!r}, hidden={hidden:.4g})",
        space,
        whole.symbols,
        law=(lambda: sums.law(space)) if sums.possible and space.size <= LIMIT else None,
        draw=draw,
        log_weight=sums.log_weight if sums.possible else None,
        info=whole.info,
    )
