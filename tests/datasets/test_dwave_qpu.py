"""The real machine, played by D-Wave's own stand-in."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest

from neurise.datasets.dwave import dwave

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a package on the way there has a string that Python warns of as it compiles it
    from dwave.system.testing import MockDWaveSampler


class Machine(MockDWaveSampler):
    """A Pegasus of 40 qubits with one broken; counts what it is asked for."""

    def __init__(self, most: int = 10_000) -> None:
        super().__init__(
            topology_type="pegasus", topology_shape=[2], broken_nodes=[5], properties={"num_reads_range": [1, most]},
            parameter_warnings=False,
        )  # fmt: skip
        self.asked: list[dict[str, Any]] = []

    def sample(self, bqm: Any, **options: Any) -> Any:
        self.asked.append(options)
        return super().sample(bqm, **options)


def test_reads_of_the_whole_machine() -> None:
    machine = Machine()
    data = dwave("qpu", sampler=machine, reads=30, test_fraction=0.1, h=0.5, parameters={"annealing_time": 20})
    assert data.space.sites == 39
    assert data.info["qubit_ids"] == tuple(machine.nodelist)
    assert (len(data.train), len(data.test)) == (27, 3)
    assert machine.asked == [{"num_reads": 30, "answer_mode": "raw", "annealing_time": 20}]
    assert data.info["chip"] == "MockDWaveSampler"
    # 39 qubits, 150 couplers below 1: sums are exact to 200 · 200 · 2^-53 = 4.4e-12.
    assert np.abs(data.energy(data.train) - data.info["energies"]).max() < 1e-11


def test_batches(tmp_path: Path) -> None:
    machine = Machine(most=7)
    data = dwave("qpu", sampler=machine, qubits=12, reads=20, folder=tmp_path, test_fraction=0)
    assert [options["num_reads"] for options in machine.asked] == [7, 7, 6]
    assert data.info["batch"].tolist() == [1] * 7 + [2] * 7 + [3] * 6
    (tmp_path / "chunk-000001.npz").unlink()
    again = dwave("qpu", sampler=machine, qubits=12, reads=20, folder=tmp_path, test_fraction=0)
    assert [options["num_reads"] for options in machine.asked[3:]] == [7]  # the other batches were paid for
    assert np.array_equal(again.train[[0, 6, 14, 19]], data.train[[0, 6, 14, 19]])
    more = dwave("qpu", sampler=machine, qubits=12, reads=24, folder=tmp_path, test_fraction=0)
    assert [options["num_reads"] for options in machine.asked[4:]] == [4]
    assert np.array_equal(more.train[:20], again.train)
    assert more.info["batch"].tolist() == [1] * 7 + [2] * 7 + [3] * 6 + [4] * 4
    with pytest.raises(ValueError, match="another run: parameters was"):
        dwave("qpu", sampler=machine, qubits=12, reads=20, folder=tmp_path, parameters={"annealing_time": 1})


def test_a_given_problem_and_one_that_does_not_fit() -> None:
    machine = Machine()
    u, v = machine.edgelist[0]
    data = dwave("qpu", sampler=machine, problem=({v: 0.25}, {(u, v): -1.0}), reads=5, test_fraction=0)
    assert data.info["qubit_ids"] == (v, u)
    assert data.train.tolist() == [[-1, -1]] * 5 or set(data.info["energies"]) <= {-1.25, -0.75}
    with pytest.raises(ValueError, match=r"Machine refuses the problem .*EmbeddingComposite"):
        dwave("qpu", sampler=machine, problem=({}, {(u, 5): 1.0}))


class Counting(dimod.Sampler):
    """Any dimod sampler will do, also one without a graph that counts equal reads and turns the columns round."""

    parameters: dict[str, Any] = {"num_reads": []}  # noqa: RUF012
    properties: dict[str, Any] = {}  # noqa: RUF012

    def sample(self, bqm: Any, num_reads: int) -> Any:
        labels = list(bqm.variables)[::-1]
        rows = np.array([[1] * len(labels), [-1] + [1] * (len(labels) - 1)])
        return dimod.SampleSet.from_samples_bqm(
            (rows, labels), bqm, num_occurrences=[num_reads - 2, 2], sort_labels=False
        )


def test_another_sampler() -> None:
    data = dwave("qpu", sampler=Counting(), problem=({"a": 1.0}, {("a", "b"): 0.5}), reads=6, chunk=6, test_fraction=0)
    assert data.info["qubit_ids"] == ("a", "b")
    assert data.train.tolist() == [[1, 1]] * 4 + [[1, -1]] * 2
    with pytest.raises(ValueError, match="Counting has no graph of its own"):
        dwave("qpu", sampler=Counting())


def test_without_a_token_or_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DWAVE_API_TOKEN", "DWAVE_CONFIG_FILE", "DWAVE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="there is no D-Wave token: set the environment variable DWAVE_API_TOKEN"):
        dwave("qpu")
    monkeypatch.setitem(sys.modules, "dwave.system", None)
    with pytest.raises(ImportError, match=r"neurise\[qpu\]"):
        dwave("qpu")


def test_a_service_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr("dwave.system.DWaveSampler", refuse)
    with pytest.raises(OSError, match=r"no quantum annealer can be reached \(ConnectionError: no route to host\)"):
        dwave("qpu", solver="Advantage_system4.1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampler": 3}, "sampler is of type int"),
        ({"reads": 0}, "reads must be a positive whole number, got 0"),
        ({"parameters": {"num_reads": 3}}, "parameters has num_reads; say reads="),
        ({"sweeps": 3}, "sweeps cannot be chosen for a machine"),
        ({"problem": ({}, {(2, 3): 1.0}), "J": 1.0}, "J cannot be chosen for a given problem"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dwave("qpu", **{"sampler": Machine(), **options})
