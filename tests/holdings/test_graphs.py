"""Graphs of networkx go into ``graph=`` and come out of ``structure``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import neurise
from neurise.holdings.graphs import site_pairs

DATA = neurise.datasets.ising([(0, 1), (1, 2), (2, 3)], J=0.8, h=0.2)


def test_a_graph_is_its_pairs_of_sites(tmp_path: Path) -> None:
    model = neurise.NeurISE(graph=nx.path_graph(4), width=8, members=1).set_params(corrector__clean=0.25)
    model.fit(DATA.sample(60, seed=0), max_steps=2, verbose=False)
    assert model.neighbours_ is not None
    assert np.argwhere(np.triu(model.neighbours_)).tolist() == [[0, 1], [1, 2], [2, 3]]
    model.save(tmp_path / "model")
    assert neurise.load(tmp_path / "model").graph == [[0, 1], [1, 2], [2, 3]]


def test_nodes_are_sites_or_names() -> None:
    graph = nx.Graph([("b", "a"), ("c", "a")])
    assert sorted(map(sorted, site_pairs(graph, 3, ["a", "b", "c"]).tolist())) == [[0, 1], [0, 2]]
    assert site_pairs([["b", "a"]], 3, ["a", "b", "c"]).tolist() == [[1, 0]]
    assert site_pairs(nx.empty_graph(3), 3).shape == (0, 2)
    with pytest.raises(ValueError, match="the node 'b'; a node is a site from 0 to 2"):
        site_pairs(graph, 3)
    with pytest.raises(ValueError, match="the node 5; a node is a site from 0 to 3, or a column: 'a'"):
        site_pairs(nx.Graph([(0, 5)]), 4, ["a", "b", "c", "d"])


@pytest.mark.parametrize("make", [list, nx.Graph])
def test_the_node_that_is_wrong_is_named(make: Callable[[list[Any]], Any]) -> None:
    with pytest.raises(ValueError, match="the node 'z'; a node is"):
        site_pairs(make([("a", "z")]), 2, ["a", "b"])
    with pytest.raises(ValueError, match=r"the node 'a'; .*do not go together"):
        site_pairs(make([("a", 1)]), 2, ["a", "b"])


@pytest.mark.parametrize("pair", ["a", ("a",), ("a", "b", "a")])
def test_what_is_no_pair_is_shown(pair: Any) -> None:
    with pytest.raises(ValueError, match=rf"graph has {re.escape(repr(pair))} at row 1; a pair is two"):
        site_pairs([("a", "b"), pair], 2, ["a", "b"])


def test_columns_whose_names_are_numbers() -> None:
    """Names come first where they are all known; nodes that are no names are sites."""
    assert site_pairs(nx.Graph([(2, 1)]), 3, [1, 2, 3]).tolist() == [[1, 0]]
    assert site_pairs(nx.Graph([(1, 0)]), 3, [1, 2, 3]).tolist() == [[1, 0]]


class Known:
    """The law itself, as a model."""

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        return -DATA.energy(X)


def test_a_structure_is_a_graph_with_couplings_and_fields() -> None:
    rows = DATA.sample(50, seed=0)
    found = neurise.structure.recover(Known(), rows)
    graph = found.to_networkx()
    assert sorted(map(sorted, graph.edges)) == [[0, 1], [1, 2], [2, 3]]
    assert graph.edges[1, 2]["coupling"] == found.couplings[1, 2]
    assert graph.edges[1, 2].keys() == {"coupling", "score", "error"}
    assert [graph.nodes[site]["field"] for site in range(4)] == found.fields.tolist()
    named = found.to_networkx(names="abcd")
    assert named.edges["b", "c"]["score"] == found.scores[1, 2]
    with pytest.raises(ValueError, match="names has 3 different names"):
        found.to_networkx(names="abca")
