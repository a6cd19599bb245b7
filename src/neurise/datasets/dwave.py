"""Quantum annealers: their reads, from files, from public sources, from a machine, or from a simulation of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neurise.dataset import Dataset
from neurise.datasets._annealers.advantage import NAMES, public_reads
from neurise.datasets._annealers.annealing import simulate
from neurise.datasets._annealers.imports import as_problem, read, variables_of
from neurise.datasets._annealers.instances import TOPOLOGIES, hardware_graph, random_instance
from neurise.datasets._annealers.problem import Labels, Problem
from neurise.datasets._annealers.qpu import connect, sample_machine, working_graph
from neurise.datasets._annealers.reads import TOLERANCE, Reads

INSTANCE: dict[str, Any] = {"qubits": None, "couplings": "uniform", "J": 1.0, "h": 0.0}
"""What is drawn where no problem is given."""

OF_SIMULATION = ("topology", "size", "method", "sweeps", "schedule", "workers")
OF_MACHINE = ("solver", "sampler", "parameters")


def dwave(
    source: Any = None,
    *,
    problem: Any = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    reads: int | None = None,
    topology: str | None = None,
    size: int | None = None,
    qubits: int | None = None,
    couplings: str | None = None,
    J: float | None = None,
    h: float | None = None,
    method: str | None = None,
    sweeps: int | None = None,
    schedule: Sequence[Any] | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    chunk: int | None = None,
    solver: str | None = None,
    sampler: Any = None,
    parameters: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    r"""Reads of a quantum annealer as a data set of spins ±1.

    ``source`` says where they come from:

    - a dimod ``SampleSet``; a ``.json`` file (or parsed JSON) of ``SampleSet.to_serializable()``, of LANL's dwisc, or of
      bqpjson with solutions; an ``.npz`` file of spins, bits or packed bits (see :func:`reads_of_npz`);
    - the name of public reads, ``"advantage41_q2084"`` say: from ``NEURISE_DATA``, or downloaded;
    - ``"qpu"``: the machine that the user's D-Wave configuration leads to (``solver`` names one), or the ``sampler`` given;
    - None: a simulation on the graph of a machine.

    Energies are the machine's, :math:`E = \sum J_{ij}s_is_j + \sum h_is_i + c`, and low ones are likely; ``data.energy``
    gives them. They are checked against the problem, which comes with the reads or as ``problem``: a dimod
    ``BinaryQuadraticModel``, a pair (h, J) of dictionaries, or bqpjson. A difference of more than ``tolerance`` times the
    sum of all :math:`|J|` and :math:`|h|` is an error. Without a problem, energies are kept unchecked. ``data.couplings`` and
    ``data.fields`` are in our sign, −J and −h, at an inverse temperature of 1; that of the machine is not known.

    A ``test_fraction`` of the reads is drawn at random for testing (never the last ones: a machine drifts). Counts of
    equal reads become row weights. ``info`` has ``qubit_ids`` (in the order of the columns), ``energies``,
    ``test_energies``, ``batch`` and whatever else is known.

    Simulation and machine draw ``reads`` anneals of ``problem``, or of a random instance: on a connected part of
    ``qubits`` qubits, couplings ``"uniform"`` in ±J or ``"pm"``, of ±J; fields likewise with h. For a simulation:

    - ``topology`` is ``"pegasus"`` or ``"zephyr"`` of some ``size``; by default it is 2000 qubits of a P16;
    - ``method`` is ``"simulated_annealing"`` or ``"path_integral"``, in ``sweeps`` sweeps of a ``schedule``
      (:func:`anneal_points`);
    - ``workers`` processes share the work, which changes nothing about the result (a script needs
      ``if __name__ == "__main__":`` then).

    With a ``folder``, reads are kept there, ``chunk`` at a time, and running the same again draws only what is missing.
    ``parameters`` go to the machine as they are. ``progress`` is called with how many reads are there, and how many will be.

    >>> import neurise
    >>> data = neurise.datasets.dwave(topology='zephyr', size=1, qubits=8, reads=20, sweeps=10)     # a simulation
    >>> data.train.shape, data.test.shape
    ((16, 8), (4, 8))
    """
    if isinstance(seed, bool) or int(seed) != seed or seed < 0:
        raise ValueError(f"seed must be a whole number, not negative, got {seed!r}")
    drawing = {"reads": reads, "folder": folder, "chunk": chunk, "progress": progress}
    instance = {"qubits": qubits, "couplings": couplings, "J": J, "h": h}
    simulated = dict(zip(OF_SIMULATION, (topology, size, method, sweeps, schedule, workers), strict=True))
    machine = dict(zip(OF_MACHINE, (solver, sampler, parameters), strict=True))
    if source is None:
        _refuse(machine, "a simulation", "say source='qpu' for a machine")
        found, name = _simulated(problem, instance, _given(drawing), _given(simulated), seed), "dwave(simulation)"
    elif isinstance(source, str) and source == "qpu":
        _refuse(simulated, "a machine", "leave source out for a simulation")
        found, name = _machine(problem, instance, _given(drawing), machine, seed), "dwave(qpu)"
    else:
        _refuse(drawing | instance | simulated | machine, "reads that exist", "leave source out to draw new ones")
        found, name = _existing(source, problem)
    return found.dataset(name, test_fraction=test_fraction, seed=seed, tolerance=tolerance)


def _existing(source: Any, problem: Any) -> tuple[Reads, str]:
    if isinstance(source, str) and source in NAMES:
        found, name = public_reads(source), f"dwave({source})"
    else:
        if isinstance(source, str) and not Path(source).suffix and not Path(source).exists():
            raise ValueError(f"{source!r} is neither a file nor one of the public reads: {', '.join(NAMES)}")
        found, name = read(source), Path(source).name if isinstance(source, str | Path) else f"dwave({_kind(source)})"
    if problem is None:
        return found, name
    if found.problem is not None:
        raise ValueError(f"{name} brings its own couplings and fields; leave problem out")
    return replace(found, problem=as_problem(problem, found.labels)), name


def _simulated(
    problem: Any, instance: dict[str, Any], drawing: dict[str, Any], simulated: dict[str, Any], seed: int
) -> Reads:
    graph_options = {"topology": simulated.pop("topology", None), "size": simulated.pop("size", None)}
    if problem is not None:
        _refuse(instance | graph_options, "a given problem", "leave problem out to draw an instance")
        labels, known = _given_problem(problem)
        return simulate(labels, known, seed=seed, **drawing, **simulated)
    topology = graph_options["topology"] or "pegasus"
    graph = hardware_graph(topology, graph_options["size"])
    chosen = {**INSTANCE, "qubits": min(2000, len(graph[0])), **_given(instance)}
    labels, known = random_instance(graph, **chosen, seed=seed)
    found = simulate(labels, known, seed=seed, **drawing, **simulated)
    drawn = {"topology": topology, "size": graph_options["size"] or TOPOLOGIES[topology]}
    return replace(found, info={**found.info, **drawn, "couplings": chosen["couplings"]})


def _machine(
    problem: Any, instance: dict[str, Any], drawing: dict[str, Any], machine: dict[str, Any], seed: int
) -> Reads:
    sampler = connect(machine["sampler"], machine["solver"])
    if problem is not None:
        _refuse(instance, "a given problem", "leave problem out to draw an instance")
        labels, known = _given_problem(problem)
    else:
        labels, known = random_instance(working_graph(sampler), **{**INSTANCE, **_given(instance)}, seed=seed)
    return sample_machine(sampler, labels, known, parameters=machine["parameters"], **drawing)


def _given_problem(problem: Any) -> tuple[Labels, Problem]:
    labels = variables_of(problem)
    return labels, as_problem(problem, labels)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _refuse(options: Mapping[str, Any], what: str, way_out: str) -> None:
    """An option that would change nothing is a mistake."""
    names = list(_given(options))
    if names:
        raise ValueError(f"{', '.join(names)} cannot be chosen for {what}; {way_out}")


def _kind(source: Any) -> str:
    return "json" if isinstance(source, Mapping) else type(source).__name__
