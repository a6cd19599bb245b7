"""Models that train a network: the settings they share, and how the training loop is run for them."""

from __future__ import annotations

import copy
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import checks, devices
from neurise.deadline import Work, noted_interrupts
from neurise.modeling.estimator import plain
from neurise.modeling.lessons import Lessons
from neurise.modeling.loaded import load_exactly
from neurise.modeling.model import Callback, Model, Run
from neurise.modeling.search_space import TRAINING, SearchSpace
from neurise.modeling.summary import EACH
from neurise.networks.base import RowNetwork
from neurise.networks.parts.stack import Stack
from neurise.rows import Rows, Source, digest, split
from neurise.training import distributed, placing
from neurise.training.loop import BrokenOff, TrainingDiverged, Watcher, train
from neurise.training.objective import Objective
from neurise.training.settings import DECAY, EVALUATIONS, PRECISION, PRECISIONS, Settings, Training
from neurise.training.state import CHECKPOINT, TrainingState, check_parts, claimed, part_folder
from neurise.training.streamed import StreamedRows

SMALL = 2**23
"""Bytes of a batch below which one thread is as fast as several: its products are over before the others have begun."""
MOMENT = 0.1
"""Seconds that a run always has, so that it makes a step."""
SUMS = {"seconds": "seconds", "steps": "step"}
"""What is added up over the parts of a model that were trained one after another."""
PREPARING = 0.5
"""The share of a limited time of a job that may pass before its first step."""
LEAST = 1e-3
"""Seconds of a job that is left none."""
LEFT_ALONE = ("cpu",)
"""Kinds of devices where rows are learnt from as they are: they are in that memory already."""


Prepare = Callable[["Job", Work], None]
"""``f(job, work)``: prepares the network of a job while there is time left."""


