"""``neurise score``: how surprising rows are to a saved model, and which sites make them so."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import SOURCE, CountColumn, DropColumn, LabelColumn, resolve
from neurise.cli._output import (
    Device,
    Force,
    Json,
    Seed,
    ask_before_overwriting,
    print_facts,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    import numpy as np

    from neurise.cli._scores import Scores
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

REASONS = 3
"""Sites that are named for each row on the screen."""


def score(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    data: Annotated[str, typer.Argument(metavar="ROWS", help=f"Rows to score. {SOURCE}")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the scores of all rows: .csv, .tsv or .npz.")
    ] = None,
    sites: Annotated[bool, typer.Option(help="Score every site of a row, too.")] = True,
    top: Annotated[int, typer.Option(min=0, help="How many of the most surprising rows to show.")] = 10,
    part: Annotated[str, typer.Option(help="Which rows of a data set: train, validation or test.")] = "train",
    draws: Annotated[int, typer.Option(min=2, help="Draws of a bound, where there is no exact likelihood.")] = 4,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compute the log-probability of every row, and how much each site contributes to it, in nats.

    The file has one line per row, in the order of the rows: its number from 0, log_prob (elbo, a lower bound with its error,
    where a model has no likelihood), its rank, 1 for the most surprising, and surprise_SITE for every site: −log P(site |
    what is generated before it). Labels are conditioned on where the model knows them.

    Examples: neurise score model/ rows.csv -o scores.csv · neurise score model/ reads.npz --part test --top 50
    """
    from neurise.cli._scores import check_scores_file, scored, write_scores
    from neurise.loading import load

    if output is not None:
        check_scores_file(output)
        ask_before_overwriting(output, force=force)
    fitted = load(model, device)
    known = resolve(data, label_column, count_column, drop_column=drop_column, rows_seed=seed, weigh=False)
    X, labels, weights = rows_of(known, part)
    X = arranged(X, fitted)
    y = labels if fitted.schema_.labels is not None else None
    folder = Path(tempfile.gettempdir()) if output is None else output.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    with scored(fitted, X, y, folder, sites=sites, seed=seed, draws=draws) as found:
        columns = _columns(found, known, part, labels, weights)
        if output is not None:
            write_scores(output, columns, found.sites, names_of(fitted))
        _report(fitted, X, found, columns, weights, output, top, as_json=as_json)


def rows_of(data: Dataset, part: str) -> tuple[np.ndarray, Any, Any]:
    """Return the rows of a part of a data set, with their labels and weights."""
    if part not in ("train", "validation", "test"):
        raise ValueError(f"--part must be train, validation or test, got {part!r}")
    rows = getattr(data, part)
    if rows is None:
        there = [name for name in ("train", "validation", "test") if getattr(data, name) is not None]
        raise ValueError(f"{data.name} has no {part} rows; it has: {', '.join(there) or 'none'}")
    prefix = "" if part == "train" else f"{part}_"
    return rows, getattr(data, f"{prefix}labels"), getattr(data, f"{prefix}weights")


def names_of(model: Model) -> list[str]:
    """Name the sites of a model: by the columns of its table, or s0, s1, …"""
    names = getattr(model.schema_.alphabet, "names", None)
    return [f"s{site}" for site in range(model.space_.sites)] if names is None else [str(name) for name in names]


def arranged(X: np.ndarray, model: Model) -> np.ndarray:
    """Put the columns of a table with names in the order of the model; what does not fit is left for the model to refuse."""
    import numpy as np

    from neurise.frames import Table

    names = getattr(model.schema_.alphabet, "names", None)
    if not isinstance(X, Table) or names is None or sorted(X.names) != sorted(map(str, names)):
        return X
    return Table(np.asarray(X)[:, [X.names.index(str(name)) for name in names]], list(map(str, names)))


def _columns(found: Scores, data: Dataset, part: str, labels: Any, weights: Any) -> dict[str, np.ndarray]:
    """Put everything but the sites together, by the names of the columns."""
    import numpy as np

    from neurise.scoring import ranks

    columns: dict[str, Any] = {"row": np.arange(len(found.log_prob))}
    names = data.info.get("sequences")
    if names is not None and part == "train":
        columns["name"] = np.array(names)
    if labels is not None:
        columns["label"] = np.asarray(labels)
    if weights is not None:
        columns["count" if np.asarray(weights).dtype.kind in "biu" else "weight"] = np.asarray(weights)
    columns[found.of] = found.log_prob
    if found.error.any():
        columns["error"] = found.error
    columns["rank"] = ranks(found.log_prob)
    return columns


def _report(
    model: Model,
    X: np.ndarray,
    found: Scores,
    columns: dict[str, np.ndarray],
    weights: Any,
    output: Path | None,
    top: int,
    *,
    as_json: bool,
) -> None:
    import numpy as np

    first = np.argsort(found.log_prob, kind="stable")[:top].tolist()
    because = [_reasons(model, X[row], found.sites[row]) if found.sites is not None else [] for row in first]
    # Rows of weight zero count for nothing, also where they are impossible.
    masses = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    mean = float(np.average(found.log_prob[masses > 0], weights=masses[masses > 0])) if masses.any() else float("nan")
    impossible = int(np.isneginf(found.log_prob).sum())
    facts: dict[str, Any] = {"rows": len(X), f"mean_{found.of}": mean, "impossible": impossible}
    if as_json:
        shown = [
            {
                **{name: column[row].item() for name, column in columns.items()},
                "because": [{"site": site, "symbol": symbol, "surprise": value} for site, symbol, value in reasons],
            }
            for row, reasons in zip(first, because, strict=True)
        ]
        written = {} if output is None else {"file": str(output)}
        print_json({**written, **facts, "of": found.of, "sites": found.given, "top": shown})
        return
    front = [name for name in columns if name not in ("error", "rank")]
    table = [
        [
            str(columns["rank"][row]),
            *(f"{columns[name][row]:.6g}" if name == found.of else str(columns[name][row]) for name in front),
            ", ".join(f"{site} = {symbol} ({value:.3g})" for site, symbol, value in reasons) or "–",
        ]
        for row, reasons in zip(first, because, strict=True)
    ]
    if table:
        numbers = [1 + place for place, name in enumerate(front) if name not in ("name", "label")]
        print_table("the most surprising rows", ["rank", *front, "because"], table, numbers=(0, *numbers))
    told = {"rows": f"{len(X):,}", f"mean {found.of}": f"{mean:.6g} nats"}
    if impossible:
        told["impossible"] = f"{impossible:,} rows of probability zero"
    if found.given:
        told["because" if found.sites is not None else "no sites"] = found.given
    if output is not None:
        told["written to"] = str(output)
    print_facts("", told)


def _reasons(model: Model, row: np.ndarray, surprises: np.ndarray) -> list[tuple[str, Any, float]]:
    """Name the sites that surprise most: their names, what they hold, and their surprises."""
    order = (-surprises).argsort(kind="stable")[:REASONS].tolist()
    names = names_of(model)
    symbols = row.tolist()
    return [
        (names[site], symbols[site], float(surprises[site])) for site in order if surprises[site] == surprises[site]
    ]
