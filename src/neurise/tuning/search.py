"""The search: trials one after another, or in several processes, until there are enough or the time is over."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from neurise import discovery
from neurise.checks import positive_whole
from neurise.interrupts import raised_outside_imports
from neurise.modeling.search_space import as_parameters
from neurise.presets import Configuration
from neurise.progress import Progress
from neurise.tuning.study import open_study, without_password
from neurise.tuning.task import Task
from neurise.tuning.trial import INTERRUPTED, distribution, run_trial

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler

POLL = 0.5
"""Seconds between two looks at what the worker processes have done."""


@dataclass(frozen=True)
class Search:
    """How a search is carried out."""

    task: Task
    storage: str  # the path of a journal file, or a postgresql:// address
    study: str
    trials: int  # in all, of every run that shares the study
    seconds: float | None = None
    sampler: str = "tpe"
    output: Path | None = None  # the best configuration so far is kept there
    about: Mapping[str, Any] | None = None  # more to say in the configuration: the data's name, the command

    def open(self) -> optuna.Study:
        """Open the study."""
        return open_study(self.storage, self.study, self.task)

    def sample(self, place: int) -> BaseSampler:
        """Return what chooses the parameters of one trial. Its randomness is the trial's own, so that a search which was
        interrupted goes on as if it had not been.
        """
        space = {name: distribution(domain) for name, domain in self.task.space.items()}
        sampler: BaseSampler = discovery.find("neurise.tuning.samplers", self.sampler)(space, self.task.seed + place)
        return sampler

    def configuration(self, study: optuna.Study) -> Configuration | None:
        """Return the best finished trial as a configuration; None where there is none yet."""
        counted = counts(study)
        if not counted["finished"]:
            return None
        best, budget = study.best_trial, self.task
        fixed = {name: value for name, value in budget.fixed.items() if name != "alphabet"}
        length = {} if budget.max_steps is None or "steps" in fixed else {"steps": budget.max_steps}
        facts = {
            **(self.about or {}),
            "study": self.study,
            "storage": without_password(self.storage),
            "sampler": self.sampler,
            "seed": budget.seed,
            "trial": best.number,
            **counted,
            "steps_a_trial": budget.max_steps,
            "seconds_a_trial": budget.max_seconds,
            "score_is": "mean of -log p, or of a bound on it, over the validation rows, in nats per row",
            "searched": sorted(budget.space),
        }
        found = as_parameters(budget.space, best.params, budget.fixed)
        return Configuration(budget.model, {**fixed, **length, **found}, best.value, facts)


def counts(study: optuna.Study) -> dict[str, int]:
    """How many trials came to their end, were given up early, or failed; one that Ctrl-C ended is as good as not begun."""
    from optuna.trial import TrialState

    states = [trial.state for trial in study.get_trials(deepcopy=False) if not trial.user_attrs.get(INTERRUPTED)]
    named = {"finished": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
    return {name: states.count(state) for name, state in named.items()}


def tune(search: Search, *, workers: int = 1, verbose: bool | None = None) -> Configuration:
    """Run the trials that are missing, and return the best configuration of the study. The same call goes on later.

    One worker and one seed give the same trials again. With several, each trial is still what its parameters say, but
    which parameters are tried depends on who finishes first.
    """
    workers, trials = positive_whole("workers", workers), positive_whole("trials", search.trials)
    if search.seconds is not None and not search.seconds > 0:
        raise ValueError(f"seconds must be positive, got {search.seconds!r}")
    study = search.open()
    missing = trials - sum(counts(study).values())
    # One clock for all processes of a machine, which nobody sets back.
    deadline = None if search.seconds is None else time.monotonic() + search.seconds
    progress = Progress("tuning", "trials", verbose=verbose, done=trials - missing, fraction=1 - missing / trials)
    try:
        if workers == 1 or missing <= 1:
            _work(search, study, iter(range(trials - missing, trials)), deadline, progress)
        else:
            _work_together(search, study, missing, min(workers, missing), deadline, progress)
    finally:
        _show(progress, search, study, last=True)
        progress.close()
        best = _keep(search, study)
    if best is None:
        raise ValueError(f"no trial of {search.study!r} came to its end: {_first_failure(study)}")
    return best


def _work(
    search: Search, study: optuna.Study, tickets: Iterator[int], deadline: float | None, progress: Progress | None
) -> None:
    for place in tickets:
        if deadline is not None and time.monotonic() >= deadline:
            return
        study.sampler = search.sample(place)
        _one_trial(search.task, study)
        _keep(search, study)
        if progress is not None:
            _show(progress, search, study)


def _one_trial(task: Task, study: optuna.Study) -> None:
    try:
        # A configuration that does not fit into memory is a bad one; the search goes on.
        study.optimize(lambda trial: run_trial(task, trial), n_trials=1, catch=(MemoryError, torch.OutOfMemoryError))
    except (AssertionError, UnboundLocalError) as error:
        # What Optuna makes of a full disk under its journal, and of Ctrl-C while the end of a trial is written.
        if isinstance(error.__context__, OSError | KeyboardInterrupt):
            raise error.__context__ from None
        raise


def _work_together(
    search: Search, study: optuna.Study, missing: int, workers: int, deadline: float | None, progress: Progress
) -> None:
    context = multiprocessing.get_context("spawn")
    taken = context.Value("i", search.trials - missing)
    processes = [
        context.Process(target=_worker, args=(search, workers, taken, search.trials, deadline)) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            time.sleep(POLL)
            _show(progress, search, study)
    except KeyboardInterrupt:
        for process in processes:  # Ctrl-C in a terminal reaches them too; a signal to this process alone does not
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()
    if all(process.exitcode for process in processes):
        raise ValueError(f"every worker of the search ended with an error: {_first_failure(study)}")


def _worker(search: Search, workers: int, taken: Any, trials: int, deadline: float | None) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
    try:
        with raised_outside_imports():
            _work(search, search.open(), _tickets(taken, trials), deadline, None)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _tickets(taken: Any, trials: int) -> Iterator[int]:
    """Hand out trials: all workers together run as many as are missing."""
    while True:
        with taken.get_lock():
            if taken.value >= trials:
                return
            taken.value += 1
            place = taken.value - 1
        yield place


def _keep(search: Search, study: optuna.Study) -> Configuration | None:
    best = search.configuration(study)
    if best is not None and search.output is not None:
        best.write(search.output)
    return best


def _show(progress: Progress, search: Search, study: optuna.Study, *, last: bool = False) -> None:
    counted = counts(study)
    done = sum(counted.values())
    facts = [f"best {study.best_value:.4f} nats per row"] if counted["finished"] else []
    facts += [f"{counted['pruned']} pruned"] if counted["pruned"] else []
    progress.update(done, min(1.0, done / search.trials), *facts, last=last)


def _first_failure(study: optuna.Study) -> str:
    counted = counts(study)
    return f"{counted['pruned']} were pruned and {counted['failed']} failed; give each a larger budget, or try more"
