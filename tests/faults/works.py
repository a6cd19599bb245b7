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

import tiny

from faults.child import neurise_main
from neurise.loading import load
from neurise.persistence import load_folder

Run = Callable[[], None]


class Work(ABC):
    """Something that is run in a folder."""

    name: str
    executor = "serial"

    def prepare(self, folder: Path) -> None:  # noqa: B027
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
        return as_text(folder / "model")


def copy_model(source: Path, target: Path) -> None:
    """Load a model and save it elsewhere."""
    load(source).save(target)


def expecting(work: Run) -> None:
    """End as the command line does where the system refuses something: with a message, and without a traceback."""
    try:
        work()
    except (OSError, ValueError) as error:
        print(error)
        raise SystemExit(1) from None


def as_text(folder: Path) -> tuple[str, str]:
    """Read a model as what can be compared: a digest of its weights, and its description without times."""
    config, tensors = load_folder(folder)
    weights = hashlib.sha256(b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))).hexdigest()
    return weights, json.dumps(_timeless(config), sort_keys=True)


def _timeless(value: Any) -> Any:
    """Leave out what a clock said."""
    if isinstance(value, dict):
        return {
            key: _timeless(entry) for key, entry in value.items() if key not in ("seconds", "checksum", "saved", "made")
        }
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value
