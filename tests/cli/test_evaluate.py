"""``neurise evaluate``: the library's numbers, as a table or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.datasets import files
from neurise.models.neurise import NeurISE

PMF = np.random.default_rng(0).dirichlet(np.ones(8))


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evaluate")
    rows = np.random.default_rng(1).integers(0, 2, (100, 3))
    np.savez(place / "known.npz", X=rows, pmf=PMF)
    np.save(place / "rows.npy", rows)
    fast = {"width": 8, "depth": 1, "steps": 30, "members": 1}
    fast |= {"training__batch_size": 64, "architecture__pairwise": False}
    NeurISE().set_params(**fast).fit(rows, verbose=False).save(place / "hard")
    NeurISE().set_params(keep_prob=0.4, cycles=2, **fast).fit(rows, verbose=False).save(place / "soft")
    return place


@pytest.mark.filterwarnings("ignore:these .* learnt from")
@pytest.mark.parametrize("model", ["hard", "soft"])
@pytest.mark.parametrize("data", ["known.npz", "rows.npy"])
def test_json_is_what_the_library_says(folder: Path, model: str, data: str) -> None:
    words = ["evaluate", folder / model, "--data", folder / data, "--samples", 200, "--seed", 3, "--json"]
    found = json.loads(run(*words).stdout)
    expected = neurise.evaluate(neurise.load(folder / model), files(folder / data), samples=200, seed=3)
    assert found["rows"] == expected.to_dict()["rows"]
    assert found["model"] == str(folder / model)
    assert any(row["name"] == "total_variation" for row in found["rows"]) == (data == "known.npz")


def test_the_table_shows_every_measurement(folder: Path) -> None:
    result = run("evaluate", folder / "hard", "--data", folder / "known.npz", "--samples", 200)
    assert result.exit_code == 0
    expected = neurise.evaluate(neurise.load(folder / "hard"), files(folder / "known.npz"), samples=200)
    for row in expected.rows:
        line = next(line for line in result.stdout.splitlines() if f" {row.name} " in line)
        assert f"{row.value:.4g}" in line
        assert f"{row.floor:.3g}" in line


def test_exact_and_sampled(folder: Path) -> None:
    def total_variation(*words: str) -> dict[str, float]:
        text = run(
            "evaluate", folder / "hard", "--data", folder / "known.npz", "--samples", 50, "--json", *words
        ).stdout
        return next(row for row in json.loads(text)["rows"] if row["name"] == "total_variation")

    assert total_variation()["floor"] == total_variation("--exact")["floor"] == 0
    assert total_variation("--no-exact")["floor"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nowhere.npy"], "there is no file nowhere.npy"),
        (["--data", "{folder}/rows.npy", "--exact"], "exact=True needs the pmf of rows.npy"),
        (["--data", "{folder}/rows.npy", "--samples", "0"], "samples must be"),
        (["--data", "{folder}/wide.npy"], "the model has 3 sites; in wide.npy there are 5"),
    ],
)
def test_mistakes(folder: Path, words: list[str], message: str) -> None:
    np.save(folder / "wide.npy", np.zeros((4, 5), int))
    result = run("evaluate", folder / "hard", *(word.format(folder=folder) for word in words))
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_samples_of_a_file_are_as_good_as_a_model(folder: Path) -> None:
    np.save(folder / "drawn.npy", np.random.default_rng(5).integers(0, 2, (60, 3)))
    words = ["evaluate", folder / "drawn.npy", "--data", folder / "known.npz", "--json", "--no-baselines"]
    found = json.loads(run(*words).stdout)
    assert found["samples"] == 60
    names = {row["name"] for row in found["rows"]}
    assert "total_variation" in names
    assert "log_likelihood" not in names
    assert all(row["baselines"] == {} for row in found["rows"])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_figure_is_written(folder: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"picture.{ending}"
    words = ["evaluate", folder / "hard", "--data", folder / "known.npz", "--samples", 50, "--figure", path]
    result = run(*words)
    assert result.exit_code == 0
    assert f"{path} shows it" in result.stderr
    assert path.stat().st_size > 5000
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    refused = run(*words)  # nobody is there to say yes
    assert refused.exit_code == 1
    assert "picture" in refused.stderr


def test_a_figure_of_an_unknown_kind_is_refused_before_anything_is_computed(folder: Path) -> None:
    result = run("evaluate", folder / "hard", "--data", folder / "known.npz", "--figure", "picture.txt")
    assert result.exit_code == 1
    assert "a figure is a .png, .svg or .pdf file" in result.stderr


def test_training_rows_of_another_file_tell_whether_a_model_copies(tmp_path: Path) -> None:
    learnt, new = np.random.default_rng(2).integers(0, 2, (2, 60, 20))
    np.save(tmp_path / "learnt.npy", learnt)
    np.save(tmp_path / "new.npy", new)
    neurise.Memorize().fit(learnt).save(tmp_path / "copy")
    words = ["evaluate", tmp_path / "copy", "--data", tmp_path / "new.npy", "--samples", 50, "--json"]
    assert "copies" not in {row["name"] for row in json.loads(run(*words).stdout)["rows"]}
    done = run(*words, "--train", tmp_path / "learnt.npy")
    rows = json.loads(done.stdout)["rows"]
    beyond = next(row for row in rows if row["name"] == "copies_beyond_chance")
    assert beyond["value"] == 1
    assert beyond["floor"] == beyond["baselines"]["independent"] == 0
    result = run(*words, "--train", tmp_path / "nothing.npy")
    assert result.exit_code == 1
    assert result.stderr.strip() == f"there is no file {tmp_path / 'nothing.npy'}"
