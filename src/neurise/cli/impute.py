"""``neurise impute``: the gaps of a table, filled by a saved model."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from neurise.cli._data import LabelColumn
from neurise.cli._output import Device, Force, Json, ask_before_overwriting, print_facts, print_json, say

if TYPE_CHECKING:
    import numpy as np

    from neurise.cli._gaps import GappyTable


def impute(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    data: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A .csv or .tsv file; empty cells, NA, NaN or ? are gaps.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .tsv file.", show_default="the screen")
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, help="How often to fill: each line so often, behind a column draw.")
    ] = 1,
    most_probable: Annotated[
        bool, typer.Option("--most-probable", help="Fill every gap with its most probable symbol instead of drawing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same values.", min=0, show_default="fresh values")
    ] = None,
    device: Device = None,
    label_column: LabelColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fill the gaps of a table from what else is in the row; all other cells stay as they are.

    Gaps of a row are drawn from their joint law given the others. Draws keep the spread of the data, and -n says how much
    of a result hangs on them. --most-probable makes the fewest errors cell by cell, and a table that is too smooth.

    Examples: neurise impute model/ survey.csv -o filled.csv · neurise impute model/ survey.csv -n 20 -o draws.csv --seed 0
    """
    from neurise.cli._gaps import GappyTable
    from neurise.datasets.formats.endings import TABLES, ending_of, is_packed
    from neurise.datasets.formats.open import create_text
    from neurise.files import write_atomically
    from neurise.loading import load

    if output is not None:
        if ending_of(output) not in TABLES:
            raise ValueError(f"{output}: filled tables are written to {' or '.join(TABLES)} (and .gz behind them)")
        ask_before_overwriting(output, force=force)
    elif as_json:
        raise ValueError("--json tells what was done, and the rows need a file then: -o filled.csv")
    if most_probable and number > 1:
        raise ValueError(f"-n {number}: the most probable values are the same every time; leave one of the two out")
    fitted = load(model, device)
    table = GappyTable(data, fitted, label_column)
    if table.header is not None and table.others:
        say(f"{', '.join(table.others)}: no columns of the model, left as they are")
    filler = _Filler(table, number, seed, most_probable=most_probable)
    if output is None:
        filler.write(sys.stdout, table.delimiter)
        return

    def write(place: Path) -> None:
        with create_text(place, packed=is_packed(output)) as file:
            filler.write(file, "\t" if ending_of(output) == ".tsv" else ",")

    write_atomically(output, write)
    facts: dict[str, Any] = {"rows": filler.rows, "filled": filler.filled, "draws": number}
    if as_json:
        print_json({"file": str(output), **facts})
        return
    how = "the most probable symbol" if most_probable else f"{number} draws of each" if number > 1 else "drawn"
    print_facts("", {"written to": output, "rows": f"{filler.rows:,}", "gaps": f"{filler.filled:,}, {how}"})


class _Filler:
    """Fills a table block by block, and counts what it fills."""

    def __init__(self, table: GappyTable, number: int, seed: int | None, *, most_probable: bool) -> None:
        self.table, self.number, self.seed, self.most_probable = table, number, seed, most_probable
        self.rows = self.filled = 0

    def write(self, file: TextIO, delimiter: str) -> None:
        """Write the whole table with its gaps filled."""
        writer, many = csv.writer(file, delimiter=delimiter, lineterminator="\n"), self.number > 1
        if self.table.header is not None:
            writer.writerow([*(["draw"] if many else []), *self.table.header])
        for block_number, block in enumerate(self.table.blocks()):
            X, gaps, labels = self.table.rows(block)
            draws = self._draws(X, gaps, labels, block_number)
            for row, (_, cells) in enumerate(block):
                for draw, values in enumerate(draws):
                    line = self.table.filled(cells, values[row], gaps[row])
                    writer.writerow([*([draw] if many else []), *line])
            self.rows += len(block)
            self.filled += int(gaps.sum())

    def _draws(self, X: Any, gaps: np.ndarray, labels: Any, block: int) -> list[Any]:
        """Return the rows with their gaps filled, so often as is asked for; each (N, sites)."""
        import numpy as np

        if not gaps.any():
            return [gaps] * self.number  # nothing of them is looked at
        model = self.table.model
        y = None
        if labels is not None and model.schema_.labels is not None:
            classes = {str(label): label for label in model.schema_.labels.classes.tolist()}
            strange = next((label for label in labels if label not in classes), None)
            if strange is not None:
                raise ValueError(
                    f"{self.table.path}: the label {strange!r} is none of the model's, {', '.join(classes)}"
                )
            y = np.array([classes[label] for label in labels])
        # Blocks draw from streams of their own, so that a seed means the same table every time.
        seed = None if self.seed is None else int(np.random.SeedSequence((self.seed, block)).generate_state(1)[0])
        if self.most_probable:
            return [_most_probable(model, X, gaps, y)]
        found = model.impute(X, self.number, y, seed=seed)
        return [np.asarray(part) for part in ([found] if self.number == 1 else found)]


def _most_probable(model: Any, X: Any, gaps: np.ndarray, y: Any) -> np.ndarray:
    """Fill every gap with the symbol that is most probable given what is there of its row."""
    import numpy as np

    filled = np.array(np.ma.getdata(X), dtype=object)
    places = np.argsort(model.schema_.order)
    for site in np.flatnonzero(gaps.any(0)).tolist():
        rows = np.flatnonzero(gaps[:, site])
        law = model.predict_proba(X[rows], site, None if y is None else y[rows])
        for row, token in zip(rows.tolist(), law.argmax(1).tolist(), strict=True):
            filled[row, site] = model.schema_.symbol(int(places[site]), token)
    return filled
