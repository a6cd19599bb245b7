"""Tables whose columns have alphabets of their own are measured, and a model that copies their rows is caught."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import neurise
from neurise.cli import app
from neurise.dataset import Dataset
from neurise.evaluation import evaluate
from neurise.frames import Table
from neurise.space import Space

NAMES = ["colour", "size", "warm", *(f"c{k}" for k in range(12))]


def rows(n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    table = np.empty((n, len(NAMES)), dtype=object)
    table[:, 0], table[:, 1] = rng.choice(["red", "green", "blue"], n), rng.choice([1, 10], n)
    table[:, 2] = np.where(table[:, 0] == "red", "yes", "no")
    table[:, 3:] = rng.choice(["low", "high"], (n, 12))
    return Table(table, NAMES)


def data(**parts: Table) -> Dataset:
    return Dataset("survey", Space(len(NAMES), 9), np.array(["a"], dtype=object), **parts)


def test_copies_of_a_table_are_caught() -> None:
    train, test = rows(150, 0), rows(100, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(neurise.Memorize().fit(train), data(train=train, test=test), samples=80)
        given = evaluate(neurise.Memorize().fit(train), data(test=test), train=data(train=train), samples=80)
    assert found["copies"].value == 1
    assert found["copies_beyond_chance"].value > 0.95
    assert given["copies_beyond_chance"].value == found["copies_beyond_chance"].value
    assert found["copies_beyond_chance"].baselines["independent"] < 0.1
    model = neurise.Independent().fit(train)
    scored = evaluate(model, data(train=train, test=test), samples=80, baselines=False)
    assert scored["log_likelihood"].value == pytest.approx(model.log_prob(test).mean())
    # Columns may stand in any order, in samples from anywhere too.
    turned = Table(np.asarray(train[:50])[:, ::-1], NAMES[::-1])
    assert evaluate(turned, data(train=train, test=test), baselines=False)["copies"].value == 1


def test_rows_with_gaps_are_left_out_and_that_is_said() -> None:
    train, test = rows(60, 0), rows(40, 1)
    test[3, 1] = None
    with pytest.warns(UserWarning, match="1 of 40 test rows of survey lack values"):
        found = evaluate(neurise.Memorize().fit(train), data(train=train, test=test), samples=30, baselines=False)
    assert found["copies"].value == 1


def test_the_command_line_measures_the_rows_that_it_held_back(tmp_path: Path) -> None:
    table = rows(120, 2)
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in np.asarray(table).tolist())]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table_file, model = str(tmp_path / "survey.csv"), str(tmp_path / "model")
    train = ["train", table_file, "-o", model, "--model", "memorize", "--test-fraction", "0.25"]
    assert CliRunner().invoke(app, train).exit_code == 0
    result = CliRunner().invoke(app, ["evaluate", model, "--data", table_file, "--samples", "50", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert "30 rows that were held back" in found["against"]
    assert next(row for row in found["rows"] if row["name"] == "copies")["value"] == 1


def test_frames_are_measured_by_the_names_of_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "colour": rng.choice(["red", "blue"], 90),
            "n": rng.integers(0, 4, 90),
            "size": rng.choice(["S", "M", "L"], 90),
        }
    )
    model = neurise.Independent().fit(frame[:60])
    want = float(model.log_prob(frame[60:]).mean())
    for rows in (frame[60:], frame[60:][["size", "n", "colour"]], frame[60:].to_numpy()):
        found = neurise.evaluate(model, rows, train=frame[:60], samples=100, baselines=False)
        assert found["log_likelihood"].value == pytest.approx(want)
