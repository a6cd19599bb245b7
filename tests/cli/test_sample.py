"""``neurise sample``: rows on stdout or in a file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.datasets import files
from neurise.models.neurise import NeurISE

FAST = {"width": 8, "depth": 1, "steps": 30, "members": 1}
FAST |= {"training__batch_size": 64, "architecture__pairwise": False}
X = np.random.default_rng(0).choice([-1, 1], (120, 4))
LETTERS = np.array(list("ACG"))[np.random.default_rng(1).integers(0, 3, (120, 4))]


def run(*words: object, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=answer)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "spins"
    NeurISE().set_params(**FAST).fit(X, verbose=False).save(folder)
    return folder


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "letters"
    labels = np.where(LETTERS[:, 0] == "A", 10, 20)
    NeurISE().set_params(**FAST).fit(LETTERS, labels, verbose=False).save(folder)
    return folder


def test_stdout_is_csv_and_nothing_else(model: Path) -> None:
    result = run("sample", model, "-n", 7, "--seed", 2)
    assert result.exit_code == 0
    rows = np.loadtxt(io.StringIO(result.stdout), delimiter=",", dtype=int)
    np.testing.assert_array_equal(rows, neurise.load(model).sample(7, seed=2))


def test_sweeps_are_those_of_the_library(tmp_path: Path) -> None:
    folder = tmp_path / "swept"
    NeurISE().set_params(**FAST, corrector__clean=0.25, corrector__sweeps=1).fit(X, verbose=False).save(folder)
    fitted, drawn = neurise.load(folder), {}
    for sweeps in (None, 0, 3):
        words = [] if sweeps is None else ["--sweeps", sweeps]
        drawn[sweeps] = json.loads(run("sample", folder, "-n", 50, "--seed", 2, "--json", *words).stdout)["X"]
        assert drawn[sweeps] == fitted.sample(50, seed=2, sweeps=sweeps).tolist()
    assert drawn[None] != drawn[0] != drawn[3]


def test_sweeps_that_were_not_taught_are_refused(model: Path) -> None:
    result = run("sample", model, "--sweeps", 2)
    assert result.exit_code == 1
    assert "corrector__clean" in result.stderr


def test_default_is_a_thousand_fresh_rows(model: Path) -> None:
    first, second = run("sample", model).stdout, run("sample", model).stdout
    assert first.count("\n") == 1000
    assert first != second


def test_json_holds_the_rows(model: Path) -> None:
    fields = json.loads(run("sample", model, "-n", 3, "--seed", 2, "--json").stdout)
    assert fields["X"] == neurise.load(model).sample(3, seed=2).tolist()


@pytest.mark.parametrize("ending", ["npy", "npz", "csv"])
def test_files(model: Path, labelled: Path, tmp_path: Path, ending: str) -> None:
    for folder in (model, labelled):
        path = tmp_path / f"{folder.name}.{ending}"
        assert run("sample", folder, "-n", 20, "--seed", 2, "-o", path).exit_code == 0
        np.testing.assert_array_equal(files(path).train, neurise.load(folder).sample(20, seed=2))


def test_json_beside_a_file_tells_of_it(model: Path, tmp_path: Path) -> None:
    fields = json.loads(run("sample", model, "-n", 20, "-o", tmp_path / "x.npy", "--json").stdout)
    assert (fields["file"], fields["rows"], fields["sites"]) == (str(tmp_path / "x.npy"), 20, 4)


def test_an_existing_file_is_not_overwritten_unasked(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("precious")
    result = run("sample", model, "-n", 2, "-o", path)
    assert (result.exit_code, path.read_text()) == (1, "precious")
    assert "--force" in result.stderr
    with monkeypatch.context() as patch:
        patch.setattr("neurise.cli._output.somebody_answers", lambda: True)
        assert run("sample", model, "-n", 2, "-o", path, answer="n\n").exit_code == 1
        assert path.read_text() == "precious"
        assert run("sample", model, "-n", 2, "-o", path, answer="y\n").exit_code == 0
    assert path.read_text().count("\n") == 2
    assert run("sample", model, "-n", 3, "-o", path, "--force").exit_code == 0
    assert path.read_text().count("\n") == 3


@pytest.mark.parametrize("folder", [False, True])
def test_output_is_checked_before_the_work(
    model: Path, tmp_path: Path, folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NeurISE, "sample", None)
    path = tmp_path / ("x.csv" if folder else "x.txt")
    if folder:
        path.mkdir()
    result = run("sample", model, "-o", path)
    assert result.exit_code == 1
    assert ("is a folder" if folder else ".npy, .npz, .csv") in result.stderr


def test_label(labelled: Path) -> None:
    result = run("sample", labelled, "-n", 500, "--label", "20", "--seed", 4)
    expected = neurise.load(labelled).sample(500, 20, seed=4)
    assert result.stdout.split() == [",".join(row) for row in expected]
    other = run("sample", labelled, "-n", 500, "--label", "10", "--seed", 4)
    assert other.stdout != result.stdout


@pytest.mark.filterwarnings("ignore:the clamped values")
def test_clamp(model: Path, labelled: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("1,?,-1,?\n")
    rows = np.loadtxt(io.StringIO(run("sample", model, "-n", 30, "--clamp", one).stdout), delimiter=",", dtype=int)
    assert rows.shape == (30, 4)
    assert (rows[:, [0, 2]] == [1, -1]).all()
    assert (rows[:, 1] != rows[0, 1]).any()
    each = tmp_path / "each.csv"
    each.write_text("A,?,?,?\n?,C, G,?\n")
    lines = run("sample", labelled, "--clamp", each).stdout.split()
    assert len(lines) == 2
    assert lines[0][0] == "A"
    assert lines[1][2:5] == "C,G"


@pytest.mark.filterwarnings("ignore:the clamped values")
def test_clamp_tells_how_many_samples_it_was_worth(model: Path, tmp_path: Path) -> None:
    (tmp_path / "clamp.csv").write_text("1,?,?,?\n")
    fields = json.loads(run("sample", model, "-n", 5, "--clamp", tmp_path / "clamp.csv", "--json").stdout)
    assert fields["effective_samples"] > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,?,7,?\n", "line 1, column 3: '7' is neither ? nor a symbol of the model, -1, 1"),
        ("1,?,?,?\n1,?\n", "line 2: 2 cells for 4 sites"),
        ("", "is empty"),
    ],
)
def test_clamp_mistakes_are_placed(model: Path, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "clamp.csv").write_text(content)
    result = run("sample", model, "--clamp", tmp_path / "clamp.csv")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "clamp.csv" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0"], "n must be a positive whole number"),
        (["--label", "3"], "the model was fitted without labels"),
        (["--clamp", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--device", "toaster"], "device 'toaster'"),
    ],
)
def test_mistakes(model: Path, words: list[str], message: str) -> None:
    result = run("sample", model, *words)
    assert result.exit_code == 1
    assert message in result.stderr


def test_unknown_label_lists_the_known(labelled: Path) -> None:
    assert "--label 7 is not among the model's labels: 10, 20" in run("sample", labelled, "--label", 7).stderr


def test_no_model_and_a_damaged_one(model: Path, tmp_path: Path) -> None:
    assert "there is no model folder" in run("sample", tmp_path / "nowhere").stderr
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in model.iterdir():
        (damaged / path.name).write_bytes(path.read_bytes()[:-1])
    result = run("sample", damaged)
    assert result.exit_code == 1
    assert "damaged" in result.stderr


# --- numbers beside the rows ---------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A model of a 2 × 2 spin glass, whose energies are known."""
    data = neurise.datasets.edwards_anderson(side=2, seed=1)
    tiny.model("memorize").fit(data.sample(200, seed=0)).save(tmp_path / "pairs")
    return tmp_path / "pairs"