@dataclass
class Job:
    """A network to train. A model is trained as one job, or as several of them whose networks then answer together."""

    objective: Objective  # its network is made on the meta device, until begin
    rows: Rows
    held: Rows | None  # rows that validate
    settings: Settings
    seed: int
    device: torch.device
    states: int
    params: dict[str, Any]  # of the model, as they were when fit was called
    limit: float | None = None  # seconds of the whole run, of which this job has a part
    prepare: Prepare | None = None  # what is done to the drawn weights before the loop
    freeze: Callable[[Any], None] | None = None  # what of the prepared network is not trained
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "interrupted"  # unless training comes to an end of its own
    diverged_at: int | None = None  # the step of the first loss that was no number
    is_known: bool = False  # whether there is nothing to learn
    is_over: bool = False  # whether it was trained before, and Ctrl-C ended the run then
    order: tuple[int, ...] | None = (
        None  # in which this job takes the sites of the model, if in another than the model's
    )
    lessons: Lessons | None = None  # rows of an energy that are mixed into the others

    @property
    def learnt_from(self) -> Rows:
        """The rows that batches are drawn from."""
        if self.lessons is None:
            return self.rows
        return self.lessons.mixed_into(self.rows, getattr(self.objective, "folds", 0))

    def begin(self, together: int = 1) -> None:
        """Check that so many jobs like this one fit into memory together, and draw the weights."""
        network = self.objective.network
        # On a device of their own, rows that do not fit are streamed.
        kept = 0
        if self.device.type == "cpu":
            kept = self.rows.x.numel() + (0 if self.rows.missing is None else self.rows.missing.numel())
            kept += 0 if self.lessons is None else self.rows.x.numel() + self.lessons.rows.x.numel()
        needed = self._needed(kept)
        alone = network.pattern if isinstance(network, Stack) and network.size == 1 else None
        if isinstance(alone, RowNetwork) and not devices.has_room(together * needed, self.device):
            alone.economise()
            needed = self._needed(kept)
        fewer = "" if together == 1 else ", or train fewer models together"
        devices.require_memory(together * needed, self.device, f"use a smaller training__batch_size or width{fewer}")
        # Weights are drawn on the CPU, so that a seed means the same start on every device.
        network.to_empty(device="cpu").reset(torch.Generator().manual_seed(self.seed))  # type: ignore[operator]
        network.to(self.device)

    def _needed(self, rows_bytes: int) -> int:
        """Estimate the memory of the training."""
        weights = sum(map(attrgetter("nbytes"), self.objective.network.parameters()))
        return devices.training_bytes(weights, rows_bytes, self.settings.batch_size, self.objective.bytes_per_example)

    def get_ready(self, work: Work | None, together: int = 1) -> None:
        """Draw the weights and prepare them, unless a checkpoint has them: then there is no work."""
        self.begin(together)
        if self.device.type == "cpu" and self.settings.batch_size * self.objective.bytes_per_example < SMALL:
            torch.set_num_threads(1)
        if self.prepare is not None and work is not None:
            self.prepare(self, work)
        if self.freeze is not None:
            self.freeze(self.objective.network)

    def run(
        self,
        work: Work,
        *,
        checkpoint: Path | None,
        resume: bool,
        watchers: Sequence[Watcher] = (),
        part: int = 0,
    ) -> None:
        """Train while there is time left, as one part of a run. The network ends with the best weights, whatever ends it."""
        if self.is_over:
            return
        threads = torch.get_num_threads()
        try:
            is_prepared = resume and checkpoint is not None and (checkpoint / CHECKPOINT).exists()
            self.get_ready(None if is_prepared else work.part(PREPARING))
            settings, before = self.settings, 0.0
            if work.seconds < math.inf:  # a moment is always left, in which a step is made
                settings = replace(settings, max_seconds=max(work.left(), min(work.seconds, MOMENT)))
                before = work.spent
            rows: Source = self.rows if self.lessons is None else self.learnt_from
            held: Source | None = self.held
            if self.device.type not in LEFT_ALONE or self.rows.stream is not None:
                rows, held = self._place(settings)
            self.stopped = train(
                self.objective,
                rows,
                held,
                settings,
                generator=torch.Generator(self.device).manual_seed(self.seed),
                fingerprint={} if checkpoint is None else self.fingerprint(rows, part),
                checkpoint=checkpoint,
                resume=resume,
                verbose=work.verbose,
                history=self.history,
                watchers=watchers,
                before=before,
            )
        except TrainingDiverged as error:
            self.stopped, self.diverged_at = "diverged", error.step
            raise
        finally:
            torch.set_num_threads(threads)

    def fingerprint(self, rows: Source | None = None, part: int = 0) -> dict[str, Any]:
        """Return what a checkpoint must share with this run to be gone on from."""
        found = {
            "data": digest(self.rows, self.held) + ("" if self.rows.stream is None else self.rows.stream.digest),
            "model": json.dumps(plain(self.params)),
            "seed": self.seed,
            "max_steps": self.settings.max_steps,
            "max_seconds": self.limit,
            "device": self.device.type,
            **({"part": part} if part else {}),
            **({} if self.lessons is None else {"taught": self.lessons.share}),
        }
        # Streamed rows give other draws, and whether they are streamed depends on how much memory is free.
        return {**found, "rows": "streamed"} if rows is not None and placing.is_streamed(rows) else found

    def _place(self, settings: Settings) -> tuple[Source, Source | None]:
        """Put the rows where a network on a device of its own can learn from them."""
        room = placing.room_for_rows(self.device, self._needed(0))
        options: dict[str, Any] = {
            "states": self.states,
            "device": self.device,
            "batch_size": settings.batch_size,
            "seed": self.seed,
        }
        stream = self.rows.stream
        if stream is not None:
            rows: Source = StreamedRows(stream, settings.batch_size, self.device)
        else:
            rows = placing.place(self.learnt_from, room=room, **options)
        left = None if room is None else room - rows.num_bytes
        return rows, None if self.held is None else placing.place(self.held, room=left, **options)


