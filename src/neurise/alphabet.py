"""The user's symbols (±1, 0/1, letters) ⇄ tokens 0 … p−1.

Every symbol has a whole-number *code* (an int is its own code, a letter's is its code point), so that one piece of code
checks and translates all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from neurise.space import MAX_STATES

Symbols = Any
"""An (N, sites) numpy array, torch tensor, or nested sequence of symbols."""


@dataclass(frozen=True)
class Alphabet:
    """The p symbols of a data set, in the order of their tokens, and the kind of array they came in."""

    codes: tuple[int, ...]
    dtype: str  # numpy's name of the type the user gave, e.g. "<i8" or "<U1"
    tensor: bool = False  # whether the user gave a torch tensor, and so gets one back

    @classmethod
    def of(cls, data: Symbols, names: Sequence[Any] | None = None) -> Alphabet:
        """Read the alphabet off the data, or take the one that is named (which the data may not exceed)."""
        codes, dtype = _codes(as_matrix(data), "X")
        if names is None:
            found = _distinct(codes)
            if len(found) > MAX_STATES:
                raise ValueError(f"X has {len(found)} different symbols; at most {MAX_STATES} are supported")
            return cls(tuple(found), dtype, isinstance(data, torch.Tensor))
        named, _ = _codes(_as_array(list(names), "alphabet"), "alphabet")
        if not 1 <= len(named) <= MAX_STATES:
            raise ValueError(f"alphabet names {len(named)} symbols; between 1 and {MAX_STATES} are supported")
        if len(set(named.tolist())) < len(named):
            raise ValueError(f"alphabet names a symbol twice: {list(names)}")
        return cls(tuple(named.tolist()), dtype, isinstance(data, torch.Tensor))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def symbols(self) -> np.ndarray:
        """The symbols themselves, (states,), in the user's type."""
        if np.dtype(self.dtype).kind in "US":
            return np.array([chr(code) for code in self.codes]).astype(self.dtype)
        return np.array(self.codes, dtype=self.dtype)

    def encode(self, data: Symbols, what: str = "X", *, sites: int | None = None) -> torch.Tensor:
        """Translate symbols to tokens, (N, sites) uint8; an unseen symbol is an error that shows where it stands."""
        matrix = as_matrix(data, what)
        if sites is not None and matrix.shape[1] != sites:
            raise ValueError(f"{what} has {matrix.shape[1]} columns, but the model has {sites} sites")
        return torch.from_numpy(self.tokens(matrix, what))

    def tokens(self, matrix: np.ndarray, what: str) -> np.ndarray:
        """Translate an array of any shape, where :meth:`encode` insists on a matrix."""
        codes, _ = _codes(matrix, what)
        order = np.argsort(self.codes)
        ranked = np.array(self.codes)[order]
        place = np.searchsorted(ranked, codes).clip(max=len(ranked) - 1)
        wrong = ranked[place] != codes
        if wrong.any():
            where = _first(wrong)
            known = ", ".join(repr(symbol) for symbol in self.symbols.tolist()[:10])
            more = ", …" if len(self) > 10 else ""
            raise ValueError(
                f"{what} has the symbol {matrix[where].item()!r} at {_place(where)}, which is not in the alphabet "
                f"[{known}{more}]; name all symbols with alphabet= when fitting"
            )
        return order.astype(np.uint8)[place]

    def decode(self, tokens: torch.Tensor) -> Any:
        """Translate tokens back to the user's symbols, in the kind of array that was fitted."""
        symbols = self.symbols[tokens.cpu().numpy()]
        return torch.from_numpy(symbols) if self.tensor else symbols

    def to_dict(self) -> dict[str, Any]:
        """Describe the alphabet in JSON's types."""
        return {"codes": list(self.codes), "dtype": self.dtype, "tensor": self.tensor}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Alphabet:
        """Undo :meth:`to_dict`."""
        return cls(tuple(int(code) for code in fields["codes"]), str(fields["dtype"]), bool(fields["tensor"]))


