"""``neurise mutate``: all single changes of one row, by how much more or less probable they make it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._figure import check_figure
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
    from neurise.mutagenesis import Mutations

OF = {
    "log_prob": "exact, from the likelihood",
    "conditional": "from the conditionals of single sites",
    "elbo": "an estimate: the difference of two lower bounds",
}


def mutate(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    wild_type: Annotated[
        str, typer.Option(help="The row to change: a sequence as it is, symbols with commas between them, or a file.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all changes: a .csv or .tsv file.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw a map of them: a .png, .svg or .pdf file.")] = None,
    row: Annotated[
        str | None,
        typer.Option(
            help="Which row of the file: its number from 0, or the name of a sequence.", show_default="the first"
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Class of the row.", show_default="classes are summed over")] = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the most and of the least favourable to show.")] = 10,
    draws: Annotated[int, typer.Option(min=2, help="Draws of a bound, where there is no exact likelihood.")] = 16,
    seed: Seed = 0,
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compute log P(mutant) − log P(wild type) for every site and every other symbol, in nats.

    A change above 0 makes the row more probable. At a site that never varied in the data nothing is known about changes.

    Examples: neurise mutate model/ --wild-type protein.fasta --figure map.png · neurise mutate model/ --wild-type 0110 -o table.csv
    """
    from neurise import mutagenesis
    from neurise.cli._wild_type import read_wild_type
    from neurise.cli.sample import find_label
    from neurise.loading import load

    if output is not None:
        _check_table(output)
        ask_before_overwriting(output, force=force)
    check_figure(figure, force=force)
    fitted = load(model, device)
    y = None if label is None else find_label(fitted, label)
    found = mutagenesis.mutations(fitted, read_wild_type(wild_type, fitted, row), y, seed=seed, draws=draws)
    if output is not None:
        _write(output, found)
    if figure is not None:
        mutagenesis.draw(found, figure)
    written = {name: str(path) for name, path in (("file", output), ("figure", figure)) if path is not None}
    if as_json:
        print_json({**_described(found), **written})
        return
    _report(found, top, written)


def _check_table(path: Path) -> None:
    from neurise.datasets.formats.endings import TABLES, ending_of

    if ending_of(path) not in TABLES:
        raise ValueError(f"{path}: changes are written to {' or '.join(TABLES)} (and .gz behind them)")


def _write(path: Path, found: Mutations) -> None:
    """Write one line per change, site by site."""
    import csv

    import numpy as np

    from neurise.datasets.formats.endings import ending_of, is_packed
    from neurise.datasets.formats.open import create_text
    from neurise.files import write_atomically

    def write(place: Path) -> None:
        with create_text(place, packed=is_packed(path)) as file:
            writer = csv.writer(file, delimiter="\t" if ending_of(path) == ".tsv" else ",", lineterminator="\n")
            more = ["error"] if found.error is not None else []
            writer.writerow(["site", "wild_type", "mutant", "log_ratio", *more])
            for site, wild in enumerate(found.wild_type.tolist()):
                for state, symbol in enumerate(found.symbols[site].tolist()):
                    if not found.is_wild[site, state] and not np.isnan(found.log_ratio[site, state]):
                        error = [] if found.error is None else [found.error[site, state].item()]
                        writer.writerow([_name(found, site), wild, symbol, found.log_ratio[site, state].item(), *error])

    write_atomically(path, write)


def _described(found: Mutations) -> dict[str, Any]:
    return {
        "of": found.of,
        "wild_type": found.wild_type.tolist(),
        "sites": None if found.names is None else list(found.names),
        "symbols": found.symbols.tolist(),
        "constant": list(found.constant),
        "log_ratio": found.log_ratio.tolist(),
        "error": None if found.error is None else found.error.tolist(),
    }


def _report(found: Mutations, top: int, written: dict[str, str]) -> None:
    ranked = [place for place in found.ranked() if place[0] not in found.constant]
    for title, chosen in (
        ("the most favourable changes", ranked[:top]),
        ("the least favourable changes", ranked[top:][::-1][:top]),
    ):
        if chosen:
            print_table(
                title,
                ["site", "wild type", "mutant", "log-ratio", "± error"],
                _lines(found, chosen),
                numbers=(3, 4) if found.names else (0, 3, 4),
            )
    values = [found.log_ratio[place] for place in ranked]
    facts = {
        "changes": f"{len(ranked):,}, {sum(value > 0 for value in values):,} of them make the row more probable",
        "log-ratio": OF[found.of],
    }
    if found.constant:
        sites = ", ".join(str(_name(found, site)) for site in found.constant[:12]) + (
            ", …" if len(found.constant) > 12 else ""
        )
        facts["unknown"] = f"sites {sites} never varied: nothing is known about changes there"
    print_facts("", facts | {"written to": ", ".join(written.values())} if written else facts)


def _name(found: Mutations, site: int) -> str | int:
    return site if found.names is None else found.names[site]


def _lines(found: Mutations, chosen: list[tuple[int, int]]) -> list[list[str]]:
    return [
        [
            str(_name(found, site)),
            str(found.wild_type[site]),
            str(found.symbols[site, state]),
            f"{found.log_ratio[site, state]:+.3f}",
            "–" if found.error is None else f"{found.error[site, state]:.3f}",
        ]
        for site, state in chosen
    ]
