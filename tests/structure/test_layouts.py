"""Places of sites: on grids, on chips as another library draws them, and by springs."""

from __future__ import annotations

import numpy as np
import pytest

from neurise.structure.layouts import CHIPS, places_by


@pytest.mark.parametrize(("name", "size"), [("chimera", 3), ("pegasus", 4), ("zephyr", 3)])
def test_chips_are_drawn_as_their_makers_draw_them(name: str, size: int) -> None:
    """Up to scale and a shift of 3 % of the picture; all qubits stand apart, and couplers join near ones."""
    graphs = pytest.importorskip("dwave.graphs")
    chip = getattr(graphs, f"{name}_graph")(size)
    qubits = sorted(chip.nodes)
    places = places_by(f"{name}:{size}", len(qubits), labels=qubits)
    assert len(np.unique(places.round(9), axis=0)) == len(qubits)
    theirs = np.array([getattr(graphs, f"{name}_layout")(chip)[qubit] for qubit in qubits])
    ours = np.column_stack([places, np.ones(len(qubits))])
    fitted = ours @ np.linalg.lstsq(ours, theirs, rcond=None)[0]
    assert np.abs(fitted - theirs).max() < 0.03 * np.ptp(theirs, axis=0).min()
    stands = dict(zip(qubits, places, strict=True))
    longest = {"chimera": 1, "pegasus": 1, "zephyr": 2}[name]  # to the next wire on the same line
    assert max(np.hypot(*(stands[a] - stands[b])) for a, b in chip.edges) < longest + 1e-9


def test_a_chip_has_the_size_of_the_largest_machine_unless_another_is_known() -> None:
    last = 2 * CHIPS["pegasus"] * 12 * (CHIPS["pegasus"] - 1) - 1
    np.testing.assert_array_equal(
        places_by("pegasus", 2, labels=[30, last]), places_by("pegasus:16", 2, labels=[30, last])
    )
    np.testing.assert_array_equal(places_by("zephyr", 1, labels=[50], size=2), places_by("zephyr:2", 1, labels=[50]))
    np.testing.assert_array_equal(places_by("chimera:1", 8), places_by("chimera:1", 8, labels=range(8)))


def test_a_grid_has_the_shape_that_is_known_or_is_a_square() -> None:
    assert places_by("grid", 6, shape=(2, 3)).tolist() == [[0, 0], [1, 0], [2, 0], [0, -1], [1, -1], [2, -1]]
    assert places_by("grid", 9)[8].tolist() == [2, -2]


def test_springs_pull_neighbours_together() -> None:
    edges = np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)])
    places = places_by("spring", 6, edges=edges)
    np.testing.assert_array_equal(places, places_by("spring", 6, edges=edges))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    joined = np.mean([apart[i, j] for i, j in edges])
    assert joined < apart[np.triu_indices(6, 1)].mean()


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        ("ring", {}, "layout must be one of grid, chimera, pegasus, zephyr, spring, got 'ring'"),
        ("grid:4", {}, "a size is a whole number and that of a chip"),
        ("pegasus:1", {}, "a size is a whole number"),
        ("grid", {}, "5 sites form no grid"),
        ("grid", {"shape": (5,)}, r"of the shape \(5,\) form no grid"),
        ("zephyr", {"labels": ["a", 1, 2, 3, 4]}, "the site 'a' is none"),
        ("chimera:1", {"labels": [0, 1, 2, 3, 8]}, "qubit 8 is beyond the 8 of a chimera chip of size 1.*chimera:2"),
    ],
)
def test_mistakes(layout: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        places_by(layout, 5, **options)
