"""One run of the training loop for a model: an objective, the rows that it learns from, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from neurise import devices, memory
from neurise.rows import Rows, Source, digest
from neurise.training import distributed, placing
from neurise.training.loop import TrainingDiverged, Watcher, train
from neurise.training.objective import Objective
from neurise.training.settings import Settings


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
    identity: dict[str, Any]  # what a checkpoint must share with the run to be gone on from
    prepare: Callable[[Job], None] | None = None  # what is done to the drawn weights before the loop
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "interrupted"  # unless training comes to an end of its own

    def begin(self, together: int = 1) -> None:
        """Check that so many jobs like this one fit into memory together, and draw the weights."""
        network = self.objective.network
        # On a device of their own, rows that do not fit are streamed.
        kept = self.rows.num_bytes if self.device.type == "cpu" else 0
        needed = memory.training_bytes(network, kept, self.settings.batch_size, self.objective.bytes_per_example)
        fewer = "" if together == 1 else ", or train fewer models together"
        memory.require(together * needed, self.device, f"use a smaller batch_size or width{fewer}")
        # Weights are drawn on the CPU, so that a seed means the same start on every device.
        network.to_empty(device="cpu").reset(torch.Generator().manual_seed(self.seed))  # type: ignore[operator]
        network.to(self.device)

    def run(
        self, *, checkpoint: Path | None, resume: bool, verbose: bool | None, watchers: Sequence[Watcher] = ()
    ) -> None:
        """Train. The network ends with the best weights, whatever ends the run."""
        fingerprint = {
            "data": digest(self.rows, self.held),
            **self.identity,
            "seed": self.seed,
            "device": self.device.type,
        }
        settings = self.settings.after(self.prepare_weights())
        rows, held = self._place(settings)
        if placing.is_streamed(rows):  # which gives other draws, and depends on how much memory is free
            fingerprint["rows"] = "streamed"
        try:
            self.stopped = train(
                self.objective,
                rows,
                held,
                settings,
                generator=devices.generator(self.seed, self.device),
                fingerprint=fingerprint,
                checkpoint=checkpoint,
                resume=resume,
                verbose=verbose,
                history=self.history,
                watchers=watchers,
            )
        except TrainingDiverged:
            self.stopped = "diverged"
            raise

    def prepare_weights(self) -> float:
        """Do to the drawn weights what is to be done before the loop, and return the seconds that it took."""
        began = time.monotonic()
        if self.prepare is not None:
            self.prepare(self)
        spent = time.monotonic() - began
        team = distributed.TEAM.get()
        return spent if team is None else team.agree(spent, flag=False)[0]

    def _place(self, settings: Settings) -> tuple[Source, Source | None]:
        """Put the rows where the network can learn from them."""
        others = memory.training_bytes(self.objective.network, 0, settings.batch_size, self.objective.bytes_per_example)
        room = placing.room_for_rows(self.device, others)
        options: dict[str, Any] = {
            "states": self.states,
            "device": self.device,
            "batch_size": settings.batch_size,
            "seed": self.seed,
        }
        rows = placing.place(self.rows, room=room, **options)
        left = None if room is None else room - rows.num_bytes
        return rows, None if self.held is None else placing.place(self.held, room=left, **options)
