"""Figures of evaluate at small and large sizes: labels and panels that do not touch, points that do not hide points."""

from __future__ import annotations

from pathlib import Path

import figure_checks
import numpy as np
import pytest

from neurise import datasets, evaluate
from neurise.dataset import Dataset
from neurise.evaluation.figure import draw
from neurise.space import Space


def rows_alone(sites: int, states: int) -> tuple[Dataset, np.ndarray]:
    """Rows with strong correlations, and samples with weaker ones."""
    rng = np.random.default_rng(sites + states)
    hidden = rng.integers(states, size=(400, 1))
    signs = np.arange(sites) % 2
    real, drawn = (
        np.where(rng.random((400, sites)) < share, (hidden + signs) % states, rng.integers(states, size=(400, sites)))
        for share in (0.8, 0.7)
    )
    return Dataset(f"{sites} sites", Space(sites, states), np.arange(states), test=real), drawn


@pytest.mark.parametrize("sites", [2, 4, 25, 263])
@pytest.mark.parametrize("states", [2, 5, 21])
def test_rows_of_any_size(sites: int, states: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sites == 263 and states == 21:
        pytest.skip("the correlations of so many states take long, and look like those of 5")
    data, drawn = rows_alone(sites, states)
    case = evaluate(drawn, data, baselines=False, measures=()).case
    figure = figure_checks.drawn_figure(monkeypatch, lambda: draw(case, tmp_path / "a.png"))
    figure_checks.check(figure)


@pytest.mark.parametrize("side", [2, 5])
def test_a_lattice_with_pictures(side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.edwards_anderson(side=side, seed=0)
    case = evaluate(data.sample(300, seed=1), data, baselines=False, measures=()).case
    figure = figure_checks.drawn_figure(monkeypatch, lambda: draw(case, tmp_path / "a.svg"))
    assert len(figure.axes) == 4
    figure_checks.check(figure)


def test_dots_of_many_pairs_are_counted_and_not_put_on_top_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (
        figure_checks.drawn_figure(monkeypatch, lambda case=case: draw(case, tmp_path / "a.png"))
        for case in (
            evaluate(drawn, data, baselines=False, measures=()).case
            for data, drawn in (rows_alone(4, 2), rows_alone(40, 2))
        )
    )
    rings, dots = few.axes[0].collections
    assert len(rings.get_facecolors()) == 0  # what lies under a ring is seen
    assert rings.get_sizes()[0] > dots.get_sizes()[0]
    (cells,) = many.axes[0].collections
    assert cells.get_array().sum() == 40 * 39 / 2
    assert [line.get_linestyle() for line in many.axes[0].lines] == ["-", "--", "--"]  # the diagonal, and the band
