"""A line per column, at any width of the terminal, and a summary of many columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from neurise.cli import app
from neurise.cli._column_lines import BLOCKS, LEVELS, LINES, ColumnFacts, column_lines, columns_of, histogram, percent

RNG = np.random.default_rng(0)
NAMES = ["age", "occupation of the person", "資本", "a\tb\x1b[31m", "k", *(f"c{place}" for place in range(7))]
SIZES = (2, 3, 73, 9, 1, 16, 4, 120, 5, 256, 2, 7)
TWELVE = [
    ColumnFacts(name, [f"value_{k}" for k in range(size)], RNG.integers(1, 900, size), missing=place * 10)
    for place, (name, size) in enumerate(zip(NAMES, SIZES, strict=True))
]


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_column_has_a_line_that_fits(width: int, blocks: bool) -> None:
    head, rule, *lines = column_lines(TWELVE, width, blocks=blocks).split("\n")
    assert len(lines) == len(TWELVE)
    for line in (head, rule, *lines):
        assert cell_len(line) <= width
        assert "\x1b" not in line
        assert blocks or (line.replace("資本", "").replace("·", "")).isascii()
    for column, line in zip(TWELVE, lines, strict=True):
        assert column.name[:4].replace("\t", "·")[:1] in line
        assert f" {len(column.symbols)} " in line
        assert percent(column.share_missing) in line
        assert column.most_frequent(1)[0][0][:7] in line


def test_shares_are_those_of_what_is_there() -> None:
    column = ColumnFacts("x", ["a", "b", "c"], np.array([6, 0, 2]), missing=2)
    assert column.most_frequent(3) == [("a", 0.75), ("c", 0.25), ("b", 0.0)]
    assert column.share_missing == 0.2
    assert column.to_dict()["symbols"] == 2
    line = column_lines([column], 80, blocks=True).split("\n")[-1]
    assert line.split() == ["x", "█", "▃", "2", "20%", "a", "75%", "c", "25%"]


def test_a_table_without_gaps_has_no_column_for_them() -> None:
    whole = [ColumnFacts("x", ["a", "b"], np.array([1, 1]))]
    assert "miss" not in column_lines(whole, 80, blocks=True)
    assert "miss" in column_lines([*whole, ColumnFacts("y", [], np.zeros(0), missing=3)], 80, blocks=True)


@pytest.mark.parametrize(
    ("counts", "bars", "drawn"),
    [
        ([0, 1, 4, 8], 12, " ▁▄█"),
        ([1000, 1], 12, "█▁"),  # what occurs at all is seen
        ([0, 0], 12, "  "),
        ([], 12, ""),
        ([1, 1, 2, 2, 4, 4], 3, "▂▄█"),
        ([2.5], 3, "█"),
    ],
)
def test_histograms(counts: list[float], bars: int, drawn: str) -> None:
    assert histogram(np.array(counts), bars, blocks=True) == drawn
    assert histogram(np.array(counts), bars, blocks=False) == "".join(LEVELS[BLOCKS.index(bar)] for bar in drawn)


@pytest.mark.parametrize("width", [40, 80])
def test_many_columns_are_summarised(width: int) -> None:
    tokens = RNG.integers(0, 2, (50, 2000)).astype(np.uint8)
    tokens[:, 7] = 1
    text = column_lines(columns_of(tokens, ["-1", "1"]), width, blocks=True)
    lines = text.split("\n")
    assert len(lines) < 10
    assert all(cell_len(line) <= width for line in lines)
    flat = " ".join(text.split())
    assert "columns 2,000" in flat
    assert "symbols 1,999 with 2, 1 with 1" in flat
    assert "to 100% of a column" in flat
    gone = [ColumnFacts(f"c{k}", ["a"], np.array([10.0]), missing=k == 41) for k in range(LINES + 2)]
    assert "most missing c41 9%" in " ".join(column_lines(gone, width, blocks=True).split())


def test_weights_count() -> None:
    (column,) = columns_of(np.array([[0], [1]], dtype=np.uint8), ["a", "b"], np.array([3.0, 1.0]))
    assert column.most_frequent(1) == [("a", 0.75)]


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (0.001, "<1%"), (0.25, "25%"), (0.9999, ">99%"), (1, "100%")])
def test_nothing_and_all_are_not_rounded_to(share: float, text: str) -> None:
    assert percent(share) == text


def test_data_info_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c\n" + "0,1,2\n1,1,0\n2,1,0\n0,1,0\n")
    shown = CliRunner().invoke(app, ["data", "info", str(path)], env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    assert any(line.split()[-2:] == ["1", "100%"] for line in shown.output.splitlines())
    found = json.loads(CliRunner().invoke(app, ["data", "info", str(path), "--json"]).stdout)["columns"]
    assert [column["symbols"] for column in found] == [3, 1, 2]
    assert found[2]["most_frequent"][0] == {"symbol": "0", "share": 0.75}


@pytest.mark.parametrize("columns", [40, 80])
def test_a_table_of_words_shows_its_names_and_gaps(tmp_path: Path, columns: int) -> None:
    path = tmp_path / "survey.csv"
    people = ["30,red", "41,blue", ",red", "25,red"] + [f"{age},green" for age in range(50, 70)]
    path.write_text("age,colour\n" + "\n".join(people) + "\n")
    shown = CliRunner().invoke(app, ["data", "info", str(path)], env={"COLUMNS": str(columns)})
    assert shown.exit_code == 0, shown.output
    age, colour = shown.output.strip().splitlines()[-2:]
    assert age.split()[0] == "age"
    assert "23" in age.split()  # symbols
    assert "4%" in age.split()  # missing
    assert colour.split()[0] == "colour"
    assert "green" in colour
    assert "1 cells in 1 rows" in " ".join(shown.output.split())
    found = json.loads(CliRunner().invoke(app, ["data", "info", str(path), "--json"]).stdout)
    assert found["columns"][0]["missing"] == pytest.approx(1 / 24)
    assert found["columns"][1]["most_frequent"][0] == {"symbol": "green", "share": pytest.approx(20 / 24)}
