"""The runner: an experiment becomes independent cells, and those that are not finished yet are computed."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from neurise import executors
from neurise.experiments import store, unknown
from neurise.experiments._code import is_current, machine
from neurise.experiments._methods import METHOD_CODE, identity
from neurise.experiments.base import Cell, Experiment, Scalar, digest
from neurise.experiments.parts.unit import Unit, execute, lost
from neurise.progress import Progress

ATTEMPTS = 3
"""How often the processes may die under a unit before it counts as failed."""
LOOK_EVERY = 1.0
"""Seconds between two looks at the time left, while nothing ends."""


@dataclass
class RunSummary:
    """How a run went, in cells. ``rows`` are those of all cells that were asked for and have been run at some time."""

    cells: int
    before: int  # finished by earlier runs
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    other_code: int = 0  # finished by other code before, and not counted
    codes: dict[str, set[str]] = field(default_factory=dict)  # digests of the code that workers had, by method
    left_out: dict[int, str] = field(default_factory=dict)  # lines of the results file that are no rows, and why
    rows: list[store.Row] = field(default_factory=list)
    command: str | None = None  # what new rows say they were made by

    @property
    def versions(self) -> int:
        """How many versions of the code the rows of any one method were made by: more than one where it changed meanwhile."""
        return max(map(len, self.codes.values()), default=0)

    @property
    def missing(self) -> int:
        """Cells that are still to be done."""
        return self.cells - self.before - self.done


def run(
    experiment: Experiment,
    scale: str,
    results: str | Path,
    *,
    executor: str = "process",
    workers: int | None = None,
    device: str | None = None,
    methods: Sequence[str] = (),
    seed: int = 0,
    trials: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    grouped: bool | None = None,
    any_code: bool = False,
    verbose: bool | None = None,
    command: str | None = None,
    seconds: float | None = None,
) -> RunSummary:
    """Compute the cells that a results file lacks, and add them to it as they come.

    ``trials`` and ``only`` (parameters and the values to keep) run a part of the grid: its cells are those of the whole.

    A cell is identified by experiment, scale, parameters, seed and code; with ``any_code`` cells that another version of the
    code has finished count too. A cell that fails is recorded with its error, does not stop the rest, and is tried again
    next time. Ctrl-C ends the run and keeps what is finished. ``command`` is kept in the new rows: what was typed for them.
    With ``seconds`` nothing is begun that would, by the longest so far, end later: the same call goes on the next time.
    """
    units = plan(experiment, scale, methods=methods, seed=seed, trials=trials, only=only, grouped=grouped)
    if executors.kind_of(executor) in ("serial", "process"):
        machine(device)  # a device that is not there is refused at once
    left, summary = _missing(experiment, units, Path(results), any_code=any_code)
    summary.command = command
    began = time.monotonic()
    progress = Progress(
        f"{experiment.name}, {scale}",
        "cells",
        verbose=verbose,
        done=summary.before,
        fraction=summary.before / summary.cells,
    )
    try:
        until = math.inf if seconds is None else began + seconds
        _work(experiment, left, Path(results), executor, workers, device, summary, progress, until)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        progress.close()
    summary.seconds = time.monotonic() - began
    summary.rows = _rows(experiment, units, Path(results), None if any_code else summary.codes)
    return summary


def plan(
    experiment: Experiment,
    scale: str,
    *,
    methods: Sequence[str] = (),
    seed: int = 0,
    trials: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    grouped: bool | None = None,
) -> list[Unit]:
    """Expand an experiment to its units. Trials are seeds: ``seed``, ``seed`` + 1, …

    ``methods`` are those of the experiment, or any other model (see :func:`neurise.experiments._methods.named`).
    """
    if scale not in experiment.scales:
        raise unknown("scale", scale, experiment.scales)
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    size = experiment.scales[scale]
    chosen = {name: [_identity(experiment, name)] for name in methods or experiment.methods}
    cells = cells_of(experiment, scale, chosen, seed, trials, only)
    together = size.grouped if grouped is None else grouped
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        shared = {key: v for key, v in cell.parameters.items() if key not in experiment.grouped_over}
        name = digest(shared) if together and experiment.groupable(cell.parameters) else cell.key
        groups.setdefault(name, []).append(cell)
    return [Unit(tuple(members)) for members in groups.values()]


def missing(experiment: Experiment, units: list[Unit], results: str | Path) -> list[Unit]:
    """Return the units of a plan that a results file lacks."""
    return _missing(experiment, units, Path(results), any_code=False)[0]


Methods = Mapping[str, Sequence[Mapping[str, Scalar]]]
"""Methods by name, each with the versions of its code that there are: parameters that say which."""


def cells_of(
    experiment: Experiment,
    scale: str,
    methods: Methods,
    seed: int = 0,
    trials: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
) -> list[Cell]:
    """List the cells of a scale. The methods are taken as they come, and no code of theirs is needed."""
    size = experiment.scales[scale]
    return [
        Cell(experiment.name, scale, parameters, trial)
        for parameters in _kept(_parameters(experiment, scale, methods), only or {})
        for trial in range(seed, seed + min(experiment.trials(parameters, size), trials or size.trials))
    ]


def methods_of(rows: Iterable[store.Row]) -> dict[str, list[dict[str, Scalar]]]:
    """Name the methods of rows, with the versions of their code."""
    found: dict[str, list[dict[str, Scalar]]] = {}
    for row in rows:
        given = row["parameters"]
        if isinstance(name := given.get("method"), str):
            versions, own = found.setdefault(name, []), {key: given[key] for key in (METHOD_CODE,) if key in given}
            versions += [own] if own not in versions else []
    return found


def in_order(experiment: Experiment, scale: str, rows: Sequence[store.Row]) -> list[store.Row]:
    """Put rows into the order of the plan, which is not the one that they were finished in."""
    own: Methods = {name: [{}] for name in (*experiment.methods, *experiment.more_methods)}
    every = {**own, **methods_of(rows)}
    planned = _parameters(experiment, scale, every) if scale in experiment.scales else ()
    places = {digest(parameters): place for place, parameters in enumerate(planned)}
    return sorted(rows, key=lambda row: (places.get(digest(row["parameters"]), len(places)), row["seed"]))


def _identity(experiment: Experiment, method: str) -> Mapping[str, Scalar]:
    """Return what identifies a method beyond its name; raise ValueError for one that the experiment cannot run."""
    offered = {**experiment.methods, **experiment.more_methods}
    if method in offered:
        return {}
    if not (experiment.any_model and experiment.methods):
        raise unknown(f"method of {experiment.name}", method, offered)
    return identity(method)


def _parameters(experiment: Experiment, scale: str, methods: Methods) -> Iterator[dict[str, Scalar]]:
    for parameters in experiment.parameters(experiment.scales[scale], list(methods)):
        for code in methods.get(str(parameters.get("method")), [{}]):
            yield {**parameters, **code}


def _kept(every: Iterable[dict[str, Scalar]], only: Mapping[str, Sequence[str]]) -> list[dict[str, Scalar]]:
    """Keep the parameters that have one of the asked values each; a value that none has is refused."""
    kept = list(every)
    for name, values in only.items():
        if not any(name in parameters for parameters in kept):
            raise unknown("parameter", name, dict.fromkeys(key for parameters in kept for key in parameters))
        there = {str(parameters.get(name)) for parameters in kept}
        for value in values:
            if value not in there:
                raise unknown(f"value of {name}", value, dict.fromkeys(sorted(there)))
        kept = [parameters for parameters in kept if str(parameters.get(name)) in values]
    return kept


def _missing(
    experiment: Experiment, units: list[Unit], results: Path, *, any_code: bool
) -> tuple[list[Unit], RunSummary]:
    contents = store.read(results) if results.exists() and results.stat().st_size else store.Contents([], {})
    finished = {(row["key"], row["unit"]): True for row in contents.rows if _counts(row, experiment, any_code=any_code)}
    elsewhere = {(row["key"], row["unit"]) for row in contents.rows if row["status"] == "done"} - set(finished)
    missing = [unit for unit in units if not all((cell.key, unit.key) in finished for cell in unit.cells)]
    cells = sum(len(unit.cells) for unit in units)
    before = cells - sum(len(unit.cells) for unit in missing)
    other = sum((cell.key, unit.key) in elsewhere for unit in units for cell in unit.cells)
    return missing, RunSummary(cells, before, other_code=other, left_out=contents.left_out)


def _counts(row: store.Row, experiment: Experiment, *, any_code: bool) -> bool:
    own = row["experiment"] == experiment.name and row["status"] == "done"
    return bool(own and (any_code or is_current(experiment, row)))


def _method(row: store.Row) -> str:
    return str(row["parameters"].get("method"))


def _rows(
    experiment: Experiment, units: Iterable[Unit], results: Path, codes: Mapping[str, set[str]] | None
) -> list[store.Row]:
    """The rows of the cells that were asked for, in their order: finished ones, and errors of the others."""
    found: dict[tuple[str, str], store.Row] = {}
    for row in store.read(results).rows if results.exists() else []:
        place = (row["key"], row["unit"])
        if codes is None or row["code"]["digest"] in codes.get(_method(row), ()) or is_current(experiment, row):
            found[place] = row if place not in found or row["status"] == "done" else found[place]
    places = [(cell.key, unit.key) for unit in units for cell in unit.cells]
    return [found[place] for place in places if place in found]


def _work(
    experiment: Experiment,
    units: list[Unit],
    results: Path,
    executor: str,
    workers: int | None,
    device: str | None,
    summary: RunSummary,
    progress: Progress,
    until: float,
) -> None:
    """Keep an executor busy until nothing is left, or the time is over; where its processes die, start it anew."""
    pending, attempts, beside, longest = deque(units), Counter[str](), 0, 0.0
    begun: dict[str, float] = {}

    def keep(rows: list[store.Row]) -> None:
        told = {"command": summary.command, "beside": beside}
        store.append(results, [{**row, **told} for row in rows])
        for row in rows:
            summary.codes.setdefault(_method(row), set()).add(row["code"]["digest"])
        good = sum(row["status"] == "done" for row in rows)
        summary.done += good
        summary.failed += len(rows) - good
        show(last=not summary.missing)

    def show(*, last: bool = False) -> None:
        past = summary.before + summary.done + summary.failed
        facts = [f"{summary.failed} failed"] if summary.failed else []
        progress.update(past, past / summary.cells, *facts, last=last)

    while pending:
        with executors.opened(executor, workers=workers, device=device) as pool:
            flying: dict[Future[list[store.Row]], Unit] = {}
            try:
                while pending or flying:
                    if time.monotonic() + longest > until:
                        pending.clear()
                    beside = max(0, pool.ahead() - 1)  # what else runs may slow a cell down
                    for _ in range(min(len(pending), max(0, pool.ahead() - len(flying)))):
                        begun[pending[0].key] = time.monotonic()
                        flying[pool.executor.submit(execute, experiment, pending[0].cells, device)] = pending[0]
                        pending.popleft()
                    for future in wait(flying, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED).done:
                        rows = _result(future, experiment, flying[future])
                        longest = max(longest, time.monotonic() - begun[flying[future].key])
                        del flying[future]
                        keep(rows)
                    show()
            except BrokenExecutor as error:
                for unit in flying.values():
                    attempts[unit.key] += 1
                    if attempts[unit.key] < ATTEMPTS:
                        pending.append(unit)
                    else:
                        keep(lost(experiment, unit, error))


def _result(future: Future[list[store.Row]], experiment: Experiment, unit: Unit) -> list[store.Row]:
    """Return the rows of a unit. An error that came from elsewhere than the cell is recorded as its failure."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except CancelledError as error:
        raise ConnectionError("the scheduler was lost; finished cells are kept: the same command goes on") from error
    except Exception as error:
        return lost(experiment, unit, error)
