"""Cells of a table that hold no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WORDS, PYTHON = {"", "na", "n/a", "nan", "null", "?"}, "None"
"""What programs write for a value that is not there, in small letters; and what Python does. "none" in small letters is an
answer of a survey, and pandas takes it for one, too."""
FEW = 12
"""Columns that are named one by one."""
WAYS = ("keep", "drop", "error")
"""What is done about them: gaps stay gaps, their lines are left out, or they are refused."""


def as_word(cell: str) -> str:
    """Return a cell as one of the words, if it is one: in small letters, and Python's None as an empty cell."""
    return "" if cell.strip() == PYTHON else cell.strip().lower()


def word_of(missing: str) -> str | None:
    """Return the word that the user says stands for a missing value; None for one of the WAYS."""
    if not isinstance(missing, str):
        raise ValueError(
            f"missing must be one of {', '.join(WAYS)}, or what stands for a missing value; got {missing!r}"
        )
    return None if missing in WAYS else missing


@dataclass
class Missing:
    """Leaves out lines that lack a value, and remembers how many there were and where the first one was."""

    cells: int = 0
    rows: int = 0
    first: tuple[int, int] | None = None  # line and column, from 1
    patterns: Counter[tuple[int, ...]] = field(default_factory=Counter)  # columns that lines lack, from 1

    def skips(self, number: int, cells: list[str]) -> bool:
        """Whether a line lacks a value."""
        lacking = [column for column, cell in enumerate(cells, start=1) if _is_missing(cell, cells)]
        if not lacking:
            return False
        self.cells += len(lacking)
        self.rows += 1
        self.patterns[tuple(lacking)] += 1
        self.first = min(self.first or (number, lacking[0]), (number, lacking[0]))  # the first line is looked at late
        return True

    def where(self, lines: int) -> str:
        """Say which columns lack how many values, and which are missing together most often; ``lines`` are complete."""
        columns = Counter(
            column for pattern, often in self.patterns.items() for column in pattern for _ in range(often)
        )
        return described(
            {str(column): often for column, often in sorted(columns.items())}, self.patterns, lines + self.rows
        )

    def to_dict(self) -> dict[str, Any]:
        """Give what was found, in JSON's types."""
        return {"cells": self.cells, "rows": self.rows, "first": None if self.first is None else list(self.first)}


def described(columns: Mapping[str, int], patterns: Mapping[tuple[Any, ...], int], rows: int) -> str:
    """Write down how many values each column lacks, and the most frequent patterns of more than one column."""
    if not columns:
        return "none"
    each = ", ".join(f"column {name}: {often:,} ({often / rows:.1%})" for name, often in list(columns.items())[:FEW])
    more = f", and {len(columns) - FEW} more columns" if len(columns) > FEW else ""
    several = sorted((item for item in patterns.items() if len(item[0]) > 1), key=lambda item: -item[1])[:3]
    together = "; ".join(f"{' + '.join(map(str, pattern))}: {often:,} rows" for pattern, often in several)
    return f"{each}{more}" + (f"; together {together}" if together else "")


def _is_missing(cell: str, others: list[str]) -> bool:
    text = as_word(cell)
    if text not in WORDS or (cell and not cell.strip()):  # a blank alone is a letter
        return False
    # A question mark is a letter as well; among numbers it can only mean that one is not known.
    return text != "?" or any(other.strip().lstrip("+-").isdecimal() for other in others)
