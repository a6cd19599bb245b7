"""What ``neurise experiment`` prints: tables of rows, within eighty columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neurise.cli import _table
from neurise.cli._output import print_table, say

if TYPE_CHECKING:
    from neurise.experiments import Experiment, Table
    from neurise.experiments.parts.summary import Block, Entry

SHOWN = 5
"""Errors that are shown one by one."""


def print_rows(experiment: Experiment, rows: Sequence[dict[str, Any]]) -> None:
    """Print the tables that an experiment declares, and the errors of cells that failed."""
    from neurise.experiments.parts.summary import blocks

    for table in experiment.tables:
        for block in blocks(experiment, table, rows):
            _print_block(block, table)
    failed = [row for row in rows if row["status"] != "done"]
    for row in failed[:SHOWN]:
        say(visible(f"failed: {_called(row)}: {row.get('error')}"))
    if len(failed) > SHOWN:
        say(f"… and {len(failed) - SHOWN} more failed; the results file has every error")


def visible(text: str) -> str:
    """Replace what a terminal would obey instead of showing it: rows may come from anywhere."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def _print_block(block: Block, table: Table) -> None:
    """Print a table; with spreads and floors where there is room for them beside each other, else with means alone."""
    if not block.labels:
        return
    heads = ["", *(column.field.label for column in table.columns)]
    numbers = range(1, len(heads))
    for detail in (2, 1, 0):
        cells = [[_text(entry, detail) for entry in line] for line in block.entries]
        labels = map(visible, block.labels)
        lines = [[label, *line] for label, line in zip(labels, cells, strict=True)]
        if _table.Table("", heads, lines, numbers).fits(_table.terminal_width()):
            break
    counts = sorted(set(block.counts))
    mean = (
        f"mean of {counts[0]}{'' if len(counts) == 1 else f' to {counts[-1]}'}" if counts[-1] > 1 else "one cell each"
    )
    legend = ["", ", ± over trials", ", ± over trials (floor)"][detail]
    title = f"{visible(block.title)} ({mean}{legend if counts[-1] > 1 else ''})"
    print_table(title, heads, lines, numbers=numbers)


def _text(entry: Entry, detail: int) -> str:
    if entry.mean is None:
        return _table.NOTHING
    spread = f" ± {entry.spread:.1g}" if detail and entry.spread is not None else ""
    floor = f" ({entry.floor:.2g})" if detail > 1 and entry.floor is not None else ""
    return f"{entry.mean:.3g}{spread}{floor}"


def _called(row: dict[str, Any]) -> str:
    chosen = {
        name: value
        for name, value in row["parameters"].items()
        if isinstance(value, str) or name in ("rows", "instance")
    }
    return ", ".join([*(f"{name} {value}" for name, value in chosen.items()), f"seed {row['seed']}"])
