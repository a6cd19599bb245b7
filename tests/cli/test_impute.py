"""``neurise impute``: gaps are filled, everything else stays as it stands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import _gaps, app

TABLE = """id,colour,size,warm
p1,red,1,yes
p2,,10,no
p3,red,10,NA
"p,4",blue,1,
p5,,1,yes
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey in which the third column follows from the first, and spins of which the second is the first."""
    place = tmp_path_factory.mktemp("impute")
    rng = np.random.default_rng(0)
    table = np.empty((200, 3), dtype=object)
    table[:, 0], table[:, 1] = rng.choice(["red", "green", "blue"], 200), rng.choice([1, 10], 200)
    table[:, 2] = np.where(table[:, 0] == "red", "yes", "no")
    named = neurise.frames.Table(table, ["colour", "size", "warm"])
    neurise.Memorize().fit(named).save(place / "survey")
    spins = tiny.spins(60, 3)
    spins[:, 1] = spins[:, 0]
    neurise.Memorize().fit(spins).save(place / "spins")
    neurise.Independent().fit(spins, spins[:, 2] * 2).save(place / "labelled")
    (place / "gaps.csv").write_text(TABLE, encoding="utf-8")
    return place


def filled(folder: Path, model: str, table: Path, *words: object) -> list[list[str]]:
    output = folder / "filled.csv"
    result = run("impute", folder / model, table, "-o", output, "--force", "--seed", 3, *words)
    assert result.exit_code == 0, result.output
    with output.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("words", [(), ("--most-probable",)])
@pytest.mark.parametrize("block", [1, 2**18])
def test_gaps_are_filled_from_the_row_and_nothing_else_changes(
    folder: Path, words: tuple[str, ...], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_gaps, "BLOCK", block)
    found = filled(folder, "survey", folder / "gaps.csv", *words)
    before = list(csv.reader(TABLE.splitlines()))
    assert len(found) == len(before)
    for now, then in zip(found, before, strict=True):
        assert [a for a, b in zip(now, then, strict=True) if b not in ("", "NA")] == [
            b for b in then if b not in ("", "NA")
        ]
    assert found[2][1] in ("green", "blue")  # not warm
    assert found[3][3] == "yes"
    assert found[4][3] == "no"
    assert found[5][1] == "red"


def test_several_draws_stand_below_each_other(folder: Path) -> None:
    found = filled(folder, "survey", folder / "gaps.csv", "-n", 40)
    assert found[0] == ["draw", "id", "colour", "size", "warm"]
    assert [int(line[0]) for line in found[1:]] == list(range(40)) * 5
    assert {line[2] for line in found[1:] if line[1] == "p2"} == {"green", "blue"}
    assert {line[2] for line in found[1:] if line[1] == "p5"} == {"red"}


def test_tables_of_one_alphabet_with_and_without_a_header(folder: Path, tmp_path: Path) -> None:
    for header in ("", "first,second,third\n"):
        (tmp_path / "spins.csv").write_text(f"{header}1,,1\n?,-1,1\n1,1,-1\n", encoding="utf-8")
        found = filled(folder, "spins", tmp_path / "spins.csv")
        assert found[-3:] == [["1", "1", "1"], ["-1", "-1", "1"], ["1", "1", "-1"]]
        assert len(found) == 3 + bool(header)


def test_labels_are_conditioned_on(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,label\n" + "1,1,,2\n1,1,,-2\n" * 10, encoding="utf-8")
    found = filled(folder, "labelled", tmp_path / "t.csv")
    assert [line[2] for line in found[1:]] == ["1", "-1"] * 10


def test_it_is_told_what_was_done(folder: Path, tmp_path: Path) -> None:
    words = ["impute", folder / "survey", folder / "gaps.csv", "-o", tmp_path / "t.tsv.gz", "--seed", 1]
    result = run(*words, "--json")
    assert json.loads(result.stdout) == {"file": str(tmp_path / "t.tsv.gz"), "rows": 5, "filled": 4, "draws": 1}
    assert "id: no columns of the model, left as they are" in result.stderr
    assert "4, drawn" in run(*words, "--force").stdout
    screen = run("impute", folder / "survey", folder / "gaps.csv", "--seed", 1)
    assert screen.stdout.splitlines()[1] == "p1,red,1,yes"


def test_wrong_words_are_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    tables = {
        "pink.csv": "colour,size,warm\npink,1,\n",
        "lacks.csv": "colour,warm\nred,\n",
        "wide.csv": "1,,1,1\n",
        "ragged.csv": "colour,size,warm\nred,1\n",
        "empty.csv": "",
        "x.npy": "",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    wrong = [
        ("survey", ["pink.csv"], "line 2, column 1: 'pink' is neither a gap nor a symbol"),
        ("survey", ["lacks.csv"], "lacks 'size'"),
        ("spins", ["wide.csv"], "has 4 columns, and the model 3 sites"),
        ("survey", ["ragged.csv"], "line 2: cells: 2 here, 3 in the first line"),
        ("survey", ["empty.csv"], "is empty"),
        ("survey", ["x.npy"], "gaps are filled in tables"),
        ("survey", ["nothing.csv"], "there is no file"),
        ("survey", ["pink.csv", "-n", 2, "--most-probable"], "leave one of the two out"),
        ("survey", ["pink.csv", "--json"], "need a file"),
        ("survey", ["pink.csv", "-o", tmp_path / "y.npz"], "filled tables are written to"),
    ]
    for model, (name, *more), message in wrong:
        result = run("impute", folder / model, tmp_path / str(name), *more)
        assert result.exit_code == 1, name
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr


def test_numbers_with_a_point_and_truth_values_as_words_are_known(folder: Path, tmp_path: Path) -> None:
    # pandas writes a column of whole numbers with gaps as 1.0, and truth values as True
    table = tmp_path / "points.csv"
    table.write_text("colour,size,warm\nred,10.0,\nblue,,no\n")
    assert filled(folder, "survey", table)[1:2] == [["red", "10.0", "yes"]]
    rows = np.array([[0, True], [4, False]] * 20, dtype=object)
    neurise.Memorize().fit(neurise.frames.Table(rows, ["n", "ok"])).save(tmp_path / "truths")
    table.write_text("n,ok\n4.0,\n,True\n")
    assert run("impute", tmp_path / "truths", table, "-o", tmp_path / "found.csv").exit_code == 0
    assert (tmp_path / "found.csv").read_text() == "n,ok\n4.0,0\n0,True\n"
    table.write_text("n,ok\n4.5,\n")
    assert "'4.5' is neither a gap nor a symbol" in run("impute", tmp_path / "truths", table).output
