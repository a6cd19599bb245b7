"""The one training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from neurise import memory
from neurise.progress import Progress
from neurise.rows import Source
from neurise.training import distributed
from neurise.training.distributed import Team
from neurise.training.interrupts import Interrupts
from neurise.training.objective import Objective
from neurise.training.settings import Settings
from neurise.training.state import CHECKPOINT, TrainingState, Weights, copied
from neurise.training.step import Step, optimizer
from neurise.training.validation import evaluate, noised, scorer

CHECK_EVERY = 50
"""Steps between two looks at the loss: each look waits for the device."""
AGREE_EVERY = 10
"""Steps between two looks of several processes at the clock and at Ctrl-C: each look waits for all of them."""
CHECKPOINT_SHARE = 0.05
"""At most this share of the time goes into writing checkpoints."""


Watcher = Callable[[TrainingState, Mapping[str, Any]], Any]
"""Called at every evaluation with the state of the run and the newest record; True ends the run."""


class TrainingDiverged(RuntimeError):
    """The loss became infinite or not a number. The model keeps the last good weights."""


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
) -> str:
    """Minimise the objective's mean loss; the network ends with the last weights that score as well as the best.

    The validation set is noised once, before the start: every evaluation compares the same examples. ``history`` is
    filled as training goes, so that it is there whatever ends it. ``models`` says that the network is a stack of so many
    models with data of their own. Returns why it ended: "steps", "time", "patience", "callback" or "interrupted".

    Several processes that have joined a team (:mod:`neurise.training.distributed`) train one network, all the same way.
    """
    network, team = objective.network, distributed.TEAM.get()
    device = rows.device
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise ValueError(f"{checkpoint} is a file; a checkpoint is kept in a folder")
    frozen = None if validation is None else noised(objective, validation, generator)
    state = TrainingState(
        network,
        optimizer(network, settings),
        generator,
        average={name: parameter.detach().clone() for name, parameter in network.named_parameters()},
        history=history,
        models=models,
    )
    path = None if checkpoint is None else checkpoint / CHECKPOINT
    if path is not None and _exists(path, team):
        if not resume:
            raise FileExistsError(f"{path} exists; pass resume=True to go on from it, or remove it")
        state.restore(path, fingerprint)

    fraction = settings.progress(state.step, state.seconds)
    leads = team is None or team.is_leader
    progress = Progress("training", "steps", verbose=verbose if leads else False, done=state.step, fraction=fraction)
    if verbose and leads:
        parameters = sum(parameter.numel() for parameter in network.parameters())
        needed = memory.training_bytes(network, rows.num_bytes, settings.batch_size, objective.bytes_per_example)
        progress.say(
            f"{parameters:,} parameters, {len(rows):,} rows, {0 if validation is None else len(validation):,} held back, "
            f"about {memory.readable(needed)} of memory on {device}"
        )
    try:
        written = path if leads else None
        reason = _run(objective, rows, frozen, settings, state, written, fingerprint, progress, team, watchers)
    finally:
        progress.close()
        network.load_state_dict(state.usable())
        network.requires_grad_(False)
        network.zero_grad()  # a model has no use for the last gradients
    if reason == "interrupted":
        place = f"; go on with resume=True from {path}" if path is not None and path.exists() else ""
        progress.say(f"interrupted after {state.step:,} steps; the model is usable as it is{place}")
    return reason


def _run(
    objective: Objective,
    rows: Source,
    frozen: Any,
    settings: Settings,
    state: TrainingState,
    path: Path | None,
    fingerprint: Mapping[str, Any],
    progress: Progress,
    team: Team | None,
    watchers: Sequence[Watcher],
) -> str:
    began, wrote, cost = time.monotonic() - state.seconds, time.monotonic(), 0.0
    good: Weights = copied(state.average)
    sums: list[Tensor] = []
    step = Step(objective, rows, state, settings, team)
    score = scorer(objective, frozen, state, settings, team)
    with Interrupts() as interrupts:
        stop, called_off = False, False
        while (reason := _finished(settings, state, stop, called_off)) is None:
            rows.advance(state.step)
            sums.append(step(settings.progress(state.step, state.seconds)))
            state.seconds, stop = _outside(time.monotonic() - began, interrupts.asked, state, team)
            due = state.step % settings.evaluate_every == 0 or state.step == settings.max_steps
            if not due and len(sums) % CHECK_EVERY:
                continue
            mean = torch.stack(sums).mean(0).cpu()  # since the last evaluation: (), or (models,)
            if due or state.models is None:
                _check(mean, state, good, settings)
            fraction = settings.progress(state.step, state.seconds)
            progress.update(state.step, fraction, f"loss {float(mean.nanmean()):.4f}", *_validation_fact(state))
            if not due:
                continue
            sums.clear()
            good = copied(state.average)
            evaluate(score, state, mean, settings)
            called_off = any(_told(watchers, state))
            if team is not None and watchers:  # a callback may decide otherwise in another process
                called_off = team.agree(0.0, called_off)[1]
            now = time.monotonic()
            if path is not None and (now - wrote) * CHECKPOINT_SHARE >= cost:
                state.save(path, fingerprint)
                wrote, cost = time.monotonic(), time.monotonic() - now
        # The clock does not stop at an evaluation; what was learnt since the last one counts.
        if sums and reason == "time":
            mean = torch.stack(sums).mean(0).cpu()
            _check(mean, state, good, settings)
            evaluate(score, state, mean, settings)
            _told(watchers, state)
        if path is not None and reason != "interrupted":
            state.save(path, fingerprint)
    progress.update(state.step, settings.progress(state.step, state.seconds), *_validation_fact(state), last=True)
    return reason


def _told(watchers: Sequence[Watcher], state: TrainingState) -> list[bool]:
    """Tell every watcher of the newest record, also where an earlier one has called the run off."""
    return [bool(watch(state, state.history[-1])) for watch in watchers]


def _check(mean: Tensor, state: TrainingState, good: Weights, settings: Settings) -> None:
    """Where the loss, or a weight, is no longer a finite number, go back and give up.

    Of many models, those that are lost give up, and the others go on.
    """
    finite = mean.isfinite()
    lost = ~(finite & state.are_finite())
    if not bool(lost.any()):
        return
    state.give_up(lost, good)
    if state.models is None:
        what = "the weights became infinite" if bool(finite) else f"the loss became {float(mean)}"
        raise TrainingDiverged(
            f"{what} near step {state.step}: try a smaller learning_rate (it is {settings.learning_rate:g}), or another loss "
            "if the model offers any (a cross-entropy cannot overflow); the model keeps its last good weights"
        )
    state.diverged = state.diverged | (lost & (state.stale < settings.patience))
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


def _outside(seconds: float, asked: bool, state: TrainingState, team: Team | None) -> tuple[float, bool]:
    """How long the run has taken, and whether the user wants it to end; a team looks together, now and then."""
    if team is None:
        return seconds, asked
    return (state.seconds, False) if state.step % AGREE_EVERY else team.agree(seconds, asked)


def _finished(settings: Settings, state: TrainingState, stop: bool, called_off: bool) -> str | None:
    if stop:
        return "interrupted"
    if called_off:
        return "callback"
    if settings.max_steps is not None and state.step >= settings.max_steps:
        return "steps"
    if settings.max_seconds is not None and state.seconds >= settings.max_seconds:
        return "time"
    return "patience" if bool((state.stale >= settings.patience).all()) else None


def _validation_fact(state: TrainingState) -> list[str]:
    known = state.best_score[state.best_score.isfinite()]
    return [f"validation {float(known.mean()):.4f}"] if known.numel() else []
