"""``neurise evaluate``: how good a saved model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import SOURCE, CountColumn, DropColumn, LabelColumn, resolve
from neurise.cli._figure import check_figure
from neurise.cli._output import Device, Force, Json, Seed, print_json, print_table, say

if TYPE_CHECKING:
    from neurise.evaluation import Evaluation


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder of a model; or a file of samples, from wherever they come.")],
    data: Annotated[str, typer.Option("--data", help=f"What to compare with. {SOURCE}")],
    train: Annotated[
        str | None,
        typer.Option(
            help="The rows that the model learnt from: does it copy them? A file, or a data set by its name.",
            show_default="those of --data, where it has such besides others",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many rows to draw from the model.")] = 10_000,
    exact: Annotated[
        bool | None,
        typer.Option(
            help="Take distances between laws of the whole law, or of samples.",
            show_default="the law, where it is small",
        ),
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Score the product of the marginals and the memorised rows beside the model.")
    ] = True,
    figure: Annotated[Path | None, typer.Option(help="Draw the comparison: a .png, .svg or .pdf file.")] = None,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure a saved model, or samples, against data.

    Of a data set the test rows are used; of a file that neurise train held rows back from, those. The floor is what a
    perfect model would score under the same conditions.
    """
    from neurise.evaluation import evaluate as measure

    check_figure(figure, force=force)
    rows = resolve(
        data, label_column, count_column, drop_column=drop_column, rows=None
    )  # of a law, fresh rows are drawn by the measurements themselves
    measured = _subject(model, device)
    learnt_from = (
        None if train is None else resolve(train, label_column, count_column, drop_column=drop_column, rows=None)
    )
    evaluation = measure(
        measured, rows, train=learnt_from, samples=samples, seed=seed, exact=exact, baselines=baselines
    )
    if figure is not None:
        from neurise.evaluation.figure import draw

        draw(evaluation.case, figure)
    if as_json:
        written = {} if figure is None else {"figure": str(figure)}
        print_json({**evaluation.to_dict(), "model": model, "parameters": evaluation.model, **written})
        return
    _show(evaluation, f"{model} on {data}")
    if figure is not None:
        say(f"{figure} shows it")


def _subject(model: str, device: str | None) -> Any:
    """Find what is measured: a saved model, or the rows of a file."""
    from neurise.loading import load

    if Path(model).is_file():
        rows = resolve(model, rows=None).train
        if rows is None:
            raise ValueError(f"{model} has no rows")
        return rows
    return load(model, device)


def _show(evaluation: Evaluation, title: str) -> None:
    from neurise.evaluation import table

    columns = table.columns(evaluation)
    print_table(title, columns, table.cells(evaluation), numbers=range(1, len(columns)))
    for note in table.notes(evaluation):
        say(note)
