"""The paper's experiments: one file each, found by its name.

:mod:`neurise.experiments.grid` runs them, and :mod:`neurise.experiments.store` keeps their rows.

>>> from neurise import experiments
>>> 'ising_curves' in experiments.names()
True
"""

from __future__ import annotations

from neurise import discovery
from neurise.experiments._published import PUBLISHED, Published
from neurise.experiments._unknown import unknown
from neurise.experiments.base import SCALES, Cell, Experiment, Outcome, Scale
from neurise.experiments.parts.figures import Column, Field, Figure, SampleGrid, Table

__all__ = [
    "PUBLISHED",
    "SCALES",
    "Cell",
    "Column",
    "Experiment",
    "Field",
    "Figure",
    "Outcome",
    "Published",
    "SampleGrid",
    "Scale",
    "Table",
    "find",
    "names",
    "unknown",
]

MACHINERY = ("grid", "store")
"""Files of this folder that are no experiments."""


def names() -> list[str]:
    """List the experiments, by their file names only: nothing is imported."""
    return [name for name in discovery.names(__name__) if name not in MACHINERY]


def find(name: str) -> Experiment:
    """Find an experiment; near names are suggested for an unknown one."""
    if name not in names():
        raise unknown("experiment", name, names())
    made: Experiment = discovery.find(__name__, name)()
    return made
