"""Graphs whose nodes are sites, as networkx or anybody else holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def is_graph(graph: Any) -> bool:
    """Whether something has nodes and edges, as a networkx graph has."""
    return hasattr(graph, "nodes") and hasattr(graph, "edges")


def site_pairs(graph: Any, sites: int, names: Sequence[Any] | None = None) -> Any:
    """Return the edges of a graph as pairs of site numbers, or pairs as they are.

    Nodes are site numbers from 0, or the names of the columns where these are known.
    """
    if not is_graph(graph):
        pairs = graph.tolist() if hasattr(graph, "tolist") else graph
        named = isinstance(pairs, list | tuple) and any(_is_name(end) for pair in pairs for end in _ends(pair))
        if not named:
            return graph
        for row, pair in enumerate(pairs):
            if len(_ends(pair)) != 2:
                raise ValueError(f"graph has {pair!r} at row {row}; a pair is two different sites, by number or name")
        edges, nodes = [tuple(_ends(pair)) for pair in pairs], [end for pair in pairs for end in _ends(pair)]
    else:
        edges, nodes = [tuple(edge[:2]) for edge in graph.edges], list(graph.nodes)
    place = {} if names is None else {name: site for site, name in enumerate(names)}
    if not all(node in place for node in nodes):
        columns, place = place, {site: site for site in range(sites)}
        unknown = [node for node in nodes if node not in place]
        if unknown:
            node = next((node for node in unknown if node not in columns), unknown[0])
            known = "" if names is None else f", or a column: {', '.join(map(repr, list(names)[:10]))}"
            mixed = "; names of columns and numbers of sites do not go together" if node in columns else ""
            raise ValueError(f"graph has the node {node!r}; a node is a site from 0 to {sites - 1}{known}{mixed}")
    return np.array([[place[a], place[b]] for a, b in edges], dtype=np.int64).reshape(-1, 2)


def _ends(pair: Any) -> Sequence[Any]:
    return pair if isinstance(pair, list | tuple) else (pair,)


def _is_name(end: Any) -> bool:
    return isinstance(end, str)
