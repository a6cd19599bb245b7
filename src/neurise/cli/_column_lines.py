"""A line per column of a table: a small histogram, how many symbols there are, the most frequent, and what is missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size

from neurise.cli._table import Table

BLOCKS, LEVELS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
"""Heights of a bar, where the terminal's encoding has blocks, and where it has not."""
LINES = 40
"""Columns that are shown one by one; of more there is a summary."""
WIDE = 72
"""Columns of a terminal from which there is room for everything."""
NAME, BARS, NUMBER = (20, 9), (12, 6), (7, 4)
"""Widths of a name, a histogram and a number, with and without that room."""
SPREAD = 8
"""Bars of a histogram over columns."""
FEWEST = 5
"""Columns that a summary names."""


@dataclass(frozen=True)
class ColumnFacts:
    """What is to be said of a column: its symbols, in their order, how often each occurs, and how many values are missing."""

    name: str
    symbols: Sequence[str]
    counts: np.ndarray  # (symbols,)
    missing: float = 0  # rows, or what they weigh
    bars: np.ndarray | None = None  # what the histogram shows where that is not the counts: numbers by their size

    @property
    def present(self) -> float:
        """How many values are there."""
        return float(self.counts.sum())

    @property
    def share_missing(self) -> float:
        """Which share of the values is missing."""
        return self.missing / max(self.missing + self.present, 1e-300)

    def most_frequent(self, number: int) -> list[tuple[str, float]]:
        """Return the most frequent symbols with their shares of what is there; ties in the order of the symbols."""
        order = np.argsort(-self.counts, kind="stable")[:number]
        return [(self.symbols[k], float(self.counts[k]) / max(self.present, 1e-300)) for k in order.tolist()]

    def to_dict(self) -> dict[str, object]:
        """Give the essentials in JSON's types."""
        common = [{"symbol": symbol, "share": share} for symbol, share in self.most_frequent(FEWEST)]
        return {
            "name": self.name,
            "symbols": int((self.counts > 0).sum()),
            "missing": self.share_missing,
            "most_frequent": common,
        }


def columns_of(tokens: np.ndarray, symbols: Sequence[str], weights: np.ndarray | None = None) -> list[ColumnFacts]:
    """Count the tokens (N, sites) of columns that share an alphabet; sites are called by their numbers."""
    counts = (np.bincount(column, weights, minlength=len(symbols)) for column in tokens.T)
    return [ColumnFacts(str(site), symbols, own) for site, own in enumerate(counts)]


def has_blocks() -> bool:
    """Whether the encoding of stdout has blocks."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def histogram(counts: np.ndarray, bars: int, *, blocks: bool) -> str:
    """Draw a bar per symbol, or per group of neighbouring symbols where they are many; what occurs at all has a bar."""
    glyphs = BLOCKS if blocks else LEVELS
    heights = np.array([part.sum() for part in np.array_split(counts, max(1, min(bars, len(counts))))], dtype=float)
    levels = np.ceil(heights / max(heights.max(), 1e-300) * (len(glyphs) - 1)).astype(int)[: len(counts)]
    return "".join(glyphs[level] for level in levels.tolist())


def column_lines(columns: Sequence[ColumnFacts], width: int, *, blocks: bool) -> str:
    """Set a line per column for a terminal of so many columns; a summary where there are too many."""
    return _summary(columns, width, blocks) if len(columns) > LINES else _lines(columns, width, blocks)


def _lines(columns: Sequence[ColumnFacts], width: int, blocks: bool) -> str:
    narrow = width < WIDE
    bars, number = BARS[narrow], NUMBER[narrow]
    name = min(NAME[narrow], max(cell_len(title) for title in ["column", *(column.name for column in columns)]))
    gaps = any(column.missing for column in columns)

    def line(title: str, bar: str, symbols: str, missing: str) -> str:
        cells = [cut(title, name, blocks), set_cell_size(bar, bars), f"{symbols:>{number}}"]
        return " " + "  ".join([*cells, *([f"{missing:>{number}}"] if gaps else []), ""])

    lines = list[str]()
    for column in columns:
        several = int((column.counts > 0).sum())
        symbols = f"{several:,}" if len(f"{several:,}") <= number else f"{several // 1000:,}k"
        start = line(
            column.name,
            histogram(column.counts if column.bars is None else column.bars, bars, blocks=blocks),
            symbols,
            percent(column.share_missing),
        )
        lines.append(start + _common(column, width - cell_len(start), blocks))
    head = line("column", "", "symbols"[:number], "missing"[:number])
    head += cut("most frequent", width - len(head), blocks)
    return "\n".join([head.rstrip(), " " + ("─" if blocks else "-") * (width - 1), *(own.rstrip() for own in lines)])


def _common(column: ColumnFacts, room: int, blocks: bool) -> str:
    """Name the most frequent symbols that there is room for, and of the first at least the beginning."""
    found = [(symbol, share) for symbol, share in column.most_frequent(FEWEST) if share > 0]
    text = ""
    for symbol, share in found:
        longer = f"{text}{'  ' if text else ''}{symbol} {percent(share)}"
        if cell_len(longer) > room:
            break
        text = longer
    return cut(text or (found[0][0] if found else ""), room, blocks)


def _summary(columns: Sequence[ColumnFacts], width: int, blocks: bool) -> str:
    """Say how the columns differ, and name those that stand out."""
    kinds = np.array([int((column.counts > 0).sum()) for column in columns])
    first = np.array([column.most_frequent(1)[0][1] if len(column.counts) else 0.0 for column in columns])
    gone = np.array([column.share_missing for column in columns])
    numbers, often = np.unique(kinds, return_counts=True)
    order = np.argsort(-often, kind="stable")[:FEWEST]
    listed = ", ".join(f"{often[k]:,} with {numbers[k]:,}" for k in order.tolist())
    lines = {
        "columns": f"{len(columns):,}",
        "symbols": listed + (f", … up to {kinds.max():,}" if len(numbers) > FEWEST else ""),
        "most frequent symbol": f"{_spread(first, blocks)} from {percent(first.min())} to {percent(first.max())} of a column",
        "missing": f"{_spread(gone, blocks)} from {percent(gone.min())} to {percent(gone.max())} of a column",
        "most missing": _named(columns, gone),
    }
    if not gone.any():
        lines = {**lines, "missing": "nothing", "most missing": ""}
    return Table("", ["", ""], [[name, text] for name, text in lines.items() if text]).text(width).strip("\n")


def _spread(values: np.ndarray, blocks: bool) -> str:
    """Draw how often values occur between the smallest and the largest."""
    counts, _ = np.histogram(values, bins=SPREAD)
    return f"[{histogram(counts, SPREAD, blocks=blocks)}]"


def _named(columns: Sequence[ColumnFacts], values: np.ndarray) -> str:
    order = np.argsort(-values, kind="stable")[:FEWEST]
    return ", ".join(f"{columns[k].name} {percent(values[k])}" for k in order.tolist() if values[k] > 0)


def percent(share: float) -> str:
    """Write a share; what is there is never written as nothing, and what lacks something never as all."""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share:.0%}"


def cut(text: str, width: int, blocks: bool) -> str:
    """Make a text just so wide; one that was cut says so."""
    text = "".join(letter if letter.isprintable() else "·" for letter in text)
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(0, width - 1)) + ("…" if blocks else "~") if width > 0 else ""
