"""Rows of many pieces in random order, epoch after epoch, of which a bounded number is in memory at any time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise.rows import Batch

MIXED_TOKENS = 2**27
"""Tokens that are in memory together to be mixed."""
SPREAD = 8
"""How often a piece is read in an epoch at most, each time for other rows: so many times more pieces are mixed together."""

Pick = Callable[[int, np.ndarray], Batch]
"""``f(piece, levels)``: the rows of a piece at levels in [0, 1) of the weight of those that are learnt from."""


class Mix(NamedTuple):
    """Pieces whose rows are mixed: one of several parts of each."""

    pieces: tuple[int, ...]
    part: int
    parts: int


@dataclass(frozen=True, eq=False)
class Shuffled:
    """A sequence without end: epoch after epoch of all rows, each in another order.

    The rows of an epoch are cut into mixes of at most :data:`MIXED_TOKENS`. A mix has rows of as many pieces as possible, at
    random places of all files: a piece is read up to :data:`SPREAD` times in an epoch, and gives an equal part of its rows each
    time. So every mix is a uniform sample of up to ``SPREAD`` times as many rows. Every row comes once per epoch; one with a
    weight as often as that says, to within one. Which row stands where follows from the seed alone, so that a run that was
    stopped goes on with the same rows.
    """

    pick: Pick
    draws: Sequence[int]  # rows that each piece gives in an epoch
    seed: int
    digest: str  # tells the files from others
    empty: Batch  # no rows, of the types that there are
    order: tuple[int, ...] | None = None  # of the sites, where it is another than the model's
    _last: dict[tuple[int, int], Batch] = field(default_factory=dict)  # the mix in use, by epoch and number

    def __len__(self) -> int:
        return sum(self.draws)

    def in_order(self, order: Sequence[int]) -> Shuffled:
        """Return the same rows with their sites in another order."""
        return replace(self, order=tuple(order), _last={})

    def chunk(self, number: int, size: int) -> Batch:
        """Return ``size`` rows of the sequence, those that follow on ``number`` times as many."""
        start, parts = number * size, list[Batch]()
        while size:
            epoch, within = divmod(start, len(self))
            mixes, ends = self._mixes(epoch)
            chosen = int(np.searchsorted(ends, within, side="right"))
            offset = within - (int(ends[chosen - 1]) if chosen else 0)
            mixed = self._mixed(epoch, chosen, mixes[chosen])
            own = slice(offset, min(offset + size, len(mixed.x)))
            parts.append(Batch(mixed.x[own], None if mixed.y is None else mixed.y[own]))
            start, size = start + len(parts[-1].x), size - len(parts[-1].x)
        return _joined(parts)

    def _mixes(self, epoch: int) -> tuple[list[Mix], np.ndarray]:
        """Return the mixes of an epoch, and how many rows have passed after each of them."""
        most = max(1, MIXED_TOKENS // self.empty.x.shape[1])
        return _plan(tuple(self.draws), most, number_of(self.seed, epoch))

    def _mixed(self, epoch: int, number: int, mix: Mix) -> Batch:
        """Read the rows of a mix in random order; they are kept, since the next chunk wants more of them."""
        if (epoch, number) not in self._last:
            self._last.clear()  # before others are read
            parts = _joined([self._part(epoch, piece, mix) for piece in sorted(mix.pieces)])
            source = torch.Generator().manual_seed(number_of(self.seed, epoch, number))
            order = torch.randperm(len(parts.x), generator=source)
            x = parts.x[order] if self.order is None else parts.x[order][:, list(self.order)]
            self._last[epoch, number] = Batch(x, None if parts.y is None else parts.y[order])
        return self._last[epoch, number]

    def _part(self, epoch: int, piece: int, mix: Mix) -> Batch:
        """Read the rows of a piece that are in a mix."""
        draws = self.draws[piece]
        order = np.random.default_rng([self.seed, epoch, piece]).permutation(draws)
        own = order[draws * mix.part // mix.parts : draws * (mix.part + 1) // mix.parts]
        return self.pick(piece, (np.sort(own) + 0.5) / draws)


@lru_cache(maxsize=4)
def _plan(draws: tuple[int, ...], most: int, seed: int) -> tuple[list[Mix], np.ndarray]:
    parts = min(SPREAD, max(1, -(-sum(draws) // most)))
    groups, sizes = [list[int]()], [0]
    for piece in np.random.default_rng(seed).permutation(len(draws)).tolist():
        if groups[-1] and sizes[-1] + draws[piece] > most * parts:
            groups.append([])
            sizes.append(0)
        groups[-1] += [piece] if draws[piece] else []
        sizes[-1] += draws[piece]
    mixes = [Mix(tuple(group), part, parts) for group in groups if group for part in range(parts)]
    each = [sum(draws[p] * (mix.part + 1) // parts - draws[p] * mix.part // parts for p in mix.pieces) for mix in mixes]
    return mixes, np.cumsum(each)


def number_of(*parts: int) -> int:
    """Make a seed of several numbers."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, parts)).encode()).digest()[:7])


def _joined(parts: Sequence[Batch]) -> Batch:
    """Copy batches into one."""
    x, y = ([part for part in column if part is not None] for column in ([p.x for p in parts], [p.y for p in parts]))
    return Batch(torch.cat(x), torch.cat(y) if y else None)


def rows_at(level: np.ndarray, weights: np.ndarray | Tensor | None, rows: int) -> np.ndarray:
    """Return the rows at levels in [0, 1) of the cumulative weight."""
    if weights is None:
        return np.asarray((level * rows).astype(np.int64)).clip(max=rows - 1)
    total = np.cumsum(weights)
    return np.asarray(np.searchsorted(total, level * total[-1], side="right")).clip(max=rows - 1)
