"""Columns with names and alphabets of their own, on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._output import print_facts, print_json, print_table

if TYPE_CHECKING:
    from neurise.dataset import Dataset

SHOWN = 4
"""Symbols of a column that are shown."""

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
        if name not in found and seen - known:  # the rows to learn from may lack a symbol that those have
            found[name] = sorted(seen | known, key=lambda value: (isinstance(value, str), value))
    return {"alphabet": found} if found else {"alphabet": None}


def tell_columns(source: str, data: Dataset, *, as_json: bool) -> None:
    """Print what a table is made of, a line per column."""
    import numpy as np

    from neurise.datasets.formats.missing import described

    rows: Any = data.train
    columns = list[dict[str, Any]]()
    for name, values in zip(rows.names, np.asarray(rows).T.tolist(), strict=True):
        present = [value for value in values if value is not None]
        counts = Counter(present)
        kinds = {type(value).__name__ for value in present}
        columns.append(
            {
                "name": name,
                "kind": "text" if "str" in kinds else "numbers" if "float" in kinds else "whole numbers",
                "symbols": len(counts),
                "missing": len(values) - len(present),
                "most_common": [[value, count] for value, count in counts.most_common(SHOWN)],
            }
        )
    facts = {"name": data.name, "rows": len(rows), "columns": columns, "missing": data.info.get("missing")}
    if as_json:
        print_json({"source": source, **facts})
        return
    shown = {"data set": data.name, "size": f"{len(rows):,} rows of {len(columns)} columns with alphabets of their own"}
    if gone := data.info.get("missing", {}).get("rows"):
        shown["left out"] = f"{gone:,} rows that lack a value"
    patterns = Counter(
        tuple(name for name, value in zip(rows.names, row, strict=True) if value is None) for row in rows.tolist()
    )
    lacking = {column["name"]: column["missing"] for column in columns if column["missing"]}
    shown["missing values"] = described(lacking, patterns, len(rows))
    print_facts(source, shown)
    lines = []
    for column in columns:
        common = ", ".join(f"{value} {count / max(1, len(rows)):.0%}" for value, count in column["most_common"])
        more = ", …" if column["symbols"] > SHOWN else ""
        lines.append(
            [column["name"], column["kind"], f"{column['symbols']:,}", f"{column['missing']:,}", common + more]
        )
    print_table("", ["column", "kind", "symbols", "missing", "most common"], lines)
