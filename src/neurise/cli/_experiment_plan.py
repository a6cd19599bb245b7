"""``neurise experiment plan``: what is left to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurise.cli._output import Json, Seed, print_json, print_table


def plan(
    name: Annotated[str, typer.Argument(help="Which experiment: see neurise experiment list.")],
    scale: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "paper",
    results: Annotated[Path, typer.Option(help="File that finished cells are kept in.")] = Path("results.jsonl"),
    methods: Annotated[list[str] | None, typer.Option("--methods", help="Only these, separated by commas.")] = None,
    seed: Seed = 0,
    trials: Annotated[int | None, typer.Option(min=1, help="At most so many trials of each cell.")] = None,
    grouped: Annotated[
        bool | None, typer.Option("--grouped/--single", help="Cells trained together, or alone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an experiment would run: cells, what is computed as a whole, what is left, and about how long it takes.

    Times are those of rows that the results file has, of the same method and, where there are some, as many training rows.
    neurise experiment run --seconds runs a part that fits into a time, and goes on with the next part the next time.
    """
    from neurise import experiments
    from neurise.experiments import grid, store
    from neurise.experiments.parts.method_names import split
    from neurise.experiments.parts.planning import parts

    chosen = [part for text in methods or [] for part in split(text)]
    one = experiments.find(name)
    units = grid.plan(one, scale, methods=chosen, seed=seed, trials=trials, grouped=grouped)
    missing = grid.missing(one, units, results)
    rows = [row for row in store.read(results).rows if row["experiment"] == name] if results.exists() else []
    found = parts(units, missing, [row for row in rows if row["scale"] == scale and row["status"] == "done"])
    if as_json:
        print_json({"experiment": name, "scale": scale, "parts": [part._asdict() for part in found]})
        return
    lines = [
        [
            part.method or "",
            f"{part.cells:,}",
            f"{part.units:,}",
            f"{part.largest:,}",
            f"{part.left:,}",
            "unknown" if part.seconds is None else f"{part.seconds:,.0f}",
        ]
        for part in found
    ]
    heads = ["method", "cells", "units", "cells in one", "units left", "seconds left"]
    print_table(f"{name}, {scale}", heads, lines, numbers=range(1, 6))
    left = sum(part.left for part in found)
    typer.echo(f"{left:,} of {sum(part.units for part in found):,} units are left")
