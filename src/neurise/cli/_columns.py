"""Columns with names and alphabets of their own, on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._output import print_columns, print_facts, print_json

if TYPE_CHECKING:
    from neurise.cli._column_lines import ColumnFacts
    from neurise.dataset import Dataset

Bins = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=NUMBER", help="Cut a column of numbers into so many bins. May be repeated."),
]


def has_columns(data: Dataset) -> bool:
    """Whether the columns of a data set have names and alphabets of their own."""
    from neurise.frames import Table

    return isinstance(data.train, Table)


def alphabets_of(data: Dataset, bins: Sequence[str], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter ``alphabet``: the bins that were asked for, and all symbols of columns whose parts differ."""
    from neurise.binning import bins as cut
    from neurise.frames import Table
    from neurise.space import MAX_STATES

    found: dict[str, Any] = {}
    for text in bins:
        name, sign, number = text.rpartition("=")
        if not sign or not number.isdecimal():
            raise ValueError(f"--bins {text}: write NAME=NUMBER, as in --bins age=8")
        found[name] = cut(int(number))
    if not isinstance(data.train, Table):
        if found:
            raise ValueError(f"--bins {bins[0]} is for a table with names, and {data.name} has none")
        return {}
    if "alphabet" in params:
        if found:
            raise ValueError(f"--bins {bins[0]} and alphabet={params['alphabet']} say the same; leave one out")
        return {}
    others = [part for part in (data.validation, data.test) if part is not None]
    for place, name in enumerate(data.train.names):
        own = [part[:, part.names.index(name)] for part in others if isinstance(part, Table) and name in part.names]
        seen = {value for column in own for value in column.tolist() if value is not None}
        known = {value for value in data.train[:, place].tolist() if value is not None}
        few = len(seen | known) <= MAX_STATES and len(known) < len(data.train)  # else fit says what to do about it
        if name not in found and seen - known and few:  # the rows to learn from may lack a symbol that those have
            found[name] = sorted(seen | known, key=lambda value: (isinstance(value, str), value))
    return {"alphabet": found} if found else {"alphabet": None}


def tell_columns(source: str, data: Dataset, *, as_json: bool) -> None:
    """Print what a table is made of, a line per column."""
    import numpy as np

    from neurise.datasets.formats.missing import described

    rows: Any = data.train
    columns = [_facts(name, values) for name, values in zip(rows.names, np.asarray(rows).T.tolist(), strict=True)]
    if as_json:
        listed = [column.to_dict() for column in columns]
        print_json({"source": source, "name": data.name, "rows": len(rows), "columns": listed})
        return
    shown = {"size": f"{len(rows):,} rows of {len(columns):,} columns with alphabets of their own"}
    gaps = np.array([[value is None for value in row] for row in np.asarray(rows).tolist()])
    if gaps.any():
        lacking = {name: often for name, often in zip(rows.names, gaps.sum(0).tolist(), strict=True) if often}
        patterns = Counter(tuple(np.array(rows.names)[row].tolist()) for row in gaps)
        where = described(lacking, patterns, len(rows))
        shown["missing values"] = f"{int(gaps.sum()):,} cells in {int(gaps.any(axis=1).sum()):,} rows: {where}"
    print_facts(source, shown)
    print_columns(columns)


def _facts(name: str, values: Sequence[Any]) -> ColumnFacts:
    """Count the symbols of a column: numbers in their order, and words by how often they occur."""
    import numpy as np

    from neurise.cli._column_lines import BARS, ColumnFacts

    present = [value for value in values if value is not None]
    counted = Counter(present)
    numbers = bool(present) and not any(isinstance(value, str) for value in present)
    symbols = sorted(counted) if numbers else [value for value, _ in counted.most_common()]
    bars = np.histogram(np.array(present, dtype=float), BARS[0])[0] if numbers and len(symbols) > BARS[0] else None
    counts = np.array([counted[symbol] for symbol in symbols])
    return ColumnFacts(name, list(map(str, symbols)), counts, len(values) - len(present), bars)
