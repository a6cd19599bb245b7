"""Tables of words with a header, from file to file."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from neurise import datasets
from neurise.cli import app
from neurise.datasets.files import write_rows
from neurise.frames import Table
from neurise.models.independent import Independent

TEXT = """colour,n,code,share,label
red,1,007,0.5,a
blue,2,008,1,b
red,10,007,0.25,a
green,1,007,1,b
"""


def written(path: Path, text: str = TEXT) -> Path:
    path.write_text(text)
    return path


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_columns_have_names_and_kinds(tmp_path: Path) -> None:
    data = datasets.files(written(tmp_path / "x.csv"))
    assert isinstance(data.train, Table)
    assert data.train.names == ("colour", "n", "code", "share")
    assert data.train[2].tolist() == ["red", 10, "007", 0.25]  # leading zeros make a name, not a number
    assert data.labels.tolist() == ["a", "b", "a", "b"]
    assert Independent().fit(data.train).space_.digits == (3, 3, 2, 3)
    less = datasets.files(tmp_path / "x.csv", drop_column="code,n")
    assert less.train.names == ("colour", "share")
    with pytest.raises(ValueError, match="has no column 'age' to drop; there are colour, n"):
        datasets.files(tmp_path / "x.csv", drop_column=["age"])


def test_whole_numbers_and_nameless_letters_keep_one_alphabet(tmp_path: Path) -> None:
    numbers = datasets.files(written(tmp_path / "n.csv", "age,sex\n1,0\n2,1\n"))
    assert not isinstance(numbers.train, Table)
    own = datasets.files(tmp_path / "n.csv", kind="columns").train
    assert isinstance(own, Table)
    assert own.tolist() == [[1, 0], [2, 1]]
    letters = datasets.files(written(tmp_path / "l.csv", "a,c,g\nc,c,a\n"))
    assert letters.train.shape == (2, 3)
    named = datasets.files(written(tmp_path / "m.csv", "edible,cap\ne,x\np,x\n"))
    assert isinstance(named.train, Table)


def test_lines_that_lack_a_value(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", TEXT + "red,,007,1,a\n?,2,007,1,b\n")
    data = datasets.files(path, missing="drop")
    assert len(data.train) == 4
    assert data.info["missing"]["rows"] == 2
    kept = datasets.files(path).train
    assert (kept[4, 1], kept[5, 0]) == (None, None)  # gaps, for models that take them
    with pytest.raises(ValueError, match="line 3: cells: 1 here, 2 in the header"):
        datasets.files(written(tmp_path / "y.csv", "ab,cd\nxy,z\nxy\n"))


def test_rows_come_back_under_their_names(tmp_path: Path) -> None:
    data = datasets.files(written(tmp_path / "x.csv"))
    for name in ("y.csv", "y.tsv", "y.csv.gz"):
        write_rows(tmp_path / name, data.train)
        again = datasets.files(tmp_path / name)
        assert again.train.names == data.train.names
        assert again.train.tolist() == data.train.tolist()
    with pytest.raises(ValueError, match="a table of words is written as"):
        write_rows(tmp_path / "y.npz", data.train)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(0), tmp_path / "survey.csv.gz"
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "colour", "age", "yes"])
        for i in range(200):
            writer.writerow([f"p{i}", rng.choice(["red", "pale blue"]), rng.integers(18, 90), rng.choice(["y", "n"])])
    return path


def test_from_a_table_to_a_table_on_the_command_line(survey: Path, tmp_path: Path) -> None:
    refused = run("train", survey, "-o", tmp_path / "m", "--model", "independent")
    assert refused.exit_code == 1
    assert "the column 'id' has a different value in each of 200 rows" in " ".join(refused.output.split())
    assert "--drop-column id" in " ".join(refused.output.split())
    trained = run(
        "train", survey, "-o", tmp_path / "m", "--model", "independent", "--drop-column", "id", "--bins", "age=4"
    )
    assert trained.exit_code == 0, trained.output
    drawn = run("sample", tmp_path / "m", "-n", 50, "-o", tmp_path / "out.csv", "--seed", 0, "--log-prob")
    assert drawn.exit_code == 0, drawn.output
    lines = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(lines[0]) == ["log_prob", "colour", "age", "yes"]
    assert {line["colour"] for line in lines} == {"red", "pale blue"}
    assert all(18 <= int(line["age"]) < 90 for line in lines)
    shown = run("sample", tmp_path / "m", "-n", 2, "--seed", 0)
    assert shown.stdout.splitlines()[0] == "colour,age,yes"


def test_data_info_has_a_line_per_column(survey: Path) -> None:
    shown = run("data", "info", survey).output
    for words in ("200 rows of 4 columns", "colour", "pale blue"):
        assert words in shown


def test_bins_that_mean_nothing_are_refused(survey: Path, tmp_path: Path) -> None:
    told = run("train", survey, "-o", tmp_path / "m", "--bins", "age")
    assert "write NAME=NUMBER" in told.output
