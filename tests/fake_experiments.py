"""Experiments that take no time, for the tests of the runner; workers import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from neurise.experiments import Cell, Column, Experiment, Field, Outcome, Scale, Table


class Fake(Experiment):
    """Squares a number. Cells may fail, note that they ran, wait, or kill their process."""

    title, reproduces = "Squares", "nothing"
    methods = {"plain": "plain", "odd": "odd"}  # noqa: RUF012
    more_methods = {"spare": "spare"}  # noqa: RUF012
    tables = (Table("summary", "Squares", "method", (Column(Field("square", "square")),)),)

    def __init__(self, notes: str | Path = "", trials: int = 2, size: int = 3, **fixed: str | float | bool) -> None:
        self.place = str(notes)
        axes = {"number": tuple(range(size))}
        self.scales: Mapping[str, Scale] = {"smoke": Scale(trials, axes, fixed)}  # type: ignore[misc]

    @property
    def name(self) -> str:
        return "fake"

    def run(self, cell: Cell, device: str | None) -> Outcome:
        given = cell.parameters
        self._note(cell)
        if given.get("wait"):
            time.sleep(float(given["wait"]))  # type: ignore[arg-type]
        if given.get("fail") == given["number"]:
            raise RuntimeError("this cell\nfails")
        if given.get("die") == given["number"] and self._noted(cell) < int(given.get("lives", 9)):  # type: ignore[call-overload]
            os._exit(3)
        value = int(given["number"]) ** 2 + cell.seed / 10  # type: ignore[arg-type]
        return Outcome(
            {"square": value, "threads": torch.get_num_threads()}, {"job": float(os.environ.get("SLURM_JOB_ID", 0))}
        )

    def _note(self, cell: Cell) -> None:
        if self.place:
            with Path(self.place).open("a", encoding="utf-8") as file:
                file.write(cell.key + "\n")

    def _noted(self, cell: Cell) -> int:
        return Path(self.place).read_text(encoding="utf-8").split().count(cell.key)


class Grouped(Fake):
    """Adds to each square how many cells were computed together."""

    grouped_over = ("number",)

    def run_group(self, cells: Sequence[Cell], device: str | None) -> list[Outcome]:
        if any(cell.parameters.get("fail") == cell.parameters["number"] for cell in cells):
            raise RuntimeError("the group fails")
        return [Outcome({"square": 1000.0 * len(cells) + self.run(cell, device).metrics["square"]}) for cell in cells]  # type: ignore[operator]
