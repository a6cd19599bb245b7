"""A stand-in for a quantum annealer: annealing on its graph, by D-Wave's own classical samplers."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from neurise._orphans import end_with_parent
from neurise.datasets._annealers.chunks import Chunks, fingerprint
from neurise.datasets._annealers.problem import Labels, Problem
from neurise.datasets._annealers.reads import Reads
from neurise.extras import need

SAMPLERS = {"simulated_annealing": "SimulatedAnnealingSampler", "path_integral": "PathIntegralAnnealingSampler"}
SWEEPS = 2000
"""Simulated annealing from β = 0.1 to β = 5 in so many sweeps reaches the mean energy that an Advantage reaches in 20 µs on
2084 qubits, to 0.1 %."""

Progress = Callable[[int, int], None]
"""Called with how many reads there are and how many there will be."""


def simulate(
    labels: Labels,
    problem: Problem,
    *,
    reads: int = 1000,
    method: str = "simulated_annealing",
    sweeps: int = SWEEPS,
    schedule: Sequence[Any] | None = None,
    seed: int = 0,
    workers: int = 1,
    folder: str | Path | None = None,
    chunk: int = 50,
    progress: Progress | None = None,
) -> Reads:
    """Sample a problem by annealing; each read is an anneal of its own.

    Chunk number k is drawn from a seed made of ``seed`` and k: the result depends neither on the number of ``workers`` nor on
    interruptions, and more reads of the same run begin with the same ones. With a ``folder``, chunks that are there are not
    drawn again.
    """
    for what, value in (("reads", reads), ("sweeps", sweeps), ("workers", workers), ("chunk", chunk)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise ValueError(f"{what} must be a positive whole number, got {value!r}")
    points = anneal_points(method, problem, sweeps, schedule)
    plan = {
        "method": method,
        "problem": fingerprint(labels, problem),
        "sweeps": int(sweeps),
        "schedule": hashlib.sha256(points.tobytes()).hexdigest()[:16],
        "seed": int(seed),
        "chunk": int(chunk),
    }
    chunks = Chunks(folder, plan, len(labels))
    number = -(-reads // chunk)
    todo = chunks.missing(number)
    report = progress or (lambda done, total: None)
    report(min((number - len(todo)) * chunk, reads), reads)
    done = number - len(todo)
    for index, sampleset in _sampled(problem, method, points, int(chunk), int(seed), todo, int(workers)):
        spins = sampleset.record.sample[:, [sampleset.variables.index(site) for site in range(len(labels))]]
        chunks.put(index, spins, energies=sampleset.record.energy)
        done += 1
        report(min(done * chunk, reads), reads)
    found = {key: values[:reads] for key, values in chunks.gather(number).items()}
    info = {"source": f"simulated: {method}, {sweeps} sweeps", "vartype": "SPIN", "seed": seed}
    return Reads(labels, found.pop("spins"), None, found, problem, info)


def anneal_points(method: str, problem: Problem, sweeps: int, schedule: Sequence[Any] | None) -> np.ndarray:
    r"""Make the schedule, one point per sweep.

    Simulated annealing: inverse temperatures β, (sweeps,); by default geometric from 0.1 to 5, in units of 1/max|J|.
    Path-integral annealing: transverse field and energy scale, each times β, (sweeps, 2); by default
    :math:`\Gamma = 3.75\,(1-s)^5` and :math:`B = 5\,s^2` for s from 0 to 1, in the same units: the transverse field dies out in
    the first half, as that of the machines does. A schedule that is given is interpolated between its points.
    """
    if method not in SAMPLERS:
        raise ValueError(f"method must be {' or '.join(SAMPLERS)}, got {method!r}")
    width = 1 if method == "simulated_annealing" else 2
    s = (np.arange(sweeps) + 0.5) / sweeps
    if schedule is not None:
        points = np.asarray(schedule, dtype=float)
        points = points[:, None] if points.ndim == 1 else points
        what = "inverse temperatures" if width == 1 else "pairs (transverse field, energy scale)"
        if points.ndim != 2 or points.shape[1] != width or not len(points):
            raise ValueError(f"the schedule of {method} is a list of {what}; its shape is {np.shape(schedule)}")
        if not np.isfinite(points).all() or (points < 0).any():
            place = int((~(np.isfinite(points) & (points >= 0))).any(axis=1).argmax())
            raise ValueError(
                f"point {place} of the schedule is {points[place].tolist()}; {what} are finite, not negative"
            )
        places = np.linspace(0, 1, len(points))
        at = np.linspace(0, 1, sweeps)
        points = np.stack([np.interp(at, places, column) for column in points.T], axis=1)
    else:
        strongest = max(np.abs(problem.J).max(initial=0.0), np.abs(problem.h).max(initial=0.0)) or 1.0
        points = 0.1 * 50.0 ** s[:, None] if width == 1 else np.stack([3.75 * (1 - s) ** 5, 5 * s**2], axis=1)
        points = points / strongest
    return points[:, 0] if width == 1 else points


def _sampled(
    problem: Problem, method: str, points: np.ndarray, chunk: int, seed: int, todo: list[int], workers: int
) -> Iterator[tuple[int, Any]]:
    """Anneal the chunks that are to do, and give each as soon as it is ready."""
    if not todo:
        return
    dimod = need("dimod", "dwave")
    ends = (problem.edges[:, 0], problem.edges[:, 1], problem.J)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(problem.h, ends, problem.offset, "SPIN")
    sampler = getattr(need("dwave.samplers", "dwave"), SAMPLERS[method])()
    options: dict[str, Any] = {"num_reads": chunk, "beta_schedule_type": "custom"}
    if method == "simulated_annealing":
        options |= {"beta_schedule": points}
    else:
        options |= {"Hd_field": points[:, 0], "Hp_field": points[:, 1]}
    seeds = {index: int(np.random.SeedSequence((seed, index)).generate_state(1)[0] >> 1) for index in todo}
    if workers == 1 or len(todo) == 1:
        for index in todo:
            yield index, sampler.sample(model, seed=seeds[index], **options)
        return
    # A bound method of the sampler is what the workers are handed, so that they import dwave.samplers and nothing more.
    # They are started afresh: a copy of a process that runs threads (torch's, say) can stand still for ever.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent)
    running: dict[Future[Any], int] = {}
    queue = iter(todo)
    try:
        while True:
            for index in queue:
                running[pool.submit(sampler.sample, model, seed=seeds[index], **options)] = index
                if len(running) >= 2 * workers:
                    break
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process ended unexpectedly: it was killed (out of memory?), or this is a script without "
            "`if __name__ == '__main__':`. Chunks in the folder are kept: run again, perhaps with workers=1"
        ) from error
    finally:
        pool.shutdown(wait=not running, cancel_futures=True)
