"""One column of a table: its name, its symbols of any kind ⇄ tokens 0 … p − 1, and what it was given as."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neurise.binning import Bins, numbers_in, tokens_of
from neurise.fields import Field
from neurise.space import MAX_STATES

FEW_NUMBERS = 32
"""Different numbers with a fraction up to which they are symbols: more of them are measured, not chosen."""
IDENTIFIERS = 50
"""Rows beyond which a column in which all values differ names the rows, and tells nothing about them."""
UNKNOWN = -1
"""The token of a value that is no symbol of the column."""


class Given(NamedTuple):
    """The values of a column as the user gave them."""

    name: str | int
    values: Sequence[Any]
    missing: np.ndarray  # (N,) booleans: values that are not there
    kind: str = "object"  # the name that the user's library has for the type
    categories: tuple[Any, ...] | None = None  # of a categorical type
    ordered: bool = False
    nameless: bool = False  # the name is a number that nobody gave

    def take(self, rows: np.ndarray) -> Given:
        """Return the values of some rows, given as booleans (N,)."""
        values = [value for value, kept in zip(self.values, rows.tolist(), strict=True) if kept]
        return self._replace(values=values, missing=self.missing[rows])


@dataclass(frozen=True)
class Column:
    """A column's name, and its p symbols in the order of their tokens, or the edges of its p bins."""

    name: str | int
    symbols: tuple[Any, ...]
    kind: str = "object"
    categorical: bool = False
    ordered: bool = False
    edges: tuple[float, ...] | None = None

    @classmethod
    def of(cls, given: Given, wanted: Any = None) -> Column:
        """Read the symbols off the values, or take those that are wanted: a list of them, or :class:`Bins`."""
        present = [value for value, gone in zip(given.values, given.missing, strict=True) if not gone]
        what = f"the column {given.name!r}"
        if not present and wanted is None and given.categories is None:
            raise ValueError(f"{what} holds no value at all; drop it")
        if isinstance(wanted, Bins):
            numbers = _as_numbers(present, what)
            edges = wanted.cut(numbers, what)
            symbols: tuple[Any, ...] = ()
            return cls(given.name, symbols, given.kind, edges=edges)
        if wanted is not None:
            symbols = _named(wanted, what)
        elif given.categories is not None:
            symbols = given.categories  # also those that never occur: the type says that they are possible
            for symbol in symbols:
                tagged(symbol, what)
        else:
            symbols = _found(present, given.name)
        if len(symbols) > MAX_STATES:
            raise ValueError(f"{what} has {len(symbols)} symbols; at most {MAX_STATES} are supported")
        return cls(given.name, symbols, given.kind, given.categories is not None, given.ordered)

    def __len__(self) -> int:
        return len(self.symbols) if self.edges is None else len(self.edges) - 1

    def __str__(self) -> str:
        if self.edges is not None:
            return f"{len(self)} bins from {self.edges[0]:g} to {self.edges[-1]:g}"
        return f"[{', '.join(map(repr, self.symbols[:10]))}{', …' if len(self) > 10 else ''}]"

    @cached_property
    def _token(self) -> dict[Any, int]:
        return {symbol: token for token, symbol in enumerate(self.symbols)}

    def tokens(self, given: Given, what: str) -> np.ndarray:
        """Translate values to tokens, (N,) uint8; 0 where a value is missing, and an error where it is unknown."""
        if self.edges is not None:
            present = ~given.missing
            found = np.zeros(len(given.values), dtype=np.uint8)
            own = [value for value, gone in zip(given.values, given.missing, strict=True) if not gone]
            found[present] = tokens_of(_as_numbers(own, f"the column {self.name!r}"), self.edges)
            return found
        try:
            tokens = np.fromiter(
                (self._token.get(value, UNKNOWN) for value in given.values), np.int64, len(given.values)
            )
        except TypeError:  # what cannot be hashed is found below
            tokens = np.array(
                [self._token.get(v, UNKNOWN) if isinstance(v, Hashable) else UNKNOWN for v in given.values]
            )
        tokens[given.missing] = 0
        if (tokens == UNKNOWN).any():
            row = int((tokens == UNKNOWN).argmax())
            raise ValueError(
                f"{what} has {given.values[row]!r} at row {row} of the column {self.name!r}, which is not in its alphabet "
                f"{self}; name all symbols with alphabet={{{self.name!r}: […]}} when fitting"
            )
        return tokens.astype(np.uint8)

    def values(self, tokens: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """Translate tokens back, (N,) of the symbols, as objects, or of numbers drawn inside their bins."""
        if self.edges is not None:
            return numbers_in(tokens.astype(np.int64), self.edges, whole="int" in self.kind.lower(), rng=rng)
        return np.asarray(self.table[tokens])

    @cached_property
    def table(self) -> np.ndarray:
        """The symbols, (p,) objects."""
        table = np.empty(len(self.symbols), dtype=object)
        table[:] = self.symbols
        return table

    def to_dict(self) -> dict[str, Any]:
        """Describe the column in JSON's types."""
        return {
            "name": self.name if isinstance(self.name, int) else str(self.name),
            "symbols": [tagged(symbol) for symbol in self.symbols],
            "kind": self.kind,
            "categorical": self.categorical,
            "ordered": self.ordered,
            "edges": None if self.edges is None else list(self.edges),
        }

    @classmethod
    def from_field(cls, field: Field) -> Column:
        """Undo :meth:`to_dict`; whatever no data could have given is an error that names the field."""
        symbols = tuple(untagged(entry) for entry in field["symbols"])
        if len(set(symbols)) < len(symbols) or len(symbols) > MAX_STATES:
            raise field["symbols"].wrong(f"at most {MAX_STATES} different symbols")
        edges = None
        if field["edges"].value is not None:
            edges = tuple(entry.number() for entry in field["edges"])
            if not 2 <= len(edges) <= MAX_STATES + 1 or any(a >= b for a, b in pairwise(edges)):
                raise field["edges"].wrong("numbers that grow")
        if (edges is None) == (not symbols):
            raise field["symbols"].wrong("symbols where there are no edges")
        flags = field["categorical"].flag(), field["ordered"].flag()
        name = field["name"].value if type(field["name"].value) is int else field["name"].text()
        return cls(name, symbols, field["kind"].text(), *flags, edges)


def _found(present: list[Any], name: str | int) -> tuple[Any, ...]:
    """Return the symbols that occur, in order; refuse what names rows, or measures."""
    what = f"the column {name!r}"
    try:
        distinct = set(present)
    except TypeError:
        wrong = next(value for value in present if not isinstance(value, Hashable))
        raise ValueError(f"{what} holds {wrong!r}, which cannot be a symbol: it has no hash") from None
    for value in distinct:
        tagged(value, what)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct)
    hint = f"leave it out (--drop-column {name})"
    if numbers:
        hint = f"cut it with alphabet={{{name!r}: neurise.bins(8)}} (--bins {name}=8), or {hint}"
    if len(present) > IDENTIFIERS and len(distinct) == len(present):
        raise ValueError(
            f"{what} has a different value in each of {len(present):,} rows: it names the rows and tells nothing about them; "
            f"{hint}"
        )
    measured = numbers and any(isinstance(value, float) and value != round(value) for value in distinct)
    if len(distinct) > (FEW_NUMBERS if measured else MAX_STATES):
        most = (
            f"at most {MAX_STATES} symbols are supported"
            if not measured
            else "numbers that are measured are no symbols"
        )
        raise ValueError(f"{what} has {len(distinct):,} different values; {most}: {hint}")
    try:
        return tuple(sorted(distinct))
    except TypeError:  # kinds that do not compare
        return tuple(sorted(distinct, key=lambda value: (type(value).__name__, repr(value))))


