"""Simulated annealers: their graphs, their law, and runs that are cut short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dimod
import dwave.graphs
import networkx
import numpy as np
import oracles
import pytest

from neurise.datasets._annealers.annealing import anneal_points
from neurise.datasets._annealers.instances import connected_part, hardware_graph
from neurise.datasets._annealers.problem import Problem
from neurise.datasets.dwave import dwave as make
from neurise.datasets.ising import ising

SMALL: dict[str, Any] = {"size": 2, "qubits": 20, "sweeps": 20, "reads": 14, "chunk": 5, "test_fraction": 0}


@pytest.mark.parametrize(("topology", "size"), [("pegasus", 2), ("zephyr", 1), ("zephyr", 2)])
def test_instances_live_on_the_graph_of_a_machine(topology: str, size: int) -> None:
    data = make(topology=topology, size=size, qubits=25, reads=4, sweeps=5, J=0.8, h=0.3)
    graph = getattr(dwave.graphs, f"{topology}_graph")(size)
    qubits = data.info["qubit_ids"]
    part = graph.subgraph(qubits)
    assert len(qubits) == data.space.sites == 25
    assert set(qubits) <= set(graph)
    assert networkx.is_connected(part)
    assert {frozenset((qubits[i], qubits[j])) for i, j in data.edges.tolist()} == set(map(frozenset, part.edges))
    assert len(data.edges) == part.number_of_edges()
    assert np.abs(data.couplings).max() <= 0.8
    assert np.abs(data.fields).max() <= 0.3
    assert len(np.unique(data.couplings)) == len(data.couplings)


def test_couplings_of_one_strength() -> None:
    data = make(size=2, couplings="pm", J=0.7, h=0.2, reads=3, sweeps=5)
    assert data.space.sites == 40  # all of a P2: fewer than 2000
    assert set(data.couplings.tolist()) == {-0.7, 0.7}
    assert set(data.fields.tolist()) == {-0.2, 0.2}


def test_two_thousand_qubits_of_the_largest_pegasus() -> None:
    nodes, edges = hardware_graph("pegasus")
    assert len(nodes) == 5640
    assert len(edges) == 40484
    part = connected_part(nodes, edges, 2000, nodes[17])
    assert len(part) == 2000
    assert networkx.is_connected(networkx.Graph(edges).subgraph(part))


def test_the_seed_makes_the_instance_and_the_reads() -> None:
    first, same, other = (make(**SMALL, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train, same.train)
    assert np.array_equal(first.couplings, same.couplings)
    assert not np.array_equal(first.couplings[:10], other.couplings[:10])
    assert len(np.unique(first.train, axis=0)) > 5  # chunks are not drawn from the same numbers


@pytest.mark.parametrize("method", ["simulated_annealing", "path_integral"])
def test_a_constant_schedule_samples_the_law_of_the_couplings(method: str) -> None:
    """At a constant temperature both methods sample exp(-βE); that fixes every sign on the way to our couplings."""
    beta, reads = 0.6, 3000
    schedule: Any = (
        [beta, beta] if method == "simulated_annealing" else [(1.5, 0.0), (0.0, beta), (0.0, beta), (0.0, beta)]
    )
    J = {("a", "b"): -1.0, ("b", 7): 0.8, ("a", 7): 0.5, (7, "d"): -0.9}
    data = make(
        problem=({"a": 0.7, "d": -0.4}, J),
        method=method,
        schedule=schedule,
        sweeps=60,
        reads=reads,
        chunk=500,
        test_fraction=0,
    )
    assert data.info["qubit_ids"] == ("a", "d", "b", 7)
    law = ising(data.edges, beta * data.couplings, beta * data.fields).pmf
    index = ((data.train + 1) // 2) @ (2 ** np.arange(3, -1, -1))
    found = np.bincount(index, minlength=16) / reads
    # 30 to 60 sweeps over four weakly coupled spins forget the start: what is left is the noise of the sample.
    assert oracles.tv(found, law) <= oracles.sampled_tv_tolerance(law, reads)
    turned = ising(data.edges, -beta * data.couplings, -beta * data.fields).pmf
    assert oracles.tv(found, turned) > 0.3


def test_longer_anneals_reach_lower_energies() -> None:
    short, long = (make(size=3, reads=60, sweeps=sweeps, test_fraction=0) for sweeps in (3, 300))
    a, b = short.info["energies"], long.info["energies"]
    assert a.mean() - b.mean() > 6 * np.hypot(a.std(), b.std()) / np.sqrt(60)  # six standard errors
    assert long.energy(long.train) == pytest.approx(b, abs=1e-9)  # 704 couplers below 1: rounding stays below 1e-10


def test_default_schedules() -> None:
    problem = Problem(np.array([[0, 1]]), np.array([-2.0]), np.zeros(2))
    betas = anneal_points("simulated_annealing", problem, 100, None)
    assert (np.diff(betas) > 0).all()
    assert 0.05 < betas[0] < betas[-1] < 2.5
    fields = anneal_points("path_integral", problem, 100, None)
    assert (np.diff(fields[:, 0]) < 0).all()
    assert (np.diff(fields[:, 1]) > 0).all()
    assert anneal_points("simulated_annealing", problem, 5, [1, 3]).tolist() == [1, 1.5, 2, 2.5, 3]
    assert anneal_points("path_integral", problem, 3, [(4, 0), (0, 1)]).tolist() == [[4, 0], [2, 0.5], [0, 1]]


def test_missing_chunks_are_drawn_and_others_left_alone(tmp_path: Path) -> None:
    whole = make(**SMALL)
    assert np.array_equal(make(**SMALL, folder=tmp_path).train, whole.train)
    chunks = sorted(tmp_path.glob("chunk-*.npz"))
    assert len(chunks) == 3
    chunks[1].unlink()
    before = [path.stat().st_mtime_ns for path in chunks if path.exists()]
    calls: list[tuple[int, int]] = []
    again = make(**SMALL, folder=tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert np.array_equal(again.train, whole.train)
    assert np.array_equal(again.info["energies"], whole.info["energies"])
    assert calls == [(10, 14), (14, 14)]
    assert [path.stat().st_mtime_ns for path in (chunks[0], chunks[2])] == before
    more = make(**{**SMALL, "reads": 25}, folder=tmp_path)
    assert np.array_equal(more.train[:14], whole.train)
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json", *(f"chunk-{k:06d}.npz" for k in range(5))}


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"sweeps": 21}, {"chunk": 6}, {"qubits": 21}, {"method": "path_integral"}]
)
def test_a_folder_belongs_to_one_run(tmp_path: Path, change: dict[str, Any]) -> None:
    make(**{**SMALL, "reads": 5}, folder=tmp_path)
    with pytest.raises(ValueError, match=r"holds reads of another run: .* was .* and is .* Choose another folder"):
        make(**{**SMALL, "reads": 5, **change}, folder=tmp_path)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    make(**SMALL, folder=tmp_path / "a")
    whole = (tmp_path / "a" / "chunk-000001.npz").read_bytes()
    (tmp_path / "a" / "chunk-000001.npz").write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"chunk-000001\.npz is damaged"):
        make(**SMALL, folder=tmp_path / "a")
    (tmp_path / "a" / "plan.json").write_text("{")
    with pytest.raises(ValueError, match=r"plan\.json is damaged"):
        make(**SMALL, folder=tmp_path / "a")
    (tmp_path / "a" / "plan.json").unlink()
    with pytest.raises(ValueError, match=r"holds chunks and no plan\.json"):
        make(**SMALL, folder=tmp_path / "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; a folder is needed"):
        make(**SMALL, folder=tmp_path / "file")


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    alone = make(**SMALL)
    together = make(**SMALL, workers=2, folder=tmp_path)
    assert np.array_equal(alone.train, together.train)
    assert np.array_equal(alone.info["energies"], together.info["energies"])


PROGRAM = """
import os, signal, sys
from neurise.datasets._annealers.chunks import Chunks
from neurise.datasets.dwave import dwave