class Chosen(NamedTuple):
    """How long and how fast to train."""

    steps: Any
    batch_size: Any
    learning_rate: Any


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
    groups: ClassVar[Mapping[str, type]] = {"training": Training}
    score_units: ClassVar[str] = "nats per site"
    """What the validation score is given in."""
    libraries: ClassVar[tuple[str, ...]] = ("torch._dynamo",)  # which torch's optimisers import when the first is made

    order: Sequence[int] | None = None
    alphabet: Sequence[Any] | None = None
    steps: int | None = 4000
    training: Training = Training(batch_size=1024, learning_rate=2e-3)
    objective_: Objective = field(init=False)  # with the network as it was learnt
    diverged_at_: int | None = field(init=False, default=None)
    """The step of the first loss that was infinite or not a number; None where training did not diverge."""

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

    def seconds_before(self) -> float:
        """Return the seconds that the run took before its jobs."""
        return 0.0

    def closing_share(self, jobs: Sequence[Job]) -> float:
        """Return the share of a limited time that is kept for making the model of what the jobs have learnt."""
        return 0.0

    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> None:
        """Take over the networks of the jobs that were trained; at least one was, if only for a moment."""
        self.objective_ = jobs[0].objective

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model, so that a callback can use it."""
        shown = copy.deepcopy(job.objective)  # the network itself goes on from its own weights
        shown.network.requires_grad_(False).load_state_dict(state.average, strict=False)
        self.objective_ = shown

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used."""
        training = self.training
        checks.positive("training__clip_norm", training.clip_norm, finite=False)
        checks.not_negative("training__weight_decay", DECAY if training.weight_decay is None else training.weight_decay)
        for name in ("warmup", "average_decay", "validation_fraction"):
            checks.share(f"training__{name}", getattr(training, name))
        precision = PRECISION if training.precision is None else training.precision
        checks.one_of("training__precision", precision, PRECISIONS)
        checks.positive_whole("training__batch_size", (getattr(self, "chosen_", None) or self.chosen()).batch_size)

    # --- training --------------------------------------------------------------------------------------------------

    def job(
        self, objective: Objective, rows: Rows, held: Rows | None, run: Run, *, sizes: Any = None, **more: Any
    ) -> Job:
        """Make a job for this model; ``sizes`` are those of its network where the model has several."""
        settings = self.settings(run.max_steps, run.max_seconds, sizes)
        own = {"params": {"": type(self).__name__, **self.fitted_params_}, "limit": run.max_seconds, **more}
        own.setdefault("is_known", bool((self.schema_.constant >= 0).all()))
        return Job(objective, rows, held, settings, run.seed, self.device_, self.schema_.space.states, **own)

    def built(self) -> Objective:
        """Build the objective as shapes alone: how large the network is should be known before memory is taken."""
        with torch.device("meta"):
            return self._build()

    def divide(self, rows: Rows, held: Rows | None, seed: int) -> tuple[Rows, Rows | None]:
        """Hold some rows back to validate with, unless the user gave such."""
        if held is not None:
            return rows, held
        return split(rows, self.training.validation_fraction, generator=torch.Generator().manual_seed(seed))

    def settings(self, max_steps: int | None, max_seconds: float | None, sizes: Any = None) -> Settings:
        """Return the settings of the loop: the constructor's, and what ``fit`` was told."""
        training, best = self.training, sizes or getattr(self, "chosen_", None) or self.chosen()
        if max_steps is None and max_seconds is None:
            max_steps = checks.positive_whole("steps", best.steps)
        elif max_steps is None:
            max_steps = getattr(best, "most_steps", None)
        return Settings(
            checks.positive_whole("training__batch_size", best.batch_size),
            checks.positive("training__learning_rate", best.learning_rate),
            getattr(best, "weight_decay", DECAY) if training.weight_decay is None else training.weight_decay,
            training.warmup,
            training.clip_norm,
            training.average_decay,
            checks.positive_whole("training__patience", training.patience),
            str(training.precision or getattr(best, "precision", PRECISION)),
            max_steps,
            max_seconds,
            getattr(best, "evaluations", EVALUATIONS),
        )

    def chosen(self) -> Any:
        """Return how long and how fast to train; a model may choose by the data where that was left open."""
        return Chosen(self.steps, self.training.batch_size, self.training.learning_rate)

    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        folder, self.diverged_at_ = run.checkpoint, None
        with nullcontext() if folder is None else claimed(folder, resume=run.resume):
            jobs = self.jobs(rows, held, run)
            if jobs[0].is_known:  # and so are the others
                for job in jobs:
                    job.begin()
                self.adopt(jobs, rows, run, Work())
                return
            if folder is not None:
                check_parts(folder, len(jobs))
            self._train(jobs, rows, run)

    def _train(self, jobs: list[Job], rows: Rows, run: Run) -> None:
        """Train one job after another."""
        trained, lost, team = list[Job](), None, distributed.TEAM.get()
        seconds = math.inf if run.max_seconds is None else run.max_seconds
        with noted_interrupts() as interrupts:
            whole = Work(seconds, interrupts, None if team is None else team.agree, run.verbose, run.began)
            for number, job in enumerate(jobs):
                trained.append(job)
                keep = self._kept(jobs, whole) if whole.seconds < math.inf else 0.0
                own = whole.part(1 / (len(jobs) - number), keep=keep)
                own.seconds = max(own.seconds, LEAST)
                try:
                    job.run(
                        own,
                        checkpoint=None if run.checkpoint is None else part_folder(run.checkpoint, number),
                        part=number,
                        resume=run.resume,
                        watchers=() if run.callback is None else self._watchers(run.callback, job),
                    )
                except (TrainingDiverged, OSError, KeyboardInterrupt) as error:
                    if isinstance(error, FileExistsError):
                        raise
                    lost = BrokenOff() if isinstance(error, KeyboardInterrupt) else error
                if job.stopped in ("interrupted", "callback"):
                    break
            self.finish(trained, rows, run, whole)
        if lost is not None:
            raise lost

    def _kept(self, jobs: Sequence[Job], whole: Work) -> float:
        """Return the seconds of a limited time that are not for the next job: what the end needs, and what jobs have had."""
        whole.left()
        # A job that goes on from a checkpoint has spent more than the clock says.
        recorded = self.seconds_before() + sum(earlier.history[-1]["seconds"] for earlier in jobs if earlier.history)
        return max(0.0, recorded - whole.spent) + self.closing_share(jobs) * whole.seconds

    def finish(self, trained: Sequence[Job], rows: Rows, run: Run, work: Work) -> None:
        """Make the model of the jobs that were trained: their networks, their record, and why they ended."""
        ends = [job.stopped for job in trained]
        self.stopped_ = next((end for end in ("interrupted", "callback", "diverged") if end in ends), ends[-1])
        self.diverged_at_ = next((job.diverged_at for job in trained if job.stopped == "diverged"), None)
        self.history_[:] = _merged([job.history for job in trained])
        self.adopt(trained, rows, run, work)
        if work.interrupts.asked and "diverged" not in ends:  # maybe while the model was made
            self.stopped_ = "interrupted"

    def _watchers(self, callback: Callback, job: Job) -> list[Watcher]:
        def watch(state: TrainingState, record: Mapping[str, Any]) -> Any:
            self.history_[:] = job.history
            self.show(job, state)
            losses = {name: record[name] for name in ("loss", "validation") if name in record}
            self.stopped_ = "interrupted"  # what a model is that was saved on the way
            told = callback(state.step, state.seconds, losses, self)
            return isinstance(told, bool | np.bool_) and bool(told)  # a logger may return anything else

        return [watch]

    # --- files -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.objective_.network.state_dict()

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        self.objective_ = self.built()
        load_exactly(self.objective_.network, tensors, self.device_)


def _merged(histories: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Make one record of several runs of the same length: means over those that reached a step, the seconds and steps of all,
    and the validation score of each.
    """
    if len(histories) == 1:
        return histories[0]
    merged = []
    for step in sorted({record["step"] for history in histories for record in history}):
        there = [record for history in histories for record in history if record["step"] == step]
        until = [[r for r in history if r["step"] <= step] for history in histories]
        means = {name: sum(r[name] for r in there) / len(there) for name in there[0] if name not in ("step", "seconds")}
        sums = {total: sum(max((r[name] for r in own), default=0.0) for own in until) for total, name in SUMS.items()}
        each = {
            f"{EACH}{number}": record["validation"]
            for number, history in enumerate(histories, 1)
            for record in history
            if record["step"] == step and "validation" in record
        }
        merged.append({"step": step, **sums, **means, **each})
    return merged