def _named(wanted: Any, what: str) -> tuple[Any, ...]:
    """Check the symbols that the user names."""
    if not isinstance(wanted, Iterable) or isinstance(wanted, set | frozenset | dict):
        raise ValueError(f"the alphabet of {what} must be a sequence of symbols or bins(…); got {wanted!r}")
    symbols = tuple(wanted.tolist() if isinstance(wanted, np.ndarray) else wanted)
    for symbol in symbols:
        tagged(symbol, f"the alphabet of {what}")
    if not symbols or len(set(symbols)) < len(symbols):
        raise ValueError(f"the alphabet of {what} must name different symbols, at least one; got {symbols!r}")
    return symbols


def _as_numbers(values: Sequence[Any], what: str) -> np.ndarray:
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        wrong = next(value for value in values if not isinstance(value, int | float))
        raise ValueError(f"{what} is to be cut into bins, and holds {wrong!r}, which is no number") from None
    if numbers.size and not np.isfinite(numbers).all():
        raise ValueError(f"{what} is to be cut into bins, and holds a number that is not finite")
    return numbers


def tagged(symbol: Any, what: str = "the column") -> Any:
    """Write a symbol in JSON's types: text, numbers and booleans as they are, anything else with the name of its type."""
    if isinstance(symbol, np.generic):
        symbol = symbol.item()
    if isinstance(symbol, str | bool | int) or (isinstance(symbol, float) and math.isfinite(symbol)):
        return symbol
    if isinstance(symbol, bytes):
        return {"bytes": symbol.decode("latin-1")}
    if isinstance(symbol, tuple):
        return {"tuple": [tagged(part, what) for part in symbol]}
    for name, kind in (("datetime", datetime.datetime), ("date", datetime.date)):
        if isinstance(symbol, kind):
            return {name: symbol.isoformat()}
    raise ValueError(
        f"{what} holds {symbol!r} of type {type(symbol).__name__}; symbols are text, numbers, booleans, bytes, dates and tuples "
        "of these"
    )


def untagged(field: Field) -> Any:
    """Undo :func:`tagged`."""
    value = field.value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if not isinstance(value, dict) or len(value) != 1:
        raise field.wrong("a symbol: text, a number, true, false, or an object that names its type")
    name = next(iter(value))
    try:
        if name == "bytes":
            return field[name].text().encode("latin-1")
        if name == "tuple":
            return tuple(untagged(part) for part in field[name])
        if name in ("date", "datetime"):
            kind: Any = datetime.date if name == "date" else datetime.datetime
            return kind.fromisoformat(field[name].text())
    except (ValueError, RecursionError) as error:
        raise field.wrong(f"a symbol ({error})") from None
    raise field.wrong("a symbol of the type bytes, tuple, date or datetime")
