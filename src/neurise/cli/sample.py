"""``neurise sample``: rows from a saved model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._beside import Energy, LogProb, beside, check_likelihood, energies_of
from neurise.cli._data import CountColumn, DropColumn, LabelColumn
from neurise.cli._output import (
    Device,
    Force,
    Json,
    ask_before_overwriting,
    print_facts,
    print_json,
)
from neurise.cli._team import by_a_team

if TYPE_CHECKING:
    import numpy as np

    from neurise.modeling.model import Model

DEFAULT = 1000


@by_a_team
def sample(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    number: Annotated[
        int | None,
        typer.Option("-n", "--number", help="How many rows.", show_default="1000, or one for each line of --clamp"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file: .npy, .npz, .csv, .tsv, …", show_default="csv on stdout"),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Class of all rows.", show_default="classes by their frequency")
    ] = None,
    clamp: Annotated[
        Path | None,
        typer.Option(
            help="A csv file with the sites that are given and ? for the others: one line, or one for each row."
        ),
    ] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(
            help="How often all sites are redrawn in the end; needs a model trained with corrector__clean.",
            min=0,
            show_default="the model's own",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Draw as many rows as a file has, and write them as it is written: columns, order, labels, counts, format.",
        ),
    ] = None,
    log_prob: LogProb = False,
    energy: Energy = None,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed gives the same rows.", min=0, show_default="fresh rows"),
    ] = None,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw rows from a saved model.

    Several GPUs share the work with torchrun --nproc-per-node 4 -m neurise sample …; the rows then depend on the seed and on
    the number of processes.

    Examples: neurise sample model/ -n 1000 -o rows.csv · neurise sample model/ --like survey.csv -o synthetic.csv
    """
    from neurise.cli._like import read_like
    from neurise.datasets.files import check_beside, check_ending, write_rows
    from neurise.frames import as_table, frame_kind
    from neurise.loading import load
    from neurise.training import distributed

    wanted = [name for name, asked in (("log_prob", log_prob), ("energy", energy)) if asked]
    if output is not None:
        check_ending(output)
        check_beside(output, wanted)
        if distributed.is_leader():
            ask_before_overwriting(output, force=force)
    if like is not None:
        _check_like(
            like,
            output,
            [*wanted, *(["label"] if label is not None else []), *(["json"] if as_json and output is None else [])],
        )
    elif label_column is not None or count_column is not None or drop_column:
        raise ValueError("--label-column, --count-column and --drop-column are those of a table: name it with --like")
    fitted = load(model, device)
    energies = energies_of(energy, fitted)
    table = None if like is None else read_like(like, fitted, label_column, count_column, drop_column)
    if log_prob:
        check_likelihood(fitted)
    given = None if clamp is None else read_clamp(clamp, fitted)
    if number is None and table is not None:
        number = table.number
    if number is None:
        number = DEFAULT if given is None or given.ndim == 1 else len(given)
    y = None if label is None else find_label(fitted, label)
    if table is not None and table.labels is not None:
        y = table.labels
        if number != table.number:
            raise ValueError(f"-n {number}: {like} has {table.number:,} labelled rows; leave the number out")
    began = time.monotonic()
    rows = _draw(fitted, number, y, clamp=given, sweeps=sweeps, seed=seed)
    seconds = time.monotonic() - began
    if rows is None:
        return
    if table is not None:
        table.write(output, rows)
        if output is not None:
            sites = fitted.space_.sites
            print_facts(
                "", {"written to": output, "rows": f"{number:,} of {sites:,} sites", "time": f"{seconds:.2f} s"}
            )
        return
    rows = as_table(rows) if frame_kind(rows) else rows
    more = beside(fitted, rows, y, log_prob=log_prob, energies=energies)
    if output is not None:
        write_rows(output, rows, more)
    _report(fitted, rows, more, output, seconds, as_json=as_json)


def _check_like(like: str, output: Path | None, others: list[str]) -> None:
    """Refuse what a table that is imitated has no place for, before anything is read."""
    from neurise.cli._data import split
    from neurise.cli._like import check_output

    if others:
        raise ValueError(
            f"--like writes the columns of {like} and nothing else; leave --{others[0].replace('_', '-')} out"
        )
    check_output(Path(split(like)[0]), output)


