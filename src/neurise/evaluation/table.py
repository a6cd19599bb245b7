"""An evaluation as a table: for terminals, notebooks and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurise import notebook
from neurise.extras import need

if TYPE_CHECKING:
    from neurise.evaluation import Evaluation
    from neurise.evaluation.measurement import Measurement

NOTHING = "–"
"""What stands where nothing was measured."""


def columns(evaluation: Evaluation) -> list[str]:
    """Return the header: no name above the names, then the value, the floor, and the baselines if there are any."""
    return ["", "value", "floor", *_compared(evaluation)]


def cells(evaluation: Evaluation) -> list[list[str]]:
    """Return a row of text for each measurement."""
    compared = _compared(evaluation)
    return [
        [row.name, written(row), *(number(other, 3) for other in [row.floor, *map(row.baselines.get, compared)])]
        for row in evaluation.rows
    ]


def notes(evaluation: Evaluation) -> list[str]:
    """Return the small print: what is to be said of some measurements, and what was measured on which rows."""
    by_note = dict[str, list[str]]()
    for row in evaluation.rows:
        by_note.setdefault(row.note, []).append(row.name)
    lines = [f"{', '.join(names)}: {note}" for note, names in by_note.items() if note]
    lines.append(f"measured on {evaluation.against}")
    if evaluation.baselines:
        lines.append(f"{' and '.join(_compared(evaluation))} learnt from {evaluation.baselines}")
    return lines


def html(evaluation: Evaluation) -> str:
    """Write the table for a notebook."""
    table = notebook.numbers(columns(evaluation), cells(evaluation))
    remark = f"{evaluation.samples:,} samples on {evaluation.data}"
    return notebook.box(evaluation.model, remark, table, *map(notebook.note, notes(evaluation)))


def frame(evaluation: Evaluation, backend: str) -> Any:
    """Make a data frame of one row per measurement; a baseline is a column of its own."""
    rows, fields = evaluation.rows, ("name", "value", "error", "floor", "units", "note")
    found: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in fields}
    found |= {name: [row.baselines.get(name) for row in rows] for name in _compared(evaluation)}
    if backend == "pandas":
        return need("pandas").DataFrame(found)
    return need("narwhals", "frames").from_dict(found, backend=backend).to_native()


def written(row: Measurement) -> str:
    """Write a measured value with its error and units."""
    units = "" if row.name.startswith(row.units) else row.units  # the name of an energy says it
    return " ".join([number(row.value), *([f"± {row.error:.1g}"] if row.error else []), units]).strip()


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with so many digits, or a dash for none."""
    return NOTHING if value is None else f"{value:.{digits}g}"


def _compared(evaluation: Evaluation) -> list[str]:
    return list(evaluation.rows[0].baselines) if evaluation.baselines and evaluation.rows else []
