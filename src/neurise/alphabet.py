"""The user's symbols (±1, 0/1, letters) ⇄ tokens 0 … p−1.

Inside, a symbol is a whole-number code: an int is its own code, a letter's is its code point (a byte's, its number), so that
one piece of code checks and translates all of them. Every error shows the bad value and the place where it stands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from neurise.fields import Field
from neurise.space import MAX_STATES

Symbols = Any
"""An (N, sites) numpy array, torch tensor, or nested sequence of symbols."""
UNITS: dict[str, type[np.unsignedinteger[Any]]] = {"U": np.uint32, "S": np.uint8}
"""The number that a single letter of each kind of text is stored as: its code."""
LARGEST = 2**53
"""Whole numbers up to here are exact as floats."""
BLOCK = 2**20
"""Symbols that are translated at a time."""
NO_SYMBOL = "symbols are whole numbers, booleans or single letters"
NO_MISSING = "missing values are not supported"


@dataclass(frozen=True)
class Alphabet:
    """The p symbols of a data set, in the order of their tokens, and the kind of array they came in."""

    codes: tuple[int, ...]
    dtype: str  # numpy's name of the type the user gave, e.g. "<i8" or "U1"
    tensor: bool = False  # whether the user gave a torch tensor, and so gets one back

    @classmethod
    def of(cls, data: Symbols, names: Sequence[Any] | None = None) -> Alphabet:
        """Read the alphabet off the data, or take the one that is named (which the data may not exceed)."""
        seen, dtype = set[int](), ""
        for _, codes, kind in _coded(as_matrix(data), "X"):
            dtype = kind  # the same for every block
            seen.update(_distinct(codes) if names is None else ())
        if names is not None:
            return cls(named_codes(names, dtype), dtype, isinstance(data, torch.Tensor))
        found = sorted(seen)
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
            raise ValueError(
                f"{what} has {matrix.shape[1]} features, but neurise is expecting {sites} features as input, one per site"
            )
        return torch.from_numpy(self.tokens(matrix, what))

    def tokens(self, matrix: np.ndarray, what: str) -> np.ndarray:
        """Translate an array of any shape, where :meth:`encode` insists on a matrix."""
        order = np.argsort(self.codes)
        ranked, tokens = np.array(self.codes)[order], np.empty(matrix.shape, dtype=np.uint8)
        for rows, codes, dtype in _coded(matrix, what):
            if is_text(dtype) != is_text(self.dtype):
                raise ValueError(f"{what} holds {kind_of(dtype)}, but the alphabet is {self}")
            place = np.searchsorted(ranked, codes).clip(max=len(ranked) - 1)
            wrong = ranked[place] != codes
            if wrong.any():
                inside = first(wrong)
                where = (inside[0] + rows.start, *inside[1:]) if inside else inside
                raise ValueError(
                    f"{what} has the symbol {show(matrix[where])} at {place_of(where)}, which is not in the alphabet "
                    f"{self}; name all symbols with alphabet= when fitting"
                )
            tokens[rows] = order.astype(np.uint8)[place]
        return tokens

    def decode(self, tokens: torch.Tensor) -> Any:
        """Translate tokens back to the user's symbols, in the kind of array that was fitted."""
        symbols = self.symbols[tokens.cpu().numpy()]
        return torch.from_numpy(symbols) if self.tensor else symbols

    def to_dict(self) -> dict[str, Any]:
        """Describe the alphabet in JSON's types."""
        return {"codes": list(self.codes), "dtype": self.dtype, "tensor": self.tensor}

    @classmethod
    def from_field(cls, field: Field, states: int) -> Alphabet:
        """Undo :meth:`to_dict`, for so many states; whatever no data could have given is an error."""
        codes = tuple(field["codes"].wholes(states, -(2**63), 2**63 - 1))
        if len(set(codes)) < states:
            raise field["codes"].wrong("different codes")
        name, tensor = field["dtype"].text(), field["tensor"].flag()
        try:
            dtype = np.dtype(name)
            usable = dtype.kind in "biuf" or name in ("U1", "S1")
            stored = np.array(codes, dtype=UNITS[dtype.kind] if is_text(dtype) else dtype).tolist() if usable else ()
        except (TypeError, ValueError, OverflowError, SyntaxError):  # numpy reads the name of a type like a program
            stored = ()
        if list(stored) != list(codes):
            raise field["dtype"].wrong(f"a type of numbers or of single letters that holds {list(codes)[:5]}")
        if dtype.kind == "U" and not all(0 <= code <= sys.maxunicode for code in codes):
            raise field["codes"].wrong("code points of letters")
        if tensor and (is_text(dtype) or not dtype.isnative):
            raise field["tensor"].wrong(f"false: a torch tensor cannot hold the type {name}")
        return cls(codes, name, tensor)


def named_codes(names: Iterable[Any], dtype: str) -> tuple[int, ...]:
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


def _coded(matrix: np.ndarray, what: str) -> Iterator[tuple[slice, np.ndarray, str]]:
    """Yield the codes of an array a block of rows at a time: codes take eight bytes each, where symbols may take one.

    The types of objects are settled for all of them together, and so is an error: it names the place in the whole array.
    """
    every = len(matrix) if matrix.ndim else 1
    size = max(1, BLOCK * every // max(1, matrix.size))
    if matrix.dtype.kind == "O" or size >= every:
        yield slice(0, every), *codes_of(matrix, what)
        return
    for start in range(0, every, size):
        rows = slice(start, min(start + size, every))
        try:
            codes, dtype = codes_of(matrix[rows], what)
        except ValueError:
            codes_of(matrix, what)
            raise
        yield rows, codes, dtype


def _distinct(codes: np.ndarray) -> list[int]:
    """Return the sorted distinct codes; counting beats sorting for the small ranges that data have."""
    low, high = int(codes.min()), int(codes.max())
    if high - low < 2**20:
        return [low + int(i) for i in np.flatnonzero(np.bincount((codes - low).ravel()))]
    return [int(code) for code in np.unique(codes)]


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
        way = f"; Reshape your data: {what}[None] is one row" if matrix.ndim == 1 else ""
        raise ValueError(f"{what} must be a matrix of N rows and one column per site; its shape is {matrix.shape}{way}")
    if 0 in matrix.shape:
        lacking = "0 feature(s)" if matrix.shape[1] == 0 else "0 sample(s)"
        raise ValueError(f"{what} is empty: {lacking} (shape={matrix.shape}) while a minimum of 1 is required.")
    return matrix


def as_array(data: Any, what: str) -> np.ndarray:
    """Make an array of what the user gave, of any shape; numbers among text are left as objects, to be found later."""
    if isinstance(data, torch.Tensor):
        data = data.detach().cpu()
        return np.asarray((data.float() if data.dtype == torch.bfloat16 else data).numpy())
    if isinstance(data, np.ma.MaskedArray) and np.ma.getmaskarray(data).any():
        where = first(np.ma.getmaskarray(data))
        raise ValueError(f"{what} has a masked entry at {place_of(where)}; {NO_MISSING} here")
    if hasattr(data, "toarray"):
        raise ValueError(f"{what} is a sparse matrix, which is not supported; give {what}.toarray()")
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
        refuse_where(np.char.str_len(array) != 1, array, what, "is not a single letter; give one letter per column")
        return array.astype(f"{kind}1").view(UNITS[kind]).astype(np.int64), f"{kind}1"
    if kind == "c":
        raise ValueError(f"Complex data not supported: {what} holds values of type {array.dtype}; {NO_SYMBOL}")
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
