"""Symbols of a model as they are typed or stand in a text table."""

from __future__ import annotations

from numbers import Real
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
        # Other spellings: True beside 1, and 3.0, which pandas writes for the 3 of a column with gaps.
        self._spelt = {str(symbol).lower(): symbol for symbol in symbols if isinstance(symbol, bool)}
        self._spelt |= {str(symbol): symbol for symbol in symbols}
        self._numbers = {float(symbol): symbol for symbol in symbols if isinstance(symbol, Real)}
        self._read: dict[Any, str] = {}  # how a symbol was spelt where it was read

    def __contains__(self, text: str) -> bool:
        return text in self.symbols or text in self._spelt or self._number(text) is not None

    def __getitem__(self, text: str) -> Any:
        if self.binned:
            return float(text)
        symbol = self.symbols.get(text, self._spelt.get(text))
        symbol = self._number(text) if symbol is None else symbol
        self._read.setdefault(symbol, text)
        return symbol

    def written(self, symbol: Any) -> str:
        """Write a symbol as it was spelt in the cells that were read, else as :func:`cell_of` does."""
        return self._read.get(symbol) or cell_of(symbol)

    def _number(self, text: str) -> Any:
        """Return the symbol that is the same number; None where there is none."""
        if not _is_number(text):
            return None
        return float(text) if self.binned else self._numbers.get(float(text))

    def __str__(self) -> str:
        return "numbers" if self.binned else ", ".join(list(self.symbols)[:25])


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
