"""One gradient step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neurise.training.batches import Rows
from neurise.training.objective import Objective
from neurise.training.settings import Settings
from neurise.training.state import TrainingState


def gradient_step(
    objective: Objective, rows: Rows, state: TrainingState, settings: Settings, progress: float
) -> Tensor:
    """Draw a minibatch, noise it, descend, and follow with the average. Returns the mean loss, still on the device."""
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * schedule(progress, settings.warmup)
    x, y = rows.draw(settings.batch_size, generator=state.generator)
    drawn = objective.draw(x, y, generator=state.generator)
    state.optimizer.zero_grad(set_to_none=True)
    loss = objective.losses(state.network, drawn).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(state.network.parameters(), settings.clip_norm)
    state.optimizer.step()
    state.step += 1
    # A young average forgets its random start fast: its memory grows with the number of steps.
    decay = min(settings.average_decay, (1 + state.step) / (10 + state.step))
    with torch.no_grad():
        parameters = [parameter.detach() for parameter in state.network.parameters()]
        torch._foreach_lerp_(list(state.average.values()), parameters, 1 - decay)
    return loss.detach()


def schedule(progress: float, warmup: float) -> float:
    """Learning-rate factor at a fraction of the run: a straight rise during ``warmup``, then half a cosine down to 0."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))
