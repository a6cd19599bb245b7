"""Histograms: counts first, then configurations."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from neurise.datasets import files
from neurise.datasets.formats import csv as _csv

SPINS = "12,-1,1,1\n3,1,1,-1\n1,-1,-1,1\n"


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.hist", "x.csv.gz"])
@pytest.mark.parametrize("low", [-1, 0])
def test_asked_for(tmp_path: Path, name: str, low: int) -> None:
    content = SPINS.replace("-1", str(low))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    data = files(path, kind="histogram")
    assert data.train.tolist() == [[low, 1, 1], [1, 1, low], [low, low, 1]]
    assert data.weights.tolist() == [12, 3, 1]
    assert data.train.dtype == np.int8
    assert data.symbols.tolist() == [low, 1]


@pytest.mark.parametrize("low", [-1, 0])
def test_recognised_with_a_warning(tmp_path: Path, low: int) -> None:
    with pytest.warns(UserWarning, match=r"x\.csv is read as a histogram.*kind='table'"):
        data = files(text(tmp_path / "x.csv", SPINS.replace("-1", str(low))))
    assert data.weights.tolist() == [12, 3, 1]
    assert data.space.sites == 3
    assert data.info["histogram"] is True


def test_kind_table_switches_the_guess_off(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", SPINS), kind="table")
    assert data.train.tolist() == [[12, -1, 1, 1], [3, 1, 1, -1], [1, -1, -1, 1]]
    assert data.weights is None


@pytest.mark.parametrize(
    "content",
    [
        "1,-1,1\n1,1,-1\n",  # nothing but ones: a constant spin
        "2,-1,1\n0,1,-1\n",  # a zero is no positive count
        "2,-1,1\n3,0,-1\n",  # three symbols
        "2,-1,1\n3,1,2\n",
        "2,1,1\n3,1,1\n",  # one symbol
        "2\n3\n",
        "-2,1,-1\n",
        "a,b,c\n2,1,0\n3,0,1\n",  # a header without a word about counts
    ],
)
@pytest.mark.parametrize("block", [3, 2**18])
def test_not_recognised(tmp_path: Path, content: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "BLOCK", block)
    data = files(text(tmp_path / "x.csv", content))
    cells = [list(map(int, line.split(","))) for line in content.split() if not line.startswith("a")]
    assert data.train.tolist() == cells
    assert data.weights is None


@pytest.mark.parametrize("last", ["0,1,-1", "5,1,0", "5,1,3"])
def test_a_late_line_puts_the_first_column_back(tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "BLOCK", 9)
    lines = ["200,-1,1", "1,1,-1"] * 10 + [last]
    data = files(text(tmp_path / "x.csv", "\n".join(lines)))
    assert data.train.tolist() == [list(map(int, line.split(","))) for line in lines]
    assert data.weights is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3,-1,1\n-2,1,1\n", "line 2, column 1: '-2'; a count is a whole number, not negative"),
        ("3,-1,1\n2.5,1,1\n", "line 2, column 1: '2.5'; a count"),
        ("3,-1,1\nx,1,1\n", "line 2, column 1: 'x'; a count"),
        ("3,-1,1\n2,1,up\n", "line 2, column 3: 'up' is not a whole number"),
        ("3,-1,1\n2,1\n", "line 2: cells: 2 here, 3"),
        ("3\n2\n", "no column besides"),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        files(text(tmp_path / "x.csv", content), kind="histogram")
    assert "x.csv" in str(error.value)


def test_large_counts_do_not_widen_the_spins(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "1000000,-1,1\n5,1,1\n"), kind="histogram")
    assert (data.train.dtype, data.weights.tolist()) == (np.int8, [1_000_000, 5])