def as_matrix(data: Symbols, what: str = "X") -> np.ndarray:
    """Insist on a non-empty (N, sites) array."""
    matrix = _as_array(data, what)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a matrix of N rows and one column a site; its shape is {matrix.shape}")
    if 0 in matrix.shape:
        raise ValueError(f"{what} is empty: its shape is {matrix.shape}")
    return matrix


def _as_array(data: Symbols, what: str) -> np.ndarray:
    if isinstance(data, torch.Tensor):
        return data.detach().cpu().numpy()
    if isinstance(data, np.ma.MaskedArray) and np.ma.getmaskarray(data).any():
        raise ValueError(f"{what} has masked entries; missing values are not supported here")
    try:
        return np.asarray(data)
    except ValueError as error:
        lengths = [len(row) if isinstance(row, Sequence | np.ndarray) else 0 for row in data]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if odd is None:
            raise
        message = f"{what} is ragged: row 0 has {lengths[0]} entries and row {odd} has {lengths[odd]}"
        raise ValueError(message) from error


def _codes(array: np.ndarray, what: str) -> tuple[np.ndarray, str]:
    """Whole-number codes of an array of symbols, and the name of the type to give back."""
    kind = array.dtype.kind
    if kind == "O":
        array, kind = _settle_objects(array, what)
    if kind in "bi":
        return array.astype(np.int64, copy=False), array.dtype.str
    if kind == "u":
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{what} has the number {array.max()}, beyond 64-bit signed integers")
        return array.astype(np.int64), array.dtype.str
    if kind == "f":
        _refuse(~np.isfinite(array), array, what, "is missing or not finite; missing values are not supported")
        whole = array.astype(np.int64)
        _refuse(
            whole != array, array, what, "is not a whole number; symbols are whole numbers, booleans or single letters"
        )
        return whole, array.dtype.str
    if kind in "US":
        letters = array.astype("U")
        lengths = np.char.str_len(letters)
        _refuse(lengths != 1, letters, what, "is not a single letter; give one letter a column")
        return letters.astype("U1").view(np.uint32).reshape(array.shape).astype(np.int64), f"{array.dtype.kind}1"
    raise ValueError(f"{what} holds values of type {array.dtype}; symbols are whole numbers, booleans or single letters")


def _settle_objects(array: np.ndarray, what: str) -> tuple[np.ndarray, str]:
    """Give an object array (of a table, say) the plain type that all of its entries share."""
    entries = array.ravel().tolist()
    missing = np.array([entry is None or entry != entry for entry in entries], dtype=bool).reshape(array.shape)
    _refuse(missing, array, what, "is missing; missing values are not supported")
    if not any(isinstance(entry, str) for entry in entries):
        plain = np.array(array.tolist())
    elif all(isinstance(entry, str) for entry in entries):
        plain = array.astype("U")
    else:
        mixed = np.array([not isinstance(entry, str) for entry in entries]).reshape(array.shape)
        _refuse(mixed, array, what, "is not a letter, though others are; use one kind of symbol")
    if plain.dtype.kind == "O" or plain.shape != array.shape:
        raise ValueError(f"{what} holds objects that are no symbols; use whole numbers, booleans or single letters")
    return plain, plain.dtype.kind


def _refuse(wrong: np.ndarray, array: np.ndarray, what: str, why: str) -> None:
    if wrong.any():
        where = _first(wrong)
        raise ValueError(f"{what} has {array[where]!r} at {_place(where)}, which {why}")


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))


def _place(where: tuple[int, ...]) -> str:
    return f"row {where[0]}, column {where[1]}" if len(where) == 2 else f"position {where[0]}"


def _distinct(codes: np.ndarray) -> list[int]:
    """Return the sorted distinct codes; counting beats sorting for the small ranges that data have."""
    low, high = int(codes.min()), int(codes.max())
    if high - low < 2**20:
        return [low + int(i) for i in np.flatnonzero(np.bincount((codes - low).ravel()))]
    return [int(code) for code in np.unique(codes)]
