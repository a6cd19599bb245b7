"""Pieces of work that write files: how each is run, what must be whole at every moment, and what it must lead to."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tiny
from fake_experiments import Fake
from faults.child import neurise_main

from neurise import presets
from neurise.experiments import grid, store
from neurise.files import SCRATCH
from neurise.loading import load
from neurise.persistence import load_folder, load_tensors
from neurise.training.state import CHECKPOINT

Run = Callable[[], None]


class Work(ABC):
    """Something that is run in a folder."""

    name: str
    executor = "serial"

    def prepare(self, folder: Path) -> None:
        """Put into the folder what the work begins with."""

    @contextmanager
    def around(self, control: Path, library: Path) -> Iterator[None]:
        """Have ready what the work needs beside itself, a cluster say, under the same fault."""
        yield

    @abstractmethod
    def run(self, folder: Path) -> Run:
        """Return what is run, and goes wrong."""

    def again(self, folder: Path) -> Run:
        """Return what a user runs then."""
        return self.run(folder)

    @abstractmethod
    def result(self, folder: Path) -> Any:
        """Return what the work leads to, as something that can be compared; raises where anything is not whole."""

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        """Say what is broken right after the fault; empty where nothing is. ``old`` is what was there before, or None."""
        found = self.result(folder) if self.is_there(folder) else None
        return "" if found in (old, new) else f"{self.name} is neither the old nor the new one"

    def repeated(self, before: Sequence[str], after: Sequence[str]) -> str:
        """Say what was safe before the fault and was done again after it."""
        return ""

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        """Say what two runs at once have broken. ``winners`` are the results of those that said that all went well."""
        return "" if self.result(folder) in winners else "what is there is of neither"

    @abstractmethod
    def is_there(self, folder: Path) -> bool:
        """Whether there is a result, whole or not."""


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
        return _as_text(folder / "model")

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
        tiny.model(members=1).fit(tiny.spins(40, 3, seed=9), max_steps=3, device="cpu", verbose=False).save(folder / "model")


class Save(Work):
    """A model that is saved over another one."""

    name = "save"

    def prepare(self, folder: Path) -> None:
        for name, seed in (("model", 1), ("other", 2)):
            made = tiny.model(members=1).fit(tiny.spins(40, 3), max_steps=3, seed=seed, device="cpu", verbose=False)
            made.save(folder / name)

    def run(self, folder: Path) -> Run:
        return partial(expecting, partial(copy_model, folder / "other", folder / "model"))

    def is_there(self, folder: Path) -> bool:
        return True

    def result(self, folder: Path) -> Any:
        return _as_text(folder / "model")


class Checkpoint(Train):
    """Training with its checkpoints in a folder of their own."""

    name = "checkpoint"
    steps = 10

    def _words(self, folder: Path) -> tuple[str, ...]:
        return (*super()._words(folder), "--checkpoint", str(folder / "state"))


class Experiment(Work):
    """A grid of cells; every row that was added stays, and no cell is computed twice."""

    name = "experiment"

    def __init__(self, executor: str = "serial", workers: int = 1, size: int = 3) -> None:
        self.executor, self.workers, self.size = executor.partition(":")[0], workers, size
        self.where = executor

    def run(self, folder: Path) -> Run:
        return partial(expecting, partial(run_grid, folder, self.where, self.workers, self.size))

    def is_there(self, folder: Path) -> bool:
        return (folder / "results.jsonl").exists() and (folder / "results.jsonl").stat().st_size > 0

    def result(self, folder: Path) -> Any:
        lines = (folder / "results.jsonl").read_bytes().splitlines()
        whole = [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]
        done = [row["key"] for row in whole if row["status"] == "done"]
        if len(done) != len(set(done)):
            raise ValueError("a row is there twice")
        return self._rows(folder)

    def _rows(self, folder: Path) -> Any:
        rows = store.read(folder / "results.jsonl").rows
        return sorted((row["key"], row["status"], json.dumps(row["metrics"])) for row in rows)

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        # Both may compute a cell, and reading counts one of the two; none may be missing.
        return "" if self._rows(folder) in winners else "rows are missing, or others than they should be"

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        there = _rows(folder / "results.jsonl")
        lost = [line for line in acks if line.startswith("row ") and line.split()[1] not in there]
        return f"{len(lost)} rows that were safe are gone" if lost else ""

    def repeated(self, before: Sequence[str], after: Sequence[str]) -> str:
        twice = {line for line in before if line.endswith("done")} & set(after)
        return f"{len(twice)} cells were computed twice" if twice else ""


class Tune(Work):
    """A search of several trials; those that came to their end stay, and the search goes on as if it had not stopped."""

    name = "tune"
    trials = 3
    more: tuple[str, ...] = ()

    def prepare(self, folder: Path) -> None:
        np.save(folder / "rows.npy", tiny.spins(40, 3))

    def run(self, folder: Path) -> Run:
        fixed = ("members=1", "width=4", "depth=1", "training__batch_size=16", "architecture__pairwise=false")
        words = ["tune", str(folder / "rows.npy"), "-o", str(folder / "best.json"), "--trials", str(self.trials)]
        words += ["--trial-steps", "10", "--sampler", "random", "--device", "cpu", *self.more]
        return partial(neurise_main, *words, *(word for one in fixed for word in ("--set", one)))

    def is_there(self, folder: Path) -> bool:
        return (folder / "best.json").exists()

    def result(self, folder: Path) -> Any:
        best = presets.read(folder / "best.json")
        return best.model, json.dumps(best.params, sort_keys=True), best.score, best.study["finished"] + best.study["pruned"]

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        if self.is_there(folder):
            self.result(folder)  # raises where it is cut short
        ended = sum(line.count(b'"state":1') + line.count(b'"state":2') for line in _lines(folder / "best.journal"))
        safe = max((int(line.split()[1]) for line in acks), default=0)
        return f"{safe} trials were safe, and {ended} are there" if ended < safe else ""

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        ended = self.result(folder)[-1]
        return "" if ended >= self.trials else f"{ended} of {self.trials} trials are there"

    def repeated(self, before: Sequence[str], after: Sequence[str]) -> str:
        safe = max((int(line.split()[1]) for line in before), default=0)
        done = [int(line.split()[1]) for line in after]
        return f"trial {done[0]} was made again, and {safe} were safe" if done and done[0] < safe else ""


class OneFile(Work):
    """A file that is written over an older one."""

    def __init__(self, name: str, ending: str, *words: str) -> None:
        self.name, self.ending, self.words = f"{name} {ending}", ending, words

    def prepare(self, folder: Path) -> None:
        tiny.model(members=1).fit(tiny.spins(40, 3), max_steps=3, device="cpu", verbose=False).save(folder / "model")
        self._output(folder).write_bytes(b"what was there before")

    def run(self, folder: Path) -> Run:
        words = [word.replace("MODEL", str(folder / "model")) for word in self.words]
        return partial(neurise_main, *words, "-o", str(self._output(folder)), "--force")

    def _output(self, folder: Path) -> Path:
        return folder / f"made{self.ending}"

    def is_there(self, folder: Path) -> bool:
        return self._output(folder).exists()

    def result(self, folder: Path) -> Any:
        return self._output(folder).read_bytes()


def sample(ending: str) -> OneFile:
    """Rows of a model."""
    return OneFile("sample", ending, "sample", "MODEL", "-n", "50", "--seed", "1", "--device", "cpu")


def data_make(ending: str) -> OneFile:
    """A data set."""
    return OneFile("data make", ending, "data", "make", "ghz", "--qubits", "3", "-n", "50")


def expecting(work: Run) -> None:
    """End as the command line does where the system refuses something: with a message, and without a traceback."""
    try:
        work()
    except (OSError, ValueError) as error:
        print(error)
        raise SystemExit(1) from None


def copy_model(source: Path, target: Path) -> None:
    """Load a model and save it elsewhere."""
    load(source).save(target)


def run_grid(folder: Path, executor: str, workers: int, size: int) -> None:
    """Run a grid of small cells."""
    summary = grid.run(
        Fake(folder / "notes", trials=2, size=size), "smoke", folder / "results.jsonl", executor=executor, workers=workers, device="cpu"
    )
    if summary.failed or summary.missing:
        raise SystemExit(1)


def _as_text(folder: Path) -> tuple[str, str]:
    """Read a model as what can be compared: a digest of its weights, and its description without times."""
    config, tensors = load_folder(folder)
    weights = hashlib.sha256(b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))).hexdigest()
    return weights, json.dumps(_timeless(config), sort_keys=True)


def _timeless(value: Any) -> Any:
    """Leave out what a clock said."""
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if key not in ("seconds", "checksum", "saved", "made")}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def _last_steps(acks: Sequence[str]) -> dict[str, int]:
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in acks if CHECKPOINT in line}


def _step(path: Path) -> int:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return int(json.loads(file.metadata()["state"])["step"])


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def _rows(path: Path) -> set[str]:
    try:
        return {row["key"] for row in store.read(path).rows}
    except FileNotFoundError:
        return set()
    except ValueError:  # nothing but a line that was cut short
        return set()
