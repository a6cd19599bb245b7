"""What an experiment says about its figures and tables, so that they can be drawn without knowing the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Field:
    """A number or a name in a row (see :func:`neurise.experiments.store.value`), and how it is called on paper."""

    name: str
    label: str
    law: str | None = (
        None  # the same number of the model's law, which has no floor; a line that has it throughout is drawn by it
    )


@dataclass(frozen=True)
class Figure:
    """Lines with error bars.

    A point is the mean over the rows that share panel, series and x, its bar one standard deviation over trials of one
    instance. With ``times``, a line holds times of one kind of device, of cells that ran alone.
    """

    name: str
    title: str
    x: Field
    y: tuple[Field, ...]  # several are several lines for each series
    series: str | None = "method"
    panel: str | None = None  # one panel for each value of this field
    floors: tuple[Field, ...] = ()  # dashed lines: the mean over all rows at each x
    where: Mapping[str, Any] = field(default_factory=dict)  # only rows with these values
    log_x: bool = True
    log_y: bool = True
    times: bool = False
    caption: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table; ``floor`` names the field with what a perfect model scores. ``times``: as in a figure."""

    field: Field
    floor: str | None = None
    lower_is_better: bool | None = True  # None where neither is
    times: bool = False


@dataclass(frozen=True)
class Table:
    """A row for each value of a field; cells are the mean and the standard deviation over seeds and instances."""

    name: str
    title: str
    rows: str
    columns: tuple[Column, ...]
    by: str | None = None  # one such table for each value of this field
    where: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None  # a key of PUBLISHED, to be put beside it
    caption: str = ""


@dataclass(frozen=True)
class SampleGrid:
    """Small pictures, from an array (rows, columns, height, width) that a row keeps; one grid for each series."""

    name: str
    title: str
    array: str
    series: str = "method"
    caption: str = ""
