"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor
from torch.func import functional_call

from neurise.progress import Progress
from neurise.training import memory
from neurise.training.batches import Rows
from neurise.training.interrupts import Interrupts
from neurise.training.objective import Objective
from neurise.training.settings import Settings
from neurise.training.state import CHECKPOINT, TrainingState, Weights
from neurise.training.step import Step, optimizer

CHECK_EVERY = 50
"""Steps between two looks at the loss: each look waits for the device."""
VALIDATION_EXAMPLES = 16384
"""At most so many noised examples are scored in a validation."""
CHECKPOINT_SHARE = 0.05
"""At most this share of the time goes into writing checkpoints."""


class TrainingDiverged(RuntimeError):
    """The loss became infinite or not a number. The model keeps the last good weights."""


def train(
    objective: Objective,
    rows: Rows,
    validation: Rows | None,
    settings: Settings,
    *,
    generator: Generator,
    fingerprint: Mapping[str, Any],
    checkpoint: Path | None = None,
    resume: bool = False,
    verbose: bool | None = None,
    history: list[dict[str, float]],
) -> str:
    """Minimise the objective's mean loss; the network ends with the last weights that score as well as the best.

    The validation set is noised once, before the start: every evaluation compares the same examples. ``history`` is
    filled as training goes, so that it is there whatever ends it. Returns why it ended: "steps", "time", "patience" or
    "interrupted".
    """
    network = objective.network
    device = rows.x.device
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise ValueError(f"{checkpoint} is a file; a checkpoint is kept in a folder")
    frozen = None if validation is None else _frozen(objective, validation, generator)
    state = TrainingState(
        network,
        optimizer(network, settings),
        generator,
        average={name: parameter.detach().clone() for name, parameter in network.named_parameters()},
        history=history,
    )
    path = None if checkpoint is None else checkpoint / CHECKPOINT
    if path is not None and path.exists():
        if not resume:
            raise FileExistsError(f"{path} exists; pass resume=True to go on from it, or remove it")
        state.restore(path, fingerprint)

    fraction = settings.progress(state.step, state.seconds)
    progress = Progress("training", "steps", verbose=verbose, done=state.step, fraction=fraction)
    if verbose:
        parameters = sum(parameter.numel() for parameter in network.parameters())
        needed = memory.training_bytes(network, rows.x.numel(), settings.batch_size, objective.bytes_per_example)
        progress.say(
            f"{parameters:,} parameters, {len(rows):,} rows, {0 if validation is None else len(validation):,} held back, "
            f"about {memory.readable(needed)} of memory on {device}"
        )
    try:
        reason = _run(objective, rows, frozen, settings, state, path, fingerprint, progress)
    finally:
        progress.close()
        network.load_state_dict(state.usable())
        network.requires_grad_(False)
    if reason == "interrupted":
        place = f"; go on with resume=True from {path}" if path is not None and path.exists() else ""
        progress.say(f"interrupted after {state.step:,} steps; the model is usable as it is{place}")
    return reason


def _run(
    objective: Objective,
    rows: Rows,
    frozen: Any,
    settings: Settings,
    state: TrainingState,
    path: Path | None,
    fingerprint: Mapping[str, Any],
    progress: Progress,
) -> str:
    began, wrote, cost = time.monotonic() - state.seconds, time.monotonic(), 0.0
    good: Weights = _copy(state.average)
    sums: list[Tensor] = []
    step = Step(objective, rows, state, settings)
    with Interrupts() as interrupts:
        while (reason := _finished(settings, state, interrupts)) is None:
            sums.append(step(settings.progress(state.step, state.seconds)))
            state.seconds = time.monotonic() - began
            due = state.step % settings.evaluate_every == 0 or state.step == settings.max_steps
            if not due and len(sums) % CHECK_EVERY:
                continue
            mean = _mean(sums, state, good, settings)
            fraction = settings.progress(state.step, state.seconds)
            progress.update(state.step, fraction, f"loss {mean:.4f}", *_validation_fact(state))
            if not due:
                continue
            sums.clear()
            good = _copy(state.average)
            _evaluate(objective, frozen, state, mean, settings)
            now = time.monotonic()
            if path is not None and (now - wrote) * CHECKPOINT_SHARE >= cost:
                state.save(path, fingerprint)
                wrote, cost = time.monotonic(), time.monotonic() - now
        # The clock does not stop at an evaluation; what was learnt since the last one counts.
        if sums and reason == "time":
            _evaluate(objective, frozen, state, _mean(sums, state, good, settings), settings)
        if path is not None and reason != "interrupted":
            state.save(path, fingerprint)
    progress.update(state.step, settings.progress(state.step, state.seconds), *_validation_fact(state), last=True)
    return reason


