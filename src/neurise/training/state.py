"""Everything that changes while a model trains, and the checkpoint file that holds it.

One safetensors file, written atomically: killed at any moment, a run goes on from the last one as if nothing had
happened, bit for bit on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from neurise.files import remove_leftovers
from neurise.locks import running_in
from neurise.training import checkpoint_file, distributed
from neurise.training.checkpoint_file import under

CHECKPOINT = "checkpoint.safetensors"
RACE = "race.json"
"""What came out of a race of several kinds of networks, where there was one."""
PART = "part-"
"""How the folders of further parts of a model begin."""
START_AGAIN = "start again: --force on the command line, neurise.training.state.remove_checkpoints(folder) in Python"
"""How all checkpoints of a run are removed; a part that is left alone would be taken for one of the new run."""
TIE = 1e-12
"""Nats. Scores that differ by less are equal: other machines round differently."""

Weights = dict[str, Tensor]


@dataclass
class TrainingState:
    """Weights, their moving average, the optimiser, the random numbers and the record so far.

    Where K networks are trained as one (``models``), every weight has a first axis that counts them, and so have the
    numbers here, (K,) instead of ().
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer
    generator: Generator
    average: Weights = field(default_factory=dict)  # of all weights; begins with the network's own
    best: Weights | None = None  # the last weights that scored as well as the best
    best_score: Tensor = field(default_factory=lambda: torch.tensor(torch.inf, dtype=torch.float64))
    best_scores: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))  # of each example
    stale: Tensor = field(default_factory=lambda: torch.tensor(0))  # evaluations since the best one
    diverged_at: Tensor = field(
        default_factory=lambda: torch.tensor(0)
    )  # the step of the first loss that was no number
    step: int = 0
    seconds: float = 0.0  # of the loop
    before: float = 0.0  # of what the job did before the loop
    history: list[dict[str, Any]] = field(default_factory=list)
    models: int | None = None

    def __post_init__(self) -> None:
        for name, parameter in self.network.named_parameters():
            self.average[name] = parameter.detach().clone()
        if self.models is not None:
            for name in ("best_score", "stale", "diverged_at"):
                setattr(self, name, getattr(self, name).repeat(self.models))

    def record(self, loss: Tensor, scores: Tensor | None, patience: int) -> None:
        """Write down the loss and the scores of the averaged weights, (n,) or (n, models), and keep weights that are good.

        Good: worse than the best by no more than the standard error of the difference over the examples. The later of two
        that cannot be told apart has learnt for longer, at a smaller step length. Examples of one row are not independent,
        which makes the standard error too small where rows are few; then the rule is nearer to keeping the best. Of many
        models, each is compared by itself, and one that has lost its patience is not compared any more.
        """
        record: dict[str, Any] = {
            "step": float(self.step),
            "seconds": self.before + self.seconds,
            "loss": loss.tolist(),
        }
        judged = self.stale < patience
        if self.models is not None:
            record |= {"judged": judged.tolist(), "diverged_at": self.diverged_at.tolist()}
        if scores is not None:
            mean = scores.mean(0).cpu()
            record["validation"] = mean.tolist()
            better = judged & (mean < self.best_score - TIE)
            self.stale = torch.where(better, 0, self.stale + judged)
            self.best_score = torch.where(better, mean, self.best_score)
            best = self.best_scores if len(self.best_scores) else scores
            self.best_scores = torch.where(better.to(scores.device), scores, best)
            worse = scores - self.best_scores
            as_good = (worse.mean(0) <= worse.std(0) / len(worse) ** 0.5 + TIE).cpu()
            self.keep(better | (judged & as_good))
        self.history.append(record)

    def usable(self) -> Weights:
        """Return the weights to keep if training ended now: the best seen, or the average where nothing was compared."""
        if self.best is None:
            return self.average
        return self.best if self.models is None else self._choose(self._settled(), self.best, self.average)

    def keep(self, chosen: Tensor) -> None:
        """Keep the averaged weights of the models that are chosen."""
        if bool(chosen.any()):
            self.best = self._choose(chosen, self.average, self.average if self.best is None else self.best)

    def lost(self, loss: Tensor) -> Tensor:
        """Return whether the loss, or any averaged weight, is no longer a finite number, () or (models,) on the CPU."""
        finite = loss.isfinite()
        for weight in self.average.values():
            own = weight.isfinite()
            finite = finite & (own.all() if self.models is None else own.flatten(1).all(1)).to(finite.device)
        return ~finite

    def give_up(self, lost: Tensor, good: Weights) -> None:
        """Go back to good weights where models are lost, and keep those of many: while the others go on, theirs are spoilt."""
        chosen = self._choose(lost, good, self.average)
        for name, average in self.average.items():
            average.copy_(chosen[name])  # in place: a captured step knows these tensors
        if self.models is not None:
            self.keep(lost & ~self._settled())

    def _settled(self) -> Tensor:
        """Whether there is something to keep: weights that were scored, or the last good ones."""
        return self.best_score.isfinite() | (self.diverged_at > 0)

    def _choose(self, mask: Tensor, yes: Weights, no: Weights) -> Weights:
        """Take the weights of some models from one place and those of the others from another, as a copy."""
        if self.models is None:
            return copied(yes if bool(mask) else no)
        mask = mask.to(next(iter(yes.values())).device)
        shaped = {name: mask.reshape(-1, *[1] * (tensor.dim() - 1)) for name, tensor in yes.items()}
        return {name: torch.where(shaped[name], tensor, no[name]) for name, tensor in yes.items()}

    def save(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        """Write everything to one file."""
        tensors = self._tensors() | {f"best.{name}": tensor for name, tensor in (self.best or {}).items()}
        for index, entries in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in entries.items()}
        tensors["generator"], tensors["best_scores"] = self.generator.get_state(), self.best_scores
        facts = {
            "best_score": self.best_score.tolist(),
            "stale": self.stale.tolist(),
            "step": self.step,
            "seconds": self.seconds,
            "before": self.before,
            "history": self.history,
        }
        checkpoint_file.write(path, fingerprint, facts, tensors)

    def restore(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        """Take everything back from a file, after checking that it belongs to the same data and settings."""
        facts, tensors = checkpoint_file.read(path, fingerprint, START_AGAIN)
        wanted = {**self._tensors(), "generator": self.generator.get_state()}
        if under("best.", tensors):
            wanted |= {f"best.{name}": tensor for name, tensor in self.average.items()}
        try:
            checkpoint_file.check_tensors(tensors, wanted)
            self._take(facts, tensors)
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is no checkpoint of this run: {error}; {START_AGAIN}") from error

    def _tensors(self) -> Weights:
        """Return the weights and their average, as a checkpoint names them."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        return tensors | {f"average.{name}": tensor for name, tensor in self.average.items()}

    def _take(self, facts: checkpoint_file.Facts, tensors: Mapping[str, Tensor]) -> None:
        """Take over what was read."""
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under("optimizer.", tensors).items():
            index, _, entry = name.partition(".")
            moments.setdefault(int(index), {})[entry] = tensor
        if facts.best_score.isfinite().any() and not len(tensors["best_scores"]):
            raise ValueError("the tensor best_scores is empty, and state.best_score is not infinite")
        checkpoint_file.check_moments(moments, self.optimizer, facts.step)
        if facts.best_score.shape != self.best_score.shape or facts.stale.shape != self.stale.shape:
            raise ValueError(f"best_score and stale must have the shape {tuple(self.stale.shape)}")
        self.network.load_state_dict(under("network.", tensors))
        # A file keeps its tensors in an order of its own; the average keeps that of the network's parameters.
        average, best = under("average.", tensors), under("best.", tensors)
        self.average = {name: average[name].to(tensor) for name, tensor in self.average.items()}
        self.best = {name: best[name].to(tensor) for name, tensor in self.average.items()} if best else None
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.generator.set_state(tensors["generator"])
        self.best_score, self.stale = facts.best_score, facts.stale
        self.best_scores = tensors["best_scores"].to(next(iter(self.average.values())).device)
        self.step, self.seconds, self.history[:] = facts.step, facts.seconds, facts.history
        self.before = facts.before


def part_folder(folder: Path, number: int) -> Path:
    """Where the checkpoint of a part of a model is kept: the first one's in the folder itself."""
    return folder if number == 0 else folder / f"{PART}{number}"


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, those of its further parts too, whether or not the first is there."""
    return [place for place in (folder / CHECKPOINT, *sorted(folder.glob(f"{PART}*/{CHECKPOINT}"))) if place.exists()]


@contextmanager
def claimed(folder: Path, *, resume: bool) -> Iterator[None]:
    """Hold the folder of a run's checkpoints, after checking that what is there may be gone on from.

    A run that starts afresh where any part of another is left is refused before it has begun.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a checkpoint is kept in a folder")
    with running_in(folder) if distributed.is_leader() else nullcontext():
        found = checkpoints_in(folder)
        if found and not resume:
            raise FileExistsError(f"{found[0]} exists; pass resume=True to go on from it, or {START_AGAIN}")
        yield


def check_parts(folder: Path, parts: int) -> None:
    """Raise ValueError where a folder holds a checkpoint of more parts than a run has."""
    own = {part_folder(folder, number) / CHECKPOINT for number in range(parts)}
    if strange := [place for place in checkpoints_in(folder) if place not in own]:
        raise ValueError(f"{strange[0]} belongs to another run, of more parts than this one; {START_AGAIN}")


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoint of a run, those of its further parts and its race; nothing else that is in the folder is touched."""
    for name in (CHECKPOINT, RACE):
        (folder / name).unlink(missing_ok=True)
    for part in folder.glob(f"{PART}*"):
        (part / CHECKPOINT).unlink(missing_ok=True)
        remove_leftovers(part)
        with suppress(OSError):  # something else is in it
            part.rmdir()


def copied(weights: Weights) -> Weights:
    """Copy weights."""
    return {name: tensor.clone() for name, tensor in weights.items()}
