"""Tables: ours, with the paper's printed numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from neurise.experiments import PUBLISHED, Experiment, Published, Table, store
from neurise.experiments.parts.samples import REAL
from neurise.experiments.parts.spread import paired
from neurise.experiments.parts.summary import Block, Entry, blocks
from neurise.report._downloads import csv_link
from neurise.report._numbers import as_printed, readable, with_spread

BOLD = (
    "Bold: the best mean, and all that cannot be told from it: the 95 % interval of the mean difference on the same cells holds "
    "zero. With three instances or more the interval is over instances, else over trials of these instances. Where all tie, "
    "or nothing varies, nothing is bold."
)
SPREAD = {
    (True, False): "± is one standard deviation over trials.",
    (True, True): "± is one standard deviation over trials of one instance; below it that over the means of instances.",
    (False, True): "Each instance has one trial; the second number is one standard deviation over instances.",
}
"""What the numbers behind ± vary over, by whether there are several trials, and several instances."""
SAVED = ("mean", "sd_trials", "sd_instances", "floor")
"""The numbers of an entry that a table to download has."""


def tables(experiment: Experiment, table: Table, rows: Sequence[store.Row], anchor: str) -> str:
    """Write a declared table, one for each value that it is split by."""
    published = PUBLISHED[table.published] if table.published else None
    parts = [block for block in blocks(experiment, table, rows) if block.labels]
    if not parts:
        return ""
    written = "".join(_table(experiment, table, block, published) for block in parts)
    words = [table.caption, _spread_words(parts), BOLD if "<strong>" in written else ""]
    caption = "".join(f"<p>{escape(text)}</p>" for text in words if text)
    source = f"<p>The paper's numbers: {escape(published.source)}. {escape(published.note)}</p>" if published else ""
    link = csv_link(f"{anchor}-{table.name}", _csv(table, parts), table.title)
    return (
        f'<section class="table" id="{anchor}-{table.name}"><h3>{escape(table.title)}</h3>'
        f'<div class="blocks">{written}</div>{caption}{source}'
        f'<p class="downloads">Download: {link}</p></section>'
    )


def _table(experiment: Experiment, table: Table, block: Block, published: Published | None) -> str:
    """Write one table. The best means of a column are bold; the paper's own columns stand last."""
    printed = {} if published is None else {experiment.label(name): values for name, values in published.rows.items()}
    shown = [
        number for number, _ in enumerate(table.columns) if any(line[number].mean is not None for line in block.entries)
    ]
    shared = {number: _shared_floor(block, number) for number in shown}
    ours = "".join(
        f'<th scope="col">{escape(table.columns[number].field.label)}{_floor(shared[number])}</th>' for number in shown
    )
    theirs = "".join(f'<th scope="col" class="paper">{escape(name)}</th>' for name in (published or _Nothing).columns)
    groups = ""
    if published is not None:
        groups = (
            f'<tr><td></td><th scope="colgroup" colspan="{len(shown) + 1}">here</th>'
            f'<th scope="colgroup" class="paper" colspan="{len(published.columns)}">the paper</th></tr>'
        )
    part = block.title.removeprefix(f"{table.title}: ")  # the heading above has the title
    caption = "" if block.title == table.title else f"<caption>{escape(part)}</caption>"
    best = [
        _best(block, number, column.lower_is_better, experiment.label(REAL))
        for number, column in enumerate(table.columns)
    ]
    lines = []
    for place, label in enumerate(block.labels):
        cells = "".join(
            _cell(block.entries[place][number], strong=place in best[number], with_floor=shared[number] is None)
            for number in shown
        )
        lines.append(_line(label, cells, block.counts[place], printed.get(label), published))
    for label in (label for label in printed if label not in block.labels):  # a method that was not run here
        lines.append(_line(label, "<td>–</td>" * len(shown), 0, printed[label], published))
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(block.title)}"><table>'
        f"{caption}<thead>{groups}<tr>"
        f'<th scope="col">{escape(table.rows)}</th>{ours}<th scope="col">cells</th>{theirs}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


class _Nothing:
    columns: tuple[str, ...] = ()


def _line(label: str, cells: str, count: int, printed: Any, published: Published | None) -> str:
    missing = () if published is None else (None,) * len(published.columns)
    theirs = "".join(f'<td class="paper">{as_printed(number)}</td>' for number in printed or missing)
    return f'<tr><th scope="row">{escape(label)}</th>{cells}<td>{count}</td>{theirs}</tr>'


def _cell(entry: Entry, *, strong: bool, with_floor: bool) -> str:
    text = with_spread(entry.mean, entry.spread)
    shown = f"<strong>{text}</strong>" if strong else text
    between = f'<br><span class="floor">{readable(entry.between, 2)} over instances</span>' if entry.between else ""
    return f"<td>{shown}{between}{_floor(entry.floor if with_floor else None)}</td>"


def _spread_words(parts: Sequence[Block]) -> str:
    entries = [entry for block in parts for line in block.entries for entry in line]
    varied = any(entry.spread is not None for entry in entries), any(entry.between is not None for entry in entries)
    return SPREAD.get(varied, "")


def _floor(floor: float | None) -> str:
    return "" if floor is None else f'<br><span class="floor">floor {readable(floor)}</span>'


def _shared_floor(block: Block, column: int) -> float | None:
    """Return the floor that all rows of a column have; None where they differ, or where there is none."""
    floors = [entries[column].floor for entries in block.entries]
    return floors[0] if len({readable(floor) for floor in floors}) == 1 else None


def _best(block: Block, column: int, lower: bool | None, real: str) -> set[int]:
    r"""Return the rows with the best mean: the best, and all whose paired difference to it has an interval that holds zero.

    The answer is empty where no interval is known, where all rows tie, and where there is nothing to compare: real data do
    not compete, nor do sizes. A row that shares no cells with the best is never bold.
    """
    entries = {place: line[column] for place, line in enumerate(block.entries) if block.labels[place] != real}
    means = {place: entry.mean for place, entry in entries.items() if entry.mean is not None}
    if lower is None or len(means) < 2 or all(label.partition(",")[0].isdecimal() for label in block.labels):
        return set()
    best = (min if lower else max)(means, key=means.__getitem__)
    apart = {place: paired(entries[place].values, entries[best].values) for place in means if place != best}
    known = {place: difference for place, difference in apart.items() if difference is not None}
    if not known:
        return set()
    tied = {best} | {place for place, difference in known.items() if not difference.is_told_apart}
    return set() if len(tied) == len(means) else tied


def _csv(table: Table, parts: Sequence[Block]) -> list[list[Any]]:
    names = [f"{column.field.name}_{what}" for column in table.columns for what in SAVED]
    lines: list[list[Any]] = [["table", table.rows, "cells", *names]]
    for block in parts:
        for place, label in enumerate(block.labels):
            numbers = [
                number
                for entry in block.entries[place]
                for number in (entry.mean, entry.spread, entry.between, entry.floor)
            ]
            lines.append([block.title, label, block.counts[place], *numbers])
    return lines