def test_how_likely_each_row_is(pairs: Path, tmp_path: Path) -> None:
    words = [
        "sample",
        str(pairs),
        "-n",
        "30",
        "--seed",
        "1",
        "--log-prob",
        "--energy",
        "edwards_anderson:side=2,seed=1",
    ]
    model, data = neurise.load(pairs), neurise.datasets.edwards_anderson(side=2, seed=1)
    rows = model.sample(30, seed=1)
    lines = CliRunner().invoke(app, words).stdout.splitlines()
    assert lines[0] == "log_prob,energy,s0,s1,s2,s3"
    table = np.array([line.split(",") for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(table[:, 0], model.log_prob(rows))
    np.testing.assert_allclose(table[:, 1], data.energy(rows))
    np.testing.assert_array_equal(table[:, 2:], rows)
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    np.testing.assert_allclose(facts["energy"], data.energy(rows))
    for ending in ("npz", "csv"):
        result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / f"x.{ending}")])
        assert f"{data.energy(rows).mean():.6g}" in result.stdout
    assert (tmp_path / "x.csv").read_text().splitlines() == lines
    again = neurise.datasets.files(tmp_path / "x.npz")
    np.testing.assert_array_equal(again.train, rows)
    np.testing.assert_allclose(again.info["log_prob"], model.log_prob(rows))


def test_numbers_that_cannot_be_had_are_refused_before_rows_are_drawn(pairs: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", tiny.spins(9, 4))
    tiny.model("neurise", keep_prob=0.5).fit(tiny.spins(), verbose=False, max_steps=1).save(tmp_path / "soft")
    for model, words, says in (
        (tmp_path / "soft", ["--log-prob"], "no exact likelihood"),
        (pairs, ["--log-prob", "-o", str(tmp_path / "x.npy")], "holds rows alone"),
        (pairs, ["--energy", str(tmp_path / "rows.npy")], "has no known energy"),
        (pairs, ["--energy", "edwards_anderson:side=3"], "9 sites, and the model 4"),
    ):
        result = CliRunner().invoke(app, ["sample", str(model), *words])
        assert result.exit_code == 1
        assert says in result.stderr
        assert result.stdout == ""
