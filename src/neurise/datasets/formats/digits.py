"""A single column of strings of digits, one digit for each site: 0010 is four sites, and not the number ten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

NAMES = ("bitstring", "bitstrings", "bits")
"""Names in a header that say so."""
LARGEST = 18
"""Digits that every number of 64 bits can have."""


class Digits:
    """Whether a column holds strings of digits, decided over all blocks of a table.

    It does where all have the same length, and a header says so, or one begins with a zero, or they are too long for
    numbers.
    """

    def __init__(self, width: int, *, named: bool) -> None:
        self.width, self.named, self.sure = width, named, named or width > LARGEST

    @classmethod
    def of(cls, cell: str, name: str | None) -> Digits | None:
        """Look at the first cell, and at the name of its column; None where it is no string of digits."""
        text = cell.strip()
        return cls(len(text), named=(name or "").strip().lower() in NAMES) if _is_string(text) else None

    def fits(self, cell: str) -> bool:
        """Whether a cell is a string like the first one."""
        return _is_string(cell.strip()) and len(cell.strip()) == self.width

    def take(self, cells: Sequence[str]) -> np.ndarray | None:
        """Split strings into digits, (strings, sites); None where one is no string like the first."""
        texts = [cell.strip() for cell in cells]
        if not all(map(self.fits, texts)):
            return None
        self.sure = self.sure or any(text[0] == "0" for text in texts)
        letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
        return (letters - ord("0")).reshape(-1, self.width)

    def numbers(self, digits: np.ndarray) -> np.ndarray:
        """Put digits together again, as the numbers that they were, (strings, 1)."""
        return (digits.astype(np.int64) @ 10 ** np.arange(self.width - 1, -1, -1, dtype=np.int64))[:, None]


def _is_string(text: str) -> bool:
    return len(text) > 1 and text.isascii() and text.isdecimal()
