"""The figure shows what there is: a panel for each thing that is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from neurise import datasets, evaluate
from neurise.dataset import Dataset
from neurise.evaluation.figure import draw
from neurise.space import Space


def titles(data: Dataset, samples: np.ndarray, path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Draw, and read the titles of the panels off the figure."""
    seen: list[str] = []
    genuine = Figure.savefig

    def looking(figure: Figure, *given: Any, **options: Any) -> None:
        seen.extend(axis.get_title() for axis in figure.axes)
        genuine(figure, *given, **options)

    monkeypatch.setattr(Figure, "savefig", looking)
    draw(evaluate(samples, data, baselines=False, measures=()).case, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    return seen


def test_a_lattice_with_couplings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.edwards_anderson(side=3, seed=0)
    found = titles(data, data.sample(60, seed=1), tmp_path / "a.png", monkeypatch)
    assert found == ["two-site correlations", "energies", "real rows", "samples"]


def test_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array(list("ACG"))[np.random.default_rng(0).integers(0, 3, (50, 4))]
    data = Dataset("letters", Space(4, 3), np.array(list("ACG")), test=rows)
    assert titles(data, rows[::-1], tmp_path / "a.png", monkeypatch) == ["two-site correlations", "overlaps"]


def test_one_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(20)[:, None] % 2
    data = Dataset("coins", Space(1, 2), np.array([0, 1]), test=rows)
    assert titles(data, rows, tmp_path / "a.png", monkeypatch) == ["overlaps"]
