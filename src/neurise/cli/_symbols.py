"""Symbols of a model as they are typed or stand in a text table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neurise.modeling.model import Model


def cell_of(symbol: Any) -> str:
    """Write a symbol as it stands in a table: whole numbers without a point."""
    return str(int(symbol)) if isinstance(symbol, bool | float) and symbol == int(symbol) else str(symbol)


class Known:
    """What a cell of one site may hold: the texts of its symbols, or any number where it is cut into bins.

    Truth values may be written as words, and whole numbers with a point: other programs write 4.0 in a column with gaps.
    """

    def __init__(self, symbols: list[Any], *, binned: bool) -> None:
        self.symbols, self.binned = {cell_of(symbol): symbol for symbol in symbols}, binned
        words = {
            word: symbol
            for symbol in symbols
            if isinstance(symbol, bool)
            for word in (str(symbol), str(symbol).lower())
        }
        self.spellings = words | self.symbols

    def __contains__(self, text: str) -> bool:
        return _is_number(text) if self.binned else self._spelling(text) in self.spellings

    def __getitem__(self, text: str) -> Any:
        return float(text) if self.binned else self.spellings[self._spelling(text)]

    def __str__(self) -> str:
        return "numbers" if self.binned else ", ".join(list(self.symbols)[:25])

    def _spelling(self, text: str) -> str:
        """Return a number that is written with a point as symbols are written, and anything else as it is."""
        if text in self.spellings or "." not in text or not _is_number(text) or math.isinf(float(text)):
            return text
        plain = cell_of(float(text))
        return plain if isinstance(self.spellings.get(plain), int | float) else text


def known_symbols(model: Model) -> list[Known]:
    """Return what the cells of every site may hold, in the user's order of sites."""
    schema = model.schema_
    columns = getattr(schema.alphabet, "columns", None)
    known = dict[int, Known]()
    for place, site in enumerate(schema.order):
        symbols = [schema.symbol(place, token) for token in range(schema.space.digits[place])]
        known[site] = Known(symbols, binned=columns is not None and columns[site].edges is not None)
    return [known[site] for site in range(len(known))]


def site_names(model: Model) -> list[str] | None:
    """Return the names of the columns of a model, where they have some."""
    names = getattr(model.schema_.alphabet, "names", None)
    if names is None or getattr(model.schema_.alphabet, "frame", "") in ("array", "tensor"):
        return None
    return [str(name) for name in names]


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False
