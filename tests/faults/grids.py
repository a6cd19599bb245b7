"""Works of many pieces that are kept one by one: the cells of an experiment, the trials of a search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tiny
from fake_experiments import Fake

from faults.child import neurise_main
from faults.works import Run, Work, expecting
from neurise import presets
from neurise.experiments import grid, store


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
        return (
            best.model,
            json.dumps(best.params, sort_keys=True),
            best.score,
            best.study["finished"] + best.study["pruned"],
        )

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        if self.is_there(folder):
            self.result(folder)  # raises where it is cut short
        # Complete, given up early, or failed: a trial that an I/O error ends has failed, and is written down as such.
        states = tuple(f'"state":{state}'.encode() for state in (1, 2, 3))
        ended = sum(line.count(state) for line in _lines(folder / "best.journal") for state in states)
        safe = max((int(line.split()[1]) for line in acks), default=0)
        return f"{safe} trials were safe, and {ended} are there" if ended < safe else ""

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        ended = self.result(folder)[-1]
        return "" if ended >= self.trials else f"{ended} of {self.trials} trials are there"

    def repeated(self, before: Sequence[str], after: Sequence[str]) -> str:
        safe = max((int(line.split()[1]) for line in before), default=0)
        done = [int(line.split()[1]) for line in after]
        return f"trial {done[0]} was made again, and {safe} were safe" if done and done[0] < safe else ""


def run_grid(folder: Path, executor: str, workers: int, size: int) -> None:
    """Run a grid of small cells."""
    summary = grid.run(
        Fake(folder / "notes", trials=2, size=size),
        "smoke",
        folder / "results.jsonl",
        executor=executor,
        workers=workers,
        device="cpu",
    )
    if summary.failed or summary.missing:
        raise SystemExit(1)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def _rows(path: Path) -> set[str]:
    try:
        return {row["key"] for row in store.read(path).rows}
    except FileNotFoundError:
        return set()
    except ValueError:  # nothing but a line that was cut short
        return set()
