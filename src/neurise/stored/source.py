"""Rows in files as something that a model learns from, scores and samples of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.holdings import Holding
from neurise.labels import Labels
from neurise.progress import Progress
from neurise.rows import Batch, Rows
from neurise.schema import Schema, learn_schema
from neurise.stored.arrow import ArrowFiles
from neurise.stored.finding import ARROW
from neurise.stored.levels import level_of_share, levels
from neurise.stored.reading import MappedArrays, Piece, Reader, digest_of
from neurise.stored.shuffled import Shuffled, rows_at
from neurise.stored.survey import Survey
from neurise.stored.translation import Translation

SAMPLED, HELD = 2**18, 2**16
"""Rows of the sample that stands for all, and rows to validate with, at most."""
SAMPLED_TOKENS = 2**26
"""Tokens of either at most."""


class Stored:
    """Rows in files. Nothing is read until a model asks."""

    def __init__(
        self,
        files: Sequence[Path],
        label_column: str | int | None = None,
        count_column: str | int | None = None,
        columns: Sequence[str] | None = None,
        drop_columns: Sequence[str] = (),
    ) -> None:
        if files[0].suffix.lower() in ARROW:
            self.reader: Reader = ArrowFiles(files, label_column, count_column, columns, drop_columns)
        else:
            for name, value in (("label_column", label_column), ("count_column", count_column), ("columns", columns)):
                if value is not None:
                    raise ValueError(f"{files[0]} holds rows alone; {name} is for {', '.join(ARROW)}")
            if drop_columns:
                raise ValueError(f"{files[0]} has no names of columns; drop_column is for {', '.join(ARROW)}")
            self.reader = MappedArrays(files)
        if not len(self):
            raise ValueError(f"{files[0]}{' and the others have' if len(files) > 1 else ' has'} no rows")

    def __len__(self) -> int:
        return sum(piece.rows for piece in self.reader.pieces)

    def __repr__(self) -> str:
        files = self.reader.files
        return f"<{len(self):,} rows of {self.reader.sites} sites in {len(files):,} file{'s'[: len(files) != 1]}>"

    def blocks(self) -> Iterator[Holding]:
        """Read all rows, a piece at a time."""
        return (self.reader.read(piece) for piece in self.reader.pieces)

    @property
    def num_bytes(self) -> int:
        """About how much memory all rows would take, as numbers of eight bytes."""
        return 8 * len(self) * self.reader.sites

    def everything(self) -> Holding:
        """Read all rows into memory."""
        return _joined(self.reader, list(self.blocks()))

    def as_holding(self, rows: int | None = None, seed: int = 0) -> Holding:
        """Read a uniform sample of the rows, without replacement."""
        most = self._most(SAMPLED) if rows is None else rows
        below = level_of_share(len(self), most, seed)
        parts = [
            _taken(self.reader, self.reader.read(piece), self._levels(piece, seed) < below)
            for piece in self.reader.pieces
        ]
        return _joined(self.reader, parts)

    def learn(
        self,
        y: Any,
        weights: Any,
        validation: Any,
        *,
        alphabet: Any,
        order: Any,
        fraction: float,
        seed: int,
        verbose: bool | None,
    ) -> tuple[Schema, Rows, Rows | None]:
        """Go over the files once: return what the data looks like, rows to learn from, and rows to validate with.

        The validation rows are a ``fraction``, at most :data:`HELD` of them, and are chosen by a random number for each place,
        which every later pass gives again.
        """
        for name, value in (("y", y), ("weights", weights)):
            if value is not None:
                raise ValueError(
                    f"{name} cannot be given for rows in files; open_rows(…, label_column=, count_column=) names it"
                )
        if isinstance(alphabet, Mapping) and (cut := [name for name, own in alphabet.items() if hasattr(own, "cut")]):
            raise ValueError(
                f"alphabet cuts {cut[0]!r} into bins, which need all of its values at once; rows in files want the number of the "
                "bin in their place"
            )
        total = len(self)
        wanted = 0 if validation is not None or not fraction else max(1, min(round(fraction * total), self._most(HELD)))
        below = level_of_share(total, wanted, seed)
        upto = level_of_share(total, min(total, wanted + self._most(SAMPLED)), seed)
        survey, kept, held, masses = Survey(self.reader), list[Holding](), list[Holding](), []
        progress = Progress("reading", "rows", verbose=verbose)
        present = 0
        for piece in self.reader.pieces:
            block, level = _present(self.reader, self.reader.read(piece), self._levels(piece, seed))
            present += len(level)
            survey.see(block)
            train = level >= below
            held.append(_taken(self.reader, block, ~train))
            kept.append(_taken(self.reader, block, train & (level < upto)))
            masses.append(float(train.sum()) if block.weights is None else float(block.weights[train].sum()))
            progress.update(piece.first + piece.rows, (piece.first + piece.rows) / total)
        progress.close()
        schema, given = self._schema(survey, validation, present, alphabet=alphabet, order=order)
        encode = partial(_encoded, schema, Translation(schema, self.reader, survey.exemplars()[0]))
        sample, own = (encode(_joined(self.reader, parts)) for parts in (kept, held))
        if not len(sample) or not sum(masses):
            raise ValueError(
                f"{self!r} leave nothing to learn from besides the validation rows, or no row has a weight"
            )
        stream = Shuffled(
            partial(self._picked, encode, below, seed),
            _shares(masses, round(sum(masses)) if sample.weights is None else present),
            seed,
            digest_of(self.reader.files),
            Batch(sample.x[:0], None if sample.y is None else sample.y[:0]),
        )
        rows = replace(sample, stream=stream)
        return schema, rows, given if given is not None or not len(own) else own

    def _picked(self, encode: Callable[[Holding], Rows], below: float, seed: int, number: int, at: np.ndarray) -> Batch:
        """Read a piece, and pick rows at levels of the weight of those that are learnt from."""
        piece = self.reader.pieces[number]
        block, level = _present(self.reader, self.reader.read(piece), self._levels(piece, seed))
        learnt = np.flatnonzero(level >= below)
        chosen = learnt[rows_at(at, None if block.weights is None else block.weights[learnt], len(learnt))]
        rows = encode(_taken(self.reader, block, chosen))
        return Batch(rows.x, rows.y)

    def _schema(
        self, survey: Survey, validation: Any, count: int, *, alphabet: Any, order: Any
    ) -> tuple[Schema, Rows | None]:
        """Learn the alphabets from rows that show every symbol; with the validation rows that were given, if any."""
        X, y = survey.exemplars()
        found, _, given = learn_schema(X, y, None, validation, alphabet=alphabet, order=order)
        labels = found.labels
        if labels is not None:
            masses = np.array([survey.labels[value] for value in labels.classes.tolist()])
            labels = Labels(labels.classes, masses / masses.sum())
        return replace(found, labels=labels, count=count, digest=""), given

    def _levels(self, piece: Piece, seed: int) -> np.ndarray:
        return levels(piece.first, piece.first + piece.rows, seed)

    def _most(self, rows: int) -> int:
        return max(1, min(rows, SAMPLED_TOKENS // self.reader.sites))


def _present(reader: Reader, block: Holding, level: np.ndarray) -> tuple[Holding, np.ndarray]:
    """Leave out rows of weight zero, which are as good as absent."""
    if block.weights is None or block.weights.all():
        return block, level
    there = block.weights > 0
    return _taken(reader, block, there), level[there]


def _taken(reader: Reader, block: Holding, chosen: np.ndarray) -> Holding:
    """Take rows by a mask or by their numbers."""
    index = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
    y, weights = (None if part is None else part[index] for part in (block.y, block.weights))
    return Holding(reader.take(block.X, index), y, weights)


def _joined(reader: Reader, parts: Sequence[Holding]) -> Holding:
    labels, weights = (
        [part for part in column if part is not None] for column in zip(*((p.y, p.weights) for p in parts), strict=True)
    )
    return Holding(
        reader.join([part.X for part in parts]),
        np.concatenate(labels) if labels else None,
        np.concatenate(weights) if weights else None,
        name="rows in files",
    )


def _encoded(schema: Schema, translate: Translation, block: Holding) -> Rows:
    if not len(block.X):
        return Rows(
            torch.zeros((0, schema.space.sites), dtype=torch.uint8), _empty(block.y, torch.int64), _empty(block.weights)
        )
    masses = None if block.weights is None else torch.from_numpy(block.weights)
    return Rows(translate(block.X), schema.encode_labels(block.y, len(block.X)), masses)


def _empty(part: Any, dtype: torch.dtype = torch.float64) -> Tensor | None:
    return None if part is None else torch.zeros(0, dtype=dtype)


def _shares(masses: Sequence[float], draws: int) -> list[int]:
    """Divide the draws of an epoch among pieces in proportion to their masses."""
    ends = np.round(np.cumsum(masses) / np.sum(masses) * draws).astype(np.int64)
    return np.diff(ends, prepend=0).tolist()  # type: ignore[no-any-return]
