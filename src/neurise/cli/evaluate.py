"""``neurise evaluate``: how good a saved model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurise.cli._data import SOURCE, LabelColumn, resolve
from neurise.cli._output import Device, Json, Seed, print_json, print_table


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    data: Annotated[str, typer.Option("--data", help=f"What to compare with. {SOURCE}")],
    samples: Annotated[int, typer.Option(help="How many rows to draw from the model.")] = 10_000,
    exact: Annotated[
        bool | None,
        typer.Option(
            help="Take the total variation of the whole law, or of samples.", show_default="the law, where it is small"
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Measure a saved model against data.

    The floor is what a perfect model would score under the same conditions.
    """
    from neurise.evaluation import evaluate as measure
    from neurise.loading import load

    rows = resolve(data, label_column, rows=None)  # of a law, fresh rows are drawn by the measurements themselves
    fitted = load(model, device)
    evaluation = measure(fitted, rows, samples=samples, seed=seed, exact=exact)
    if as_json:
        print_json({**evaluation.to_dict(), "model": str(model), "parameters": evaluation.model})
        return
    table, note = [], ""
    for row in evaluation.rows:
        value = number(row.value) + ("" if row.error is None else f" ± {row.error:.2g}")
        table.append([row.name, value, number(row.floor), row.units, "" if row.note == note else row.note])
        note = row.note
    print_table(f"{model} on {data}", ["", "value", "floor", "units", ""], table, numbers=(1, 2))


def number(value: float | None) -> str:
    """Write a number with four digits, or a dash for none."""
    return "–" if value is None else f"{value:.4g}"
