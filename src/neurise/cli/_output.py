"""What verbs print, and the question before a file is overwritten."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from neurise.cli._column_lines import ColumnFacts

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs, instead of a table.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite without asking.")]
Device = Annotated[
    str | None, typer.Option(help="Where to compute: cpu, cuda, cuda:1, …", show_default="a GPU if there is one")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.", min=0)]


def print_json(fields: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Print JSON that every parser reads: what is infinite or not a number becomes null."""
    typer.echo(json.dumps(_finite(fields), indent=indent, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print a table of two columns."""
    print_table(title, ["", ""], [[name, str(value)] for name, value in facts.items()])


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()
) -> None:
    """Print a table as wide as the terminal; the columns of ``numbers`` are set to the right. No number is cut."""
    from neurise.cli._table import Table, terminal_width

    typer.echo(Table(title, columns, rows, numbers).text(terminal_width()))


def print_columns(columns: Sequence[ColumnFacts]) -> None:
    """Print a line per column of a table, or a summary of many."""
    from neurise.cli._column_lines import column_lines, has_blocks
    from neurise.cli._table import terminal_width

    typer.echo(column_lines(columns, terminal_width(), blocks=has_blocks()) + "\n")


def say(message: str) -> None:
    """Print a remark to stderr, where it does not disturb what another program reads."""
    typer.echo(message, err=True)


def ask_before_replacing(what: str, *, force: bool, ways_out: str = "--force overwrites it") -> None:
    """Ask whether something may be replaced; where nobody can answer, refuse."""
    if force:
        return
    if not somebody_answers():
        raise FileExistsError(f"{what}; {ways_out}")
    if not typer.confirm(f"{what}. Overwrite it?", err=True):
        raise typer.Exit(1)


def somebody_answers() -> bool:
    """Return whether stdin is a terminal, so that a person can answer."""
    return sys.stdin.isatty()


def ask_before_overwriting(path: Path, *, force: bool) -> None:
    """Ask before an existing file is replaced."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if path.exists():
        ask_before_replacing(f"{path} exists", force=force)
