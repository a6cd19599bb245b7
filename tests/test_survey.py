"""A survey from the table to the model and back, in pandas, in polars and on the command line, without preparation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app

TINY: dict[str, Any] = {"width": 8, "members": 1, "network": "site_mlp", "steps": 12}


def survey(rows: int = 240) -> pd.DataFrame:
    """Five columns of unequal alphabets that depend on a hidden class; a twelfth of the answers are missing."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, rows)

    def answers(*known: Any) -> pd.Series:
        law = rng.dirichlet(np.ones(len(known)), 2)
        drawn = [known[rng.choice(len(known), p=law[kind])] for kind in hidden]
        return pd.Series(drawn, dtype=object).mask(rng.random(rows) < 1 / 12)

    return pd.DataFrame({
        "age": pd.Categorical(answers("18-29", "30-64", "65+"), ["18-29", "30-64", "65+"], ordered=True),
        "party": answers("A", "B", "C", "D"),
        "children": answers(0, 1, 2).astype(float),  # whole numbers beside gaps: pandas writes 2.0
        "mark": answers(1, 2, 3, 4, 5).astype("Int64"),
        "owner": answers(True, False).astype("boolean"),
    })  # fmt: skip


@pytest.fixture(scope="module", params=["pandas", "polars"])
def frame(request: pytest.FixtureRequest) -> Any:
    return survey() if request.param == "pandas" else pl.from_pandas(survey())


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.mark.filterwarnings("ignore:.*lack values", "ignore:.*standard error")
def test_a_survey_in_a_data_frame(frame: Any, tmp_path: Path) -> None:
    train, test = frame[:200], frame[200:]
    model = neurise.NeurISE(**TINY).fit(train, verbose=False)
    drawn, filled = model.sample(20, seed=0), model.impute(test, seed=0)
    assert type(drawn) is type(frame)
    assert list(drawn.dtypes) == list(frame.dtypes) == list(filled.dtypes)
    assert len(filled.dropna() if isinstance(filled, pd.DataFrame) else filled.drop_nulls()) == 40
    assert np.isfinite(model.log_prob(test)).all()
    assert model.score(test) == pytest.approx(model.log_prob(test).mean())
    assert np.isfinite(neurise.surprise(model, test).log_prob).all()
    assert np.isfinite(cross_val_score(neurise.NeurISE(**TINY), frame, cv=2)).all()
    assert (model.conditional(filled, "party") == model.conditional(filled, 1)).all()
    found = neurise.mutations(model, filled[:1])
    assert len(found.ranked()) == 2 + 3 + 2 + 4 + 1
    model.save(tmp_path / "model")
    assert (neurise.load(tmp_path / "model").log_prob(filled) == model.log_prob(filled)).all()


def test_a_survey_with_gaps_is_evaluated_by_its_complete_rows(frame: Any) -> None:
    model = neurise.Independent().fit(frame[:200])
    whole = frame[200:].dropna() if isinstance(frame, pd.DataFrame) else frame[200:].drop_nulls()
    options: dict[str, Any] = {"samples": 100, "seed": 0, "baselines": False}
    with pytest.warns(UserWarning, match=f"{40 - len(whole)} of 40 test rows of the given rows lack values"):
        found = neurise.evaluate(model, frame[200:], **options)
    assert found["log_likelihood"].value == neurise.evaluate(model, whole, **options)["log_likelihood"].value
    assert found["log_likelihood"].value == pytest.approx(model.log_prob(whole).mean())


def test_an_array_with_gaps_is_evaluated_by_its_complete_rows() -> None:
    X = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    model = neurise.Independent().fit(X)
    holed = X.copy()
    holed[:20, 1] = np.nan
    with pytest.warns(UserWarning, match="20 of 60 rows of data lack values"):
        found = neurise.evaluate(model, holed, samples=50, baselines=False)
    assert found["log_likelihood"].value == pytest.approx(model.log_prob(X[20:]).mean())
    holed[:, 1] = np.where(np.arange(60) % 2, 1, np.nan)
    holed[1::2, 0] = np.nan
    with pytest.raises(ValueError, match=r"all 60 rows of data lack values.*impute"):
        neurise.evaluate(model, holed, samples=50)


def test_a_survey_on_the_command_line(tmp_path: Path) -> None:
    table, model, filled = tmp_path / "survey.csv", tmp_path / "model", tmp_path / "filled.csv"
    survey().to_csv(table, index=False)
    tiny = ["--width", "8", "--network", "site_mlp", "--set", "members=1", "--max-steps", "12"]
    assert "240 rows of 5 columns" in run("data", "info", table).stdout
    assert run("train", table, "-o", model, "--test-fraction", "0.2", *tiny).exit_code == 0
    assert run("score", model, table, "-o", tmp_path / "scores.csv").exit_code == 0
    assert run("sample", model, "--like", table, "-o", tmp_path / "new.csv", "--seed", "0").exit_code == 0
    assert list(pd.read_csv(tmp_path / "new.csv").columns) == list(survey().columns)
    assert run("impute", model, table, "-o", filled, "--seed", "0").exit_code == 0
    before, after = pd.read_csv(table, dtype=str), pd.read_csv(filled, dtype=str)
    assert not after.isna().any().any()
    assert (after == before)[~before.isna()].fillna(True).all().all()
    assert set(after["children"]) == {"0.0", "1.0", "2.0"}  # gaps are filled as the table writes numbers
    assert "log_likelihood" in run("evaluate", model, "--data", table, "--samples", "200").stdout
    assert run("mutate", model, "--wild-type", filled, "--top", "2").exit_code == 0


def test_a_model_of_a_data_frame_fills_a_file(tmp_path: Path) -> None:
    table, filled = tmp_path / "survey.csv", tmp_path / "filled.csv"
    survey().to_csv(table, index=False)
    neurise.Independent().fit(survey()).save(tmp_path / "model")
    result = run("impute", tmp_path / "model", table, "-o", filled, "--seed", "0")
    assert result.exit_code == 0, result.stderr
    assert set(pd.read_csv(filled, dtype=str)["owner"]) == {"True", "False"}


def test_a_row_may_be_written_as_a_text() -> None:
    bits = neurise.Independent().fit({"010": 5, "111": 3, "001": 2})
    assert (neurise.mutations(bits, "010").log_ratio == neurise.mutations(bits, [0, 1, 0]).log_ratio).all()
    letters = neurise.Independent().fit(np.array([list("AC-"), list("CA-"), list("ACA")]))
    assert (neurise.mutations(letters, "ACA").log_ratio == neurise.mutations(letters, list("ACA")).log_ratio).all()
