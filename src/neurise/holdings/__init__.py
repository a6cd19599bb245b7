"""Turn what users hold in their hands into rows, labels and weights: counts, bit strings, data sets, annealers' reads.

:func:`opened` is the one door. It is asked only where something is no plain matrix, and gives back as it is what it does not
know: nested lists and data frames say elsewhere what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise import devices
from neurise.dataset import Dataset
from neurise.holdings.bit_strings import counted, counts, is_counted, is_strings, rows_of_strings
from neurise.holdings.holding import Holding
from neurise.holdings.torch_data import gathered, is_torch_data

__all__ = ["Holding", "counts", "is_plain", "is_strings", "opened", "opened_fit", "repeated"]

SAMPLESET = ("record", "variables", "vartype")
"""By these attributes a dimod SampleSet is known without importing dimod."""


def is_plain(data: Any) -> bool:
    """Whether something is a matrix already."""
    return isinstance(data, np.ndarray | Tensor) and data.ndim != 1


def opened(data: Any, what: str = "X", *, sites: int | None = None, to_learn: bool = False) -> Holding:
    """Return the rows of whatever holds some, with what belongs to them; what is not known comes back as it is.

    ``sites`` is how many there must be, where that is known: keys such as ``0x5`` do not say. Of a data set the training rows
    are taken ``to_learn`` from, and the test rows, where there are any, for all else.
    """
    if isinstance(data, Holding):
        return data
    if hasattr(data, "as_holding"):  # rows in files: a uniform sample of them
        taken: Holding = data.as_holding()
        return taken
    if isinstance(data, Dataset):
        return _of_dataset(data, what, to_learn=to_learn)
    if (
        isinstance(data, Mapping) and not hasattr(data, "toarray") and is_counted(data)
    ):  # one kind of sparse matrix is a dict
        return counted(data, what, bits=sites)
    if all(hasattr(data, name) for name in SAMPLESET):
        return _of_sampleset(data, what)
    if is_torch_data(data):
        return gathered(data, what)
    if is_strings(data):
        return Holding(rows_of_strings(list(data), what, bits=sites))
    if isinstance(data, str | bytes):
        raise ValueError(
            f"{what} is the text {data[:40]!r}; write [{what}] for one row, neurise.open_rows({what}) for files on disk, "
            f"neurise.datasets.files({what}) for one small file"
        )
    return Holding(data)


def opened_fit(X: Any, y: Any, weights: Any, validation: Any) -> tuple[Holding, Any]:
    """Return what ``fit`` was given, opened: rows with all that belongs to them, and the parts of the validation."""
    held = opened(X, to_learn=True)
    for name, given, own in (("y", y, held.y), ("weights", weights, held.weights)):
        if given is not None and own is not None:
            raise ValueError(f"{name} was given, and X brings {name} of its own ({held.name}); leave one of them out")
    joined = Holding(
        held.X,
        held.y if y is None else y,
        held.weights if weights is None else weights,
        held.validation if validation is None else None,
        held.symbols,
        held.name,
    )
    return joined, joined.validation if validation is None else _opened_validation(validation)


def repeated(data: Any, what: str) -> Any:
    """Return rows as often as their counts say, for measurements in which every row counts once."""
    held = opened(data, what)
    if held.weights is None:
        return held.X
    masses = np.asarray(held.weights, dtype=np.float64)
    if bool((masses != np.round(masses)).any()) or bool((masses < 0).any()):
        raise ValueError(
            f"{what} ({held.name}) has weights that are no counts, {masses[masses != np.round(masses)][:3].tolist()} say; "
            "give its rows as an array, and the weights where the metric takes some"
        )
    rows = held.X if isinstance(held.X, np.ndarray | Tensor) else np.asarray(held.X)
    needed = int(masses.sum()) * int(rows[0].nbytes)
    devices.require_memory(needed, torch.device("cpu"), f"{what} counts {int(masses.sum()):,} rows: give fewer")
    index = np.repeat(np.arange(len(rows)), masses.astype(np.int64))
    return rows[torch.from_numpy(index)] if isinstance(rows, Tensor) else rows[index]


def _opened_validation(validation: Any) -> Any:
    """Open the first of the parts X, (X, y) or (X, y, weights)."""
    parts = validation if isinstance(validation, tuple) else (validation,)
    if not 1 <= len(parts) <= 3 or is_plain(parts[0]):
        return validation
    held = opened(parts[0], "validation", to_learn=True)
    own = (held.X, held.y, held.weights)
    given = (held.X, *parts[1:], None, None)[:3]
    return tuple(mine if theirs is None else theirs for mine, theirs in zip(own, given, strict=True))


def _of_dataset(data: Dataset, what: str, *, to_learn: bool) -> Holding:
    if data.train is None and data.test is None:
        way_out = ": draw some with data.sample(n)" if data.draw is not None else ""
        raise ValueError(f"{what} is the data set {data.name}, which has no rows{way_out}")
    if (not to_learn and data.test is not None) or data.train is None:
        if to_learn:
            raise ValueError(f"{what} is the data set {data.name}, which has test rows alone; give data.test")
        return Holding(data.test, data.test_labels, data.test_weights, None, data.symbols, data.name)
    validation = None
    if data.validation is not None:
        validation = (data.validation, data.validation_labels, data.validation_weights)
    return Holding(data.train, data.labels, data.weights, validation, data.symbols, data.name)


def _of_sampleset(reads: Any, what: str) -> Holding:
    """Take the reads of a dimod SampleSet, one column per variable.

    Variables stand in sorted order where they can be sorted: two sets of reads of one problem may list them differently.
    """
    kind = getattr(reads.vartype, "name", str(reads.vartype))
    if kind not in ("SPIN", "BINARY"):
        raise ValueError(f"{what} is a SampleSet of the type {kind}; SPIN and BINARY are supported")
    names = list(reads.variables)
    try:
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:  # numbers among text
        order = list(range(len(names)))
    record = reads.record
    rows = np.ascontiguousarray(np.asarray(record["sample"])[:, order])
    return Holding(rows, weights=np.asarray(record["num_occurrences"], dtype=np.float64), name="a dimod SampleSet")
