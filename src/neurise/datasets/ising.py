"""Ising models on any graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._enumeration import draw_from_law, pairwise_law, spins
from neurise.space import Space


def ising(
    edges: Any, couplings: Any, fields: Any, *, name: str = "ising", shape: tuple[int, ...] | None = None
) -> Dataset:
    r"""Ising model :math:`\mu \propto \exp(\sum_{(i,j)} J_{ij}\sigma_i\sigma_j + \sum_i h_i\sigma_i)` on spins ±1.

    ``edges`` is (couplers, 2) site numbers (a pair may occur twice: its couplings add up), ``couplings`` (couplers,) or one
    number for all, ``fields`` (sites,). The pmf and exact samples are there up to 2^26 configurations.
    """
    h = np.atleast_1d(np.asarray(fields, dtype=float))
    if h.ndim != 1:
        raise ValueError(f"fields must be one number a site; their shape is {h.shape}")
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    J = np.broadcast_to(np.asarray(couplings, dtype=float), (len(pairs),)).copy()
    for what, values in (("couplings", J), ("fields", h)):
        if not np.isfinite(values).all():
            place = int((~np.isfinite(values)).argmax())
            raise ValueError(f"{what} has {values[place]} at position {place}; it must be finite")
    outside = (pairs < 0) | (pairs >= len(h))
    if outside.any():
        place = int(outside.any(1).argmax())
        raise ValueError(f"edge {tuple(pairs[place].tolist())} names a site outside 0 … {len(h) - 1}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise ValueError(f"edge {tuple(pairs[int(loops.argmax())].tolist())} joins a site to itself")

    space = Space(len(h), 2)
    law = partial(pairwise_law, pairs, J, h)
    data: Dataset

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        assert data.pmf is not None
        return spins(space, draw_from_law(data.pmf, n, rng))

    def log_weight(X: np.ndarray) -> np.ndarray:
        sigma = np.asarray(X, dtype=float)
        if sigma.ndim != 2 or sigma.shape[1] != len(h):
            raise ValueError(f"rows of {len(h)} spins are needed; the shape is {sigma.shape}")
        return np.asarray((sigma[:, pairs[:, 0]] * sigma[:, pairs[:, 1]]) @ J + sigma @ h)

    data = Dataset(
        name,
        space,
        np.array([-1, 1], dtype=np.int8),
        law=law,
        draw=draw,
        log_weight=log_weight,
        edges=pairs,
        couplings=J,
        fields=h,
        shape=shape,
    )
    return data
