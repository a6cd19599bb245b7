"""The user's symbols (±1, 0/1, letters) ⇄ tokens 0 … p−1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from neurise._codes import UNITS, as_array, as_matrix, codes_of, first, is_text, kind_of, place_of, refuse_where, show
from neurise.space import MAX_STATES

__all__ = ["Alphabet", "Symbols", "as_matrix"]

Symbols = Any
"""An (N, sites) numpy array, torch tensor, or nested sequence of symbols."""


@dataclass(frozen=True)
class Alphabet:
    """The p symbols of a data set, in the order of their tokens, and the kind of array they came in."""

    codes: tuple[int, ...]
    dtype: str  # numpy's name of the type the user gave, e.g. "<i8" or "U1"
    tensor: bool = False  # whether the user gave a torch tensor, and so gets one back

    @classmethod
    def of(cls, data: Symbols, names: Sequence[Any] | None = None) -> Alphabet:
        """Read the alphabet off the data, or take the one that is named (which the data may not exceed)."""
        codes, dtype = codes_of(as_matrix(data), "X")
        if names is not None:
            return cls(_named(names, dtype), dtype, isinstance(data, torch.Tensor))
        found = _distinct(codes)
        if len(found) > MAX_STATES:
            raise ValueError(f"X has {len(found)} different symbols; at most {MAX_STATES} are supported")
        return cls(tuple(found), dtype, isinstance(data, torch.Tensor))

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        known = ", ".join(repr(symbol) for symbol in self.symbols.tolist()[:10])
        return f"[{known}{', …' if len(self) > 10 else ''}]"

    @property
    def symbols(self) -> np.ndarray:
        """The symbols themselves, (states,), in the user's type."""
        dtype = np.dtype(self.dtype)
        if is_text(dtype):
            return np.array(self.codes, dtype=UNITS[dtype.kind]).view(dtype)
        return np.array(self.codes, dtype=dtype)

    def encode(self, data: Symbols, what: str = "X", *, sites: int | None = None) -> torch.Tensor:
        """Translate symbols to tokens, (N, sites) uint8; an unseen symbol is an error that shows where it stands."""
        matrix = as_matrix(data, what)
        if sites is not None and matrix.shape[1] != sites:
            raise ValueError(f"{what} has {matrix.shape[1]} columns, but the model has {sites} sites")
        return torch.from_numpy(self.tokens(matrix, what))

    def tokens(self, matrix: np.ndarray, what: str) -> np.ndarray:
        """Translate an array of any shape, where :meth:`encode` insists on a matrix."""
        codes, dtype = codes_of(matrix, what)
        if is_text(dtype) != is_text(self.dtype):
            raise ValueError(f"{what} holds {kind_of(dtype)}, but the alphabet is {self}")
        order = np.argsort(self.codes)
        ranked = np.array(self.codes)[order]
        place = np.searchsorted(ranked, codes).clip(max=len(ranked) - 1)
        wrong = ranked[place] != codes
        if wrong.any():
            where = first(wrong)
            raise ValueError(
                f"{what} has the symbol {show(matrix[where])} at {place_of(where)}, which is not in the alphabet "
                f"{self}; name all symbols with alphabet= when fitting"
            )
        tokens: np.ndarray = order.astype(np.uint8)[place]
        return tokens

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


def _named(names: Iterable[Any], dtype: str) -> tuple[int, ...]:
    """Check an alphabet that the user names, for data of a type."""
    # A set has no order of its own: letters would get other tokens in every process.
    if not isinstance(names, Iterable) or isinstance(names, set | frozenset):
        raise ValueError(f"alphabet must be a sequence of symbols, in the order of their tokens; got {names!r}")
    if isinstance(names, bytes):
        names = names.decode("latin-1")
    array = as_array(names if isinstance(names, np.ndarray | torch.Tensor) else list(names), "alphabet")
    if array.ndim != 1 or not 1 <= len(array) <= MAX_STATES:
        raise ValueError(f"alphabet must name between 1 and {MAX_STATES} symbols; its shape is {array.shape}")
    codes, kind = codes_of(array, "alphabet")
    if is_text(kind) != is_text(dtype):
        raise ValueError(f"alphabet names {kind_of(kind)}, but X holds {kind_of(dtype)}")
    again = np.ones(len(codes), dtype=bool)
    again[np.unique(codes, return_index=True)[1]] = False
    refuse_where(again, array, "alphabet", "stands there for the second time")
    with np.errstate(all="ignore"):
        stored = codes.astype(UNITS[np.dtype(dtype).kind] if is_text(dtype) else dtype).astype(np.int64)
    refuse_where(stored != codes, array, "alphabet", f"the type of X, {np.dtype(dtype)}, cannot hold")
    return tuple(codes.tolist())


def _distinct(codes: np.ndarray) -> list[int]:
    """Return the sorted distinct codes; counting beats sorting for the small ranges that data have."""
    low, high = int(codes.min()), int(codes.max())
    if high - low < 2**20:
        return [low + int(i) for i in np.flatnonzero(np.bincount((codes - low).ravel()))]
    return [int(code) for code in np.unique(codes)]
