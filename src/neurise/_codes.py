"""What a user may give as symbols, checked and turned into whole-number codes.

An int is its own code, a letter's is its code point (a byte's, its number), so that one piece of code checks and
translates all of them. Every error shows the bad value and the place where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

UNITS: dict[str, type[np.unsignedinteger[Any]]] = {"U": np.uint32, "S": np.uint8}
"""The number that a single letter of each kind of text is stored as: its code."""
LARGEST = 2**53
"""Whole numbers up to here are exact as floats."""
NO_SYMBOL = "symbols are whole numbers, booleans or single letters"
NO_MISSING = "missing values are not supported"


def is_text(dtype: Any) -> bool:
    """Whether a numpy type holds letters rather than numbers."""
    return np.dtype(dtype).kind in UNITS


def kind_of(dtype: Any) -> str:
    """Name what a numpy type holds."""
    return "letters" if is_text(dtype) else "numbers"


def as_matrix(data: Any, what: str = "X") -> np.ndarray:
    """Insist on a non-empty (N, sites) array."""
    matrix = as_array(data, what)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a matrix of N rows and one column a site; its shape is {matrix.shape}")
    if 0 in matrix.shape:
        raise ValueError(f"{what} is empty: its shape is {matrix.shape}")
    return matrix


def as_array(data: Any, what: str) -> np.ndarray:
    """Make an array of what the user gave, of any shape; numbers among text are left as objects, to be found later."""
    if isinstance(data, torch.Tensor):
        data = data.detach().cpu()
        return np.asarray((data.float() if data.dtype == torch.bfloat16 else data).numpy())
    if isinstance(data, np.ma.MaskedArray) and np.ma.getmaskarray(data).any():
        where = first(np.ma.getmaskarray(data))
        raise ValueError(f"{what} has a masked entry at {place_of(where)}; {NO_MISSING} here")
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise _shape_error(data, what, error) from error
    if is_text(array.dtype) and array.dtype != f"{array.dtype.kind}1" and not isinstance(data, np.ndarray):
        return np.asarray(data, dtype=object)  # numpy writes a number among letters as text: look at the originals
    return array


def settle_objects(array: np.ndarray, what: str) -> np.ndarray:
    """Give an object array (of a table, say) the plain type that all of its entries share."""
    entries = array.ravel().tolist()

    def refuse(wrong: Iterable[bool], why: str) -> None:
        refuse_where(np.fromiter(wrong, bool, array.size).reshape(array.shape), array, what, why)

    refuse((entry is None or _is_nan(entry) for entry in entries), f"is missing; {NO_MISSING}")
    known = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating)
    refuse((not isinstance(entry, known) for entry in entries), "is neither a number nor text")
    text = [isinstance(entry, str | bytes) for entry in entries]
    if any(text):
        refuse((not letter for letter in text), "is a number, though others are text; use one kind")
    plain = np.array(entries).reshape(array.shape)
    if plain.dtype.kind == "O":
        refuse((abs(entry) > LARGEST for entry in entries), "is too large")
    return plain


def codes_of(array: np.ndarray, what: str) -> tuple[np.ndarray, str]:
    """Whole-number codes of an array of symbols, and the name of the type to give back."""
    if array.dtype.kind == "O":
        array = settle_objects(array, what)
    kind = array.dtype.kind
    if kind in "bi":
        return array.astype(np.int64, copy=False), array.dtype.str
    if kind == "u":
        if array.dtype.itemsize == 8:
            refuse_where(array > np.iinfo(np.int64).max, array, what, "is beyond 64-bit signed integers")
        return array.astype(np.int64), array.dtype.str
    if kind == "f":
        values = array.astype(np.float64)
        refuse_where(~np.isfinite(values), array, what, f"is missing or not finite; {NO_MISSING}")
        refuse_where(np.abs(values) > LARGEST, array, what, "is too large for a symbol")
        whole = values.astype(np.int64)
        refuse_where(whole != array, array, what, f"is not a whole number; {NO_SYMBOL}")
        return whole, array.dtype.str
    if kind in UNITS:
        refuse_where(np.char.str_len(array) != 1, array, what, "is not a single letter; give one letter a column")
        return array.astype(f"{kind}1").view(UNITS[kind]).astype(np.int64), f"{kind}1"
    raise ValueError(f"{what} holds values of type {array.dtype}; {NO_SYMBOL}")


def refuse_where(wrong: np.ndarray, array: np.ndarray, what: str, why: str) -> None:
    """Raise an error for the first entry that is wrong."""
    if wrong.any():
        where = first(wrong)
        raise ValueError(f"{what} has {show(array[where])} at {place_of(where)}, which {why}")


def first(wrong: np.ndarray) -> tuple[int, ...]:
    """Return the index of the first true entry."""
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))


def place_of(where: tuple[int, ...]) -> str:
    """Say where an entry stands."""
    return f"row {where[0]}, column {where[1]}" if len(where) == 2 else f"position {', '.join(map(str, where))}"


def show(entry: Any) -> str:
    """Write an entry of an array as the user would: nan, not np.float64(nan)."""
    return repr(entry.item() if isinstance(entry, np.generic) else entry)


def _is_nan(entry: Any) -> bool:
    return isinstance(entry, float | np.floating) and bool(entry != entry)


def _shape_error(data: Any, what: str, error: ValueError) -> ValueError:
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in data]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None:
        return ValueError(f"{what} is not a matrix of symbols: {error}")
    return ValueError(f"{what} is ragged: row 0 has {lengths[0]} entries and row {odd} has {lengths[odd]}")
