"""The contract that every experiment keeps."""

from __future__ import annotations

import hashlib
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from neurise.experiments.parts.figures import Figure, SampleGrid, Table

if TYPE_CHECKING:
    from neurise.dataset import Dataset

Scalar: TypeAlias = "str | int | float | bool | None"
SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Scale:
    """How large an experiment is run: every combination of the ``axes``, with what is ``fixed``, in so many trials.

    ``note`` says what is reduced against the paper. ``grouped``: cells that differ only in seed and instance are trained as
    one batched computation.
    """

    trials: int
    axes: Mapping[str, Sequence[Scalar]]
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    note: str = ""
    grouped: bool = False


@dataclass(frozen=True)
class Cell:
    """One independent piece of an experiment: its result is a function of what stands here, and of the code."""

    experiment: str
    scale: str
    parameters: Mapping[str, Scalar]
    seed: int

    @cached_property
    def key(self) -> str:
        """Digest of everything that identifies the cell."""
        return digest([self.experiment, self.scale, dict(self.parameters), self.seed])


class Outcome(NamedTuple):
    """The result of a cell. Metrics are the same wherever it ran; times are not, and so stand apart."""

    metrics: Mapping[str, float | None]
    times: Mapping[str, float] = {}
    arrays: Mapping[str, Mapping[str, Any]] = {}
    budget: Mapping[str, Scalar] = {}  # what the model was given: steps, width, loss, learning rate


class Experiment(ABC):
    """A figure or table of the paper that anyone can run again.

    **Writing one.** An experiment is one file in ``experiments/`` whose class bears the file's name. It says what it is and
    how its rows become figures and tables (the attributes below), gives its ``scales``, and writes ``run``: from a cell to
    its metrics, a pure function of the cell. Where ``device`` is, and whatever else the machine has, must not change what
    is measured beyond rounding. Heavy imports go inside ``run``, so that experiments can be listed at once.

    Cells that differ only in seed and in the parameters of ``grouped_over`` may be trained together: then it also writes
    ``run_group``, and the whole group is the pure and stored unit.
    """

    title: ClassVar[str]
    reproduces: ClassVar[str]
    notes: ClassVar[tuple[str, ...]] = ()
    methods: ClassVar[Mapping[str, str]] = {}
    more_methods: ClassVar[Mapping[str, str]] = {}  # run only where they are asked for
    any_model: ClassVar[bool] = (
        False  # whether any other model may be asked for: ``run`` makes it by ``_methods.build``
    )
    labels: ClassVar[Mapping[Any, str]] = {}
    scales: ClassVar[Mapping[str, Scale]]
    figures: ClassVar[tuple[Figure, ...]] = ()
    tables: ClassVar[tuple[Table, ...]] = ()
    grids: ClassVar[tuple[SampleGrid, ...]] = ()
    grouped_over: ClassVar[tuple[str, ...]] = ("instance",)

    @property
    def name(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def run(self, cell: Cell, device: str | None) -> Outcome:
        """Compute one cell."""

    def run_group(self, cells: Sequence[Cell], device: str | None) -> list[Outcome]:
        """Compute cells of one group together."""
        raise NotImplementedError(f"cells of {self.name} are not trained together")

    def rows_to_search_on(self, parameters: Mapping[str, Scalar], seed: int) -> Dataset:
        """Return rows to search for settings on, none of which any cell is compared with."""
        raise ValueError(f"{self.name} has no rows to search for settings on")

    def parameters(self, scale: Scale, methods: Sequence[str]) -> Iterator[dict[str, Scalar]]:
        """Give the parameters of all cells, seeds apart; the first axis changes slowest, the method fastest."""
        for values in itertools.product(*scale.axes.values()):
            for method in methods or (None,):
                named: dict[str, Scalar] = {} if method is None else {"method": method}
                yield {**named, **dict(zip(scale.axes, values, strict=True)), **scale.fixed}

    def groupable(self, parameters: Mapping[str, Scalar]) -> bool:
        """Whether cells of these parameters can be trained together."""
        return type(self).run_group is not Experiment.run_group

    def trials(self, parameters: Mapping[str, Scalar], scale: Scale) -> int:
        """How many trials cells of these parameters have."""
        return scale.trials

    def reduced(self, scale: str) -> str:
        """Say what a scale has less of than the paper; empty where it is the paper's."""
        return self.scales[scale].note

    def label(self, value: Any) -> str:
        """Return the name of a method or another value as the paper writes it."""
        for names in (self.labels, self.methods, self.more_methods):
            if value in names:
                return names[value]
        return str(value)


def digest(value: Any) -> str:
    """Digest plain values: the same for the same values on every machine."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
