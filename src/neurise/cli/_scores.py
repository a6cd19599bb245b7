"""Scores of many rows: gathered block by block, the sites' in a temporary file, and written to a table or an archive."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from neurise.datasets.formats.endings import TABLES, ending_of, is_packed
from neurise.datasets.formats.open import create_text
from neurise.files import write_atomically

if TYPE_CHECKING:
    from neurise.modeling.model import Model

BLOCK = 2**18
"""Numbers that are written as text at a time."""


class Scores:
    """Log-probabilities of all rows, (N,), and the surprises of their sites, (N, sites), which stay on the disk."""

    def __init__(self, spool: IO[bytes]) -> None:
        self.spool, self.of, self.given = spool, "", ""
        self.log_prob = self.error = np.empty(0)
        self.sites: np.ndarray | None = None

    def gather(self, model: Model, X: Any, y: Any, **options: Any) -> None:
        """Score all rows."""
        from neurise.progress import Progress
        from neurise.scoring import in_blocks

        values, errors, progress = [], [], Progress("scoring", "rows", verbose=None)
        for rows, part in in_blocks(model, X, y, **options):
            values.append(part.log_prob)
            errors.append(np.zeros(len(part.log_prob)) if part.error is None else part.error)
            if part.sites is not None:
                self.spool.write(part.sites.astype(np.float32).tobytes())
            self.of, self.given = part.of, part.given
            progress.update(rows.stop, rows.stop / len(X), last=rows.stop == len(X))
        progress.close()
        self.log_prob, self.error = np.concatenate(values), np.concatenate(errors)
        self.spool.flush()
        if self.spool.tell():
            self.sites = np.memmap(self.spool, np.float32, "r", shape=(len(X), model.space_.sites))


@contextmanager
def scored(model: Model, X: Any, y: Any, folder: Path, **options: Any) -> Iterator[Scores]:
    """Score all rows, with what does not fit into memory in a file of the folder that nobody sees."""
    with tempfile.TemporaryFile(dir=folder) as spool:
        found = Scores(spool)
        found.gather(model, X, y, **options)
        yield found


def check_scores_file(path: Path) -> None:
    """Refuse a name that scores cannot be written to."""
    if ending_of(path) not in (".npz", *TABLES):
        raise ValueError(f"{path}: scores are written to .csv, .tsv (and .gz behind them) or .npz")


def write_scores(path: Path, columns: Mapping[str, np.ndarray], sites: np.ndarray | None, names: Sequence[str]) -> None:
    """Write one line per row: the columns, then ``surprise_NAME`` of every site; an archive has them as ``surprise``."""
    write_atomically(path, lambda place: _write(place, columns, sites, names))


def _write(path: Path, columns: Mapping[str, np.ndarray], sites: np.ndarray | None, names: Sequence[str]) -> None:
    if ending_of(path) == ".npz":
        more = {} if sites is None else {"surprise": sites, "sites": np.array(names)}
        with path.open("wb") as file:
            np.savez(file, **columns, **more)  # type: ignore[arg-type]
        return
    import csv

    rows = len(next(iter(columns.values())))
    step = max(1, BLOCK // (len(columns) + (0 if sites is None else sites.shape[1])))
    with create_text(path, packed=is_packed(path)) as file:
        writer = csv.writer(file, delimiter="\t" if ending_of(path) == ".tsv" else ",", lineterminator="\n")
        writer.writerow([*columns, *([] if sites is None else (f"surprise_{name}" for name in names))])
        for start in range(0, rows, step):
            part = slice(start, start + step)
            front = zip(*(column[part].tolist() for column in columns.values()), strict=True)
            if sites is None:
                writer.writerows(front)
                continue
            # Seven digits are all that a float32 has; a gap has no surprise.
            behind = (["" if value != value else f"{value:.7g}" for value in row] for row in sites[part].tolist())
            writer.writerows([*before, *row] for before, row in zip(front, behind, strict=True))
