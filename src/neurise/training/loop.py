"""The one training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from neurise import deadline, devices
from neurise.deadline import Interrupts, noted_interrupts
from neurise.progress import Progress
from neurise.rows import Source
from neurise.training import distributed
from neurise.training.distributed import Team
from neurise.training.objective import Objective
from neurise.training.settings import Settings
from neurise.training.state import CHECKPOINT, START_AGAIN, TrainingState, Weights, copied
from neurise.training.step import Score, Step, noised, optimizer, scorer, seconds_per_step

CHECK_EVERY = 50
"""Steps between two looks at the loss: each look waits for the device."""
AGREE_EVERY = 10
"""Steps between two looks of several processes at the clock and at Ctrl-C: each look waits for all of them."""
CHECKPOINT_SHARE = 0.05
"""At most this share of the time goes into writing checkpoints."""
FORWARD = 1 / 3
"""What an example costs in a validation, as a share of what it costs in a step."""
LAST_LOOK = 0.2
"""At most this share of a limited time is kept for the validation in the end."""

Watcher = Callable[[TrainingState, Mapping[str, Any]], Any]
"""Called at every evaluation with the state of the run and the newest record; True ends the run."""


class TrainingDiverged(RuntimeError):
    """The loss became infinite or not a number, first in the step ``step``. The model keeps the last good weights."""

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class BrokenOff(KeyboardInterrupt):
    """A second Ctrl-C ended the training at once. The model is made of what was learnt until then."""


def train(
    objective: Objective,
    rows: Source,
    validation: Source | None,
    settings: Settings,
    *,
    generator: Generator,
    fingerprint: Mapping[str, Any],
    checkpoint: Path | None = None,
    resume: bool = False,
    verbose: bool | None = None,
    history: list[dict[str, float]],
    models: int | None = None,
    watchers: Sequence[Watcher] = (),
    before: float = 0.0,
) -> str:
    """Minimise the objective's mean loss; the network ends with the last weights that score as well as the best.

    The validation set is noised once, before the start: every evaluation compares the same examples. ``history`` is
    filled as training goes, so that it is there whatever ends it. ``models`` says that the network is a stack of so many
    models with data of their own. ``before`` are the seconds that the job has taken already: a run that goes on has taken those
    of its checkpoint instead. Returns why it ended: "steps", "time", "patience", "callback" or "interrupted".

    Several processes that have joined a team (:mod:`neurise.training.distributed`) train one network, all the same way.
    """
    network, team = objective.network, distributed.TEAM.get()
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise ValueError(f"{checkpoint} is a file; a checkpoint is kept in a folder")
    optimiser = optimizer(network, settings)
    frozen = None if validation is None else noised(objective, validation, generator)
    state = TrainingState(network, optimiser, generator, before=before, history=history, models=models)
    path = None if checkpoint is None else checkpoint / CHECKPOINT
    if path is not None and _exists(path, team):
        if not resume:
            raise FileExistsError(f"{path} exists; pass resume=True to go on from it, or {START_AGAIN}")
        state.restore(path, fingerprint)
        if len(state.best_scores) not in (0, 0 if frozen is None else len(frozen[0])):
            raise ValueError(
                f"{path}: the tensor best_scores has {len(state.best_scores)} entries, not one per example"
            )
        if settings.max_seconds is not None:
            settings = replace(settings, max_seconds=settings.max_seconds - (state.before - before))
    leads = team is None or team.is_leader
    shown = leads and verbose is not False
    progress = _progress(objective, rows, validation, settings, state, verbose) if shown else None
    good = copied(state.average)
    step = Step(objective, rows, state, settings, team)
    score = scorer(objective, frozen, state, settings, team)
    batches = 0.0 if frozen is None else len(frozen[0]) / settings.batch_size
    with noted_interrupts() as interrupts:
        try:
            written = path if leads else None
            reason = _run(step, score, batches, good, interrupts, written, fingerprint, progress, watchers)
        finally:
            if progress is not None:
                progress.close()
            network.load_state_dict(state.usable())
            network.requires_grad_(False)
            network.zero_grad()  # a model has no use for the last gradients
    if reason == "interrupted" and progress is not None:
        place = f"; go on with resume=True from {path}" if path is not None and path.exists() else ""
        progress.say(f"interrupted after {state.step:,} steps; the model is usable as it is{place}")
    return reason


def _run(
    step: Step,
    score: Score | None,
    batches: float,
    good: Weights,
    interrupts: Interrupts,
    path: Path | None,
    fingerprint: Mapping[str, Any],
    progress: Progress | None,
    watchers: Sequence[Watcher],
) -> str:
    state, settings, rows, team = step.state, step.settings, step.rows, step.team
    began, wrote, cost = deadline.CLOCK() - state.seconds, deadline.CLOCK(), 0.0
    every = 200 if settings.max_steps is None else min(200, max(10, settings.max_steps // settings.evaluations))
    sums: list[Tensor] = []
    called_off = stop = False
    while (reason := _finished(settings, state, stop, called_off, batches)) is None:
        if rows.advance is not None:
            rows.advance(state.step)
        sums.append(step(progress_of(settings, state.step, state.seconds)))
        if team is None:
            state.seconds, stop = deadline.CLOCK() - began, interrupts.asked
        elif state.step % AGREE_EVERY == 0:  # a team looks at the clock and at Ctrl-C together, now and then
            state.seconds, stop = team.agree(deadline.CLOCK() - began, interrupts.asked)
        due = state.step % every == 0 or state.step == settings.max_steps
        if not due and len(sums) % CHECK_EVERY:
            continue
        losses = torch.stack(sums).cpu()  # since the last evaluation: (steps,), or (steps, models)
        mean = losses.mean(0)
        if (due or state.models is None) and bool((lost := state.lost(mean)).any()):
            _give_up(lost, losses, state, good, settings)
        if progress is not None:
            _show(progress, settings, state, f"loss {float(mean.nanmean()):.4f}")
        if not due:
            continue
        sums.clear()
        good = copied(state.average)
        state.record(mean, None if score is None else score(), settings.patience)
        for watch in watchers:
            called_off = bool(watch(state, state.history[-1])) or called_off
        if team is not None and watchers:  # a callback may decide otherwise in another process
            called_off = team.agree(0.0, called_off)[1]
        now = deadline.CLOCK()
        if path is not None and (now - wrote) * CHECKPOINT_SHARE >= cost:
            state.save(path, fingerprint)
            wrote, cost = deadline.CLOCK(), deadline.CLOCK() - now
    # The clock does not stop at an evaluation; what was learnt since the last one counts.
    if sums and reason == "time":
        losses = torch.stack(sums).cpu()
        mean = losses.mean(0)
        if bool((lost := state.lost(mean)).any()):
            _give_up(lost, losses, state, good, settings)
        state.record(mean, None if score is None else score(), settings.patience)
        for watch in watchers:
            watch(state, state.history[-1])
    if path is not None and reason != "interrupted":
        state.save(path, fingerprint)
    if progress is not None:
        _show(progress, settings, state, last=True)
    return reason


def _give_up(lost: Tensor, losses: Tensor, state: TrainingState, good: Weights, settings: Settings) -> None:
    """Go back to good weights where the loss, or a weight, is no longer a finite number, and end the run.

    ``losses`` (steps,) or (steps, models) are those of the last steps. Of many models, those that are lost give up, and the
    others go on.
    """
    state.give_up(lost, good)
    wrong = ~losses.isfinite()
    # A weight may overflow while the loss is finite: then the step is the one in which it was seen.
    first = state.step - torch.where(wrong.any(0), len(losses) - 1 - wrong.int().argmax(0), 0)
    if state.models is None:
        step = int(first)
        what = (
            f"the loss became {float(losses[wrong][0])} in" if bool(wrong.any()) else "the weights became infinite near"
        )
        raise TrainingDiverged(
            f"{what} step {step}: try a smaller training__learning_rate (it is {settings.learning_rate:g}), or "
            "another loss if the model offers any (a cross-entropy cannot overflow); the model keeps its last good weights",
            step,
        )
    state.diverged_at = torch.where(lost & (state.stale < settings.patience), first, state.diverged_at)
    state.stale = torch.where(lost, settings.patience, state.stale)


def _exists(path: Path, team: Team | None) -> bool:
    """Whether a run has been here; the leader knows."""
    if team is None:
        return path.exists()
    found = bool(team.agree(float(path.exists()), flag=False)[0])
    if found and not path.exists():
        raise FileNotFoundError(
            f"process {team.rank} cannot see {path}: checkpoints must be where all processes can read"
        )
    return found


def _finished(settings: Settings, state: TrainingState, stop: bool, called_off: bool, batches: float) -> str | None:
    """Say why the run is over, if it is; ``batches`` is how many the examples of a validation would make."""
    if stop:
        return "interrupted"
    if called_off:
        return "callback"
    if settings.max_steps is not None and state.step >= settings.max_steps:
        return "steps"
    if settings.max_seconds is not None and state.step > 0:
        look = FORWARD * batches * state.seconds / state.step
        if state.seconds + min(look, LAST_LOOK * settings.max_seconds) >= settings.max_seconds:
            return "time"
    return "patience" if bool((state.stale >= settings.patience).all()) else None


def progress_of(settings: Settings, step: int, seconds: float) -> float:
    """Return the fraction of the run that is over, by steps or by time, whichever is further."""
    by_steps = step / settings.max_steps if settings.max_steps else 0.0
    by_time = seconds / settings.max_seconds if settings.max_seconds else 0.0
    return min(1.0, max(by_steps, by_time))


def _progress(
    objective: Objective,
    rows: Source,
    validation: Source | None,
    settings: Settings,
    state: TrainingState,
    verbose: bool | None,
) -> Progress:
    """Begin the line that shows how far the run is."""
    fraction = progress_of(settings, state.step, state.seconds)
    progress = Progress("training", "steps", verbose=verbose, done=state.step, fraction=fraction)
    if verbose:
        slow = rows.device.type == "cpu" and getattr(objective, "is_long", False)
        network, held = objective.network, 0 if validation is None else len(validation)
        weights = sum(map(attrgetter("nbytes"), network.parameters()))
        needed = devices.training_bytes(weights, rows.num_bytes, settings.batch_size, objective.bytes_per_example)
        takes = f", about {seconds_per_step(objective, rows, state, settings):.2g} s per step" if slow else ""
        progress.say(
            f"{devices.parameter_count(network):,} parameters, {len(rows):,} rows, {held:,} held back, "
            f"about {devices.readable(needed)} of memory on {rows.device}{takes}"
        )
    return progress


def _show(progress: Progress, settings: Settings, state: TrainingState, *facts: str, last: bool = False) -> None:
    known = state.best_score[state.best_score.isfinite()]
    scores = [f"validation {float(known.mean()):.4f}"] if known.numel() else []
    progress.update(state.step, progress_of(settings, state.step, state.seconds), *facts, *scores, last=last)
