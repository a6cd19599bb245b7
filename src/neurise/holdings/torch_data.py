"""Rows from torch's data sets and data loaders: whatever they give, gathered once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from neurise import devices
from neurise.holdings.holding import Holding

NAMES = ("x", "y", "weight")
LOOK_EVERY = 4096
"""Items between two looks at the memory: a data set may have no end."""


def is_torch_data(data: Any) -> bool:
    """Whether something is a torch data set or a data loader."""
    return isinstance(data, Dataset | DataLoader)


def gathered(data: Any, what: str) -> Holding:
    """Gather the items x, (x, y) or (x, y, weight) of a data set, or the batches of them of a loader."""
    if isinstance(data, TensorDataset) and 1 <= len(data.tensors) <= 3:
        columns = [np.asarray(tensor.detach().cpu()) for tensor in data.tensors]
        return _holding([_flat(columns[0], what, 2), *columns[1:]], data)
    in_batches = isinstance(data, DataLoader) and data.batch_size is not None
    parts: list[list[np.ndarray]] = []
    taken = 0
    for number, item in enumerate(_items(data)):
        entries = tuple(item) if isinstance(item, list | tuple) else (item,)
        if not 1 <= len(entries) <= 3 or (parts and len(entries) != len(parts)):
            raise ValueError(
                f"{what}: item {number} of {type(data).__name__} has {len(entries)} parts"
                f"{f' and those before it {len(parts)}' if parts else ''}; x, (x, y) or (x, y, weight) is needed"
            )
        arrays = [_array(entry, what, number, name) for entry, name in zip(entries, NAMES, strict=False)]
        arrays[0] = _flat(arrays[0], f"{what}: item {number}", 2 if in_batches else 1)
        parts = parts or [[] for _ in arrays]
        for column, array in zip(parts, arrays, strict=True):
            column.append(array if in_batches else array[None])
            taken += array.nbytes
        if number % LOOK_EVERY == LOOK_EVERY - 1:
            _check_end(taken, number + 1, data, what)
    if not parts:
        raise ValueError(f"{what} is a {type(data).__name__} without items")
    try:
        return _holding([np.concatenate(column) for column in parts], data)
    except ValueError as error:
        raise ValueError(f"{what}: the items of {type(data).__name__} have different shapes ({error})") from error


def _items(data: Any) -> Iterator[Any]:
    if isinstance(data, DataLoader | IterableDataset) or not hasattr(data, "__len__"):
        return iter(data)
    return (data[k] for k in range(len(data)))  # a loop over a data set would need its IndexError to end


def _array(entry: Any, what: str, number: int, name: str) -> np.ndarray:
    array = np.asarray(entry.detach().cpu() if isinstance(entry, torch.Tensor) else entry)
    if array.dtype.kind not in "biufUS":
        raise ValueError(f"{what}: {name} of item {number} is {entry!r:.80}; numbers or letters are needed")
    return array


def _flat(x: np.ndarray, what: str, axes: int) -> np.ndarray:
    if x.ndim != axes:
        raise ValueError(
            f"{what} has the shape {tuple(x.shape)}; a row is a vector of sites: flatten pictures in the data set's transform"
        )
    return x


def _check_end(taken: int, items: int, data: Any, what: str) -> None:
    if not devices.has_room(2 * taken, torch.device("cpu")):
        raise MemoryError(
            f"{what}: {type(data).__name__} has given {items:,} items and no end, {devices.readable(taken)} so far; give one that "
            "ends, or write the rows to .npy or Parquet files and use neurise.open_rows"
        )


def _holding(columns: list[np.ndarray], data: Any) -> Holding:
    x, y, weights = (*columns, None, None)[:3]
    return Holding(x, y, weights, name=f"a {type(data).__name__}")
