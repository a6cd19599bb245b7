"""``neurise train`` sets rows apart, and ``neurise evaluate`` finds them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.holdout import Split

SMALL = ["--width", 8, "--depth", 1, "--batch-size", 64, "--max-steps", 20]
SMALL += ["--set", "members=1", "--set", "architecture__pairwise=false"]


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def reads(tmp_path: Path) -> Path:
    np.savetxt(tmp_path / "reads.csv", tiny.spins(120, 4), fmt="%d", delimiter=",")
    return tmp_path / "reads.csv"


def evaluated(model: Path, *words: object) -> tuple[dict[str, Any], str]:
    result = run("evaluate", model, *words, "--samples", 50, "--json")
    return json.loads(result.stdout), result.stderr


def test_evaluate_uses_what_train_held_back(reads: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    facts = json.loads(run("train", reads, "-o", model, *SMALL, "--test-fraction", 0.25, "--seed", 3, "--json").stdout)
    assert (facts["rows"], facts["test_rows"]) == (90, 30)
    assert neurise.load(model).split_ == Split(0.25, 3)
    found, said = evaluated(model, "--data", reads)
    assert found["against"] == "30 rows that were held back from its training"
    assert "learnt from" not in said
    assert "30 rows that were held back" in run("evaluate", model, "--data", reads, "--samples", 50).stderr


def test_evaluate_says_aloud_that_rows_were_learnt_from(reads: Path, tmp_path: Path) -> None:
    run("train", reads, "-o", tmp_path / "model", *SMALL)
    found, said = evaluated(tmp_path / "model", "--data", reads)
    assert found["against"] == "120 rows that it learnt from"
    assert "warning: these 120 rows are those that the model learnt from" in said
    np.save(tmp_path / "new.npy", tiny.spins(50, 4, seed=1))
    assert evaluated(tmp_path / "model", "--data", tmp_path / "new.npy")[1] == ""


def test_validation_rows_of_another_file(reads: Path, tmp_path: Path) -> None:
    held = tiny.spins(30, 4, seed=1)
    np.save(tmp_path / "held.npy", held)
    run("train", reads, "-o", tmp_path / "model", *SMALL, "--validation", tmp_path / "held.npy")
    model = neurise.load(tmp_path / "model")
    again = (
        type(model)()
        .set_params(**model.get_params(deep=False))
        .fit(tiny.spins(120, 4), validation=held, max_steps=20, verbose=False)
    )
    assert model.history_[-1]["validation"] == again.history_[-1]["validation"]


def test_a_symbol_that_only_the_validation_rows_have(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([[0, 1], [1, 0]] * 20))
    np.save(tmp_path / "held.npy", np.array([[0, 2], [1, 0]] * 5))
    run("train", tmp_path / "rows.npy", "-o", tmp_path / "model", *SMALL, "--validation", tmp_path / "held.npy")
    assert neurise.load(tmp_path / "model").space_.states == 3


def test_validation_as_a_share(reads: Path, tmp_path: Path) -> None:
    run("train", reads, "-o", tmp_path / "model", *SMALL, "--validation", 0.3)
    assert neurise.load(tmp_path / "model").training.validation_fraction == 0.3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--validation", "nowhere.csv"], "nowhere.csv"),
        (["--validation", "1.5"], "validation_fraction must be in"),
        (["--validation", "0.1", "--set", "training__validation_fraction=0.2"], "say the same"),
        (["--model", "independent", "--validation", "0.1"], "counted, not trained"),
        (["--test-fraction", "1"], "test_fraction must be in"),
        (["--test-fraction", "0.0001"], "leaves one side without any"),
    ],
)
def test_what_is_refused(reads: Path, tmp_path: Path, words: list[str], says: str) -> None:
    small = [] if "independent" in words else SMALL
    result = run("train", reads, "-o", tmp_path / "model", *small, *words, code=1)
    assert says in result.stderr
    assert not (tmp_path / "model").exists()


def test_counts_by_any_name(tmp_path: Path) -> None:
    lines = ["seen,a,b", "3,0,1", "5,1,0", "2,1,1"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    words = [tmp_path / "x.csv", "--count-column", "seen"]
    run("train", *words, "-o", tmp_path / "model", "--model", "memorize")
    model = neurise.load(tmp_path / "model")
    assert model.log_prob(np.array([[1, 0]])) == pytest.approx(np.log(0.5))
    assert "seen 10 times" in run("data", "info", *words).stdout
    _, said = evaluated(tmp_path / "model", "--data", *words)
    assert "these 3 rows are those that the model learnt from" in said
    assert "is for files" in run("data", "info", "ghz", "--count-column", "n", code=1).stderr
    twice = run("data", "info", f"{tmp_path / 'x.csv'}:count_column=a", "--count-column", "seen", code=1)
    assert "given twice" in twice.stderr


@pytest.mark.parametrize("verb", [["train"], ["tune"], ["evaluate"], ["structure"], ["data", "info"]])
def test_every_command_that_reads_a_table_takes_the_columns(verb: list[str]) -> None:
    shown = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "200"}).stdout
    assert "--label-column" in shown
    assert "--count-column" in shown
