"""Ising models on any graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._pairwise.graph import read_graph
from neurise.datasets._pairwise.law import PairwiseLaw
from neurise.interactions import Interactions


def ising(
    graph: Any = None,
    J: Any = None,
    h: Any = 0.0,
    *,
    name: str = "ising",
    shape: tuple[int, ...] | None = None,
    sampler: str = "auto",
    sweeps: int | None = None,
) -> Dataset:
    r"""Ising model :math:`\mu \propto \exp(\sum_{(i,j)} J_{ij}\sigma_i\sigma_j + \sum_i h_i\sigma_i)` on spins ±1.

    The graph may be written as

    - an edge list, (couplers, 2): ``ising([(0, 1), (1, 2)], [1.2, -1.2], [0.05, 0.0, -0.05])``. A pair may occur twice: its
      couplings add up;
    - a dictionary of couplings: ``ising(J={("a", "b"): 1.2}, h={"a": 0.05, "b": 0.0})``;
    - a networkx graph, whose nodes may be anything: ``ising(graph, J, h)``.

    ``J`` is one number for all edges, an array in the order of the edges, or a dictionary by pairs of nodes; ``h`` one
    number for all nodes, an array in the order of the nodes, or a dictionary by nodes. The nodes are those of the networkx
    graph, else those that h names, else those that the edges name, sorted. ``info["nodes"]`` lists them in the order of the
    columns.

    The pmf is there up to 2^26 configurations. ``sampler`` says how rows are drawn: ``"enumerate"`` from the pmf; ``"exact"``
    by eliminating one spin after the other (lattices up to 10 × 10 with wrap-around, 19 × 19 without, any graph as narrow);
    ``"tempering"`` by Markov chains, which tell on stderr and in ``info["tempering"]`` how well they mixed, and take
    ``sweeps`` sweeps; ``"auto"`` by the first of these that is possible. ``info["log_z"]`` is log Z where it can be computed
    exactly, else None.

    >>> import neurise
    >>> data = neurise.datasets.ising([(0, 1), (1, 2)], 0.7)        # a chain of three spins
    >>> data.pmf.shape
    (8,)
    """
    model = read_graph(graph, J, h)
    spins = np.array([-1, 1], dtype=np.int8)
    interactions = Interactions.ising(model.edges, model.couplings, model.fields)
    law = PairwiseLaw(interactions, spins, name=name, sampler=sampler, sweeps=sweeps)
    return law.dataset(model.nodes, edges=model.edges, couplings=model.couplings, fields=model.fields, shape=shape)
