"""Ising models on any graph: ways to write them, the law, and the exact samplers."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import networkx as nx
import numpy as np
import oracles
import pytest
from chi_square import assert_drawn_from

from neurise import enumeration as _enumeration
from neurise.dataset import Dataset
from neurise.datasets import edwards_anderson, ising
from neurise.energies import elimination as _elimination
from neurise.energies import elimination_order as _elimination_order
from neurise.enumeration import LIMIT, draw_from_law, pairwise_law
from neurise.interactions import Interactions
from neurise.mcmc import tempering
from neurise.space import Space


def brute_force(edges: Any, couplings: Any, fields: Any) -> tuple[np.ndarray, float]:
    """Law and log Z by explicit loops over configurations of spins, the first site most significant."""
    weights = []
    for sigma in itertools.product([-1, 1], repeat=len(fields)):
        total = 0.0
        for (i, j), J in zip(edges, couplings, strict=True):
            total += J * sigma[i] * sigma[j]
        for h, spin in zip(fields, sigma, strict=True):
            total += h * spin
        weights.append(math.exp(total))
    return np.array(weights) / sum(weights), math.log(sum(weights))


def places(rows: np.ndarray) -> np.ndarray:
    return ((rows > 0) @ (2 ** np.arange(rows.shape[1])[::-1])).astype(np.int64)


def random_graph(sites: int, chance: float, seed: int) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(sites), 2) if rng.random() < chance]
    return edges, rng.normal(size=len(edges)), rng.normal(size=sites)


DOUBLED = ([(0, 1), (1, 2), (1, 0), (0, 1), (3, 2)], [0.5, -0.7, 0.4, 0.2, 0.9], [0.1, -0.2, 0.3, 0.0])


def test_pmf_with_a_pair_that_occurs_three_times() -> None:
    data = ising(*DOUBLED)
    law, log_z = brute_force(*DOUBLED)
    np.testing.assert_allclose(data.pmf, law, rtol=1e-12)
    assert data.info["log_z"] == pytest.approx(log_z, rel=1e-12)
    assert data.edges.tolist() == [list(edge) for edge in DOUBLED[0]]  # as given


@pytest.mark.parametrize("seed", range(5))
def test_pmf_of_a_random_graph(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_enumeration, "BLOCK", 48)  # several blocks, each with its own scale
    graph = random_graph(7, 0.5, seed)
    law, log_z = brute_force(*graph)
    found, found_log_z = pairwise_law(Interactions.ising(np.array(graph[0]), graph[1], graph[2]))
    np.testing.assert_allclose(found, law, rtol=1e-12)
    assert found_log_z == pytest.approx(log_z, rel=1e-12)


def test_one_site_alone() -> None:
    data = ising([], [], [0.3])
    np.testing.assert_allclose(data.pmf, brute_force([], [], [0.3])[0])
    assert data.sample(5, seed=0).shape == (5, 1)


def test_couplings_beyond_the_range_of_exp() -> None:
    data = ising([(0, 1), (1, 2)], [2000.0, -2000.0], [1000.0, 0.0, 0.0])
    pmf = data.pmf
    assert pmf.sum() == pytest.approx(1)
    assert pmf[0b110] == pytest.approx(1)
    assert data.info["log_z"] == pytest.approx(5000)
    for sampler in ("enumerate", "exact"):
        rows = ising([(0, 1), (1, 2)], [2000.0, -2000.0], [1000.0, 0.0, 0.0], sampler=sampler).sample(10, seed=0)
        assert (rows == [1, 1, -1]).all()


def as_edge_list() -> Dataset:
    return ising([(0, 1), (2, 1)], [0.5, -0.7], [0.1, 0.2, -0.3])


@pytest.mark.parametrize(
    "other",
    [
        lambda: ising(np.array([(0, 1), (2, 1)]), np.array([0.5, -0.7]), np.array([0.1, 0.2, -0.3])),
        lambda: ising(J={(0, 1): 0.5, (2, 1): -0.7}, h=[0.1, 0.2, -0.3]),
        lambda: ising({(0, 1): 0.5, (2, 1): -0.7}, h={0: 0.1, 1: 0.2, 2: -0.3}),
        lambda: ising([(0, 1), (2, 1)], {(1, 0): 0.5, (1, 2): -0.7}, [0.1, 0.2, -0.3]),
        lambda: ising([(0, 1), (2, 1)], {(1, 0): 0.2, (0, 1): 0.3, (1, 2): -0.7}, [0.1, 0.2, -0.3]),
        lambda: ising(nx.path_graph(3), [0.5, -0.7], [0.1, 0.2, -0.3]),
        lambda: ising(nx.path_graph(3), {(1, 0): 0.5, (1, 2): -0.7}, {2: -0.3, 0: 0.1, 1: 0.2}),
        lambda: ising(nx.relabel_nodes(nx.path_graph(3), dict(enumerate("abc"))), [0.5, -0.7], [0.1, 0.2, -0.3]),
        lambda: ising(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), [0.2, 0.3, -0.7], [0.1, 0.2, -0.3]),
        lambda: ising(J={("x", "y"): 0.5, ("z", "y"): -0.7}, h={"x": 0.1, "y": 0.2, "z": -0.3}),
    ],
)
def test_every_way_to_write_the_same_model(other: Any) -> None:
    np.testing.assert_allclose(other().pmf, as_edge_list().pmf, rtol=1e-12)


def test_nodes_are_in_the_order_of_the_columns() -> None:
    graph = nx.Graph([("q7", (1, 2)), ((1, 2), 5)])
    data = ising(graph, {("q7", (1, 2)): 30.0, (5, (1, 2)): -30.0}, {"q7": 1.0, (1, 2): 0.0, 5: 0.0})
    assert data.info["nodes"] == ["q7", (1, 2), 5]
    rows = data.sample(200, seed=0)
    assert (rows[:, 0] == rows[:, 1]).all()
    assert (rows[:, 2] == -rows[:, 1]).all()
    assert ising(J={(30, 7): 1.0, (7, 12): 1.0}).info["nodes"] == [7, 12, 30]  # no fields: sorted
    assert ising(J={(30, 7): 1.0}, h={}).fields.tolist() == [0.0, 0.0]
    assert ising(J={("b", 1): 1.0}).info["nodes"] == ["b", 1]  # nothing to sort by
    assert ising([(0, 1)], 0.4, [0.0, 0.0, 0.0]).info["nodes"] == [0, 1, 2]
    assert ising([(0, 1), (1, 2)], 0.4).couplings.tolist() == [0.4, 0.4]


BAD = {
    "self-loop": (lambda: ising([(0, 1), (2, 2)], 1.0, [0.0] * 3), r"edge \(2, 2\) joins a node to itself"),
    "self-loop in a graph": (lambda: ising(nx.Graph([(0, 0)]), 1.0), r"edge \(0, 0\) joins a node to itself"),
    "self-loop in J": (lambda: ising(J={("a", "a"): 1.0}), r"edge \('a', 'a'\) joins"),
    "unknown site": (lambda: ising([(0, 3)], 1.0, [0.0] * 3), r"edge \(0, 3\) names the node 3.*0 … 2"),
    "negative site": (lambda: ising([(0, -1)], 1.0, [0.0] * 3), r"names the node -1"),
    "half a site": (lambda: ising([(0, 1.5)], 1.0, [0.0] * 3), r"names the node 1\.5"),
    "unknown node": (lambda: ising(J={(0, "b"): 1.0}, h={0: 0.0, "a": 0.0}), r"names the node 'b', which is not in h"),
    "J without a node of h's": (lambda: ising(nx.path_graph(3), {(0, 1): 1.0}), r"no key for the edge \(1, 2\)"),
    "J beside the graph": (lambda: ising(nx.path_graph(2), {(0, 1): 1.0, (0, 9): 1.0}), r"key \(0, 9\), which is no edge"),
    "J key of one node": (lambda: ising(J={(3,): 1.0}), r"key \(3,\), which names 1 nodes"),
    "J key that is no pair": (lambda: ising(J={3: 1.0}), r"key 3; a pair of nodes is needed"),
    "h beside the graph": (lambda: ising(nx.path_graph(2), 1.0, {0: 1, 1: 1, 7: 1}), r"h has the key 7, which is no node"),
    "h misses a node": (lambda: ising(nx.path_graph(3), 1.0, {0: 1, 1: 1}), r"h has no key for the node 2"),
    "nan coupling": (lambda: ising([(0, 1), (1, 2)], [1, math.nan], [0.0] * 3), r"J has nan at \(1, 2\)"),
    "infinite coupling": (lambda: ising(J={("a", "b"): math.inf}), r"J has inf at \('a', 'b'\)"),
    "infinite field": (lambda: ising([(0, 1)], 1.0, [0.0, -math.inf]), r"h has -inf at 1"),
    "coupling that is no number": (lambda: ising([(0, 1)], ["x"]), r"J has 'x' at \(0, 1\), which is no number"),
    "too few couplings": (lambda: ising([(0, 1), (1, 2)], [1.0]), r"J has the shape \(1,\) and there are 2 edges"),
    "too many fields": (lambda: ising(nx.path_graph(2), 1.0, [0.0] * 3), r"h has the shape \(3,\) and there are 2 nodes"),
    "matrix of fields": (lambda: ising([(0, 1)], 1.0, [[0.0, 0.0]]), r"h has the shape \(1, 2\)"),
    "flat edges": (lambda: ising([0, 1], 1.0, [0.0] * 2), "edge 0; a pair of nodes is needed"),
    "edge of three": (lambda: ising([(0, 1, 2)], 1.0, [0.0] * 3), r"edge \(0, 1, 2\), which names 3 nodes"),
    "edge twice, J by pairs": (lambda: ising([(0, 1), (1, 0)], {(0, 1): 1.0}), r"edge \(0, 1\) is there twice"),
    "no graph": (lambda: ising(J=1.0, h=[0.0]), "without a graph J must be a dictionary"),
    "no J": (lambda: ising([(0, 1)]), "J is missing"),
    "couplings twice": (lambda: ising({(0, 1): 1.0}, [0.1, 0.2]), "leave J out"),
    "a word": (lambda: ising("ring", 1.0), "graph is a str"),
    "nothing": (lambda: ising([], []), "no node"),
    "sampler": (lambda: ising([(0, 1)], 1.0, sampler="gibbs"), "sampler must be one of .*'tempering', got 'gibbs'"),
    "sweeps": (lambda: ising([(0, 1)], 1.0, sweeps=0), "sweeps must be a positive whole number, got 0"),
    "enumerating too much": (lambda: edwards_anderson(6, sampler="enumerate"), r"2\^36 configurations, too many"),
    "eliminating too much": (lambda: edwards_anderson(14, sampler="exact"), "too wide to eliminate"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_rows_that_are_no_spins_are_named() -> None:
    data = as_edge_list()
    assert data.energy([[1, 1, -1]]).tolist() == pytest.approx([-(0.5 + 0.7 + 0.1 + 0.2 + 0.3)])
    with pytest.raises(ValueError, match=r"X has 0 at row 1, column 2; the symbols of ising are -1, 1"):
        data.energy([[1, 1, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match=r"rows of 3 sites are needed; the shape is \(1, 2\)"):
        data.energy([[1, 1]])
    with pytest.raises(ValueError, match=r"X holds values of type <U1"):
        data.energy([["+", "-", "+"]])
    with pytest.raises(ValueError, match=r"X has nan at row 0, column 1"):
        data.energy([[1, math.nan, 1]])


@pytest.mark.parametrize("sampler", ["enumerate", "exact"])
@pytest.mark.parametrize("seed", range(2))
def test_samples_against_the_pmf(sampler: str, seed: int) -> None:
    graph = random_graph(9, 0.4, seed)
    data = ising(*graph, sampler=sampler)
    rows = data.sample(200_000, seed=seed)
    assert rows.dtype == np.int8
    assert_drawn_from(places(rows), data.pmf)
    assert data.info["sampler"] == sampler


def test_places_are_drawn_across_blocks_and_never_where_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_enumeration, "BLOCK", 10)
    law = oracles.random_law(Space(3, 4), seed=0, zeros=0.5)
    law[20:30] = 0  # a whole block, and the ends
    law[:3] = law[-3:] = 0
    law /= law.sum()
    assert_drawn_from(draw_from_law(law, 100_000, np.random.default_rng(0)), law)

    class Ends:
        def random(self, n: int) -> np.ndarray:
            return np.resize([0.0, np.nextafter(1, 0)], n)

    first, last = draw_from_law(law, 2, Ends())  # type: ignore[arg-type]
    assert [first, last] == [np.flatnonzero(law)[0], np.flatnonzero(law)[-1]]


@pytest.mark.parametrize("sampler", ["enumerate", "exact"])
def test_more_rows_begin_with_the_same_rows(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_elimination, "ROWS", 8)
    data = ising(*random_graph(9, 0.4, 0), sampler=sampler)
    assert np.array_equal(data.sample(30, seed=3)[:20], data.sample(20, seed=3))
    assert not np.array_equal(data.sample(30, seed=3), data.sample(30, seed=4))


def test_the_sampler_is_chosen_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert edwards_anderson(5).info["sampler"] == "enumerate"
    assert edwards_anderson(6).info["sampler"] == "exact"
    assert edwards_anderson(6).pmf is None
    assert edwards_anderson(10).info["sampler"] == "exact"
    assert edwards_anderson(19, preset="released").info["sampler"] == "exact"
    large = edwards_anderson(16)
    assert large.info["sampler"] == "tempering"
    assert large.info["log_z"] is None
    monkeypatch.setattr(_elimination_order, "MAX_TABLE", 4)
    assert ising(*DOUBLED).info["log_z"] == pytest.approx(brute_force(*DOUBLED)[1])  # too wide, but small


def test_info_is_a_mapping_that_computes_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ising(*DOUBLED)
    assert "…" in repr(data.info)
    assert set(data.info) == {"sampler", "log_z", "nodes"}
    assert len(data.info) == 3
    with pytest.raises(KeyError):
        data.info["tempering"]
    assert dict(data.info)["nodes"] == [0, 1, 2, 3]
    assert "…" not in repr(data.info)


def test_a_model_survives_pickling() -> None:
    data = ising(*random_graph(9, 0.4, 0))
    copy = pickle.loads(pickle.dumps(data))
    assert np.array_equal(copy.sample(10, seed=0), data.sample(10, seed=0))
    assert copy.info["log_z"] == data.info["log_z"]


def test_tempering_tells_how_it_went(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempering, "WARM_UP", (8, 16, 32, 64))  # nine spins are soon warm
    data = ising(*random_graph(9, 0.4, 0), sampler="tempering", sweeps=650)
    rows = data.sample(100, seed=0)
    assert rows.shape == (100, 9)
    assert set(np.unique(rows)) == {-1, 1}
    told = capsys.readouterr()
    assert "well mixed" in told.err
    assert not told.out
    kept = data.info["tempering"]
    assert kept["mixed"] is True
    assert kept["sweeps"] == 650 // 64 * 64
    assert np.array_equal(data.sample(100, seed=0), rows)


def test_tempering_that_fails_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempering, "WARM_UP", (8, 16, 32, 64))
    rng = np.random.default_rng(0)
    edges = [(i, (i + step) % 40) for i in range(40) for step in (1, 7)]
    ising(edges, rng.choice([-6, 6], 80), [0.0] * 40, sampler="tempering", sweeps=64).sample(5, seed=0)
    told = capsys.readouterr().err
    assert "NOT WELL MIXED" in told
    assert "sweeps=256" in told


def test_the_limit_of_enumeration() -> None:
    with pytest.raises(ValueError, match=r"2\^27 configurations are too many to write out"):
        pairwise_law(Interactions.ising(np.zeros((0, 2)), np.zeros(0), np.zeros(27)))
    assert LIMIT >= 2**25
