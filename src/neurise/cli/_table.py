"""Tables for a terminal of any width, in which no word and so no number is ever cut."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len

GAPS = (3, 2)
"""Spaces between two columns, and where room is scarce."""
READABLE = 24
"""A column of words is not set narrower than this, unless it needs no more."""
NOTHING = "–"
"""What stands where nothing was measured."""


def terminal_width() -> int:
    """How many columns the terminal has; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


@dataclass(frozen=True)
class Table:
    """Rows of text below a header; the columns of ``numbers`` are set to the right.

    A column in which nothing was measured is left out. Where the table is too wide, columns of words are wrapped between
    words. Where that is not enough, the columns are spread over several tables, one below the other, each with the first
    column. A word that is wider than all that sticks out.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()

    @cached_property
    def _natural(self) -> dict[int, int]:
        """Widths at which nothing is wrapped, of the columns that are shown."""
        shown = [k for k in range(len(self.columns)) if k == 0 or any(row[k] != NOTHING for row in self.rows)]
        return {k: max(_widest(line[k], "\n") for line in (self.columns, *self.rows)) for k in shown}

    @cached_property
    def _longest(self) -> dict[int, int]:
        """Widths of the longest words."""
        return {k: max(_widest(line[k], None) for line in (self.columns, *self.rows)) for k in self._natural}

    @cached_property
    def _narrow(self) -> dict[int, int]:
        """Widths that a reader likes still."""
        return {
            k: whole if k in self.numbers else max(self._longest[k], min(whole, READABLE))
            for k, whole in self._natural.items()
        }

    def fits(self, width: int) -> bool:
        """Whether all columns stand side by side."""
        return _total(self._narrow.values(), GAPS[-1]) <= width

    def text(self, width: int) -> str:
        """Set the table for a terminal of so many columns."""
        gap = next((gap for gap in GAPS if _total(self._narrow.values(), gap) <= width), GAPS[-1])
        lines = [self.title] if self.title else []
        for part in self._parts(gap, width):
            lines += self._set(self._widths(part, gap, width), gap)
        return "\n".join(line.rstrip() for line in lines)

    def _parts(self, gap: int, width: int) -> list[list[int]]:
        """Spread the columns over as few tables as hold them, each behind the first column."""
        first, *others = self._narrow
        parts = [[first]]
        for k in others:
            if len(parts[-1]) > 1 and _total([self._narrow[j] for j in [*parts[-1], k]], gap) > width:
                parts.append([first])
            parts[-1].append(k)
        return parts

    def _widths(self, part: Sequence[int], gap: int, width: int) -> dict[int, int]:
        """Give each column what it wants, less what there is no room for: what is long stands last, and yields first."""
        widths = {k: self._natural[k] for k in part}
        for least in (self._narrow, self._longest):
            for k in reversed(part):
                surplus = max(0, _total(widths.values(), gap) - width)
                widths[k] = min(widths[k], max(least[k], widths[k] - surplus))
        return widths

    def _set(self, widths: Mapping[int, int], gap: int) -> list[str]:
        """Write the columns that have widths: the header, a line, and the rows."""

        def lines(cells: Sequence[str]) -> list[str]:
            wrapped = {k: _wrapped(cells[k], width) for k, width in widths.items()}
            height = max(map(len, wrapped.values()))
            placed = [
                [
                    _padded(entry, widths[k], right=k in self.numbers)
                    for entry in [*entries, *[""] * (height - len(entries))]
                ]
                for k, entries in wrapped.items()
            ]
            return [" " + (" " * gap).join(line) for line in zip(*placed, strict=True)]

        ruled = any(self.columns[k] for k in widths)
        head = [*lines(self.columns), " " + "─" * (_total(widths.values(), gap) - 1)] if ruled else []
        return ["", *head, *(line for row in self.rows for line in lines(row)), ""]


def _total(widths: Collection[int], gap: int) -> int:
    return 1 + sum(widths) + gap * (len(widths) - 1)


def _widest(text: str, separator: str | None) -> int:
    return max((cell_len(part) for part in text.split(separator)), default=0)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text between words, where it does not fit."""
    lines: list[str] = []
    for line in text.split("\n"):
        whole = cell_len(line) <= width
        lines += [line] if whole else textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return lines


def _padded(text: str, width: int, *, right: bool) -> str:
    blank = " " * max(0, width - cell_len(text))
    return blank + text if right else text + blank
