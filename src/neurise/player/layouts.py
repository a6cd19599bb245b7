"""How sites are laid out on the page: lattice, image, sequence, register, table or graph."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.schema import Schema

KINDS = ("lattice", "image", "sequence", "register", "table", "graph")
FINE = 100
"""Sites above which a grid is an image: its cells are too small for symbols."""
MOST_EDGES = 5_000


class Layout(NamedTuple):
    """A kind, how many rows and columns a grid has, and the links of a graph."""

    kind: str
    rows: int
    columns: int
    edges: list[list[int]]

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON's types."""
        return dict(self._asdict())


def choose(
    schema: Schema, data: Dataset | None, shape: tuple[int, ...] | None = None, asked: str | None = None
) -> Layout:
    """Take the layout that is asked for, or one that suits the data."""
    sites, edges = schema.space.sites, _edges(data)
    shape = shape or (None if data is None else data.shape)
    kind, grid = _asked(asked, sites) if asked else (None, None)
    if grid is None:
        grid = _grid(shape, sites)
    if kind is None:
        kind = _suited(schema, grid, edges)
    if kind == "graph" and not edges:
        raise ValueError("--layout graph needs links: data whose couplings are known, such as edwards_anderson:side=4")
    rows, columns = grid if kind in ("lattice", "image") and grid else (1, sites)
    if kind in ("lattice", "image") and grid is None:
        raise ValueError(
            f"--layout {kind}: {sites} sites form no square; say how many rows and columns: {kind}:ROWSxCOLUMNS"
        )
    return Layout(kind, rows, columns, edges)


def _asked(text: str, sites: int) -> tuple[str, tuple[int, int] | None]:
    name, _, size = text.partition(":")
    if name not in KINDS:
        raise ValueError(f"--layout must be one of {', '.join(KINDS)}, or lattice:4x4; got {text!r}")
    if not size:
        return name, None
    found = re.fullmatch(r"(\d+)[x×](\d+)", size)
    if found is None or int(found[1]) * int(found[2]) != sites:
        raise ValueError(f"--layout {text}: the sizes must be ROWSxCOLUMNS with {sites} sites in all")
    return name, (int(found[1]), int(found[2]))


def _grid(shape: tuple[int, ...] | None, sites: int) -> tuple[int, int] | None:
    if shape is not None and len(shape) == 2 and math.prod(shape) == sites:
        return shape[0], shape[1]
    side = math.isqrt(sites)
    return (side, side) if side * side == sites and side >= 3 else None


def _suited(schema: Schema, grid: tuple[int, int] | None, edges: list[list[int]]) -> str:
    if isinstance(schema.alphabet, Columns):
        return "table"
    if schema.alphabet.symbols.dtype.kind in "US":
        return "sequence"
    if grid is not None:
        return "image" if schema.space.sites > FINE else "lattice"
    if edges:
        return "graph"
    return "register" if schema.space.states == 2 else "sequence"


def _edges(data: Dataset | None) -> list[list[int]]:
    if data is None or data.edges is None or len(data.edges) > MOST_EDGES:
        return []
    return np.unique(np.sort(data.edges, axis=1), axis=0).tolist()  # type: ignore[no-any-return]
