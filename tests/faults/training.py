"""Training of a committee, whose parts keep checkpoints: into an empty folder, over a model, with a folder for its state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tiny

from faults.child import neurise_main
from faults.works import Run, Work, as_text
from neurise.files import SCRATCH
from neurise.persistence import load_tensors
from neurise.training.state import CHECKPOINT


class Train(Work):
    """A committee of two parts, each with checkpoints, learnt into an empty folder. Goes on with ``--resume``."""

    name = "train"
    words = ("--width", "4", "--depth", "1", "--batch-size", "16", "--set", "members=2", "--device", "cpu")
    steps = 20
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ("--resume",)

    def prepare(self, folder: Path) -> None:
        np.save(folder / "rows.npy", tiny.spins(40, 3))

    def run(self, folder: Path) -> Run:
        return partial(neurise_main, *self._words(folder), *self.first)

    def again(self, folder: Path) -> Run:
        return partial(neurise_main, *self._words(folder), *self.second)

    def _words(self, folder: Path) -> tuple[str, ...]:
        steps = ("--max-steps", str(self.steps))
        return ("train", str(folder / "rows.npy"), "-o", str(folder / "model"), *steps, *self.words)

    def is_there(self, folder: Path) -> bool:
        return (folder / "model/config.json").exists() or (folder / "model/model.safetensors").exists()

    def result(self, folder: Path) -> Any:
        return as_text(folder / "model")

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        found = self._found(folder)
        early = found is not None and '"stopped": "interrupted"' in found[1]  # a whole model, saved before its time
        if not (found in (old, new) or early):
            return "the model is neither the old nor the new one"
        for path in folder.rglob(CHECKPOINT):
            if SCRATCH not in path.parts:
                load_tensors(path)
        if found == new:
            return ""
        for path, step in _last_steps(acks).items():
            if not Path(path).exists():
                return f"the checkpoint of step {step} is gone"
            if _step(Path(path)) < step:
                return f"the checkpoint is of step {_step(Path(path))}, and {step} was safe"
        return ""

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        both = "both said that all went well: one model is lost" if len(winners) > 1 else ""
        return both or super().damage_by_two(folder, winners)

    def _found(self, folder: Path) -> Any:
        try:
            return self.result(folder)
        except FileNotFoundError:  # of the first model, one file of two may be there
            return None

    def repeated(self, before: Sequence[str], after: Sequence[str]) -> str:
        if "--resume" not in self.second:
            return ""
        safe = _last_steps(before)
        for line in after:
            path, _, step = line.rpartition(" ")
            if int(step) < safe.get(path, 0):
                return f"step {step} of {path} was made again, and {safe[path]} was safe"
        return ""


class TrainOver(Train):
    """The same over a model that is there, which must be whole until the new one is."""

    name = "train over a model"
    steps = 10
    first = second = ("--force",)

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        tiny.model(members=1).fit(tiny.spins(40, 3, seed=9), max_steps=3, device="cpu", verbose=False).save(
            folder / "model"
        )


class TimedTrain(Train):
    """Training with a limit of time. A clock that jumps may end it early, but with a whole model."""

    name = "train --max-seconds"
    words = (*Train.words, "--max-seconds", "1000")

    def result(self, folder: Path) -> Any:
        super().result(folder)
        return "a whole model", ""


class Checkpoint(Train):
    """Training with its checkpoints in a folder of their own."""

    name = "checkpoint"
    steps = 10

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        (folder / "state").mkdir()  # by the user, whose folder it stays

    def _words(self, folder: Path) -> tuple[str, ...]:
        return (*super()._words(folder), "--checkpoint", str(folder / "state"))


def _last_steps(acks: Sequence[str]) -> dict[str, int]:
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in acks if CHECKPOINT in line}


def _step(path: Path) -> int:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return int(json.loads(file.metadata()["state"])["step"])
