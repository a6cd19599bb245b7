"""Rows of tokens with weights, labels and folds: what every fit receives. Draw minibatches, and hold some rows back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Generator, Tensor

AT_ONCE = 2**20
"""Tokens that are hashed at once."""
MOST_FOLDS = 256
"""A fold is stored in a byte."""


class Batch(NamedTuple):
    """Some rows: their tokens (n, sites), labels (n,), folds (n,) and gaps (n, sites); None where the data has none."""

    x: Tensor
    y: Tensor | None = None
    fold: Tensor | None = None
    missing: Tensor | None = None


class Source(Protocol):
    """Where minibatches come from."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    @property
    def device(self) -> torch.device:
        """Where minibatches are wanted."""

    @property
    def num_bytes(self) -> int:
        """How much memory the rows take there."""

    @property
    def advance(self) -> Callable[[int], None] | None:
        """Return what makes ready for the draw of a step, where something is to be done that cannot be part of it."""

    def draw(self, n: int, *, generator: Generator) -> Batch:
        """Draw n rows with replacement, each with probability proportional to its weight."""

    def spread(self, n: int, *, generator: Generator) -> Batch:
        """Repeat the rows to make n of them, each as often as its weight says to within one, in random order."""


class Chunks(Protocol):
    """A sequence of rows that is cut into chunks."""

    @property
    def empty(self) -> Batch:
        """No rows, of the types that there are."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    def chunk(self, number: int, size: int) -> Batch:
        """Return the rows of a chunk, which follow from its number."""


class Stream(Chunks, Protocol):
    """Rows that are on disk."""

    @property
    def digest(self) -> str:
        """Tells the files from others."""

    def in_order(self, order: Sequence[int]) -> Stream:
        """Return the rows with their sites in another order."""


@dataclass(frozen=True)
class Rows:
    """Tokens (N, sites) uint8, labels (N,), weights (N,) float64, folds (N,) uint8 and gaps (N, sites) booleans.

    Each but the tokens may be None. Without weights all rows count the same. The fold of a row is the number of the
    committee member that must not learn from it, and is validated by it. Where ``missing``, the value is not known, and the
    token there means nothing. With a ``stream`` these rows are a uniform sample, for what needs rows at once, of
    more that are on disk: minibatches come from there.
    """

    x: Tensor
    y: Tensor | None = None
    weights: Tensor | None = None
    fold: Tensor | None = None
    missing: Tensor | None = None
    stream: Stream | None = None
    advance: ClassVar[None] = None  # rows that are all here are always ready

    def __len__(self) -> int:
        return len(self.x)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.x.device

    @property
    def num_bytes(self) -> int:
        """How much memory the tokens take, and the gaps."""
        return self.x.numel() + (0 if self.missing is None else self.missing.numel())

    def to(self, device: torch.device) -> Rows:
        """Move everything to a device."""
        return self._each(lambda part: part.to(device))

    def take(self, index: Tensor) -> Rows:
        """Pick rows, with what belongs to them."""
        return self._each(lambda part: part[index])

    def in_order(self, order: Sequence[int] | None) -> Rows:
        """Return the rows with their sites in another order; None leaves them as they are."""
        if order is None:
            return self
        stream = None if self.stream is None else self.stream.in_order(order)
        gaps = None if self.missing is None else self.missing[:, list(order)]
        return replace(self, x=self.x[:, list(order)], missing=gaps, stream=stream)

    def has_all_folds(self, folds: int) -> bool:
        """Whether there is a row in each of the folds."""
        return self.fold is not None and bool(torch.bincount(self.fold, minlength=folds).all())

    def of_folds_below(self, number: int) -> Rows:
        """Return the rows of the first folds."""
        return self if self.fold is None else self.take(torch.nonzero(self.fold < number).flatten())

    def _each(self, change: Callable[[Tensor], Tensor]) -> Rows:
        others = (self.y, self.weights, self.fold, self.missing)
        y, weights, fold, gaps = (None if part is None else change(part) for part in others)
        return Rows(change(self.x), y, weights, fold, gaps)

    @cached_property
    def _cumulative(self) -> Tensor | None:
        return None if self.weights is None else self.weights.cumsum(0)

    def draw(self, n: int, *, generator: Generator) -> Batch:
        """Draw n rows with replacement, each with probability proportional to its weight."""
        return self.at(torch.rand(n, generator=generator, device=self.x.device, dtype=torch.float64))

    def spread(self, n: int, *, generator: Generator) -> Batch:
        """Repeat the rows to make n of them, each as often as its weight says to within one, in random order."""
        order = torch.randperm(n, generator=generator, device=self.x.device)
        return self.at((order.double() + 0.5) / n)

    def at(self, level: Tensor) -> Batch:
        """Pick the rows at given levels in [0, 1) of the cumulative weight."""
        if self._cumulative is None:
            index = (level * len(self)).long()
        else:
            index = torch.searchsorted(self._cumulative, level * self._cumulative[-1], right=True)
        index = index.clamp(max=len(self) - 1)
        y, fold, gaps = (None if part is None else part[index] for part in (self.y, self.fold, self.missing))
        return Batch(self.x[index], y, fold, gaps)


def without_fold(rows: Rows, held: Rows | None, number: int) -> tuple[Rows, Rows | None]:
    """Return the rows that a member of a committee learns from, and those that judge it: its own fold, where there are any."""
    own = rows if rows.fold is None else rows.take(rows.fold != number)
    aside = held if held is None or held.fold is None else held.take(held.fold == number)
    return replace(own, fold=None), None if aside is None else replace(aside, fold=None)


def are_counts(weights: Tensor) -> bool:
    """Whether weights are whole numbers: counts of equal observations."""
    return bool((weights == weights.round()).all()) and bool(weights.max() > 1)


def into_folds(counts: Tensor, folds: int, *, generator: Generator) -> Iterator[Tensor]:
    """Put every observation into one of the folds at random; yield how many of each row a fold has, fold after fold."""
    left = counts
    for fold in range(folds):
        taken = torch.binomial(left, torch.full_like(left, 1 / (folds - fold)), generator=generator)
        left = left - taken
        yield taken


def split(rows: Rows, fraction: float, *, generator: Generator) -> tuple[Rows, Rows | None]:
    """Hold back a fraction of the observations.

    Whole-number weights are counts of equal observations, and each *observation* goes to one side or the other: a row
    seen m times is held back Binomial(m, fraction) times, so that both sides follow the same law. Without counts, rows
    are shuffled and cut. None is held back where that would leave a side empty.
    """
    if fraction == 0:
        return rows, None
    if rows.weights is not None and are_counts(rows.weights):
        held = torch.binomial(rows.weights, torch.full_like(rows.weights, fraction), generator=generator)
        kept = rows.weights - held
        if not kept.any() or not held.any():
            return rows, None
        return _with_weights(rows, kept), _with_weights(rows, held)
    cut = round(len(rows) * fraction)
    if cut == 0 or cut == len(rows):
        return rows, None
    order = torch.randperm(len(rows), generator=generator, device=rows.x.device)
    kept_rows, held_rows = rows.take(order[cut:]), rows.take(order[:cut])
    if any(part.weights is not None and not part.weights.any() for part in (kept_rows, held_rows)):
        return rows, None
    return kept_rows, held_rows


def with_folds(rows: Rows, folds: int, *, seed: int) -> Rows:
    """Put every observation into one of the folds at random.

    Rows fall into folds that are equally large to within one. Whole-number weights are counts of equal observations, each
    of which falls into a fold of its own: a row is there once for every fold that holds some of them, with their number.
    """
    generator = torch.Generator().manual_seed(seed)
    if rows.weights is None or not are_counts(rows.weights):
        return replace(rows, fold=(torch.randperm(len(rows), generator=generator) % folds).to(torch.uint8))
    counts = torch.stack(list(into_folds(rows.weights, folds, generator=generator)), dim=1)
    place, fold = torch.nonzero(counts, as_tuple=True)
    return replace(rows.take(place), weights=counts[place, fold], fold=fold.to(torch.uint8))


def _with_weights(rows: Rows, weights: Tensor) -> Rows:
    present = weights > 0
    return replace(rows.take(present), weights=weights[present])


def likeness(rows: Rows) -> str:
    r"""Tell collections of rows apart, in whatever order they stand; a row with the count m is m equal rows.

    It is :math:`\sum_r m_r\, h(r)` modulo 2⁶⁴, twice, with h a hash of the row: a sum of random numbers, one for every site
    and token, that is mixed. A gap is a token of its own. Weights that are no counts are part of the row.
    """
    x, sites = rows.x, rows.x.shape[1]
    random = torch.Generator().manual_seed(0)
    table = torch.randint(-(2**63), 2**63 - 1, (sites, 257), generator=random)
    place, totals, count = torch.arange(sites), [0, 0], 0
    size = max(1, AT_ONCE // max(1, sites))
    whole = rows.weights is None or are_counts(rows.weights) or bool((rows.weights == 1).all())
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        tokens = x[part].long() if rows.missing is None else x[part].long().masked_fill(rows.missing[part], 256)
        hashed = table[place, tokens].sum(1)
        often = torch.ones_like(hashed)
        if rows.weights is not None:
            masses = rows.weights[part].double()
            often = masses.long() if whole else often
            hashed = hashed if whole else hashed + 3 * masses.view(torch.int64)
        count += int(often.sum())
        for number, (shift, factor) in enumerate(((29, -4658895280553007687), (32, -7723592293110705685))):
            mixed = (hashed ^ (hashed >> shift)) * factor
            mixed = (mixed ^ (mixed >> 31)) * factor
            totals[number] = (totals[number] + int((often * (mixed ^ (mixed >> 33))).sum())) % 2**64
    return f"{count}-{totals[0]:016x}{totals[1]:016x}"


def digest(*parts: Rows | None) -> str:
    """Tell data sets apart, by what is in them."""
    total = hashlib.sha256()
    for part in parts:
        gaps = () if part is None or part.missing is None else (part.x.masked_fill(part.missing, 0), part.missing)
        for tensor in (None,) if part is None else (*(gaps or (part.x,)), part.y, part.weights):
            total.update(b"-" if tensor is None else str(tuple(tensor.shape)).encode())
            total.update(b"" if tensor is None else tensor.contiguous().cpu().numpy().data)
    return total.hexdigest()[:16]
