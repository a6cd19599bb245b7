"""Which kinds of file there are, by how their names end."""

from __future__ import annotations

from pathlib import Path

WRITTEN = (".npy", ".npz", ".csv", ".tsv", ".fasta", ".fa", ".faa")
"""Files that rows are written to."""
FASTA = (".fasta", ".fa", ".faa", ".a2m", ".a3m")
STOCKHOLM = (".sto", ".stk")
ARROW = (".parquet", ".arrow", ".feather")
JSON = ".json"
ENDINGS = (*WRITTEN, *FASTA[3:], *STOCKHOLM, ".txt", JSON, *ARROW)
TABLES = (".csv", ".tsv")
ARRAYS = (".npy", ".npz")
UNPACKED = (*ARRAYS, *ARROW, JSON)
"""Files that gzip never stands behind."""
PACKED = ".gz"
"""What may stand behind the ending of any text."""


def ending_of(path: Path) -> str:
    """Return the ending that says what a file is, without a ``.gz`` behind it; an unknown one is an error."""
    ending = _known(path)
    if ending is None:
        raise ValueError(f"{path}: the ending {path.suffix!r} is not known; there are: {listed()}")
    return ending


def has_ending(path: Path) -> bool:
    """Whether the name of a file ends in a way that is known."""
    return _known(path) is not None


def is_packed(path: Path) -> bool:
    """Whether the name of a file says that it is packed by gzip."""
    return path.suffix.lower() == PACKED


def listed(endings: tuple[str, ...] = ENDINGS) -> str:
    """Write all endings, for an error."""
    return f"{', '.join(endings)} (and {PACKED} behind any text)"


def _known(path: Path) -> str | None:
    if not is_packed(path):
        ending = path.suffix.lower()
        return ending if ending in ENDINGS else None
    ending = Path(path.stem).suffix.lower()
    return ending if ending in ENDINGS and ending not in UNPACKED else None