keep = Chunks.put

def keep_three(chunks, *words, **rows):
    keep(chunks, *words, **rows)
    if len(list(chunks.folder.glob("chunk-*.npz"))) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    Chunks.put = keep_three
    dwave(size=3, sweeps=500, reads=60, chunk=4, workers=int(sys.argv[2]), folder=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on(tmp_path: Path, workers: int) -> None:
    (tmp_path / "run.py").write_text(PROGRAM)
    folder = tmp_path / "reads"
    words = [sys.executable, str(tmp_path / "run.py"), str(folder), str(workers)]
    run = subprocess.Popen(words, start_new_session=True)
    assert run.wait() == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("chunk-*.npz")}
    assert len(kept) == 3
    data = make(size=3, sweeps=500, reads=60, chunk=4, folder=folder, test_fraction=0)
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept
    whole = make(size=3, sweeps=500, reads=60, chunk=4, test_fraction=0)
    assert np.array_equal(data.train, whole.train)
    # Worker processes of a program that was killed end by themselves: its group of processes is empty.
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("worker processes have outlived the program")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topology": "chimera"}, "topology must be pegasus or zephyr, got 'chimera'"),
        ({"size": 1}, "size must be a whole number, at least 2 for pegasus, got 1"),
        ({"qubits": 41}, "qubits must be a whole number from 1 to the 40 of the graph, got 41"),
        ({"qubits": 0}, "got 0"),
        ({"couplings": "gauss"}, "couplings must be 'uniform' or 'pm', got 'gauss'"),
        ({"J": -1.0}, r"J must be finite and not negative, got -1\.0"),
        ({"h": float("nan")}, "h must be finite and not negative, got nan"),
        ({"reads": 0}, "reads must be a positive whole number, got 0"),
        ({"chunk": 2.5}, r"chunk must be a positive whole number, got 2\.5"),
        ({"workers": 0}, "workers must be a positive whole number, got 0"),
        ({"sweeps": 0}, "sweeps must be a positive whole number, got 0"),
        ({"seed": -1}, "seed must be a whole number, not negative, got -1"),
        ({"method": "quantum"}, "method must be simulated_annealing or path_integral, got 'quantum'"),
        ({"schedule": [1, -2]}, r"point 1 of the schedule is \[-2\.0\]"),
        ({"schedule": [(1, 2)]}, "the schedule of simulated_annealing is a list of inverse temperatures"),
        ({"schedule": [1], "method": "path_integral"}, "pairs"),
        ({"problem": ({}, {(0, 1): 1.0}), "qubits": 3}, "qubits cannot be chosen for a given problem"),
        ({"problem": ({}, {(0, 1): 1.0}), "size": 2}, "size cannot be chosen for a given problem"),
        ({"problem": 3}, "problem is of type int"),
        ({"solver": "Advantage"}, "solver cannot be chosen for a simulation"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    sized = {} if "problem" in options else {"size": 2}
    with pytest.raises(ValueError, match=words):
        make(**{**sized, **options})


def test_parts_that_are_not_connected() -> None:
    with pytest.raises(ValueError, match="qubit 0 is connected to 2 qubits only, and 3 were asked for"):
        connected_part([0, 1, 2, 3], [(0, 1), (2, 3)], 3, 0)


def test_a_problem_of_dimod_is_sampled_as_it_is() -> None:
    model = dimod.BinaryQuadraticModel({"x": 1.0, "y": 0.0}, {("x", "y"): -2.0}, 0.5, "BINARY")
    data = make(problem=model, reads=5, sweeps=50, test_fraction=0)
    assert data.info["qubit_ids"] == ("x", "y")
    assert data.energy(np.array([[1, 1], [-1, -1]])).tolist() == [-0.5, 0.5]  # x = y = 1, and x = y = 0
