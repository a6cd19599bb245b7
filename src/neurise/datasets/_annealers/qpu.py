"""Reads of a real quantum annealer, through dwave-system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neurise.datasets._annealers.annealing import Progress
from neurise.datasets._annealers.chunks import Chunks, fingerprint
from neurise.datasets._annealers.instances import Graph
from neurise.datasets._annealers.problem import Labels, Problem
from neurise.datasets._annealers.reads import Reads, as_spins
from neurise.extras import need

BATCH = 1000
"""Reads a submission: few enough for the time that a machine grants one, many enough that programming it costs little."""


def connect(sampler: Any = None, solver: str | None = None) -> Any:
    """Return the sampler that was given, or the machine that the user's D-Wave configuration leads to."""
    if sampler is not None:
        if not callable(getattr(sampler, "sample", None)):
            raise ValueError(f"sampler is of type {type(sampler).__name__}; an object with sample(bqm, …) is needed")
        return sampler
    system = need("dwave.system", "qpu")
    try:
        return system.DWaveSampler(**({} if solver is None else {"solver": solver}))
    except Exception as error:  # configuration, network and service each raise their own kind
        if "token" in str(error).lower():
            raise ValueError(
                "there is no D-Wave token: set the environment variable DWAVE_API_TOKEN, or run `dwave config create`. "
                "Without a machine, dwave() simulates one"
            ) from error
        raise OSError(f"no quantum annealer can be reached ({type(error).__name__}: {error})") from error


def working_graph(sampler: Any) -> Graph:
    """List the qubits and couplers that work on this machine."""
    nodes, edges = getattr(sampler, "nodelist", None), getattr(sampler, "edgelist", None)
    if not nodes or edges is None:
        raise ValueError(
            f"{type(sampler).__name__} has no graph of its own to draw an instance on; say which problem to sample: problem=…"
        )
    return sorted(nodes), sorted((min(edge), max(edge)) for edge in edges)


def sample_machine(
    sampler: Any,
    labels: Labels,
    problem: Problem,
    *,
    reads: int = 1000,
    parameters: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    chunk: int = BATCH,
    progress: Progress | None = None,
) -> Reads:
    """Read a machine in batches of at most ``chunk``. With a ``folder``, batches that are there are not paid for again.

    ``parameters`` go to the machine as they are (``annealing_time``, …).
    """
    for what, value in (("reads", reads), ("chunk", chunk)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise ValueError(f"{what} must be a positive whole number, got {value!r}")
    options = dict(parameters or {})
    reserved = sorted({"num_reads", "answer_mode"} & options.keys())
    if reserved:
        raise ValueError(
            f"parameters has {' and '.join(reserved)}; say reads=… and chunk=…, the answers are always raw"
        )
    properties = dict(getattr(sampler, "properties", {}))
    chunk = min(int(chunk), int(properties.get("num_reads_range", [1, chunk])[1]))
    chip = properties.get("chip_id", type(sampler).__name__)
    plan = {
        "chip": chip,
        "problem": fingerprint(labels, problem),
        "chunk": chunk,
        "parameters": repr(sorted(options.items())),
    }
    chunks = Chunks(folder, plan, len(labels))
    report = progress or (lambda done, total: None)
    if "answer_mode" in getattr(sampler, "parameters", {}):
        options["answer_mode"] = "raw"  # one row per read, in the order of time
    done = number = 0
    while done < reads:
        report(done, reads)
        if number not in chunks:
            wanted = min(chunk, reads - done)  # reads of a machine are paid for: no more than are asked for
            spins, energies = _batch(sampler, labels, problem, {**options, "num_reads": wanted})
            chunks.put(number, spins, energies=energies, batch=np.full(len(spins), number + 1))
        done += len(chunks.get(number)["spins"])
        number += 1
    report(reads, reads)
    found = {key: values[:reads] for key, values in chunks.gather(number).items()}
    info = {"source": "machine", "chip": chip, "parameters": options, "vartype": "SPIN"}
    return Reads(labels, found.pop("spins"), None, found, problem, info)


def _batch(sampler: Any, labels: Labels, problem: Problem, options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Submit the problem once: spins, one row per read, in the order of ``labels``, and their energies."""
    dimod = need("dimod", "dwave")
    ends = (problem.edges[:, 0], problem.edges[:, 1], problem.J)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        problem.h, ends, problem.offset, "SPIN", variable_order=list(labels)
    )
    try:
        answer = sampler.sample(model, **options)
    except ValueError as error:
        raise ValueError(
            f"{type(sampler).__name__} refuses the problem ({error}); one that is not drawn on its own graph needs "
            "sampler=dwave.system.EmbeddingComposite(DWaveSampler())"
        ) from error
    answer = answer.change_vartype("SPIN", inplace=False)
    order = [answer.variables.index(label) for label in labels]
    spins = as_spins(answer.record.sample[:, order], type(sampler).__name__, labels, bits=False)
    counts = answer.record.num_occurrences
    return np.repeat(spins, counts, axis=0), np.repeat(answer.record.energy, counts)
