"""Random spin glasses on the graphs of annealers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from neurise.datasets._annealers.problem import Labels, Problem, problem_of_arrays
from neurise.extras import need

TOPOLOGIES = {"pegasus": 16, "zephyr": 12}
"""Families of graphs, and the size of the largest machine of each (Advantage P16, Advantage2 Z12)."""

Graph = tuple[list[Any], list[tuple[Any, Any]]]
"""Qubits and couplers."""


def hardware_graph(topology: str, size: int | None = None) -> Graph:
    """List the qubits and couplers of a whole chip: Pegasus or Zephyr of a given size, by default the largest built."""
    if topology not in TOPOLOGIES:
        raise ValueError(f"topology must be {' or '.join(TOPOLOGIES)}, got {topology!r}")
    size = TOPOLOGIES[topology] if size is None else size
    least = 2 if topology == "pegasus" else 1
    if isinstance(size, bool) or int(size) != size or size < least:
        raise ValueError(f"size must be a whole number, at least {least} for {topology}, got {size!r}")
    graph = getattr(need("dwave.graphs", "dwave"), f"{topology}_graph")(int(size))
    return sorted(graph.nodes), sorted((min(edge), max(edge)) for edge in graph.edges)


def random_instance(
    graph: Graph, *, qubits: int | None, couplings: str, J: float, h: float, seed: int
) -> tuple[Labels, Problem]:
    r"""Draw a spin glass on a connected part of a graph.

    ``couplings="uniform"`` draws :math:`J_{ij} \sim U(-J, J)` and :math:`h_i \sim U(-h, h)`, ``"pm"`` draws
    :math:`J_{ij} \in \{\pm J\}` and :math:`h_i \in \{\pm h\}`. From seed to instance: ``rng = default_rng(seed)`` draws
    the qubit to grow from, then the couplings in the order of the couplers, then the fields.
    """
    if couplings not in ("uniform", "pm"):
        raise ValueError(f"couplings must be 'uniform' or 'pm', got {couplings!r}")
    for what, value in (("J", J), ("h", h)):
        if not np.isfinite(value) or value < 0:
            raise ValueError(f"{what} must be finite and not negative, got {value!r}")
    rng = np.random.default_rng(seed)
    nodes, edges = graph
    wanted = len(nodes) if qubits is None else qubits
    labels = connected_part(nodes, edges, wanted, nodes[int(rng.integers(len(nodes)))])
    column = {label: place for place, label in enumerate(labels)}
    pairs = np.array([(column[u], column[v]) for u, v in edges if u in column and v in column]).reshape(-1, 2)

    def draw(strength: float, n: int) -> np.ndarray:
        return rng.uniform(-strength, strength, n) if couplings == "uniform" else rng.choice([-strength, strength], n)

    drawn = draw(J, len(pairs))
    return labels, problem_of_arrays(pairs.astype(np.int64), drawn, draw(h, len(labels)), 0.0, labels, "the instance")


def connected_part(nodes: list[Any], edges: Iterable[tuple[Any, Any]], qubits: int, start: Hashable) -> Labels:
    """Grow a connected set of qubits breadth first, neighbours in rising order; give it in the order of ``nodes``."""
    if isinstance(qubits, bool) or int(qubits) != qubits or not 1 <= qubits <= len(nodes):
        raise ValueError(f"qubits must be a whole number from 1 to the {len(nodes)} of the graph, got {qubits!r}")
    neighbours: dict[Hashable, list[Any]] = {node: [] for node in nodes}
    for u, v in edges:
        neighbours[u].append(v)
        neighbours[v].append(u)
    found: dict[Hashable, None] = {start: None}
    for node in (queue := [start]):
        for other in sorted(neighbours[node]):
            if other not in found and len(found) < qubits:
                found[other] = None
                queue.append(other)
    if len(found) < qubits:
        raise ValueError(
            f"qubit {start!r} is connected to {len(found)} qubits only, and {qubits} were asked for; try another seed or fewer"
        )
    return tuple(node for node in nodes if node in found)
