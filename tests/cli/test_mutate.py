"""``neurise mutate``: the library's log-ratios, as a table, as JSON, as a map."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app

ROWS = np.array(list("ACD-"))[np.random.default_rng(0).choice(4, (60, 3), p=[0.4, 0.3, 0.2, 0.1])]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mutate")
    tiny.model("independent").fit(ROWS).save(place / "letters")
    tiny.model("independent").fit(ROWS, np.resize([3, 5], 60)).save(place / "labelled")
    tiny.model("independent").fit(np.column_stack([tiny.spins(40, 3), np.ones(40, int)])).save(place / "spins")
    tiny.model("independent").fit(np.random.default_rng(0).integers(0, 3, (40, 4))).save(place / "digits")
    tiny.model(keep_prob=0.5, cycles=2).fit(ROWS, verbose=False).save(place / "soft")
    (place / "two.fasta").write_text(">first\nCAD\n>second\nDAA\n", encoding="utf-8")
    (place / "one.csv").write_text("1,-1,1,1\n", encoding="utf-8")
    return place


@pytest.mark.parametrize(
    ("model", "words", "row"),
    [
        ("letters", ["CAD"], list("CAD")),
        ("letters", ["C A,D"], list("CAD")),
        ("letters", ["two.fasta", "--row", "second"], list("DAA")),
        ("letters", ["two.fasta", "--row", "1"], list("DAA")),
        ("letters", ["two.fasta"], list("CAD")),
        ("spins", ["1,-1,1,1"], [1, -1, 1, 1]),
        ("spins", ["one.csv"], [1, -1, 1, 1]),
        ("digits", ["0121"], [0, 1, 2, 1]),
    ],
)
def test_the_wild_type_is_read_however_it_is_given(
    folder: Path, model: str, words: list[str], row: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = run("mutate", model, "--wild-type", *words, "--json")
    assert result.exit_code == 0, result.output
    found, expected = json.loads(result.stdout), neurise.mutations(neurise.load(folder / model), row)
    assert found["wild_type"] == row
    ratios = np.array([[-np.inf if value is None else value for value in line] for line in found["log_ratio"]])
    np.testing.assert_array_equal(ratios, expected.log_ratio)
    assert ("the wild type is row 0 (first) of the 2" in result.stderr) == (words == ["two.fasta"])


def test_the_table_and_the_map_are_written(folder: Path, tmp_path: Path) -> None:
    path, figure = tmp_path / "table.csv", tmp_path / "map.png"
    result = run("mutate", folder / "letters", "--wild-type", "CAD", "-o", path, "--figure", figure, "--top", 2)
    assert result.exit_code == 0, result.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    expected = neurise.mutations(neurise.load(folder / "letters"), list("CAD"))
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 * 3
    for line in lines:
        site, state = int(line["site"]), expected.symbols[0].tolist().index(line["mutant"])
        assert line["wild_type"] == "CAD"[site] != line["mutant"]
        assert float(line["log_ratio"]) == expected.log_ratio[site, state]
    best = expected.ranked()[0]
    assert f"{expected.log_ratio[best]:+.3f}" in result.stdout
    assert "exact, from the likelihood" in result.stdout


def test_labels_errors_and_constant_sites(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run("mutate", folder / "labelled", "--wild-type", "CAD", "--label", 5, "--json").stdout)
    expected = neurise.mutations(neurise.load(folder / "labelled"), list("CAD"), 5)
    np.testing.assert_array_equal(found["log_ratio"], expected.log_ratio)
    assert "sites 3 never varied" in run("mutate", folder / "spins", "--wild-type", "1,1,1,1").stdout
    soft = run("mutate", folder / "soft", "--wild-type", "CAD", "-o", tmp_path / "t.tsv")
    assert "difference of two lower bounds" in soft.stdout
    assert (tmp_path / "t.tsv").read_text(encoding="utf-8").startswith("site\twild_type\tmutant\tlog_ratio\terror\n")


def test_wrong_words_are_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    wrong = [
        (["CA"], "'CA' is no file, and as a sequence it has 2 sites; the model has 3"),
        (["CAX"], "'X' at site 2 is no symbol of the model, -, A, C, D"),
        (["CAD", "--row", "1"], "--row 1 is for files"),
        ([folder / "two.fasta", "--row", "2"], "give a number from 0 to 1 or the name of a sequence"),
        ([folder / "one.csv"], "one row of 3 sites"),
        (["nothing.fasta"], "there is no file nothing.fasta"),
        (["CAD", "-o", tmp_path / "t.npz"], "changes are written to .csv or .tsv"),
        (["CAD", "--figure", tmp_path / "t.txt"], "a figure is a .png"),
        (["CAD", "--label", "7"], "fitted without labels"),
    ]
    for words, message in wrong:
        result = run("mutate", folder / "letters", "--wild-type", *words)
        assert result.exit_code == 1, words
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