def _draw(model: Model, number: int, y: Any, *, clamp: Any, sweeps: int | None, seed: int | None) -> Any:
    """Draw rows, each process its share with random numbers of its own; only the first one gets all of them."""
    import numpy as np

    from neurise.training import distributed

    team = distributed.current()
    if team is None or number < team.size:
        return model.sample(number, y, clamp=clamp, seed=seed, sweeps=sweeps) if distributed.is_leader() else None
    own = team.slice(number)
    y = y if y is None or np.ndim(y) == 0 else y[own]
    given = clamp if clamp is None or clamp.ndim == 1 else clamp[own]
    part = model.sample(own.stop - own.start, y, clamp=given, seed=team.seed(seed), sweeps=sweeps)
    parts = team.gather((np.asarray(part), getattr(model, "effective_samples_", None)))
    if parts is None:
        return None
    if parts[0][1] is not None:
        model.effective_samples_ = sum(effective for _, effective in parts)  # type: ignore[attr-defined]
    return np.concatenate([rows for rows, _ in parts])


def _report(
    model: Model, rows: Any, more: dict[str, np.ndarray], output: Path | None, seconds: float, *, as_json: bool
) -> None:
    import sys

    from neurise.alphabet import as_matrix
    from neurise.datasets.formats.csv import as_cells, write_csv
    from neurise.datasets.formats.writing import write_table, write_words
    from neurise.frames import Table

    matrix = as_matrix(rows)
    facts: dict[str, Any] = {"rows": len(matrix), "sites": matrix.shape[1], "seconds": round(seconds, 3)}
    effective = getattr(model, "effective_samples_", None)
    if effective is not None:
        facts["effective_samples"] = float(effective)
    if output is None:
        if isinstance(rows, Table):
            if as_json:
                own = {name: column.tolist() for name, column in zip(rows.names, matrix.T, strict=True)}
                print_json({**facts, "X": own, **{name: values.tolist() for name, values in more.items()}}, indent=None)
            else:
                write_words(sys.stdout, rows, more)
        elif as_json:
            numbers = {name: values.tolist() for name, values in more.items()}
            print_json({**facts, "X": as_cells(matrix).tolist(), **numbers}, indent=None)
        elif more:
            write_table(sys.stdout, matrix, more)
        else:
            write_csv(sys.stdout, matrix)
        return
    facts = {"file": str(output), **facts}
    if as_json:
        print_json(facts)
        return
    shown = {"written to": output, "rows": f"{len(matrix):,} of {matrix.shape[1]:,} sites", "time": f"{seconds:.2f} s"}
    if effective is not None:
        shown["effective samples"] = f"{effective:,.0f}"
    shown |= {f"mean {name}": f"{values.mean():.6g}" for name, values in more.items()}
    print_facts("", shown)


def find_label(model: Model, text: str) -> Any:
    """Find the class that reads as what was typed."""
    labels = model.schema_.labels
    if labels is None:
        raise ValueError(f"--label {text}: the model was fitted without labels")
    classes = {str(label): label for label in labels.classes.tolist()}
    if text not in classes:
        more = ", …" if len(classes) > 20 else ""
        raise ValueError(f"--label {text} is not among the model's labels: {', '.join(list(classes)[:20])}{more}")
    return classes[text]


def read_clamp(path: Path, model: Model) -> np.ma.MaskedArray[Any, Any]:
    """Read the given sites, (sites,) or (rows, sites), with ``?`` masked."""
    import csv

    import numpy as np

    from neurise.columns import Columns
    from neurise.datasets.formats.csv import as_cells, parsing
    from neurise.datasets.formats.open import open_text

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    alphabet = model.schema_.alphabet
    if isinstance(alphabet, Columns):
        raise NotImplementedError(
            f"{path}: --clamp is for rows of one alphabet, and the columns of this model have their own"
        )
    symbols = alphabet.symbols
    known = dict(zip(map(str, as_cells(symbols).tolist()), symbols, strict=True))
    values, free = [], []
    with parsing(path), open_text(path, newline="") as file:
        reader = csv.reader(file)
        for cells in filter(None, reader):
            texts = [cell.strip() or cell for cell in cells]
            if len(texts) != model.space_.sites:
                raise ValueError(f"{path}, line {reader.line_num}: {len(texts)} cells for {model.space_.sites} sites")
            for column, text in enumerate(texts, 1):
                if text != "?" and text not in known:
                    raise ValueError(
                        f"{path}, line {reader.line_num}, column {column}: {text[:20]!r} is neither ? nor a symbol "
                        f"of the model, {', '.join(list(known)[:10])}"
                    )
            values.append([known.get(text, symbols[0]) for text in texts])
            free.append([text == "?" for text in texts])
    if not values:
        raise ValueError(f"{path} is empty")
    clamp = np.ma.array(np.array(values, dtype=symbols.dtype), mask=np.array(free))
    return clamp[0] if len(clamp) == 1 else clamp
