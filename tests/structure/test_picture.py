"""Pictures of couplings at small and large sizes, on a lattice and on none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import figure_checks
import numpy as np
import pytest

from neurise import datasets, structure
from neurise.structure._graph_panel import in_brackets
from neurise.structure.layouts import places_by
from neurise.structure.recovery import Structure


def made(sites: int, states: int, *, edges: np.ndarray | None = None) -> Structure:
    """A chain of couplings with noise, or other edges, with one edge missed and one too many."""
    rng = np.random.default_rng(sites)
    pairs = np.stack([np.arange(sites - 1), np.arange(1, sites)], axis=1) if edges is None else edges
    values = rng.normal(0, 0.05, (sites, sites))
    adjacency = np.zeros((sites, sites), dtype=bool)
    for i, j in pairs.tolist():
        values[i, j] += rng.choice([-1.2, 1.2])
        adjacency[i, j] = adjacency[j, i] = True
    values = np.triu(values, 1) + np.triu(values, 1).T
    i, j = pairs[0].tolist()
    adjacency[i, j] = adjacency[j, i] = False
    adjacency[0, -1] = adjacency[-1, 0] = True
    shape = np.array([[1, -1], [-1, 1]]) if states == 2 else np.eye(states) - 1 / states
    fields = np.zeros(sites if states == 2 else (sites, states))
    errors = np.full((sites, sites), 0.05)
    tables = values[:, :, None, None] * shape
    return Structure(np.arange(states), tables, fields, errors, adjacency, 0.3, "two groups", (), 1000)


@pytest.mark.parametrize("sites", [2, 4, 25, 263])
@pytest.mark.parametrize("states", [2, 5, 21])
def test_couplings_without_a_lattice_are_a_matrix(
    sites: int, states: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sites == 263 and states == 21:
        pytest.skip("half a gigabyte of tables, which look like those of 5")
    found = made(sites, states)
    figure = figure_checks.drawn_figure(monkeypatch, lambda: structure.draw(found, tmp_path / "a.png"))
    figure_checks.check(figure)
    left = figure.axes[0]
    assert (left.get_xlabel(), left.get_ylabel()) == ("site", "site")  # and no ring, which the sites do not form
    assert left.lines[:] == []


def test_one_pair_of_which_nothing_is_known_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(6, 2)
    found.errors[2, 3] = found.errors[3, 2] = 300.0
    figure = figure_checks.drawn_figure(monkeypatch, lambda: structure.draw(found, tmp_path / "a.png"))
    assert figure.axes[1].get_ylim()[1] < 2 * np.nanmax(found.scores)


@pytest.mark.parametrize("side", [2, 3, 5])
@pytest.mark.parametrize("lattice", [True, False])
def test_a_truth_beside_it(side: int, lattice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.edwards_anderson(side=side, seed=0)
    data = data if lattice else replace(data, shape=None)
    found = made(side**2, 2, edges=data.edges)
    figure = figure_checks.drawn_figure(monkeypatch, lambda: structure.draw(found, tmp_path / "a.png", data))
    figure_checks.check(figure)
    assert len(figure.axes) == 4
    _, words = figure.axes[2].get_legend_handles_labels()
    assert words == ["no edge", "edges"]
    words = ("dotted", "outlined") if lattice else ("rings", "squares")
    assert any(word in figure.axes[1].get_title() for word in words)


def test_positions_that_are_given_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.random.default_rng(0).normal(size=(25, 2))
    figure = figure_checks.drawn_figure(
        monkeypatch, lambda: structure.draw(made(25, 2), tmp_path / "a.pdf", positions=places)
    )
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_offsets(), places)


@pytest.mark.parametrize("layout", ["grid", "chimera", "pegasus:4", "zephyr", "spring"])
def test_every_layout_is_drawn(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(16, 2)
    figure = figure_checks.drawn_figure(monkeypatch, lambda: structure.draw(found, tmp_path / "a.png", layout=layout))
    figure_checks.check(figure)
    places = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(places, places_by(layout, 16, edges=found.edges), atol=1e-12)
    (bars,) = figure.axes[1].containers  # an error for every edge, and for no other pair
    assert len(bars.lines[2][0].get_segments()) == len(found.edges)
    with pytest.raises(ValueError, match="not both"):
        structure.draw(found, tmp_path / "a.png", layout=layout, positions=np.zeros((16, 2)))


def test_programmed_couplings_stand_beside_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(9, 2)
    told = {(i, i + 1): float(np.sign(found.couplings[i, i + 1])) for i in range(8)}
    figure = figure_checks.drawn_figure(
        monkeypatch, lambda: structure.draw(found, tmp_path / "a.png", layout="grid", programmed=told)
    )
    figure_checks.check(figure)
    slope = found.with_programmed(told).temperature.slope
    assert f"slope β = {slope:.3f}" in figure.axes[1].get_title()
    assert figure.axes[1].get_xlabel() == "programmed coupling"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(-1.234, 0.042, "−1.23(4)"), (0.5, 0.3, "+0.5(3)"), (12.0, 4.0, "+12(4)"), (1.0, np.nan, "+1.00")],
)
def test_errors_of_the_last_digits(value: float, error: float, text: str) -> None:
    assert in_brackets(value, error) == text


def test_without_a_path_the_figure_is_returned_and_no_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    figure = structure.draw(made(5, 2))
    assert len(figure.axes) >= 2
    assert not list(tmp_path.iterdir())
    again = structure.draw(made(5, 2), "graph.png")
    assert len(again.axes) == len(figure.axes)
    assert [path.name for path in tmp_path.iterdir()] == ["graph.png"]