def _mean(sums: list[Tensor], state: TrainingState, good: Weights, settings: Settings) -> float:
    """Mean loss since the last evaluation; where it, or a weight, is no longer a finite number, go back and give up."""
    mean = float(torch.stack(sums).mean())
    weights_are_finite = bool(torch.stack([weight.isfinite().all() for weight in state.average.values()]).all())
    if math.isfinite(mean) and weights_are_finite:
        return mean
    state.average = good
    what = "the weights became infinite" if math.isfinite(mean) else f"the loss became {mean}"
    raise TrainingDiverged(
        f"{what} near step {state.step}: try a smaller learning_rate (it is {settings.learning_rate:g}), or another loss "
        "if the model offers any (a cross-entropy cannot overflow); the model keeps its last good weights"
    )


def _finished(settings: Settings, state: TrainingState, interrupts: Interrupts) -> str | None:
    if interrupts.asked:
        return "interrupted"
    if settings.max_steps is not None and state.step >= settings.max_steps:
        return "steps"
    if settings.max_seconds is not None and state.seconds >= settings.max_seconds:
        return "time"
    return "patience" if state.stale >= settings.patience else None


def _evaluate(objective: Objective, frozen: Any, state: TrainingState, loss: float, settings: Settings) -> None:
    """Record the loss, score the averaged weights on the frozen examples, and keep them if they are as good as the best.

    As good: worse by no more than the standard error of the difference over the examples. The later of two that cannot be
    told apart has learnt for longer, at a smaller step length. Examples of one row are not independent, which makes the
    standard error too small where rows are few; then the rule is nearer to keeping the best.
    """
    record = {"step": float(state.step), "seconds": state.seconds, "loss": loss}
    if frozen is not None:
        scores = _scores(objective, state.average, frozen, settings.batch_size)
        record["validation"] = score = float(scores.mean())
        state.stale += 1
        if score < state.best_score:
            state.best_score, state.best_scores, state.stale = score, scores, 0
        worse = scores - state.best_scores
        if state.stale == 0 or float(worse.mean()) <= float(worse.std()) / len(worse) ** 0.5:
            state.best = _copy(state.average)
    state.history.append(record)


def _scores(objective: Objective, weights: Weights, frozen: Any, batch_size: int) -> Tensor:
    def averaged(*inputs: Any) -> Tensor:
        output: Tensor = functional_call(objective.network, weights, inputs)
        return output

    with torch.no_grad():
        examples = len(next(part for part in frozen if part is not None))
        scores = [
            objective.scores(averaged, _slice(frozen, start, start + batch_size))
            for start in range(0, examples, batch_size)
        ]
    return torch.cat(scores).double()


def _frozen(objective: Objective, validation: Rows, generator: Generator) -> Any:
    examples = min(VALIDATION_EXAMPLES, max(1024, 32 * len(validation)))
    return objective.draw(*validation.spread(examples, generator=generator), generator=generator)


def _slice(drawn: Any, start: int, stop: int) -> tuple[Any, ...]:
    return tuple(None if part is None else part[start:stop] for part in drawn)


def _copy(weights: Weights) -> Weights:
    return {name: tensor.clone() for name, tensor in weights.items()}


def _validation_fact(state: TrainingState) -> list[str]:
    return [f"validation {state.best_score:.4f}"] if state.best is not None else []
