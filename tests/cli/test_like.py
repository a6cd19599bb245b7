"""``neurise sample --like``: drawn rows that look like a table, to the last comma."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.datasets import files

SPINS = tiny.spins(40, 3)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("like")
    bits = (SPINS + 1) // 2
    neurise.Independent(alphabet=[-1, 1]).fit(SPINS).save(place / "spins")
    neurise.Independent(alphabet=[0, 1]).fit(bits).save(place / "bits")
    neurise.Independent().fit(SPINS, np.resize([3, 5], 40)).save(place / "labelled")
    neurise.Independent().fit(np.array(list("AC-"))[np.arange(60).reshape(20, 3) * 7 % 3]).save(place / "letters")
    lines = ["colour,count,size,warm"]
    for row in range(12):
        colour = ["red", "green", "blue"][row * 5 % 3]
        lines.append(f"{colour},{1 + row % 2},{[1, 10][row % 2]},{'yes' if colour == 'red' else 'no'}")
    (place / "survey.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run("train", place / "survey.csv", "-o", place / "survey", "--model", "memorize").exit_code == 0
    return place


def drawn(folder: Path, model: str, text: str, name: str, *words: object) -> str:
    """Write a table, draw rows like it, and return what was written."""
    like, output = folder / f"like_{name}", folder / f"drawn_{name}"
    like.write_text(text, encoding="utf-8")
    result = run("sample", folder / model, "--like", like, "-o", output, "--seed", 1, "--force", *words)
    assert result.exit_code == 0, result.output
    return output.read_text(encoding="utf-8")


def test_a_plain_table_keeps_its_header_or_none(folder: Path) -> None:
    for header in ("", "up,down,strange\n"):
        text = drawn(folder, "spins", f"{header}1,-1,1\n-1,-1,1\n1,1,1\n", "plain.csv")
        assert text.startswith(header)
        rows = [[int(cell) for cell in line.split(",")] for line in text[len(header) :].splitlines()]
        np.testing.assert_array_equal(rows, neurise.load(folder / "spins").sample(3, seed=1))


def test_tabs_and_labels_stay_where_they_are(folder: Path) -> None:
    text = drawn(folder, "labelled", "a\tlabel\tb\tc\n1\t5\t1\t1\n1\t3\t1\t-1\n1\t5\t1\t1\n", "labels.tsv")
    lines = [line.split("\t") for line in text.splitlines()]
    assert lines[0] == ["a", "label", "b", "c"]
    assert [line[1] for line in lines[1:]] == ["5", "3", "5"]
    rows = [[int(line[place]) for place in (0, 2, 3)] for line in lines[1:]]
    np.testing.assert_array_equal(rows, neurise.load(folder / "labelled").sample(3, [5, 3, 5], seed=1))


def test_counts_are_counts_again(folder: Path) -> None:
    text = drawn(folder, "bits", "bitstring,count\n010,60\n111,40\n", "strings.csv")
    lines = [line.split(",") for line in text.splitlines()]
    assert lines[0] == ["bitstring", "count"]
    assert sum(int(count) for _, count in lines[1:]) == 100
    assert len({string for string, _ in lines[1:]}) == len(lines) - 1  # each stands there once
    found = files(folder / "drawn_strings.csv")
    rows = neurise.load(folder / "bits").sample(100, seed=1)
    expected = np.unique(rows, axis=0, return_counts=True)
    np.testing.assert_array_equal(found.weights[np.lexsort(found.train.T[::-1])], expected[1])


def test_columns_with_alphabets_of_their_own(folder: Path) -> None:
    """The table may have its columns in another order than the one that was learnt from."""
    with (folder / "survey.csv").open(encoding="utf-8", newline="") as file:
        known = {(line["colour"], line["size"], line["warm"]) for line in csv.DictReader(file)}
    text = drawn(folder, "survey", "warm,size,colour\n" + "yes,1,red\nno,10,blue\n" * 10, "turned.csv")
    lines = list(csv.DictReader(text.splitlines()))
    assert list(lines[0]) == ["warm", "size", "colour"]
    assert len(lines) == 20
    assert {(line["colour"], line["size"], line["warm"]) for line in lines} <= known
    counted = drawn(folder, "survey", (folder / "survey.csv").read_text(encoding="utf-8"), "counted.csv")
    lines = list(csv.DictReader(counted.splitlines()))
    assert list(lines[0]) == ["colour", "count", "size", "warm"]
    assert sum(int(line["count"]) for line in lines) == 18
    assert "id" not in drawn(folder, "survey", "id,warm,size,colour\nx1,yes,1,red\n", "id.csv", "--drop-column", "id")


def test_alignments_and_arrays(folder: Path, tmp_path: Path) -> None:
    assert drawn(folder, "letters", ">x\nAC-\n>y\nCCC\n", "two.fasta").count(">") == 2
    np.save(tmp_path / "like.npy", SPINS[:7].astype(np.int8))
    result = run("sample", folder / "spins", "--like", tmp_path / "like.npy", "-o", tmp_path / "new.npy", "--seed", 0)
    assert result.exit_code == 0, result.output
    found = np.load(tmp_path / "new.npy")
    assert (found.shape, found.dtype) == ((7, 3), np.int8)


def test_without_a_file_it_goes_to_the_screen(folder: Path) -> None:
    (folder / "screen.csv").write_text("1,1,1\n", encoding="utf-8")
    result = run("sample", folder / "spins", "--like", folder / "screen.csv", "--seed", 1, "-n", 2)
    assert result.stdout.count("\n") == 2


def test_a_model_that_does_not_fit_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    tables = {
        "wide.csv": "1,1,1,1\n1,1,1,1\n",
        "zero.csv": "1,0,1\n1,1,1\n",
        "labels.csv": "a,b,c,label\n1,1,1,3\n1,-1,1,3\n",
        "odd.csv": "a,b,c,label\n1,1,1,4\n1,-1,1,3\n",
        "weights.csv": "a,b,c,weight\n1,1,1,0.5\n1,-1,1,3\n",
        "names.csv": "colour,big,warm\nred,1,yes\n",
        "words.csv": "colour,size,warm\npink,1,yes\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    wrong = [
        ("spins", ["wide.csv"], "4"),
        ("spins", ["zero.csv"], "has the symbol 0 at row 0, column 1"),
        ("spins", ["labels.csv"], "has labels, and the model was fitted without"),
        ("labelled", ["odd.csv"], "4"),
        ("spins", ["weights.csv"], "drawn rows have no weights"),
        ("survey", ["names.csv"], "lacks 'size' and has 'big'"),
        ("survey", ["words.csv"], "has 'pink' at row 0 of the column 'colour'"),
        ("spins", ["nothing.csv"], "there is no such file"),
        ("spins", ["zero.csv", "--log-prob"], "leave --log-prob out"),
        ("spins", ["zero.csv", "-o", tmp_path / "x.npz"], "writes .csv files"),
        ("labelled", ["labels.csv", "-n", 3], "has 2 labelled rows; leave the number out"),
    ]
    for model, (name, *more), message in wrong:
        result = run("sample", folder / model, "--like", tmp_path / str(name), *more)
        assert result.exit_code == 1, name
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert "name it with --like" in run("sample", folder / "spins", "--drop-column", "id").stderr
