"""Columns with alphabets of their own ⇄ tokens: what :class:`neurise.alphabet.Alphabet` is for rows of one alphabet.

Site i has the tokens 0 … p_i − 1 in the numbering of its own column. Columns of data frames are matched by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from neurise.alphabet import NO_MISSING, as_array, first
from neurise.binning import Bins
from neurise.column import Column, Given
from neurise.fields import Field
from neurise.frames import KINDS, frame_kind, given_of, make_frame, read_frame

ARRAY, TENSOR = "array", "tensor"
"""Rows without names: a numpy array or nested lists, or a torch tensor."""


class Read(NamedTuple):
    """Tokens (N, sites) uint8, and which entries are missing, (N, sites) booleans: their tokens mean nothing."""

    tokens: np.ndarray
    missing: np.ndarray


@dataclass(frozen=True)
class Rows:
    """The rows of a table, column by column, as they were given."""

    given: list[Given]
    frame: str
    dtype: str = "O"

    @classmethod
    def of(cls, data: Any, what: str = "X") -> Rows:
        """Read a data frame, a table, a masked array, an array, or nested lists."""
        if isinstance(data, Rows):
            return data
        kind = frame_kind(data)
        if kind is not None:
            return cls(read_frame(data, what), kind)
        gone = np.ma.getmaskarray(data) if isinstance(data, np.ma.MaskedArray) else None
        array = as_array(data if gone is None else np.ma.getdata(data), what)
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"{what} must be a matrix of N rows and one column per site; its shape is {array.shape}")
        given = [given_of(str(place), column)._replace(nameless=True) for place, column in enumerate(array.T)]
        if gone is not None:
            given = [own._replace(missing=own.missing | mask) for own, mask in zip(given, gone.T, strict=True)]
        dtype = array.dtype.str if array.dtype.kind in "biuf" else "O"
        return cls(given, TENSOR if isinstance(data, torch.Tensor) else ARRAY, dtype)

    def __len__(self) -> int:
        return len(self.given[0].values)

    def __getitem__(self, rows: np.ndarray) -> Rows:
        return Rows([own.take(rows) for own in self.given], self.frame, self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.given)


@dataclass(frozen=True)
class Columns:
    """The columns of a table, and the kind of table that they came in."""

    columns: tuple[Column, ...]
    frame: str  # "pandas", "polars", "pyarrow", "table", "array" or "tensor"
    dtype: str = "O"  # numpy's name of the type of an array; objects where columns differ

    @classmethod
    def of(cls, data: Any, names: Any = None) -> Columns:
        """Read the columns off the data. ``names`` are alphabets: a list with one per column, or a dict of some by name."""
        rows = Rows.of(data)
        wanted = wanted_alphabets(names, [column.name for column in rows.given])
        columns = tuple(Column.of(column, wanted.get(column.name)) for column in rows.given)
        return cls(columns, rows.frame, rows.dtype)

    def __len__(self) -> int:
        return max(self.sizes)

    def __str__(self) -> str:
        shown = ", ".join(f"{column.name}: {column}" for column in self.columns[:5])
        return f"{{{shown}{', …' if len(self.columns) > 5 else ''}}}"

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the columns, in the user's order."""
        return tuple(column.name for column in self.columns)

    @property
    def named(self) -> tuple[str, ...] | None:
        """The names that the user gave to the columns; None where there are none, or where some are numbers."""
        given = self.frame not in (ARRAY, TENSOR) and all(isinstance(name, str) for name in self.names)
        return self.names if given else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many symbols each column has."""
        return tuple(map(len, self.columns))

    @property
    def tensor(self) -> bool:
        """Whether the user gave a torch tensor."""
        return self.frame == TENSOR

    def encode(self, data: Any, what: str = "X", *, sites: int | None = None) -> torch.Tensor:
        """Translate symbols to tokens, (N, sites) uint8, in the order of the columns that were fitted."""
        found = self.read(data, what)
        if found.missing.any():
            row, column = first(found.missing)
            raise ValueError(f"{what} has no value at row {row} of the column {self.names[column]!r}; {NO_MISSING}")
        return torch.from_numpy(found.tokens)

    def read(self, data: Any, what: str = "X") -> Read:
        """Translate symbols to tokens, and say which are missing."""
        given = self._matched(Rows.of(data, what).given, what)
        tokens = [column.tokens(own, what) for column, own in zip(self.columns, given, strict=True)]
        return Read(np.stack(tokens, axis=1), np.stack([own.missing for own in given], axis=1))

    def _matched(self, given: list[Given], what: str) -> list[Given]:
        """Put columns in the order of those that were fitted: by name, where both have names."""
        own, named = {str(column.name): column for column in given}, [str(name) for name in self.names]
        if self.frame in (ARRAY, TENSOR) or all(column.nameless for column in given):
            if len(given) != len(named):
                raise ValueError(
                    f"{what} has {len(given)} features, but neurise is expecting {len(named)} features as input, one per site"
                )
            return given
        lacking, extra = [name for name in named if name not in own], [name for name in own if name not in named]
        if lacking or extra:
            parts = [f"lacks {', '.join(map(repr, lacking))}"] if lacking else []
            parts += [f"has {', '.join(map(repr, extra))}, which the model does not know"] if extra else []
            way_out = "; leave it out (--drop-column on the command line)" if extra and not lacking else ""
            raise ValueError(
                f"{what} {' and '.join(parts)}; the model has the columns {', '.join(map(repr, named))}{way_out}"
            )
        return [own[name] for name in named]

    def decode(self, tokens: torch.Tensor, generator: torch.Generator | None = None) -> Any:
        """Translate tokens back to the kind of table that was fitted; numbers of binned columns are drawn inside their bins.

        Without a generator they are the middles of the bins.
        """
        found, rng = tokens.cpu().numpy(), None
        if generator is not None and any(column.edges is not None for column in self.columns):
            seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
            rng = np.random.default_rng(int(seed))
        if self.frame not in (ARRAY, TENSOR):
            return make_frame(self.frame, self.columns, found, rng)
        parts = [column.values(own, rng) for column, own in zip(self.columns, found.T, strict=True)]
        rows = np.stack(parts, axis=1).astype(self.dtype)
        return torch.from_numpy(rows) if self.tensor else rows

    def to_dict(self) -> dict[str, Any]:
        """Describe the columns in JSON's types."""
        columns = [column.to_dict() for column in self.columns]
        return {"columns": columns, "frame": self.frame, "dtype": self.dtype}

    @classmethod
    def from_field(cls, field: Field, sites: int) -> Columns:
        """Undo :meth:`to_dict`, for so many sites; whatever no data could have given is an error that names the field."""
        columns = tuple(Column.from_field(entry) for entry in field["columns"])
        if len(columns) != sites:
            raise field["columns"].wrong(f"one per site, {sites} of them")
        if len({str(column.name) for column in columns}) < sites:
            raise field["columns"].wrong("columns of different names")
        frame, dtype = field["frame"].text(), field["dtype"].text()
        if frame not in (*KINDS, "table", "narwhals", ARRAY, TENSOR):
            raise field["frame"].wrong(f"one of {', '.join((*KINDS, 'table', ARRAY, TENSOR))}")
        try:
            usable = np.dtype(dtype).kind in "biufO" and not (frame == TENSOR and np.dtype(dtype).kind == "O")
        except (TypeError, ValueError, SyntaxError):
            usable = False
        if not usable:
            raise field["dtype"].wrong("a type of numbers, or O")
        return cls(columns, frame, dtype)


