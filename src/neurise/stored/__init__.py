"""Rows in files that need not fit into memory: Parquet and Arrow files, folders of them, and ``.npy`` files mapped from disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from neurise.stored.finding import find_files
from neurise.stored.source import Stored

__all__ = ["Stored", "open_rows"]


def open_rows(
    source: str | Path | Iterable[str | Path],
    *,
    label_column: str | int | None = None,
    count_column: str | int | None = None,
    columns: Sequence[str] | None = None,
    drop_column: str | Sequence[str] | None = None,
) -> Stored:
    """Open files of rows without reading them; ``fit``, ``score`` and ``log_prob`` then read a block at a time.

    ``fit`` goes over the files once to learn their alphabets and to set validation rows apart. Then it trains on rows that are
    shuffled in blocks: row groups from random places of all files are read together and mixed. What needs all rows at once
    (pairwise terms, parents, a calibration; models that count) gets a uniform sample of at most 262,144 rows.

    Args:
        source: a file, a folder, a pattern such as ``"folder/*.parquet"``, or a list of files, all of one kind: ``.parquet``,
            ``.arrow`` or ``.feather`` (``pip install 'neurise[parquet]'``), or ``.npy``.
        label_column, count_column: columns of labels, and of counts or weights, by name or by number from 0. By default those
            that are called ``label``, and ``count`` or ``weight``. A ``.npy`` file has neither.
        columns: the columns that are sites, in their order; by default all others.
        drop_column: columns to leave out, "id,name" say, or a list of names.

    >>> import neurise, numpy as np
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + '/rows.npy'
    >>> np.save(path, np.zeros((1000, 4), dtype=np.uint8))
    >>> rows = neurise.open_rows(path)                 # nothing is read yet
    >>> len(rows)
    1000
    """
    dropped = drop_column.split(",") if isinstance(drop_column, str) else list(drop_column or ())
    return Stored(find_files(source), label_column, count_column, columns, dropped)


def is_stored(data: Any) -> bool:
    """Whether rows are in files."""
    return isinstance(data, Stored)
