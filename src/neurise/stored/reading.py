"""Files that are read a piece at a time: which pieces there are, and what is in one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from neurise.holdings import Holding

PIECE = 2**16
"""Rows of a mapped array that are read at once."""


@dataclass(frozen=True)
class Piece:
    """Some rows of a file that are read together."""

    file: int
    number: int  # in the file
    rows: int
    first: int  # row of all files together


class Coded(NamedTuple):
    """A column as whole numbers: its values themselves, or places in a list of ``values``."""

    codes: np.ndarray  # (N,)
    values: Sequence[Any] | None = None

    @classmethod
    def of(cls, column: np.ndarray) -> Coded:
        """Write a column of an array as whole numbers."""
        if column.dtype.kind in "biu":
            return cls(column)
        values, codes = np.unique(column, return_inverse=True)
        return cls(codes, values.tolist())


class Reader(Protocol):
    """Files of one kind."""

    files: Sequence[Path]
    sites: int
    pieces: list[Piece]

    @property
    def names(self) -> Sequence[str] | None:
        """Return the names of the columns that are sites, where they have any."""

    def read(self, piece: Piece) -> Holding:
        """Read the rows of a piece, with their labels and weights."""

    def column(self, rows: Any, site: int) -> Coded:
        """Return a column of some rows."""

    def take(self, rows: Any, index: np.ndarray) -> Any:
        """Return some of the rows."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Put rows of several pieces together."""


class MappedArrays:
    """``.npy`` files, mapped from disk."""

    names = None

    def __init__(self, files: Sequence[Path]) -> None:
        self.files, self._arrays, self.pieces = files, [_mapped(path) for path in files], list[Piece]()
        self.sites = self._arrays[0].shape[1]
        first = 0
        for file, array in enumerate(self._arrays):
            if array.shape[1] != self.sites:
                raise ValueError(f"{files[file]} has {array.shape[1]} columns, and {files[0]} has {self.sites}")
            for number in range(-(-len(array) // PIECE)):
                rows = min(PIECE, len(array) - number * PIECE)
                self.pieces.append(Piece(file, number, rows, first))
                first += rows

    def read(self, piece: Piece) -> Holding:
        """Copy the rows of a piece into memory."""
        start = piece.number * PIECE
        return Holding(np.array(self._arrays[piece.file][start : start + piece.rows]))

    def column(self, rows: Any, site: int) -> Coded:
        """Return a column of some rows."""
        return Coded.of(rows[:, site])

    def take(self, rows: Any, index: np.ndarray) -> Any:
        """Return some of the rows."""
        return rows[index]

    def join(self, parts: Sequence[Any]) -> Any:
        """Put rows of several pieces together."""
        return np.concatenate(parts)


def _mapped(path: Path) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged, cut short or no .npy file of numbers or letters ({error})") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise ValueError(f"{path} must hold a matrix of N rows and one column per site; its shape is {np.shape(array)}")
    return array


def digest_of(files: Sequence[Path]) -> str:
    """Tell files apart by what is in them."""
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()[:16]