def is_table(data: Any, names: Any) -> bool:
    """Whether data, or the alphabets that are named for them, have columns of their own."""
    if names is not None and (isinstance(names, Mapping) or _is_list_of_alphabets(names)):
        return True
    if isinstance(data, torch.Tensor):
        return False
    if isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        return False
    if frame_kind(data) is not None:
        return True
    if isinstance(data, np.ma.MaskedArray):  # what is masked is no value, whatever stands there
        data = np.ma.array(data, dtype=object).filled(None)
    try:
        array = as_array(data, "X")
    except ValueError:
        return False
    return array.ndim == 2 and array.size > 0 and _has_words(array)


def _has_words(array: np.ndarray) -> bool:
    """Whether rows hold words, or columns of different kinds, each of one kind."""
    if array.dtype.kind == "U":
        return bool((np.char.str_len(array) != 1).any())
    if array.dtype.kind != "O":
        return False
    kinds = [{_kind(value) for value in column} - {None} for column in array.T.tolist()]
    if any(len(own) > 1 or "other" in own for own in kinds):
        return False
    words = any(isinstance(value, str) and len(value) != 1 for value in array.ravel().tolist())
    return words or len({next(iter(own)) for own in kinds if own}) > 1


def _kind(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, bool | int | float | np.generic) else "other"


def _is_list_of_alphabets(names: Any) -> bool:
    if isinstance(names, str | bytes) or not isinstance(names, Sequence) or not len(names):
        return False
    return all(entry is None or isinstance(entry, list | tuple | range | np.ndarray | Bins) for entry in names)


def wanted_alphabets(names: Any, columns: Sequence[Any]) -> dict[Any, Any]:
    """Return the alphabets that the user names, by column."""
    if names is None:
        return {}
    if isinstance(names, Mapping):
        by_text = {str(name): name for name in columns}
        if strange := [name for name in names if str(name) not in by_text]:
            known = ", ".join(map(repr, columns))
            raise ValueError(f"alphabet names the column {strange[0]!r}, which X does not have: there are {known}")
        return {by_text[str(name)]: _plain(alphabet) for name, alphabet in names.items()}
    if not _is_list_of_alphabets(names):
        raise ValueError(
            f"the columns have alphabets of their own: alphabet must be a list with one per column, or a dict; got {names!r}"
        )
    if len(names) != len(columns):
        raise ValueError(f"alphabet has {len(names)} alphabets for {len(columns)} columns")
    return {name: _plain(alphabet) for name, alphabet in zip(columns, names, strict=True) if alphabet is not None}


def _plain(alphabet: Any) -> Any:
    """Return bins that were read from a file as bins."""
    if isinstance(alphabet, Mapping) and set(alphabet) == {"count", "edges"}:
        edges = alphabet["edges"]
        return Bins(alphabet["count"], None if edges is None else tuple(edges))
    return alphabet
