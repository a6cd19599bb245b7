"""Parquet and Arrow files, read by pyarrow a row group at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neurise.extras import need
from neurise.holdings import Holding
from neurise.stored.reading import Coded, Piece

LABELS, COUNTS = ("label",), ("count", "weight")
"""Columns that hold labels, and counts or weights, unless others are named."""
LARGEST = 2**29
"""Cells of a row group that are read at once at most."""


class ArrowFiles:
    """Tables with the same columns."""

    def __init__(
        self,
        files: Sequence[Path],
        label_column: str | int | None,
        count_column: str | int | None,
        columns: Sequence[str] | None,
        drop_columns: Sequence[str],
    ) -> None:
        self.files, self.pieces = files, list[Piece]()
        opened = [_opened(path) for path in files]
        known = opened[0].names
        for path, other in zip(files, opened, strict=True):
            if set(other.names) != set(known):
                lacking, more = sorted(set(known) - set(other.names)), sorted(set(other.names) - set(known))
                raise ValueError(
                    f"{path} has other columns than {files[0]}: it lacks {lacking}, and has {more} besides"
                )
        self.label = _column(files[0], known, label_column, LABELS, "label_column", drop_columns)
        self.count = _column(files[0], known, count_column, COUNTS, "count_column", drop_columns)
        for name in (*drop_columns, *(columns or ())):
            _require(files[0], known, name, "drop_column" if name in drop_columns else "columns")
        others = (self.label, self.count, *drop_columns)
        self.names = [name for name in known if name not in others] if columns is None else list(columns)
        if not self.names:
            raise ValueError(f"{files[0]} has no columns besides {', '.join(name for name in others if name)}")
        self.sites, first = len(self.names), 0
        for file, tables in enumerate(opened):
            for number, rows in enumerate(tables.rows):
                if rows * self.sites > LARGEST:
                    raise ValueError(
                        f"{files[file]} has a row group of {rows:,} rows, which do not fit into memory; write it with smaller "
                        "ones: pyarrow.parquet.write_table(table, path, row_group_size=500_000)"
                    )
                if rows:
                    self.pieces.append(Piece(file, number, rows, first))
                first += rows
        self._last: tuple[int, Any] = 0, opened[0]
        self._alone = (
            threading.Lock()
        )  # an open file is not for two threads: a training that has ended may read ahead still

    def table(self, piece: Piece) -> Any:
        """Read the columns of a piece that are used, as a pyarrow table."""
        wanted = [*self.names, *(name for name in (self.label, self.count) if name)]
        with self._alone:
            if self._last[0] != piece.file:  # thousands of files are not kept open together
                self._last = piece.file, _opened(self.files[piece.file])
            table = self._last[1].read(piece.number, wanted)
        if len(table) != piece.rows:
            raise OSError(f"{self.files[piece.file]} has changed since it was opened")
        return table

    def read(self, piece: Piece) -> Holding:
        """Read a piece: sites, labels, and counts or weights."""
        table, where = self.table(piece), f"{self.files[piece.file]}, row group {piece.number}"
        y = None if self.label is None else plain_column(table[self.label], f"{where}, column {self.label!r}")
        masses = None
        if self.count is not None:
            masses = _masses(plain_column(table[self.count], f"{where}, column {self.count!r}"), where, self.count)
        return Holding(_without_gaps(table.select(self.names), where), y, masses)

    def column(self, rows: Any, site: int) -> Coded:
        """Return a column of some rows."""
        return coded_column(rows.column(site), f"column {self.names[site]!r}")

    def take(self, rows: Any, index: np.ndarray) -> Any:
        """Return some of the rows."""
        return rows.take(need("pyarrow", "parquet").array(index))

    def join(self, parts: Sequence[Any]) -> Any:
        """Put rows of several pieces together."""
        arrow = need("pyarrow", "parquet")
        return arrow.concat_tables(parts, promote_options="permissive").unify_dictionaries()


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._file = need("pyarrow.parquet", "parquet").ParquetFile(path, memory_map=True)
        self.names: list[str] = self._file.schema_arrow.names
        groups = self._file.metadata
        self.rows = [groups.row_group(k).num_rows for k in range(groups.num_row_groups)]

    def read(self, number: int, columns: list[str]) -> Any:
        return self._file.read_row_group(number, columns=columns, use_threads=False)


class _Batches:
    """Arrow's own files, of which Feather is one: batches of rows as they are in memory."""

    def __init__(self, path: Path) -> None:
        self._arrow = need("pyarrow", "parquet")
        self._file = need("pyarrow.ipc", "parquet").open_file(self._arrow.memory_map(str(path)))
        self.names: list[str] = self._file.schema.names
        self.rows = [self._file.get_batch(k).num_rows for k in range(self._file.num_record_batches)]

    def read(self, number: int, columns: list[str]) -> Any:
        return self._arrow.Table.from_batches([self._file.get_batch(number)]).select(columns)


