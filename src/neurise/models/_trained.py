"""Models that train a network: the settings they share, and how the training loop is run for them."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from neurise.models._estimator import plain
from neurise.models._search import TRAINING, SearchSpace
from neurise.models.base import Model, Run
from neurise.training import distributed, memory, placing
from neurise.training.batches import Rows, digest, split
from neurise.training.loop import TrainingDiverged, train
from neurise.training.objective import Objective
from neurise.training.settings import Settings, is_number
from neurise.training.state import part_folder


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedModel(Model):
    """A model that is learnt by gradient descent. It writes ``_build`` and ``_draw``, and inherits the rest.

    Args:
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        batch_size, learning_rate, weight_decay, warmup, clip_norm, average_decay, patience, validation_fraction: the
            training loop's; warmup is a fraction of the run, patience a number of evaluations.
        precision: of the products of training on a GPU: "tf32", "float32" or "bfloat16". A CPU has float32 alone.
    """

    search_space: ClassVar[SearchSpace] = TRAINING

    order: Sequence[int] | None = None
    alphabet: Sequence[Any] | None = None
    steps: int = 4000
    batch_size: int = 1024
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    warmup: float = 0.05
    clip_norm: float = 1.0
    average_decay: float = 0.995
    patience: int = 20
    validation_fraction: float = 0.1
    precision: str = "tf32"
    objective_: Objective = field(init=False)  # with the network as it was learnt

    @abstractmethod
    def _build(self) -> Objective:
        """Check the parameters and make the untrained objective for ``self.schema_``.

        Its network has a ``reset(generator)`` that gives every one of its weights a value. It is made on torch's meta
        device, so no weight may be read here.
        """

    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        settings = self.settings(run.max_steps, run.max_seconds)
        varies = bool((self.schema_.constant < 0).any())
        parts = self.parts() if varies else []
        if parts:
            self._learn_parts(parts, rows, held, run)
        else:
            self._learn_whole(rows, held, settings, run)
        self.complete(rows, run.seed)

    def _learn_whole(self, rows: Rows, held: Rows | None, settings: Settings, run: Run) -> None:
        self.begin(rows, settings, run.seed)
        if bool((self.schema_.constant < 0).any()):
            try:
                self._train(rows, held, settings, run)
            finally:
                self.finish()

    def _learn_parts(self, parts: list[TrainedModel], rows: Rows, held: Rows | None, run: Run) -> None:
        """Train the parts one after another, each within its share of the time, and put them together, whatever ends them."""
        lost: BaseException | None = None
        interrupted = False
        for number, part in enumerate(parts):
            part.take_place(self)
            own = self.run_of_part(number, len(parts), run)
            if interrupted:
                part.begin(rows, part.settings(own.max_steps, own.max_seconds), own.seed)
                continue
            try:
                part._learn_whole(rows, held, part.settings(own.max_steps, own.max_seconds), own)
            except (TrainingDiverged, OSError, KeyboardInterrupt) as error:
                lost = error
            interrupted = part.stopped_ == "interrupted"
        self.put_together(parts, rows, held, run.seed)
        if lost is not None:
            raise lost

    def take_place(self, whole: TrainedModel) -> None:
        """Become a part of a model that is being fitted: same data, same device, nothing learnt."""
        self.schema_, self.device_, self.history_, self.stopped_ = whole.schema_, whole.device_, [], "interrupted"

    @staticmethod
    def run_of_part(number: int, parts: int, run: Run) -> Run:
        """Give a part its share of the time, and a checkpoint of its own: the first one has the folder, the others one in it."""
        seconds = None if run.max_seconds is None else run.max_seconds / parts
        checkpoint = None if run.checkpoint is None else part_folder(run.checkpoint, number)
        return run._replace(max_seconds=seconds, checkpoint=checkpoint)

    def put_together(self, parts: Sequence[TrainedModel], rows: Rows, held: Rows | None, seed: int) -> None:
        """Make this model of its parts: their weights, what they recorded, and why they ended."""
        self.assemble(parts, rows, held, seed)
        self.history_[:] = _merged([part.history_ for part in parts])
        ends = [part.stopped_ for part in parts]
        self.stopped_ = next((end for end in ("interrupted", "diverged") if end in ends), ends[-1])

    def parts(self) -> list[TrainedModel]:
        """Return models that are trained in the place of this one, each by itself; none, unless a model says so."""
        return []

    def assemble(self, parts: Sequence[TrainedModel], rows: Rows, held: Rows | None, seed: int) -> None:
        """Put the weights of trained parts together."""
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    def begin(self, rows: Rows, settings: Settings, seed: int, together: int = 1) -> None:
        """Check that so many models like this one can be trained together on such data, and draw the weights of this one."""
        objective = self._built()
        network = objective.network
        # On a device of their own, rows that do not fit are streamed.
        kept = rows.num_bytes if self.device_.type == "cpu" else 0
        needed = memory.training_bytes(network, kept, settings.batch_size, objective.bytes_per_example)
        fewer = "" if together == 1 else ", or train fewer models together"
        memory.require(together * needed, self.device_, f"use a smaller batch_size or width{fewer}")
        # Weights are drawn on the CPU, so that a seed means the same start on every device.
        network.to_empty(device="cpu").reset(torch.Generator().manual_seed(seed))  # type: ignore[operator]
        network.to(self.device_)

    def prepare(self, rows: Rows, held: Rows | None, seed: int, *, given: bool) -> None:
        """Do what can be done for the drawn weights before the training loop; nothing, unless a model has something to do.

        ``given`` says that the rows held back are the user's own.
        """

    def finish(self) -> None:
        """Do what is left to be done for the weights after the training loop."""

    def complete(self, rows: Rows, seed: int) -> None:
        """Do what is left to be done for a whole model, with its data, after it was trained or put together."""

    def symbols_in(self, rows: Rows) -> int:
        """How many values a number of the divided rows may have: the states, or more where they bear something else besides."""
        return self.space_.states if rows.x.shape[1] == self.space_.sites else 256

    def open_settings(self) -> dict[str, Any]:
        """Return a value for every setting that may be left open (None), once ``schema_`` and ``device_`` are known."""
        return {}

    def chosen(self, name: str) -> Any:
        """Return a setting: the user's, or the one that suits the data where it was left open."""
        value = getattr(self, name)
        return self.open_settings()[name] if value is None and name in self.open_settings() else value

    def divide(self, rows: Rows, held: Rows | None, seed: int) -> tuple[Rows, Rows | None]:
        """Hold some rows back to validate with, unless the user gave such."""
        if held is not None:
            return rows, held
        return split(rows, self.validation_fraction, generator=torch.Generator().manual_seed(seed))

    def _train(self, rows: Rows, held: Rows | None, settings: Settings, run: Run) -> None:
        fingerprint: dict[str, Any] = {
            "data": digest(rows, held),
            "model": json.dumps([type(self).__name__, plain(self.get_params())]),
            "seed": run.seed,
            "max_steps": settings.max_steps,
            "max_seconds": plain(settings.max_seconds),
            "device": self.device_.type,
        }
        given = held is not None
        rows, held = self.divide(rows, held, run.seed)
        began = time.monotonic()
        self.prepare(rows, held, run.seed, given=given)
        settings = settings.after(distributed.agreed(time.monotonic() - began))
        network, examples = self.objective_.network, settings.batch_size
        others = memory.training_bytes(network, 0, examples, self.objective_.bytes_per_example)
        place = partial(
            placing.place, states=self.symbols_in(rows), device=self.device_, batch_size=examples, seed=run.seed
        )
        room = placing.room_for_rows(self.device_, others)
        source = place(rows, room=room)
        aside = None if held is None else place(held, room=None if room is None else room - source.num_bytes)
        if placing.is_streamed(source):  # which gives other draws, and depends on how much memory is free
            fingerprint["rows"] = "streamed"
        self.stopped_ = "interrupted"  # unless training comes to an end of its own
        try:
            self.stopped_ = train(
                self.objective_,
                source,
                aside,
                settings,
                generator=self._generator(run.seed),
                fingerprint=fingerprint,
                checkpoint=run.checkpoint,
                resume=run.resume,
                verbose=run.verbose,
                history=self.history_,
            )
        except TrainingDiverged:
            self.stopped_ = "diverged"
            raise

    def settings(self, max_steps: int | None, max_seconds: float | None) -> Settings:
        """Return the settings of the loop: the constructor's, and what ``fit`` was told."""
        if not is_number(self.validation_fraction) or not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in [0, 1), got {self.validation_fraction!r}")
        if max_steps is None and max_seconds is None:
            max_steps = self.steps
        names = (
            "batch_size",
            "learning_rate",
            "weight_decay",
            "warmup",
            "clip_norm",
            "average_decay",
            "patience",
            "precision",
        )
        chosen = {name: self.chosen(name) for name in names}
        return Settings(max_steps=max_steps, max_seconds=max_seconds, **chosen)

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.objective_.network.state_dict()

    def _restore(self, tensors: Mapping[str, Tensor]) -> None:
        network = self._built().network
        network.to_empty(device=self.device_).requires_grad_(False).load_state_dict(dict(tensors))

    def _built(self) -> Objective:
        with torch.device("meta"):  # shapes alone: how large the network is should be known before memory is taken
            self.objective_ = self._build()
        return self.objective_


def _merged(histories: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Make one record of several runs of the same length: means over those that reached a step, and the seconds of all."""
    merged = []
    for step in sorted({record["step"] for history in histories for record in history}):
        there = [record for history in histories for record in history if record["step"] == step]
        until = [[r["seconds"] for r in history if r["step"] <= step] for history in histories]
        means = {name: sum(r[name] for r in there) / len(there) for name in there[0] if name not in ("step", "seconds")}
        merged.append({"step": step, "seconds": sum(max(spent, default=0.0) for spent in until), **means})
    return merged
