r"""Where the sites of a graph stand in a picture: on a grid, on the chip of an annealer, or pulled together by springs.

A qubit of a chip is a straight piece of wire, vertical (u = 0) or horizontal (u = 1), and couples to those that it crosses
and to the next ones on its line. It stands at the middle of its wire. The numbers of qubits are those of the machines:

- Chimera, m × m cells of 2 · 4 qubits: :math:`((i m + j) 2 + u) 4 + k`;
- Pegasus, size m: :math:`((u m + w) 12 + k)(m - 1) + z`, twelve wires k side by side in each of m lanes w;
- Zephyr, size m: :math:`(((u (2m + 1) + w) 4 + k) 2 + j) m + z`, two shifted rows j of wires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neurise.extras import need

CHIPS = {"chimera": 16, "pegasus": 16, "zephyr": 12}
"""Topologies, and the size of the largest machine of each."""
LAYOUTS = ("grid", *CHIPS, "spring")
PEGASUS_STARTS = np.array([[2, 10, 6], [6, 2, 10]])
"""Where the wires of each four begin, of vertical and of horizontal qubits."""


def places_by(
    layout: str,
    sites: int,
    *,
    shape: tuple[int, ...] | None = None,
    labels: Sequence[Any] | None = None,
    edges: np.ndarray | None = None,
    size: int | None = None,
) -> np.ndarray:
    """Return where each site stands, (sites, 2).

    ``layout`` is one of :data:`LAYOUTS`; that of a chip may carry its size, ``"pegasus:16"``, and takes the numbers of the
    qubits from ``labels``, or the sites' own. ``"spring"`` pulls the ``edges`` together, as networkx does it.
    """
    name, own_size = parsed(layout)
    if name == "grid":
        return grid(sites, shape)
    if name == "spring":
        return _spring(sites, np.zeros((0, 2), dtype=int) if edges is None else edges)
    numbers = _qubits(range(sites) if labels is None else labels, name)
    return _on_chip(name, numbers, own_size or size or CHIPS[name])


def parsed(layout: str) -> tuple[str, int | None]:
    """Take a layout apart into its name and the size of a chip."""
    name, colon, text = layout.partition(":")
    if name not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if not colon:
        return name, None
    least = 2 if name == "pegasus" else 1
    if name not in CHIPS or not text.isdigit() or int(text) < least:
        raise ValueError(f"layout {layout!r}: a size is a whole number and that of a chip, as in pegasus:16")
    return name, int(text)


def grid(sites: int, shape: tuple[int, ...] | None) -> np.ndarray:
    """Rows and columns of a lattice; a square number of sites without a shape is a square."""
    side = math.isqrt(sites)
    if shape is None and side * side == sites:
        shape = (side, side)
    if shape is None or len(shape) != 2:
        known = "" if shape is None else f" of the shape {shape}"
        raise ValueError(f"{sites} sites{known} form no grid of two dimensions: take the layout spring, or positions")
    row, column = np.divmod(np.arange(sites), shape[1])
    return np.stack([column, -row], axis=1).astype(float)


def _qubits(labels: Sequence[Any], name: str) -> np.ndarray:
    wrong = [
        label for label in labels if isinstance(label, bool) or not isinstance(label, int | np.integer) or label < 0
    ]
    if wrong:
        raise ValueError(f"the layout {name} needs the numbers of qubits; the site {wrong[0]!r} is none")
    return np.array([int(label) for label in labels], dtype=np.int64)


def _on_chip(name: str, numbers: np.ndarray, size: int) -> np.ndarray:
    digits: dict[str, tuple[int, ...]] = {
        "chimera": (size, size, 2, 4),
        "pegasus": (2, size, 12, size - 1),
        "zephyr": (2, 2 * size + 1, 4, 2, size),
    }
    middles: dict[str, Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
        "chimera": _chimera,
        "pegasus": _pegasus,
        "zephyr": _zephyr,
    }
    count = math.prod(digits[name])
    if len(numbers) and numbers.max() >= count:
        raise ValueError(
            f"qubit {numbers.max()} is beyond the {count:,} of a {name} chip of size {size}; give its size, as in "
            f"{name}:{size + 1}"
        )
    vertical, across, along = middles[name](*np.unravel_index(numbers, digits[name]))
    x, y = np.where(vertical, across, along), np.where(vertical, along, across)
    return np.stack([x, -y], axis=1).astype(float)


def _chimera(i: np.ndarray, j: np.ndarray, u: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Say which wires are vertical, at which distance from the edge each lies, and where its middle is."""
    across = np.where(u == 0, j, i) + (k - 1.5) / 5
    return u == 0, across, np.where(u == 0, i, j)


def _pegasus(u: np.ndarray, w: np.ndarray, k: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return u == 0, w + k / 12, z + (PEGASUS_STARTS[u, k // 4] + 5.5) / 12


def _zephyr(
    u: np.ndarray, w: np.ndarray, k: np.ndarray, j: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return u == 0, w + (k - 1.5) / 5, 2 * z + j + 0.5


def _spring(sites: int, edges: np.ndarray) -> np.ndarray:
    """Let networkx place the sites; the same edges stand the same way every time."""
    networkx = need("networkx", "dwave")
    graph = networkx.Graph()
    graph.add_nodes_from(range(sites))
    graph.add_edges_from(edges.tolist())
    found = networkx.spring_layout(graph, seed=0, iterations=200 if sites <= 300 else 50)
    return np.array([found[site] for site in range(sites)])
