"""The two computations of the loop, a gradient step and a validation; on a GPU each is captured once and replayed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from neurise.networks.parts.stack import Stack
from neurise.precision import arithmetic
from neurise.rows import Source
from neurise.training.captured import Captured
from neurise.training.objective import Objective, Prediction
from neurise.training.settings import Settings
from neurise.training.state import TrainingState, Weights

VALIDATION_EXAMPLES = 16384
"""At most so many noised examples are scored in a validation."""
VALIDATION_ROWS = 2048
"""At most so many where an example is a whole row, with all of its conditionals."""
AT_ONCE = 2**26
"""Bytes that scoring may take: small batches would make a validation of a few long products one of many short ones."""
ON_GPU = 16
"""So many times as much on a GPU: fifty models in small pieces would take longer to be judged than to be trained."""

Score = Callable[[], Tensor]
"""What scores the averaged weights as they are: float64, (n,), or (n, models)."""


class Processes(Protocol):
    """Several processes that train one model."""

    def share(self, drawn: Any) -> Any:
        """Cut this process's part out of a batch that all of them drew alike."""

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Average tensors over all processes, in place."""

    def slice(self, n: int) -> slice:
        """Return which of n things are this process's."""

    def joined(self, own: Tensor, n: int) -> Tensor:
        """Put together what each process computed of its slice of n examples."""

    def agree(self, number: float, flag: bool) -> tuple[float, bool]:
        """Take the leader's number, and a flag that is up if anybody's is."""


class Step:
    """Draw a minibatch, noise it, descend, and follow with the average: ``step(progress)`` is the mean loss, on the device.

    Where K networks are stacked (``state.models``), it is K steps at once, and the mean loss is (K,).

    Nothing in it waits for the device. What changes from step to step without being random, the learning rate and the
    memory of the average, is kept in two numbers on the device, so that a step captured on a GPU can be replayed.
    """

    def __init__(
        self,
        objective: Objective,
        rows: Source,
        state: TrainingState,
        settings: Settings,
        team: Processes | None = None,
    ) -> None:
        self.objective, self.rows, self.state, self.settings, self.team = objective, rows, state, settings, team
        self.predict = predictor(state)
        self.parameters, self.average = list[nn.Parameter](), list[Tensor]()
        for name, parameter in state.network.named_parameters():
            if parameter.requires_grad:  # all but those that are frozen
                self.parameters.append(parameter)
                self.average.append(state.average[name])
        device = self.parameters[0].device
        self.follow = torch.zeros((), device=device)  # 1 − decay of the average
        self.rates = list(map(itemgetter("lr"), state.optimizer.param_groups))
        # A collective call of several processes is not captured: they need not reach it together.
        captures = device.type == "cuda" and team is None
        self.run = Captured(self._step, state.generator, device) if captures else self._step

    def __call__(self, progress: float) -> Tensor:
        """Make one step at a fraction of the run."""
        rate = self.settings.learning_rate * schedule(progress, self.settings.warmup)
        for group, tensor in zip(self.state.optimizer.param_groups, self.rates, strict=True):
            if isinstance(tensor, Tensor):
                tensor.fill_(rate)
            else:
                group["lr"] = rate
        self.state.step += 1
        # A young average forgets its random start fast: its memory grows with the number of steps.
        decay = min(self.settings.average_decay, (1 + self.state.step) / (10 + self.state.step))
        self.follow.fill_(1 - decay)
        return self.run()

    def _step(self) -> Tensor:
        state, settings = self.state, self.settings
        batch = self.rows.draw(settings.batch_size, generator=state.generator)
        drawn = self.objective.draw(batch, generator=state.generator)
        if self.team is not None:
            drawn = self.team.share(drawn)
        on_gpu = self.follow.is_cuda
        with arithmetic(settings.precision) if on_gpu else nullcontext():
            loss = self.objective.losses(self.predict, drawn).mean(0)  # () for one model, (K,) for K of them
            raw = torch.autograd.grad(loss.sum(), self.parameters, materialize_grads=True)
        gradients = list(map(Tensor.contiguous, raw))  # those of stacked networks come in any layout
        loss = loss.detach()
        if self.team is not None:
            self.team.average([*gradients, loss])
        clip_(gradients, settings.clip_norm, stacked=state.models is not None)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        state.optimizer.step()
        with torch.no_grad():
            ahead = torch._foreach_sub(list(map(Tensor.detach, self.parameters)), self.average)
            torch._foreach_mul_(ahead, self.follow)
            torch._foreach_add_(self.average, ahead)
        return loss


def predictor(state: TrainingState, weights: Weights | None = None) -> Prediction:
    """Return what predicts: the network as it is, or with other weights; of many models, each with its own inputs."""
    network = state.network
    if isinstance(network, Stack):
        predict = network.forward if state.models is None else network.each
        return predict if weights is None else partial(predict, weights=weights)
    return network if weights is None else partial(_with_weights, network, weights)


