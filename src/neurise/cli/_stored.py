"""Data in folders, patterns of files, or files that are too large for the memory: left on disk where a verb can do so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.holdings import Holding
    from neurise.stored import Stored

SHARE = 4
"""One file is left on disk where its rows would take more than such a part of the free memory."""

SHOWN = 1000
"""Rows that show what a file holds."""


def stored_rows(name: str, texts: Mapping[str, str]) -> Stored | None:
    """Open a folder, a pattern of files, or a large file, with options as they were typed; None for anything else."""
    path = Path(name)
    is_pattern = any(sign in name for sign in "*?[") and not path.exists()
    if not (path.is_dir() or is_pattern or _is_large(path)):
        return None
    from neurise.cli._options import typed
    from neurise.stored import open_rows

    return open_rows(**typed(name, open_rows, {"source": name, **texts}))


def sampled(stored: Stored, name: str) -> Dataset:
    """Make a data set of a uniform sample of the rows, for a verb that needs them at once."""
    from neurise.cli._output import say

    held = stored.as_holding()
    if len(held) < len(stored):
        say(f"{name}: a uniform sample of {len(held):,} of {len(stored):,} rows is taken")
    return _dataset(stored, held, name)


def first_rows(stored: Stored, name: str) -> Dataset:
    """Make a data set of the first rows, which show what there is, for a verb that reads the others itself."""
    import numpy as np

    from neurise.holdings import Holding

    block = stored.reader.read(stored.reader.pieces[0])
    some = np.arange(min(SHOWN, len(block)))
    y, weights = (None if part is None else part[some] for part in (block.y, block.weights))
    return _dataset(stored, Holding(stored.reader.take(block.X, some), y, weights), name)


def _dataset(stored: Stored, held: Holding, name: str) -> Dataset:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.frames import as_table
    from neurise.space import MAX_STATES, Space

    rows = held.X if stored.reader.names is None else as_table(held.X)
    found = set(np.asarray(rows).ravel().tolist())
    symbols = np.array(sorted(found if stored.reader.names is None else map(str, found)))
    space = Space(stored.reader.sites, min(MAX_STATES, len(symbols)))
    return Dataset(name, space, symbols, train=rows, labels=held.y, weights=held.weights)


def _is_large(path: Path) -> bool:
    """Whether a file that can be left on disk would take much of the memory."""
    from neurise.stored.finding import ENDINGS

    if path.suffix.lower() not in ENDINGS or not path.is_file() or path.stat().st_size < 2**20:
        return False
    import torch

    from neurise import devices
    from neurise.stored import open_rows

    available = devices.available_bytes(torch.device("cpu"))
    size = path.stat().st_size if path.suffix.lower() == ".npy" else open_rows(path).num_bytes
    return available is not None and size > available // SHARE
