"""Models that train a network: the settings they share, and how the training loop is run for them."""

from __future__ import annotations

import copy
import json
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from neurise import checks
from neurise.modeling.estimator import plain
from neurise.modeling.job import Job
from neurise.modeling.model import Model, Run
from neurise.modeling.search_space import TRAINING, SearchSpace
from neurise.rows import Rows, split
from neurise.training import distributed
from neurise.training.loop import TrainingDiverged, Watcher
from neurise.training.objective import Objective
from neurise.training.settings import Settings, Training
from neurise.training.state import TrainingState, part_folder


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedModel(Model):
    """A model that is learnt by gradient descent. It writes ``_build`` and ``_draw``, and inherits the rest.

    Args:
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: further settings of the training loop, a group (:class:`neurise.Training`).
    """

    search_space: ClassVar[SearchSpace] = TRAINING

    order: Sequence[int] | None = None
    alphabet: Sequence[Any] | None = None
    steps: int | None = 4000
    training: Training = Training(batch_size=1024, learning_rate=2e-3)
    objective_: Objective = field(init=False)  # with the network as it was learnt

    # --- what a model writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def _build(self) -> Objective:
        """Check the parameters and make the untrained objective for ``self.schema_``.

        Its network has a ``reset(generator)`` that gives every one of its weights a value. It is made on torch's meta
        device, so no weight may be read here.
        """

    def jobs(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Return what is to be trained: one job, unless a model says otherwise."""
        own, aside = self.divide(rows, held, run.seed)
        return [self.job(self.built(), own, aside, run)]

    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run) -> None:
        """Take over the networks of the jobs that were trained; at least one was, if only for a moment."""
        self.objective_ = jobs[0].objective

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model, so that a callback can use it."""
        shown = copy.deepcopy(job.objective)  # the network itself goes on from its own weights
        shown.network.requires_grad_(False).load_state_dict(state.average, strict=False)
        self.objective_ = shown

    # --- training --------------------------------------------------------------------------------------------------

    def job(self, objective: Objective, rows: Rows, held: Rows | None, run: Run, **more: Any) -> Job:
        """Make a job for this model."""
        settings = self.settings(run.max_steps, run.max_seconds)
        identity = {
            "model": json.dumps([type(self).__name__, plain(self.flat_params())]),
            "settings": json.dumps(plain(replace(settings, max_steps=None, max_seconds=None))),
            "max_steps": settings.max_steps,
            "max_seconds": settings.max_seconds,  # of the whole run; how much of it a job has depends on the clock
        }
        return Job(objective, rows, held, settings, run.seed, self.device_, self.space_.states, identity, **more)

    def built(self) -> Objective:
        """Build the objective as shapes alone: how large the network is should be known before memory is taken."""
        with torch.device("meta"):
            return self._build()

    def divide(self, rows: Rows, held: Rows | None, seed: int) -> tuple[Rows, Rows | None]:
        """Hold some rows back to validate with, unless the user gave such."""
        if held is not None:
            return rows, held
        return split(rows, self.training.validation_fraction, generator=torch.Generator().manual_seed(seed))

    def settings(self, max_steps: int | None, max_seconds: float | None) -> Settings:
        """Return the settings of the loop: the constructor's, and what ``fit`` was told."""
        if max_steps is None and max_seconds is None:
            max_steps = self.chosen_steps()
        return Settings.of(self.chosen_training(), max_steps=max_steps, max_seconds=max_seconds)

    def chosen_steps(self) -> int:
        """Return how long to train where ``fit`` says nothing."""
        return checks.positive_whole("steps", self.steps)

    def chosen_training(self) -> Training:
        """Return the group with a value for everything that was left open."""
        return self.training

    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        jobs = self.jobs(rows, held, run)
        for job in jobs:
            job.begin()
        if bool((self.schema_.constant >= 0).all()):
            self.adopt(jobs, rows, run)
            return
        began, trained, lost = time.monotonic(), list[Job](), None
        for number, job in enumerate(jobs):
            trained.append(job)
            if run.max_seconds is not None:  # what earlier jobs left over is for the later ones
                # A job that goes on from a checkpoint has spent more than the clock says; several processes agree on one clock.
                recorded = sum(earlier.history[-1]["seconds"] for earlier in jobs[:number] if earlier.history)
                spent = max(distributed.agreed(time.monotonic() - began), recorded)
                left = (run.max_seconds - spent) / (len(jobs) - number)
                job.settings = replace(job.settings, max_seconds=max(left, 1e-3))
            try:
                job.run(
                    checkpoint=None if run.checkpoint is None else part_folder(run.checkpoint, number),
                    resume=run.resume,
                    verbose=run.verbose,
                    watchers=self._watchers(run, job),
                )
            except (TrainingDiverged, OSError, KeyboardInterrupt) as error:
                if isinstance(error, FileExistsError):
                    raise
                lost = error
            if job.stopped in ("interrupted", "callback"):
                break
        self.finish(trained, rows, run)
        if lost is not None:
            raise lost

    def finish(self, trained: Sequence[Job], rows: Rows, run: Run) -> None:
        """Make the model of the jobs that were trained: their networks, their record, and why they ended."""
        ends = [job.stopped for job in trained]
        self.stopped_ = next((end for end in ("interrupted", "callback", "diverged") if end in ends), ends[-1])
        self.history_[:] = _merged([job.history for job in trained])
        self.adopt(trained, rows, run)

    def _watchers(self, run: Run, job: Job) -> list[Watcher]:
        callback = run.callback
        if callback is None:
            return []

        def watch(state: TrainingState, record: Mapping[str, Any]) -> Any:
            self.history_[:] = job.history
            self.show(job, state)
            losses = {name: record[name] for name in ("loss", "validation") if name in record}
            return callback(state.step, state.seconds, losses, self)

        return [watch]

    # --- files -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.objective_.network.state_dict()

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        self.objective_ = self.built()
        network = self.objective_.network
        network.to_empty(device=self.device_).requires_grad_(False).load_state_dict(dict(tensors))


def _merged(histories: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Make one record of several runs of the same length: means over those that reached a step, and the seconds of all."""
    if len(histories) == 1:
        return histories[0]
    merged = []
    for step in sorted({record["step"] for history in histories for record in history}):
        there = [record for history in histories for record in history if record["step"] == step]
        until = [[r["seconds"] for r in history if r["step"] <= step] for history in histories]
        means = {name: sum(r[name] for r in there) / len(there) for name in there[0] if name not in ("step", "seconds")}
        merged.append({"step": step, "seconds": sum(max(spent, default=0.0) for spent in until), **means})
    return merged
