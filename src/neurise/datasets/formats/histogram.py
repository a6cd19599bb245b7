"""Histograms of configurations: how often each was seen, then its spins, as annealers' reads are published."""

from __future__ import annotations

import numpy as np

SPINS, BITS = {-1, 1}, {0, 1}


class Guess:
    """Whether the first column counts the rows that the others hold, decided over all blocks of a table.

    It does where it is positive throughout and more than 1 somewhere, while the other columns hold both symbols of ±1 or of
    0/1 and nothing else.
    """

    def __init__(self) -> None:
        self.open = True
        self._seen: set[int] = set()
        self._counts: list[np.ndarray] = []

    def take(self, values: np.ndarray) -> np.ndarray | None:
        """Take the counts off a block and return the rest; None where the block shows that there are none."""
        first, rest = values[:, 0], values[:, 1:]
        if not rest.shape[1] or first.min() < 1 or rest.min() < -1 or rest.max() > 1:
            self.open = False
            return None
        self._seen |= {symbol for symbol in (-1, 0, 1) if (rest == symbol).any()}
        if len(self._seen) == 3:
            self.open = False
            return None
        self._counts.append(first.astype(np.int64))
        return rest

    @property
    def counts(self) -> np.ndarray:
        """What the first column holds, as far as it was taken."""
        return np.concatenate([*self._counts, np.zeros(0, dtype=np.int64)])

    def holds(self) -> bool:
        """Whether the table is a histogram, once all blocks are taken."""
        return self.open and self._seen in (SPINS, BITS) and bool(self.counts.max(initial=0) > 1)


def looks_counted(rows: np.ndarray) -> bool:
    """Whether a table of these rows would be taken for a histogram if it had no header."""
    if rows.dtype.kind in "US" or rows.shape[1] < 2:
        return False
    guess = Guess()
    return guess.take(rows) is not None and guess.holds()
