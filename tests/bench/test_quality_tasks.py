"""The pieces of the quality tasks that compute something of their own."""

import signal
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from quality import TASKS, arguments_of  # noqa: E402
from quality_tasks._fit import excess, fitted  # noqa: E402
from quality_tasks.ghz_small import added  # noqa: E402
from quality_tasks.protein import agreement, connected  # noqa: E402
from quality_tasks.qubits import chimera  # noqa: E402
from quality_tasks.small_spaces import LAWS  # noqa: E402

import neurise  # noqa: E402


def test_every_task_can_be_named() -> None:
    assert {"caltech", "dwave", "mnist", "not_pairwise", "protein", "qubits"} <= set(TASKS)
    assert [arguments_of([name]).what for name in TASKS] == TASKS


def test_a_chimera_graph_has_cells_of_sixteen_couplers_and_lines_between_them() -> None:
    edges = chimera(3)
    assert len(edges) == 9 * 16 + 2 * 3 * 2 * 4
    assert len({tuple(sorted(edge)) for edge in edges.tolist()}) == len(edges)
    degrees = Counter(edges.ravel().tolist())
    assert set(degrees) == set(range(72))
    assert Counter(degrees.values()) == {5: 48, 6: 24}  # a line of three cells has two ends and a middle


def test_connected_correlations_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    symbols = ["A", "C", "-"]
    rows = np.array(symbols)[rng.integers(3, size=(40, 4))]
    slow = []
    for i in range(4):
        for j in range(i + 1, 4):
            for a in symbols:
                for b in symbols:
                    first, second = rows[:, i] == a, rows[:, j] == b
                    slow.append((first & second).mean() - first.mean() * second.mean())
    np.testing.assert_allclose(connected(rows, symbols), slow, atol=1e-12)
    assert agreement(rows, rows, symbols) > 1 - 1e-12


def test_laws_of_small_spaces_are_laws() -> None:
    for name, law in LAWS.items():
        space, pmf = law()
        assert len(pmf) == space.size, name
        np.testing.assert_allclose(pmf.sum(), 1, rtol=1e-12)


def test_the_fidelity_of_a_law_is_what_its_configurations_add() -> None:
    data = neurise.datasets.ghz(4, visibility=0.9)
    # ⟨GHZ| v |GHZ⟩⟨GHZ| + (1 − v) I/16 |GHZ⟩
    np.testing.assert_allclose(added(data.space.configurations().numpy()) @ np.asarray(data.pmf), 0.9 + 0.1 / 16)


def test_the_excess_is_paired() -> None:
    mean, error = excess([{"tv": 0.3, "memorising": 0.1}, {"tv": 0.8, "memorising": 0.7}])
    np.testing.assert_allclose([mean, error], [0.15, 0.05])


def test_what_an_interruption_leaves_is_no_figure() -> None:
    def interrupt(*told: object) -> None:
        signal.raise_signal(signal.SIGINT)

    arguments = arguments_of(["debd", "--device", "cpu", "--steps", "20", "--set", 'network="site_mlp"'])
    rows = np.random.default_rng(0).integers(2, size=(50, 4))
    with pytest.raises(KeyboardInterrupt):
        fitted(arguments, 0, rows, callback=interrupt)
