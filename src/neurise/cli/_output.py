"""What verbs print, and the question before a file is overwritten."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs, instead of a table.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite without asking.")]
Device = Annotated[str | None, typer.Option(help="Where to compute: cpu, cuda, cuda:1, … [default: a GPU if there is one]")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]


def print_json(fields: Mapping[str, Any]) -> None:
    """Print JSON that every parser reads: without NaN and infinities."""
    typer.echo(json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False))


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print a table of two columns."""
    print_table(title, ["", ""], [[name, str(value)] for name, value in facts.items()])


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table; the columns of ``numbers`` are set to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns), pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    Console().print(table)


def say(message: str) -> None:
    """Print a remark to stderr, where it does not disturb what another program reads."""
    typer.echo(message, err=True)


def ask_before_replacing(what: str, *, force: bool, ways_out: str = "--force overwrites it") -> None:
    """Ask whether something may be replaced; where nobody can answer, refuse."""
    if force:
        return
    if not sys.stdin.isatty():
        raise FileExistsError(f"{what}; {ways_out}")
    if not typer.confirm(f"{what}. Overwrite it?", err=True):
        raise typer.Exit(1)


def ask_before_overwriting(path: Path, *, force: bool) -> None:
    """Ask before an existing file is replaced."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if path.exists():
        ask_before_replacing(f"{path} exists", force=force)


def checked_device(name: str | None) -> str | None:
    """Refuse a device that this machine does not have, in words."""
    if name is None:
        return None
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"--device {name} cannot be used here: {reason}") from error
    return name
