"""The door of the metrics: sets of rows become tokens of one alphabet, on the device where they are compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import devices, holdings
from neurise.alphabet import Alphabet, as_matrix, codes_of, is_text
from neurise.batching import MEMORY_BUDGET, batches
from neurise.frames import as_table, frame_kind
from neurise.space import MAX_STATES, Space

WHOLE = np.dtype(np.int64).str
"""The type that holds every number that may be a symbol."""


class Tokens(NamedTuple):
    """Sets of rows over one space, in the order in which they were given."""

    sets: tuple[Tensor, ...]  # each (n, sites) uint8
    alphabet: Alphabet

    @property
    def space(self) -> Space:
        """Return how many sites and states there are."""
        return Space(self.sets[0].shape[1], len(self.alphabet))


def tokens(alphabet: Any = None, *, least: int = 1, **rows: Any) -> Tokens:
    """Check sets of rows, named for the messages, and translate them to tokens of one alphabet.

    Without ``alphabet`` the symbols are those that occur in any of the sets, sorted. Numbers are the same symbol in every
    type: True, 1 and 1.0. ``least`` is how many rows a set needs. Tokens lie where the first tensor lay, or on a GPU where
    there is one.
    """
    matrices = {name: matrix_of(given, name) for name, given in _matched(rows).items()}
    first, *others = matrices
    width = matrices[first].shape[1]
    for name in others:
        if matrices[name].shape[1] != width:
            raise ValueError(f"{first} has {width} sites, and {name} has {matrices[name].shape[1]}")
    types: dict[str, str] = {}
    found: set[int] = set()
    for name, matrix in matrices.items():
        if len(matrix) < least:
            raise ValueError(f"{name} has {len(matrix)} row{'s'[: len(matrix) != 1]}; at least {least} are needed")
        codes, types[name] = codes_of(matrix, name)
        if is_text(types[name]) != is_text(types[first]):
            raise ValueError(f"{first} and {name} cannot be compared: one holds letters and the other numbers")
        found.update(Alphabet.of(codes).codes)
    common = _common(list(types.values()), named=alphabet is not None)
    if alphabet is not None:
        symbols = Alphabet.of(np.zeros((1, 1), common) if common == WHOLE else np.full((1, 1), "a", common), alphabet)
    elif len(found) > MAX_STATES:
        raise ValueError(
            f"{' and '.join(rows)} have {len(found)} different symbols; at most {MAX_STATES} are supported"
        )
    else:
        symbols = Alphabet(tuple(sorted(found)), common)
    given = next((value.device for value in rows.values() if isinstance(value, Tensor)), None)
    place = devices.resolve(given)
    # In pieces, since codes take eight times the memory; but what is not in the alphabet is told with its row.
    budget = MEMORY_BUDGET if found <= set(symbols.codes) else 2**62
    sets = []
    for name, matrix in matrices.items():
        pieces = batches(len(matrix), 32 * width, budget)
        sets.append(torch.cat([symbols.encode(matrix[piece], name).to(place) for piece in pieces]))
    return Tokens(tuple(sets), symbols)


def _matched(rows: dict[str, Any]) -> dict[str, Any]:
    """Put the columns of data frames in the order of the first one, by their names."""
    tables = {name: as_table(given) for name, given in rows.items() if frame_kind(given) is not None}
    names = next((table.names for table in tables.values()), ())
    for name, table in tables.items():
        if sorted(table.names) != sorted(names):
            raise ValueError(
                f"{next(iter(tables))} has the columns {', '.join(names)}, and {name} has {', '.join(table.names)}"
            )
    return rows | {
        name: np.asarray(table)[:, [table.names.index(column) for column in names]] for name, table in tables.items()
    }


def matrix_of(given: Any, name: str) -> np.ndarray:
    """Insist on a set of rows; of counts and of whatever else holds rows, each as often as it was seen."""
    return as_matrix(given if isinstance(given, np.ndarray | Tensor) else holdings.repeated(given, name), name)


def spins(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Tokens 0, 1 as spins −1, +1."""
    return x.to(dtype) * 2 - 1


def _common(types: list[str], *, named: bool) -> str:
    """Choose a type that holds the symbols of all sets, and those that are named."""
    if is_text(types[0]):
        return "U1" if any(np.dtype(kind).kind == "U" for kind in types) else "S1"
    return types[0] if len(set(types)) == 1 and not named else WHOLE


def some(x: Tensor, n: int, seed: int) -> Tensor:
    """N rows of a set at random, without replacement; all of them, in random order, where there are no more."""
    # On the CPU, so that every device takes the same rows.
    order = torch.randperm(len(x), generator=devices.generator(seed, torch.device("cpu")))
    return x[order[:n].to(x.device)]
