"""The ``--layout`` and ``--programmed`` options of ``neurise structure``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from neurise.cli._data import resolve

TABLES = {".csv": ",", ".tsv": "\t"}
Layout = Annotated[
    str | None,
    typer.Option(
        help="Where sites stand in the figure: grid, chimera, pegasus or zephyr (with a size, pegasus:16), or spring.",
        show_default="the lattice of the data, or a matrix",
    ),
]
Programmed = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Couplings that a machine was told, for its effective temperature: a .csv file with a line SITE,SITE,J each "
        "(in the sign of exp(ΣJσσ)), a file of reads, or a data set by its name.",
    ),
]


def check_layout(layout: str | None, figure: Path | None, *, contacts: bool) -> None:
    """Refuse a layout that nothing is drawn by, before anything is computed."""
    if layout is None:
        return
    if figure is None or contacts:
        raise ValueError("--layout is for the graph that --figure draws")
    from neurise.structure.layouts import parsed

    parsed(layout)


def read_programmed(text: str) -> Any:
    """Read programmed couplings: a dictionary by pairs from a table, else a data set that has some."""
    path = Path(text)
    separator = TABLES.get(path.suffix.lower())
    if separator is not None:
        return _table(path, separator)
    found = resolve(text, rows=None)
    if found.edges is None or found.couplings is None:
        raise ValueError(f"--programmed {text}: {found.name} has no couplings; give a .csv file of lines SITE,SITE,J")
    return found


def _table(path: Path, separator: str) -> dict[tuple[Any, Any], float]:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    couplings: dict[tuple[Any, Any], float] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, line in enumerate(csv.reader(file, delimiter=separator), start=1):
            if not line or (number == 1 and not any(map(_is_number, line))):  # a header
                continue
            if len(line) != 3 or not _is_number(line[2]):
                raise ValueError(
                    f"{path}, line {number}: {separator.join(line)[:60]!r} is no SITE{separator}SITE{separator}J"
                )
            pair = _site(line[0]), _site(line[1])
            couplings[pair] = couplings.get(pair, 0.0) + float(line[2])
    if not couplings:
        raise ValueError(f"{path} holds no couplings; a line is SITE{separator}SITE{separator}J")
    return couplings


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _site(text: str) -> Any:
    text = text.strip()
    return int(text) if text.lstrip("-").isdigit() else text
