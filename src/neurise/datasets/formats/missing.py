"""Cells of a table that hold no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WORDS = {"", "na", "n/a", "nan", "null", "none", "?"}
"""What programs write for a value that is not there, in small letters."""


@dataclass
class Missing:
    """Leaves out lines that lack a value, and remembers how many there were and where the first one was."""

    cells: int = 0
    rows: int = 0
    first: tuple[int, int] | None = None  # line and column, from 1

    def skips(self, number: int, cells: list[str]) -> bool:
        """Whether a line lacks a value."""
        lacking = [column for column, cell in enumerate(cells, start=1) if _is_missing(cell, cells)]
        if not lacking:
            return False
        self.cells += len(lacking)
        self.rows += 1
        self.first = min(self.first or (number, lacking[0]), (number, lacking[0]))  # the first line is looked at late
        return True

    def to_dict(self) -> dict[str, Any]:
        """Give what was found, in JSON's types."""
        return {"cells": self.cells, "rows": self.rows, "first": None if self.first is None else list(self.first)}


def _is_missing(cell: str, others: list[str]) -> bool:
    text = cell.strip().lower()
    if text not in WORDS or (cell and not text):  # a blank alone is a letter
        return False
    # A question mark is a letter as well; among numbers it can only mean that one is not known.
    return text != "?" or any(other.strip().lstrip("+-").isdecimal() for other in others)