def _opened(path: Path) -> Any:
    arrow = need("pyarrow", "parquet")
    try:
        tables: Any = _Parquet(path) if path.suffix.lower() == ".parquet" else _Batches(path)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"{path} is damaged, cut short or no {path.suffix} file ({error!s:.200})") from error
    if len(set(tables.names)) < len(tables.names):
        raise ValueError(f"{path} has two columns of the same name")
    return tables


def _without_gaps(table: Any, where: str) -> Any:
    """Refuse missing values and nested columns."""
    kinds = need("pyarrow", "parquet").types
    for name in table.column_names:
        column = table[name]
        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise ValueError(f"{where}, column {name!r}, row {row}: a value is missing; rows in files need all values")
        if kinds.is_nested(column.type):
            raise ValueError(f"{where}, column {name!r} holds {column.type}; one value per row is needed")
    return table


def plain_column(column: Any, where: str) -> np.ndarray:
    """Return a column of a table as an array."""
    index, values = coded_column(column, where)
    return index if values is None else np.array(values)[index]


def coded_column(column: Any, where: str) -> Coded:
    """Return a column of a table as whole numbers. Buffers are read as they are: pyarrow's own way would import pandas."""
    arrow = need("pyarrow", "parquet")
    kinds = arrow.types
    if column.null_count or kinds.is_nested(column.type):
        raise ValueError(f"{where} has missing values or holds {column.type}; one value per row is needed")
    if kinds.is_integer(column.type):
        return Coded(_buffer(column.chunks, column.type.to_pandas_dtype()))
    if kinds.is_floating(column.type):
        numbers = _buffer(column.chunks, column.type.to_pandas_dtype())
        return Coded.of(numbers)
    if kinds.is_boolean(column.type):
        return Coded(_buffer(column.cast(arrow.uint8()).chunks, np.uint8).astype(bool))
    coded = column if kinds.is_dictionary(column.type) else column.dictionary_encode()
    coded = coded.unify_dictionaries()
    if not coded.num_chunks:
        return Coded(np.zeros(0, np.int64), [])
    dtype = coded.type.index_type.to_pandas_dtype()
    return Coded(_buffer([part.indices for part in coded.chunks], dtype), coded.chunk(0).dictionary.to_pylist())


def _buffer(parts: Sequence[Any], dtype: Any) -> np.ndarray:
    found = [np.frombuffer(part.buffers()[1], dtype)[part.offset :][: len(part)] for part in parts if len(part)]
    return np.concatenate(found) if found else np.zeros(0, dtype)


def _column(
    path: Path, known: Sequence[str], named: str | int | None, usual: Sequence[str], option: str, dropped: Sequence[str]
) -> str | None:
    if named is None:
        return next((name for name in known if name.lower() in usual and name not in dropped), None)
    if named not in known and str(named).isdigit() and int(named) < len(known):  # its number from 0
        return known[int(named)]
    _require(path, known, str(named), option)
    return str(named)


def _require(path: Path, known: Sequence[str], name: str, option: str) -> None:
    if name not in known:
        raise ValueError(f"{path} has no column {name!r} ({option}); it has {', '.join(map(repr, known[:20]))}")


def _masses(values: np.ndarray, where: str, name: str) -> np.ndarray:
    masses = values.astype(np.float64) if values.dtype.kind in "biuf" else np.full(len(values), np.nan)
    wrong = ~np.isfinite(masses) | (masses < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{where}, row {row}: {name} is {values[row].item()!r}; a count or weight is a number, not negative"
        )
    return masses
