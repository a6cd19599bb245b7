"""``neurise data``: made, listed, looked at; and data sets by their names in the other verbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.cli._data import resolve
from neurise.cli._picture import picture
from neurise.cli._summary import strongest_pairs
from neurise.dataset import Dataset
from neurise.datasets import edwards_anderson, files, potts
from neurise.space import Space


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result


def facts(*words: object) -> Any:
    return json.loads(run("data", "info", *words, "--json").stdout)


# --- make ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["edwards_anderson", "--side", 3, "--seed", 2, "--J", 0.5],
        ["edwards_anderson", "--side=3", "--set", "J=0.5", "--seed", 2],
        ["edwards_anderson:side=3,J=0.5,seed=2", "--rows-seed", 2],
    ],
)
def test_make_gives_what_the_library_gives(tmp_path: Path, words: list[object]) -> None:
    path = tmp_path / "x.npz"
    found = json.loads(run("data", "make", *words, "-n", 50, "-o", path, "--json").stdout)
    expected = edwards_anderson(side=3, seed=2, J=0.5)
    assert (found["rows"], found["sites"], found["name"]) == (50, 9, expected.name)
    data = files(path)
    np.testing.assert_array_equal(data.train, expected.sample(50, seed=2))
    np.testing.assert_array_equal(data.couplings, expected.couplings)
    np.testing.assert_allclose(data.pmf, expected.pmf, rtol=1e-12)
    np.testing.assert_allclose(data.energy(data.train), expected.energy(data.train), atol=1e-12)


def test_rows_seed_gives_other_rows_of_the_same_instance(tmp_path: Path) -> None:
    run("data", "make", "potts", "--seed", 1, "-n", 30, "-o", tmp_path / "a.npz")
    run("data", "make", "potts", "--seed", 1, "--rows-seed", 5, "-n", 30, "-o", tmp_path / "b.npz")
    a, b = files(tmp_path / "a.npz"), files(tmp_path / "b.npz")
    np.testing.assert_array_equal(a.couplings, b.couplings)
    np.testing.assert_array_equal(b.train, potts(seed=1).sample(30, seed=5))
    assert (a.train != b.train).any()


def test_make_turns_files_into_others(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("abracadabra")
    run("data", "make", tmp_path / "x.txt", "--window", 3, "--stride", 2, "-o", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[:2] == ["a,b,r", "r,a,c"]
    run("data", "make", f"{tmp_path / 'x.txt'}:window=5", "-o", tmp_path / "y.npz")
    assert files(tmp_path / "y.npz").space.sites == 5


def test_make_writes_both_splits_of_real_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for split in ("train", "valid", "test"):
        rows = rng.integers(0, 2, (7, 16))
        text = "".join(",".join(map(str, row)) + "\n" for row in rows.tolist())
        (tmp_path / f"nltcs.{split}.data").write_text(text)
    words = ["debd", "--name", "nltcs", "--folder", tmp_path, "-o"]
    run("data", "make", *words, tmp_path / "x.npz")
    data = files(tmp_path / "x.npz")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [7, 7, 7]
    lost = run("data", "make", *words, tmp_path / "x.csv").stderr
    assert "the test rows, the validation rows would go into an .npz file" in lost


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["edwards_andersen"],
            "there is neither a file nor a data set 'edwards_andersen'; did you mean edwards_anderson?",
        ),
        (["zzz"], "data sets are: "),
        (
            ["edwards_anderson", "--sied", 3],
            "the data set edwards_anderson has no option 'sied'; did you mean side or seed?",
        ),
        (["edwards_anderson", "--colour", 3], "it has: side, seed, preset"),
        (["edwards_anderson", "--set", "colour=3"], "it has: side, seed, preset"),
        (["edwards_anderson", "--set", "side"], "'side': write it as name=value"),
        (["edwards_anderson", "--side", 3, "--set", "side=4"], "side was given twice, as '3' and as '4'"),
        (["edwards_anderson:side=3", "--side", 4], "side was given twice"),
        (["edwards_anderson", "--side", "big"], "side must be a whole number; got 'big'"),
        (["edwards_anderson", "--side", 3.5], "side must be a whole number; got '3.5'"),
        (["edwards_anderson", "--J", "strong"], "J must be a number; got 'strong'"),
        (["edwards_anderson", "--side"], "--side has no value"),
        (["edwards_anderson", "side"], "'side' is neither an option nor the value of one"),
        (["edwards_anderson", "--side", 1], "side must be"),
        (["--side", 4, "edwards_anderson"], "--side: the name of the data set comes first"),
        (["idx"], "the data set idx needs the option 'images'"),
        (["nowhere.csv"], "there is no file nowhere.csv"),
    ],
)
def test_make_refuses_in_one_line_and_writes_nothing(tmp_path: Path, words: list[object], message: str) -> None:
    result = run("data", "make", *words, "-o", tmp_path / "x.npz", code=1)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_make_asks_before_it_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    run("data", "make", "edwards_anderson", "--side", 2, "-n", 5, "-o", path)
    before = path.read_bytes()
    again = ["data", "make", "edwards_anderson", "--side", 2, "-n", 6, "-o", path]
    assert "exists; --force overwrites it" in run(*again, code=1).stderr
    assert path.read_bytes() == before
    run(*again, "--force")
    assert len(files(path).train) == 6
    assert "is not known" in run(*again[:-1], tmp_path / "x.xls", code=1).stderr


def test_negative_values_and_lists_are_values(tmp_path: Path) -> None:
    words = [
        "ising",
        "--graph",
        "[[0,1],[1,2]]",
        "--J",
        "-1.5",
        "--h",
        "[0.5, -0.25, 0]",
        "-n",
        3,
        "-o",
        tmp_path / "x.npz",
    ]
    run("data", "make", *words)
    data = files(tmp_path / "x.npz")
    assert (data.couplings.tolist(), data.fields.tolist()) == ([-1.5, -1.5], [0.5, -0.25, 0.0])
    assert resolve("ising:graph=[[0,1],[1,2]],J=0.5,h=[1,2,3]").fields.tolist() == [1, 2, 3]


# --- list ------------------------------------------------------------------------------------------------------------


def test_list_names_every_data_set_with_its_options() -> None:
    found = {entry["name"]: entry for entry in json.loads(run("data", "list", "--json").stdout)["datasets"]}
    assert set(found) == set(neurise.discovery.names("neurise.datasets"))
    assert found["edwards_anderson"]["options"]["side"] == 5
    shown = run("data", "list").stdout
    assert "--visibility 1.0" in shown
    assert "\\" not in shown
    assert ":math:" not in shown


# --- info ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (200, 5))
    x[:, 1], x[:, 3] = 1, 1 - x[:, 0]
    lines = ["label,count,a,b,c,d,e"]
    lines += [f"{'cat' if row[0] else 'dog'},{n % 3},{','.join(map(str, row))}" for n, row in enumerate(x.tolist())]
    lines[50] = "cat,1,0,1,?,1,1"
    lines[60] = "dog,1,,1,?,1,1"
    (tmp_path / "x.csv").write_text("\n".join(lines))
    return tmp_path / "x.csv"


def test_info_of_a_table(table: Path) -> None:
    found = facts(table)
    assert (found["rows"], found["sites"], found["states"], found["symbols"]) == (198, 5, 2, [0, 1])
    assert found["missing"] == {"cells": 3, "rows": 2, "first": [51, 5]}
    assert found["constant_sites"] == {"1": 1}
    strongest = found["correlations"]["pairs"][0]
    assert strongest["sites"] == [0, 3]
    assert strongest["value"] == pytest.approx(-1, abs=1e-5)  # float32
    rows = files(table, missing="drop")
    assert found["distinct_rows"] == len({tuple(row) for row in rows.train.tolist()})
    assert found["weights"]["sum"] == rows.weights.sum()
    assert found["labels"] == {"cat": (rows.labels == "cat").sum(), "dog": (rows.labels == "dog").sum()}


def test_info_is_a_table_and_a_picture(table: Path) -> None:
    shown = run("data", "info", table).stdout
    for words in (
        "198 rows of 5 sites",
        "2 symbols: 0, 1",
        "1 always 1: 1",
        "0–3: -1.000",
        "3 cells in 2 rows, which are left out here; the first in line 51, column 5",
        "2 classes: cat (",
        "counts from 0 to 2",
        "the first 16 rows:",
    ):
        assert words in shown
    assert any(half in shown for half in "▀▄█")


def test_info_of_a_name_a_law_and_an_alignment(tmp_path: Path) -> None:
    found = facts("edwards_anderson:side=3", "--rows", 200)
    assert (found["rows"], found["law"], found["couplers"], found["shape"]) == (200, True, 18, [3, 3])
    assert found["source"] == "edwards_anderson"
    (tmp_path / "x.fasta").write_text(">a\nACDEF\n>b\nACDEF\n>c\nGHIKL\n")
    shown = run("data", "info", tmp_path / "x.fasta").stdout
    assert "ACDEF\nACDEF\nGHIKL\n" in shown
    assert "importances from 0.5 to 1, sum 2, worth 3 rows of equal importance" in shown
    assert "21 symbols: -, A, C" in shown


def test_info_of_a_histogram_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("12,-1,1\n3,1,1\n")
    result = run("data", "info", tmp_path / "x.csv")
    assert "taken from the first column" in result.stdout
    assert "warning: " in result.stderr


def test_counts_are_repetitions_and_no_importances(tmp_path: Path) -> None:
    """A table of reads and their histogram are the same data: 3,000 reads, however few rows they make."""
    rows = np.random.default_rng(0).integers(0, 2, (3_000, 3))
    rows[:2_900] = rows[0]
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    np.savetxt(tmp_path / "reads.csv", rows, "%d", ",", header="a,b,c", comments="")
    counted = np.column_stack([counts, distinct])
    np.savetxt(tmp_path / "counted.csv", counted, "%d", ",", header="count,a,b,c", comments="")
    reads, histogram = facts(tmp_path / "reads.csv"), facts(tmp_path / "counted.csv")
    assert histogram["weights"]["effective_rows"] == 3_000
    assert histogram["correlations"]["noise"] == pytest.approx(reads["correlations"]["noise"])
    for one, other in zip(histogram["correlations"]["pairs"], reads["correlations"]["pairs"], strict=True):
        assert one["value"] == pytest.approx(other["value"], abs=1e-5)  # float32
    shown = run("data", "info", tmp_path / "counted.csv").stdout
    assert f"counts from {counts.min()} to {counts.max():,}: the rows were seen 3,000 times in all" in shown
    assert "equal importance" not in shown


def test_info_mistakes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("0,1\n1,x\n")
    assert "line 2, column 2: 'x'" in run("data", "info", tmp_path / "x.csv", code=1).stderr
    assert "neither a file nor a data set" in run("data", "info", "what", code=1).stderr


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("states", [2, 4])
def test_strongest_pairs_against_a_contingency_table(states: int, weighted: bool) -> None:
    rng = np.random.default_rng(states)
    x = rng.integers(0, states, (400, 4)).astype(np.uint8)
    x[:300, 2] = x[:300, 0]
    weights = rng.random(400) if weighted else np.ones(400)
    best = strongest_pairs(x, states, weights if weighted else None)["pairs"][0]
    joint = np.zeros((states, states))
    np.add.at(joint, (x[:, 0], x[:, 2]), weights / weights.sum())
    product = np.outer(joint.sum(1), joint.sum(0))
    cramers_v = np.sqrt(((joint - product) ** 2 / product).sum() / (states - 1))
    assert best["sites"] == [0, 2]
    assert abs(best["value"]) == pytest.approx(cramers_v, abs=1e-5)  # sums of 400 float32 numbers


def test_a_constant_site_among_weights_is_nothing_to_warn_about() -> None:
    x = np.random.default_rng(0).integers(0, 2, (300, 3)).astype(np.uint8)
    x[:, 1] = 1
    weights = np.random.default_rng(1).random(300)
    assert strongest_pairs(x, 2, weights)["pairs"][0]["sites"] == [0, 2]  # warnings are errors here


def test_a_site_that_differs_in_a_handful_of_rows_is_no_strong_pair() -> None:
    x = np.random.default_rng(0).integers(0, 2, (400, 4)).astype(np.uint8)
    x[:, 2:] = 0
    x[7, 2:] = 1
    assert strongest_pairs(x, 2)["pairs"][0]["sites"] == [0, 1]


# --- pictures --------------------------------------------------------------------------------------------------------


def small(rows: list[list[Any]], states: int, shape: tuple[int, int] | None = None) -> Dataset:
    x = np.array(rows)
    symbols = np.unique(x) if x.dtype.kind == "U" else np.arange(states)
    return Dataset("small", Space(x.shape[1], len(symbols)), symbols, train=x, shape=shape)


@pytest.mark.parametrize(
    ("data", "width", "expected"),
    [
        (small([[1, 0, 1], [1, 1, 0], [0, 1, 1]], 2), 80, ["█▄▀", " ▀▀"]),
        (small([[1, 0, 0, 1], [1, 1, 0, 0]], 2, (2, 2)), 80, ["▀▄  ▀▀"]),
        (small([[1, 0, 0, 1], [1, 1, 0, 0]], 2, (2, 2)), 3, ["▀▄"]),
        (small([[0, 1, 2], [2, 2, 1]], 3), 2, ["01", "22"]),
        (small([[0, 5, 10, 11]], 12), 80, [" ▒██"]),
        (small([["A", "-", "\n"], ["C", "C", "C"]], 3), 80, ["A-·", "CCC"]),
        (small([["A", "-", "C"]], 3), 2, ["A…"]),
    ],
)
def test_pictures(data: Dataset, width: int, expected: list[str]) -> None:
    assert picture(data, width).splitlines()[1:] == expected


# --- data sets by name in the other verbs ----------------------------------------------------------------------------

FAST = ["--width", 8, "--depth", 1, "--batch-size", 64, "--max-steps", 20]
FAST += ["--set", "members=1", "--set", "architecture__pairwise=false"]


def test_train_and_evaluate_take_names(tmp_path: Path) -> None:
    name, model = "edwards_anderson:side=2,seed=3", tmp_path / "model"
    found = json.loads(run("train", name, "--rows", 300, "-o", model, *FAST, "--json").stdout)
    assert (found["rows"], found["sites"]) == (300, 4)
    expected = neurise.NeurISE(width=8, depth=1, members=1, alphabet=[-1, 1])
    expected.set_params(training__batch_size=64, architecture__pairwise=False)
    expected.fit(edwards_anderson(side=2, seed=3).sample(300, seed=0), max_steps=20, verbose=False)
    np.testing.assert_array_equal(neurise.load(model).sample(20, seed=1), expected.sample(20, seed=1))
    words = ["evaluate", model, "--data", name, "--samples", 200, "--json"]
    measured = {row["name"]: row["value"] for row in json.loads(run(*words).stdout)["rows"]}
    law = neurise.exact.law(neurise.load(model)).numpy()
    distance = neurise.metrics.total_variation(law, edwards_anderson(side=2, seed=3).pmf)
    assert measured["total_variation"] == pytest.approx(distance, abs=1e-9)


def test_train_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    words = ["-o", tmp_path / "model", *FAST]
    assert "did you mean edwards_anderson?" in run("train", "edward_anderson", *words, code=1).stderr
    assert "has no option 'sid'" in run("train", "edwards_anderson:sid=2", *words, code=1).stderr
    labels = run("train", "edwards_anderson", "--label-column", "y", *words, code=1).stderr
    assert "--label-column is for files" in labels
    assert not list(tmp_path.iterdir())


def test_a_file_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a:b=1.npy", np.array([[0, 1]]))
    assert resolve("a:b=1.npy").train.tolist() == [[0, 1]]
    (tmp_path / "x.csv").write_text("n,a\n2,1\n3,0\n")
    assert resolve("x.csv:count_column=n").weights.tolist() == [2, 3]
    assert resolve("x.csv", label_column="n").labels.tolist() == [2, 3]


def test_reads_of_an_annealer_by_their_path(tmp_path: Path) -> None:
    reads = np.random.default_rng(0).choice([-1, 1], (50, 3)).astype(np.int8)
    np.savez(tmp_path / "reads.npz", samples=reads, num_occurrences=np.ones(50, int), energies=np.zeros(50))
    path = tmp_path / "reads.npz"
    for words in ([path], [f"dwave:source={path}"]):
        facts = json.loads(run("data", "info", *words, "--json").stdout)
        assert (facts["rows"], facts["test"]) == (40, 10)
    facts = json.loads(run("data", "info", f"{path}:test_fraction=0.5", "--json").stdout)
    assert (facts["rows"], facts["test"]) == (25, 25)
