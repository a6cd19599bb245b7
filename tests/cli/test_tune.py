"""``neurise tune`` writes what ``neurise train --config`` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise import presets
from neurise.cli import app
from neurise.tuning import search as searching
from neurise.tuning.study import open_storage

FAST = ["--trials", "2", "--trial-steps", "10", "--set", "width=8", "--set", "depth=1", "--set", "members=1"]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", tiny.spins(120, 4))
    return tmp_path / "rows.npy"


def test_what_is_found_trains(rows: Path, tmp_path: Path) -> None:
    best = tmp_path / "best.json"
    facts = json.loads(run("tune", rows, "-o", best, *FAST, "--json").stdout)
    assert facts["finished"] == 2
    written = presets.read(best)
    assert (written.params, written.score) == (facts["params"], facts["score"])
    assert {name.removeprefix("training__") for name in facts["searched"]} == {
        "batch_size",
        "cycles",
        "keep_prob",
        "learning_rate",
        "weight_decay",
    }
    trained = run(
        "train", rows, "-o", tmp_path / "model", "--config", best, "--set", "training__weight_decay=0", "--json"
    )
    assert trained.exit_code == 0, trained.stderr
    assert json.loads(trained.stdout)["config"] == str(best)
    params = neurise.load(tmp_path / "model").get_params()
    assert {name: params[name] for name in written.params} == dict(written.params) | {"training__weight_decay": 0}


def test_the_same_command_goes_on(rows: Path, tmp_path: Path) -> None:
    words = ["tune", rows, "-o", tmp_path / "b.json", "--set", "width=8", "--trial-steps", 10]
    assert run(*words, "--trials", 1).exit_code == 0
    done = run(*words, "--trials", 2, "--json")
    assert json.loads(done.stdout)["finished"] == 2


def test_ctrl_c_keeps_the_best_so_far(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = searching.run_trial, []

    def stop(*words: Any) -> float:
        calls.append(words)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*words)

    monkeypatch.setattr(searching, "run_trial", stop)
    done = run("tune", rows, "-o", tmp_path / "b.json", *FAST)
    assert done.exit_code == 130
    assert "the same command goes on" in done.stderr
    assert presets.read(tmp_path / "b.json").score is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "neuris"], "unknown model 'neuris'; did you mean neurise?"),
        (["--sampler", "tp"], "unknown sampler 'tp'; did you mean tpe?"),
        (["--model", "independent"], "nothing to search for"),
        (["--set", "widht=8"], "did you mean width?"),
        (["--set", "width=0"], "width must be"),
        (["--trial-steps", "0"], "max_steps must be"),
        (["--storage", "postgresql://me:s3cret@127.0.0.1:1/db"], "postgresql://me@127.0.0.1:1/db cannot be used"),
        (["--storage", "redis://x"], "is not known: give postgresql://"),
        (["--device", "toaster"], "device 'toaster' cannot be used here"),
    ],
)
def test_refuses_in_one_line_and_writes_nothing(rows: Path, tmp_path: Path, words: list[str], message: str) -> None:
    done = run("tune", rows, "-o", tmp_path / "b.json", "--trials", 1, "--trial-steps", 5, *words)
    assert done.exit_code in (1, 2)
    assert message in done.stderr
    assert "s3cret" not in done.stderr
    assert not (tmp_path / "b.json").exists()


def test_another_file_is_not_overwritten_unasked(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{}")
    done = run("tune", rows, "-o", tmp_path / "b.json", *FAST)
    assert done.exit_code == 1
    assert "b.json exists" in done.stderr


def test_a_configuration_for_another_model_is_refused(rows: Path, tmp_path: Path) -> None:
    presets.Configuration("ggm", {"width": 8}).write(tmp_path / "c.json")
    done = run("train", rows, "-o", tmp_path / "m", "--config", tmp_path / "c.json", "--model", "neurise")
    assert "is for the model ggm, and --model says neurise" in done.stderr
    assert not (tmp_path / "m").exists()


def test_hard_noise_is_searched_and_its_structure_is_recovered(rows: Path, tmp_path: Path) -> None:
    """Of ten random draws at this seed some are hard; what is found there has a likelihood, which structure asks for."""
    words = ["--trials", 10, "--trial-steps", 2, "--sampler", "random", *FAST[4:], "--json"]
    run("tune", rows, "-o", tmp_path / "best.json", *words)
    study = optuna.load_study(study_name="neurise", storage=open_storage(str(tmp_path / "best.journal")))
    levels = [trial.params["keep_prob"] for trial in study.get_trials()]
    assert any(level < 0.001 for level in levels)
    presets.Configuration("neurise", {"keep_prob": 0.0, "cycles": 1, "steps": 5, "members": 1}, 1.0, {}).write(
        tmp_path / "hard.json"
    )
    assert run("train", rows, "-o", tmp_path / "model", "--config", tmp_path / "hard.json").exit_code == 0
    assert run("structure", tmp_path / "model", "--data", rows).exit_code == 0
