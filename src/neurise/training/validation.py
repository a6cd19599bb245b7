"""Score the averaged weights on examples that were held back, and keep the good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from neurise.precision import arithmetic
from neurise.rows import Source
from neurise.training.captured import Captured
from neurise.training.distributed import Team
from neurise.training.objective import Objective
from neurise.training.settings import Settings
from neurise.training.state import TrainingState

VALIDATION_EXAMPLES = 16384
"""At most so many noised examples are scored in a validation."""
AT_ONCE = 2**28
"""Bytes that scoring may take: small batches would make a validation of a few long products one of many short ones."""
TIE = 1e-12
"""Nats. Scores that differ by less are equal: other machines round differently."""
ON_GPU = 4
"""So many times as much on a GPU: fifty models in small pieces would take longer to be judged than to be trained."""


Score = Callable[[], Tensor]
"""What scores the averaged weights as they are: float64, (n,), or (n, models)."""


def scorer(
    objective: Objective, frozen: Any, state: TrainingState, settings: Settings, team: Team | None = None
) -> Score | None:
    """Return what scores the averaged weights on the frozen examples; None where there are none.

    On a GPU it is captured, as a step is: the validation of a small network is launched for longer than it is computed.
    """
    if frozen is None:
        return None
    score = partial(scores_of, objective, state, frozen, settings, team)
    device = next(iter(state.average.values())).device
    return Captured(score, state.generator, device) if device.type == "cuda" and team is None else score


def evaluate(score: Score | None, state: TrainingState, loss: Tensor, settings: Settings) -> None:
    """Record the loss, score the averaged weights, and keep them if they are as good as the best.

    As good: worse by no more than the standard error of the difference over the examples. The later of two that cannot be
    told apart has learnt for longer, at a smaller step length. Examples of one row are not independent, which makes the
    standard error too small where rows are few; then the rule is nearer to keeping the best. Of many models, each is
    judged by itself, and one that has lost its patience is not judged any more.
    """
    record: dict[str, Any] = {"step": float(state.step), "seconds": state.seconds, "loss": loss.tolist()}
    judged = state.stale < settings.patience
    if state.models is not None:
        record |= {"judged": judged.tolist(), "diverged": state.diverged.tolist()}
    if score is not None:
        scores = score()
        mean = scores.mean(0).cpu()
        record["validation"] = mean.tolist()
        better = judged & (mean < state.best_score - TIE)
        state.stale = torch.where(better, 0, state.stale + judged)
        state.best_score = torch.where(better, mean, state.best_score)
        best = state.best_scores if len(state.best_scores) else scores
        state.best_scores = torch.where(better.to(scores.device), scores, best)
        worse = scores - state.best_scores
        as_good = (worse.mean(0) <= worse.std(0) / len(worse) ** 0.5 + TIE).cpu()
        state.keep(better | (judged & as_good))
    state.history.append(record)


def scores_of(
    objective: Objective, state: TrainingState, frozen: Any, settings: Settings, team: Team | None = None
) -> Tensor:
    """Score the averaged weights on every example, in float64; of several processes each scores its share.

    Products are those of training, but never shorter than TF32.
    """

    examples = len(next(part for part in frozen if part is not None))
    own = slice(0, examples) if team is None else team.slice(examples)
    device = next(iter(state.average.values())).device
    piece = max(settings.batch_size, examples_at_once(objective, device))
    exact = settings.precision == "float32"
    with torch.no_grad(), arithmetic("float32" if exact else "tf32") if device.type == "cuda" else nullcontext():
        parts = [
            objective.scores(state.predict_by_average, _slice(frozen, start, min(start + piece, own.stop)))
            for start in range(own.start, own.stop, piece)
        ]
    scores = torch.cat(parts).double()
    return scores if team is None else team.joined(scores, examples)


def examples_at_once(objective: Objective, device: torch.device) -> int:
    """How many examples are scored at once on a device."""
    room = AT_ONCE * (ON_GPU if device.type == "cuda" else 1)
    return max(1, room // objective.bytes_per_example)


def noised(objective: Objective, validation: Source, generator: Generator) -> Any:
    """Noise validation rows once, so that every evaluation compares the same examples."""
    examples = min(VALIDATION_EXAMPLES, max(1024, 32 * len(validation)))
    return objective.draw(validation.spread(examples, generator=generator), generator=generator)


def slices(drawn: Any, size: int) -> Iterator[tuple[Any, ...]]:
    """Cut drawn examples into pieces."""
    examples = len(next(part for part in drawn if part is not None))
    return (_slice(drawn, start, min(start + size, examples)) for start in range(0, examples, size))


def _slice(drawn: Any, start: int, stop: int) -> tuple[Any, ...]:
    return tuple(None if part is None else part[start:stop] for part in drawn)
