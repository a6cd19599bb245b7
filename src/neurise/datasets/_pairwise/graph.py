"""Graphs with couplings and fields as people write them: edge lists, dictionaries, networkx."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Edge = tuple[Hashable, Hashable]


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in the order of the sites, and numbers on edges and nodes."""

    nodes: list[Any]
    edges: np.ndarray  # (couplers, 2) site numbers
    couplings: np.ndarray  # (couplers,)
    fields: np.ndarray  # (sites,)


def read_graph(graph: Any, J: Any, h: Any) -> Graph:
    """Bring all the ways of writing a model into one; see :func:`neurise.datasets.ising` for what they are."""
    if isinstance(graph, Mapping) and not hasattr(graph, "edges"):
        if J is not None:
            raise ValueError("graph is a dictionary, which holds the couplings: leave J out, and give the fields as h=")
        graph, J = None, graph
    if J is None:
        raise ValueError("J is missing: give one number for all edges, an array, or a dictionary {(i, j): J}")
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        nodes, edges = list(graph.nodes), [tuple(edge[:2]) for edge in graph.edges]
        where = "the graph"
    else:
        if graph is None and not isinstance(J, Mapping):
            raise ValueError(f"without a graph J must be a dictionary {{(i, j): J}}, got {type(J).__name__}")
        edges = _pairs(J, "J has the key") if graph is None else _pairs(_listed(graph), "the graph has the edge")
        nodes, where = _nodes(edges, h)
    if not nodes:
        raise ValueError("the model has no node: give edges, or fields one a site")
    place = {node: site for site, node in enumerate(nodes)}
    _check_edges(edges, place, where)
    return Graph(
        nodes,
        np.array([(place[a], place[b]) for a, b in edges], dtype=np.int64).reshape(-1, 2),
        _couplings(J, edges, given=graph is not None),
        _fields(h, nodes, place),
    )


def _listed(graph: Any) -> list[Any]:
    if isinstance(graph, str) or not isinstance(graph, Iterable):
        raise ValueError(
            f"graph is a {type(graph).__name__}; give pairs of nodes, a dictionary {{(i, j): J}}, or a networkx graph"
        )
    return graph.tolist() if isinstance(graph, np.ndarray) else list(graph)


def _pairs(entries: Iterable[Any], what: str) -> list[Edge]:
    pairs = []
    for entry in entries:
        plain = entry.tolist() if isinstance(entry, np.ndarray) else entry
        if not isinstance(plain, tuple | list):
            raise ValueError(f"{what} {plain!r}; a pair of nodes is needed")
        if len(plain) != 2:
            raise ValueError(f"{what} {plain!r}, which names {len(plain)} nodes and not two")
        pairs.append((plain[0], plain[1]))
    return pairs


def _nodes(edges: list[Edge], h: Any) -> tuple[list[Any], str]:
    """Nodes are those that have a field; where none are named, those that have an edge."""
    if isinstance(h, Mapping) and h:
        return list(h), "h"
    if not isinstance(h, Mapping) and np.ndim(h) == 1:
        return list(range(len(h))), f"h, whose {len(h)} numbers are for the nodes 0 … {len(h) - 1}"
    found = list(dict.fromkeys(node for edge in edges for node in edge))
    try:
        return sorted(found), ""
    except TypeError:  # nodes that cannot be compared stay in the order in which they came
        return found, ""


def _check_edges(edges: list[Edge], place: Mapping[Any, int], where: str) -> None:
    for edge in edges:
        for node in edge:
            if node not in place:
                raise ValueError(f"the edge {edge!r} names the node {node!r}, which is not in {where}")
        if edge[0] == edge[1]:
            raise ValueError(f"the edge {edge!r} joins a node to itself")


def _couplings(J: Any, edges: list[Edge], *, given: bool) -> np.ndarray:
    if not isinstance(J, Mapping):
        values = np.asarray(J)
        if values.ndim and values.shape != (len(edges),):
            raise ValueError(f"J has the shape {values.shape} and there are {len(edges)} edges: give one number each")
        listed = [J] * len(edges) if values.ndim == 0 else values.tolist()
        return _numbers(listed, "J", edges)
    if not given:
        return _numbers(list(J.values()), "J", edges)
    sums: dict[frozenset[Hashable], float] = {}
    keys = _pairs(J, "J has the key")
    for key, value in zip(keys, _numbers(list(J.values()), "J", keys).tolist(), strict=True):
        sums[frozenset(key)] = sums.get(frozenset(key), 0.0) + value
    known = {frozenset(edge): edge for edge in edges}
    if len(known) < len(edges):
        twice = next(edge for edge in edges if [frozenset(other) for other in edges].count(frozenset(edge)) > 1)
        raise ValueError(f"the edge {twice!r} is there twice: give J as an array, one number an edge")
    for key in keys:
        if frozenset(key) not in known:
            raise ValueError(f"J has the key {key!r}, which is no edge of the graph")
    for edge in edges:
        if frozenset(edge) not in sums:
            raise ValueError(f"J has no key for the edge {edge!r}; give it the coupling 0 to leave it out")
    return np.array([sums[frozenset(edge)] for edge in edges])


def _fields(h: Any, nodes: list[Any], place: Mapping[Any, int]) -> np.ndarray:
    if not isinstance(h, Mapping):
        values = np.asarray(h)
        if values.ndim and values.shape != (len(nodes),):
            raise ValueError(f"h has the shape {values.shape} and there are {len(nodes)} nodes: give one number each")
        return _numbers([h] * len(nodes) if values.ndim == 0 else values.tolist(), "h", nodes)
    for node in h:
        if node not in place:
            raise ValueError(f"h has the key {node!r}, which is no node of the graph")
    missing = [node for node in nodes if node not in h] if h else []
    if missing:
        raise ValueError(f"h has no key for the node {missing[0]!r}; give it the field 0")
    return _numbers([h[node] if h else 0.0 for node in nodes], "h", nodes)


def _numbers(values: Sequence[Any], what: str, places: Sequence[Any]) -> np.ndarray:
    result = np.empty(len(values))
    for number, (value, place) in enumerate(zip(values, places, strict=True)):
        try:
            result[number] = float(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} has {value!r} at {place!r}, which is no number") from error
        if not np.isfinite(result[number]):
            raise ValueError(f"{what} has {value} at {place!r}; it must be finite")
    return result