def _with_weights(network: nn.Module, weights: Weights, *inputs: Any) -> Tensor:
    prediction: Tensor = functional_call(network, weights, inputs)
    return prediction


def optimizer(network: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Make the optimiser. On a GPU its learning rate and its count of steps are on the device, so that a step can be captured."""
    parameters = list(filter(attrgetter("requires_grad"), network.parameters()))
    if parameters[0].device.type != "cuda":
        return torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    rate = torch.tensor(settings.learning_rate, device=parameters[0].device)
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=settings.weight_decay, fused=True, capturable=True)


def schedule(progress: float, warmup: float) -> float:
    """Learning-rate factor at a fraction of the run: a straight rise during ``warmup``, then half a cosine down to 0."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))


def clip_(gradients: Sequence[Tensor], clip_norm: float, *, stacked: bool = False) -> None:
    r"""Multiply the gradients g of a network by :math:`\min(1, c / (\lVert g \rVert + 10^{-6}))`, in place.

    The norm runs over all of its parameters together. Where networks are stacked, the first axis of every gradient counts
    them, and each has a norm of its own: one that explodes does not slow the others down. Nothing waits for the device.
    """
    if not stacked:
        norm = torch.nn.utils.get_total_norm(gradients)
        torch._foreach_mul_(list(gradients), _factor(norm, clip_norm))
        return
    # One long row per network: a norm for every parameter would be many small kernels on a GPU.
    norm = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1).norm(dim=1)
    factor = _factor(norm, clip_norm)
    for gradient in gradients:
        gradient.mul_(factor.reshape(-1, *[1] * (gradient.dim() - 1)))


def _factor(norm: Tensor, clip_norm: float) -> Tensor:
    return (clip_norm / (norm + 1e-6)).clamp(max=1.0)


@torch.no_grad()
def seconds_per_step(objective: Objective, rows: Source, state: TrainingState, settings: Settings) -> float:
    """Estimate how long a step takes, by the way forward of an eighth of a batch; the way back takes twice as long.

    It draws from a generator of its own, so that the run is what it would be without.
    """
    generator = torch.Generator(rows.device).manual_seed(0)
    n, took = max(1, settings.batch_size // 8), list[float]()
    drawn = objective.draw(rows.draw(n, generator=generator), generator=generator)
    for _ in range(2):  # in the first pass memory is taken
        began = time.perf_counter()
        objective.losses(predictor(state), drawn)
        took.append(time.perf_counter() - began)
    return 3 * took[-1] * settings.batch_size / n


def scorer(
    objective: Objective, frozen: Any, state: TrainingState, settings: Settings, team: Processes | None = None
) -> Score | None:
    """Return what scores the averaged weights on the frozen examples; None where there are none.

    On a GPU it is captured, as a step is: the validation of a small network is launched for longer than it is computed.
    """
    if frozen is None:
        return None
    score = partial(scores_of, objective, predictor(state, state.average), frozen, settings, team)
    device = next(iter(state.average.values())).device
    return Captured(score, state.generator, device) if device.type == "cuda" and team is None else score


def scores_of(
    objective: Objective, predict: Prediction, frozen: Any, settings: Settings, team: Processes | None = None
) -> Tensor:
    """Score the averaged weights on every example, in float64; of several processes each scores its share.

    Products are those of training, but never shorter than TF32.
    """

    examples = len(frozen[0])
    own = slice(0, examples) if team is None else team.slice(examples)
    device = frozen[0].device
    piece = max(settings.batch_size, examples_at_once(objective, device))
    exact = settings.precision == "float32"
    with torch.no_grad(), arithmetic("float32" if exact else "tf32") if device.type == "cuda" else nullcontext():
        parts = []
        for part in slices(frozen, piece, own):
            parts.append(objective.scores(predict, part))
    scores = torch.cat(parts).double()
    return scores if team is None else team.joined(scores, examples)


def examples_at_once(objective: Objective, device: torch.device) -> int:
    """How many examples are scored at once on a device."""
    room = AT_ONCE * (ON_GPU if device.type == "cuda" else 1)
    return max(1, room // objective.bytes_per_example)


def noised(objective: Objective, validation: Source, generator: Generator) -> Any:
    """Noise validation rows once, so that every evaluation compares the same examples."""
    most = VALIDATION_ROWS if getattr(objective, "is_long", False) else VALIDATION_EXAMPLES
    examples = min(most, max(1024, objective.noisings * len(validation)))
    return objective.draw(validation.spread(examples, generator=generator), generator=generator)


def slices(drawn: Any, size: int, own: slice) -> Iterator[tuple[Any, ...]]:
    """Cut a slice of drawn examples into smaller ones."""
    for start in range(own.start, own.stop, size):
        piece = slice(start, min(start + size, own.stop))
        yield tuple(None if part is None else part[piece] for part in drawn)
