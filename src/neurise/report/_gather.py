"""From results files to sections: one for each experiment and scale, with what is missing and what made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from neurise import experiments
from neurise.experiments import Cell, Experiment, grid, store
from neurise.experiments.parts.command import command_line
from neurise.report._numbers import counted

READING_ORDER = ("ising_curves", "mnist", "dwave", "potts", "ghz", "noise_levels", "local_global", "theory")
"""The paper's; what is not named here comes last."""


@dataclass(frozen=True)
class Section:
    """The rows of one experiment at one scale."""

    experiment: Experiment
    scale: str
    done: list[store.Row]
    failed: list[store.Row]
    files: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Where the page has it."""
        return f"{self.experiment.name}-{self.scale}"

    @cached_property
    def cells(self) -> tuple[int, int]:
        """How many cells of the scale are done, and how many it has, with the methods and the seed that were asked for."""
        planned = {cell.key for cell in self.planned}
        return len(planned & {row["key"] for row in self.done}), len(planned)

    @cached_property
    def planned(self) -> list[Cell]:
        """The cells of the scale, with the methods and from the seed on that were asked for."""
        own: grid.Methods = {name: [{}] for name in self.experiment.methods}
        methods = own if self.methods is None else grid.methods_of(self.rows)
        return grid.cells_of(self.experiment, self.scale, methods, self._first)

    @property
    def _first(self) -> int:
        return min(int(row["seed"]) for row in self.rows)

    @property
    def rows(self) -> list[store.Row]:
        """Finished rows and failed ones."""
        return [*self.done, *self.failed]

    @property
    def methods(self) -> list[str] | None:
        """The methods of the rows; None where the experiment has no choice of them, or all of its own were run."""
        found = list(grid.methods_of(self.rows))
        return None if not self.experiment.methods or not found or set(found) == set(self.experiment.methods) else found

    @property
    def commands(self) -> dict[str | None, int]:
        """The commands that made the rows, with how many cells each made; None for rows that do not say."""
        return dict(Counter(row.get("command") for row in self.done))

    @property
    def command(self) -> str:
        """A command that makes such rows, put together from what they hold."""
        together = any(row.get("cells", 1) > 1 for row in self.rows)
        offered = {**self.experiment.methods, **self.experiment.more_methods}
        known = [name for name in self.methods or () if name in offered]  # of others the code need not be here
        usual = any(len(unit.cells) > 1 for unit in grid.plan(self.experiment, self.scale, methods=known))
        return command_line(
            self.experiment.name,
            self.scale,
            methods=self.methods or (),
            seed=self._first,
            grouped=None if together == usual else together,
            device="cuda" if self._devices() == {"cuda"} else None,
        )

    def _devices(self) -> set[str]:
        return {str(row.get("machine", {}).get("device", "")).partition(":")[0] for row in self.done}

    @property
    def versions(self) -> list[str]:
        """Versions of the library and of what it ran on, with how many cells each computed."""
        return _counted(
            f"neurise {row['code'].get('neurise')}, Python "
            f"{row.get('machine', {}).get('python')}, torch {row.get('machine', {}).get('torch')}"
            for row in self.done
        )

    @property
    def codes(self) -> list[str]:
        """Digests of the code, of which each method has its own, with how many cells each computed."""
        return _counted(str(row["code"].get("digest")) for row in self.done)

    @property
    def machines(self) -> list[str]:
        """Machines, with how many cells each computed."""
        facts = [row.get("machine", {}) for row in self.done]
        return _counted(f"{f.get('device')} ({f.get('device_name')}), {_cores(f)}{f.get('platform')}" for f in facts)

    @property
    def days(self) -> str:
        """When the rows were made."""
        days = sorted(str(row["started"])[:10] for row in self.done if row.get("started"))
        return "" if not days else days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


@dataclass(frozen=True)
class Gathered:
    """Everything that some results files hold."""

    sections: list[Section]
    left_out: dict[str, dict[int, str]]  # lines that are no rows, and why, by file
    unknown: dict[str, int]  # rows of experiments, or of their scales, that this version does not have

    @property
    def told(self) -> list[str]:
        """What was left out of which file and line, and why."""
        return [line for path, lines in self.left_out.items() for line in store.told(path, lines)]


def gather(paths: Sequence[Path]) -> Gathered:
    """Read results files; of several rows of one cell, also of different code or in different files, the last counts."""
    latest: dict[str, tuple[store.Row, str]] = {}
    left_out: dict[str, dict[int, str]] = {}
    for path in paths:
        contents = store.read(path)
        if contents.left_out:
            left_out[str(path)] = contents.left_out
        for row in contents.rows:
            before = latest.get(row["key"])
            if row["status"] == "done" or before is None or before[0]["status"] != "done":
                latest[row["key"]] = (row, str(path))
    if not latest:
        raise ValueError(f"{', '.join(map(str, paths))}: there are no results; neurise experiment run makes some")
    offered = experiments.names()
    grouped: dict[tuple[str, str], list[tuple[store.Row, str]]] = {}
    unknown: dict[str, int] = {}
    for row, file in latest.values():
        name, scale = row["experiment"], row["scale"]
        if name in offered and scale in experiments.find(name).scales:
            grouped.setdefault((name, scale), []).append((row, file))
        else:
            called = f"{name}, scale {scale}" if name in offered else name
            unknown[called] = unknown.get(called, 0) + 1
    if not grouped:
        raise ValueError(f"no experiment of this version made these results: they are of {', '.join(unknown)}")
    return Gathered([_section(*name, grouped[name]) for name in sorted(grouped, key=_place)], left_out, unknown)


def _section(name: str, scale: str, rows: list[tuple[store.Row, str]]) -> Section:
    files = tuple(dict.fromkeys(path for _, path in rows))
    parts: dict[bool, list[store.Row]] = {True: [], False: []}
    for row, _ in rows:
        parts[row["status"] == "done"].append(row)
    experiment = experiments.find(name)
    # In the order of the plan, so that a method has its place and colour whenever it was finished.
    done, failed = (grid.in_order(experiment, scale, parts[whole]) for whole in (True, False))
    return Section(experiment, scale, done, failed, files)


def _place(name: tuple[str, str]) -> tuple[Any, ...]:
    known = READING_ORDER.index(name[0]) if name[0] in READING_ORDER else len(READING_ORDER)
    scale = experiments.SCALES.index(name[1]) if name[1] in experiments.SCALES else -1
    return known, name[0], -scale


def _cores(machine: Mapping[str, Any]) -> str:
    return f"{machine['cores']} cores, " if machine.get("cores") else ""


def _counted(texts: Iterable[str]) -> list[str]:
    counts = Counter(texts)
    return [f"{text}: {counted(count, 'cell')}" if len(counts) > 1 else text for text, count in counts.items()]
