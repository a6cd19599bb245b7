"""``neurise train``: what is learnt, what is refused, and what is left when it does not go well."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from lock_holder import held_elsewhere
from steps import replace_steps
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import _train_report, app
from neurise.modeling.summary import best_scores, readable
from neurise.models.neurise import NeurISE
from neurise.training.settings import Training
from neurise.training.state import CHECKPOINT

FAST = ["--width", "8", "--depth", "1", "--batch-size", "64", "--max-steps", "40"]
SMALL = [*FAST, "--set", "members=1", "--set", "architecture__pairwise=false"]
"""One network and nothing fitted beside it: for all that does not ask what is learnt."""


def run(*words: object, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=answer)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", tiny.spins(120, 4))
    return tmp_path / "rows.npy"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tmp_path / "model"


def config(folder: Path) -> Any:
    return json.loads((folder / "config.json").read_text())


def test_learns_and_saves_what_the_library_would(rows: Path, model: Path) -> None:
    result = run("train", rows, "-o", model, *FAST, "--seed", 3)
    assert result.exit_code == 0
    assert str(model) in result.stdout.replace("\n", "").replace(" ", "")
    assert sorted(path.name for path in model.iterdir()) == ["config.json", "model.safetensors"]
    expected = NeurISE(width=8, depth=1, training=Training(batch_size=64))
    expected.fit(np.load(rows), seed=3, max_steps=40, verbose=False)
    np.testing.assert_array_equal(neurise.load(model).sample(50, seed=1), expected.sample(50, seed=1))


def test_json_is_all_that_is_printed(rows: Path, model: Path) -> None:
    facts = json.loads(run("train", rows, "-o", model, *SMALL, "--json").stdout)
    assert facts["model"] == str(model)
    assert (facts["rows"], facts["sites"], facts["states"], facts["steps"]) == (120, 4, 2, 40)
    assert facts["stopped"] == "steps"
    assert facts["finished"] is True
    assert facts["loss"] > 0
    assert (facts["noise"], facts["batch_size"]) == ("round_robin, keep_prob=0, 4 steps", 64)
    assert facts["network"] == "1 × site_mlp, width 8, depth 1"
    assert facts.keys() >= {"kind", "config", "parameters", "seconds", "validation", "shares", "learning_rate"}


def test_what_was_chosen_is_shown(rows: Path, model: Path) -> None:
    words = [
        "--width",
        8,
        "--depth",
        1,
        "--max-steps",
        20,
        "--set",
        "members=2",
        "--set",
        "architecture__pairwise=True",
    ]
    result = CliRunner().invoke(app, ["train", str(rows), "-o", str(model), *map(str, words)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    for name, fact in neurise.load(model).summary().items():
        if name not in ("steps", "seconds", "loss", "validation", "stopped"):  # said in other words
            assert name in shown
            assert readable(fact) in shown


@pytest.mark.parametrize(("text", "value"), [("False", False), ("false", False), ("True", True), ("null", None)])
def test_true_and_false_are_what_they_say(rows: Path, model: Path, text: str, value: bool | None) -> None:
    words = [*FAST, "--set", "members=2", "--set", f"architecture__pairwise={text}"]
    assert run("train", rows, "-o", model, *words).exit_code == 0
    assert config(model)["params"]["architecture__pairwise"] is value


def test_options_and_settings_reach_the_model(rows: Path, model: Path) -> None:
    words = ["--keep-prob", 0.25, "--cycles", 2, "--loss", "cross_entropy", "--network", "local_mlp"]
    words += ["--learning-rate", 0.01, "--steps", 30, "--width", 8, "--depth", 1, "--batch-size", 32]
    words += ["--set", "order=[3,2,1,0]", "--set", "chain--hide-noised=false", "--set", "training__patience=5.0"]
    assert run("train", rows, "-o", model, *words).exit_code == 0
    params = config(model)["params"]
    given = {"keep_prob": 0.25, "cycles": 2, "loss": "cross_entropy", "network": "local_mlp", "steps": 30, "width": 8}
    given |= {"depth": 1, "training__batch_size": 32, "training__learning_rate": 0.01}
    given |= {"order": [3, 2, 1, 0], "chain__hide_noised": False, "training__patience": 5}
    assert {name: params[name] for name in given} == given
    assert isinstance(params["training__patience"], int)
    rest = set(params) - set(given)
    assert {name: params[name] for name in rest} == {name: NeurISE.leaves()[name] for name in rest}
    assert config(model)["history"][-1]["step"] == 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "widht=3"], "no parameter 'widht'; did you mean width?"),
        (["--set", "colour=3"], "it has: loss, graph, calibrate, network, width, depth"),
        (["--set", "warmup"], "--set warmup: write it as name=value"),
        (["--set", "training__warmup=early"], "training__warmup must be a number, like its default 0.05; got 'early'"),
        (["--set", "training__patience=2.5"], "training__patience must be a whole number"),
        (["--set", "training__patience=null"], "training__patience must be a whole number"),
        (["--set", "chain__hide_noised=3"], "chain__hide_noised must be true or false"),
        (["--set", "architecture__pairwise=maybe"], "pairwise must be true, yes, on, false, no, off; got 'maybe'"),
        (["--set", "batch_size=5"], "no parameter 'batch_size'; its name is training__batch_size now"),
        (["--set", "loss=3"], "loss must be text"),
        (["--width", "8", "--set", "width=9"], "width was given twice"),
        (["--width", "0"], "width must be"),
        (["--keep-prob", "1"], "keep_prob must be in"),
        (["--loss", "none"], "unknown loss 'none'"),
        (["--model", "neuris"], "unknown model 'neuris'; did you mean neurise?"),
        (["--device", "toaster"], "device 'toaster' cannot be used here"),
        (["--max-steps", "0"], "max_steps must be"),
        (["--label-column", "y"], "rows alone"),
    ],
)
def test_refuses_in_one_line_and_writes_nothing(rows: Path, model: Path, words: list[str], message: str) -> None:
    result = run("train", rows, "-o", model, *words)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not model.exists()


def test_labels_weights_and_validation_of_the_file_are_used(tmp_path: Path, model: Path) -> None:
    x = np.random.default_rng(0).choice([0, 1], (90, 3))
    held = np.array([[0, 1, 2], [1, 1, 1], [0, 0, 0]])
    counts = np.arange(90) % 3
    arrays = {"X": x, "y": x[:, 0] + 5, "counts": counts, "validation": held, "validation_labels": [5, 6, 5]}
    np.savez(tmp_path / "x.npz", **arrays)
    assert run("train", tmp_path / "x.npz", "-o", model, *SMALL).exit_code == 0
    fitted = neurise.load(model)
    assert fitted.schema_.labels.classes.tolist() == [5, 6]
    assert fitted.schema_.labels.frequencies.tolist() == pytest.approx(
        [counts[x[:, 0] == 0].sum() / counts.sum(), counts[x[:, 0] == 1].sum() / counts.sum()]
    )
    assert fitted.space_.states == 3  # the validation rows have a symbol that the others lack
    expected = NeurISE(width=8, depth=1, members=1, alphabet=[0, 1, 2])
    expected.set_params(training__batch_size=64, architecture__pairwise=False)
    expected.fit(x, x[:, 0] + 5, weights=counts, validation=(held, [5, 6, 5]), max_steps=40, verbose=False)
    assert config(model)["history"][-1]["validation"] == expected.history_[-1]["validation"]


def test_label_column_of_a_csv(tmp_path: Path, model: Path) -> None:
    lines = ["kind,a,b"] + [f"{'cat' if i % 3 else 'dog'},{i % 2},{i // 2 % 2}" for i in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert run("train", tmp_path / "x.csv", "-o", model, *SMALL, "--label-column", "kind").exit_code == 0
    assert neurise.load(model).schema_.labels.classes.tolist() == ["cat", "dog"]


# --- what is there already -----------------------------------------------------------------------------------------


def test_an_existing_model_is_not_overwritten_unasked(rows: Path, model: Path) -> None:
    run("train", rows, "-o", model, *SMALL)
    before = (model / "config.json").read_bytes()
    result = run("train", rows, "-o", model, *SMALL, "--seed", 1)
    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert (model / "config.json").read_bytes() == before
    assert run("train", rows, "-o", model, *SMALL, "--seed", 1, "--force").exit_code == 0
    assert (model / "config.json").read_bytes() != before


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked(rows: Path, model: Path, answer: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run("train", rows, "-o", model, *SMALL)
    before = (model / "config.json").read_bytes()
    monkeypatch.setattr("neurise.cli._output.somebody_answers", lambda: True)
    result = run("train", rows, "-o", model, *SMALL, "--seed", 1, answer=answer)
    assert result.exit_code == code
    assert "Overwrite" in result.stderr
    assert ((model / "config.json").read_bytes() == before) == (code == 1)


def test_a_file_in_the_way_is_seen_before_training(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NeurISE, "fit", None)
    result = run("train", rows, "-o", rows)
    assert "is a file; a model is saved as a folder" in result.stderr
    assert "cannot be written" in run("train", rows, "-o", rows / "below").stderr


def test_an_unfinished_run_is_not_thrown_away_unasked(rows: Path, model: Path) -> None:
    model.mkdir()
    (model / CHECKPOINT).write_bytes(b"precious")
    result = run("train", rows, "-o", model, *SMALL)
    assert result.exit_code == 1
    assert "--resume goes on with it, --force starts again" in result.stderr
    assert (model / CHECKPOINT).read_bytes() == b"precious"
    assert run("train", rows, "-o", model, *SMALL, "--force").exit_code == 0
    assert not (model / CHECKPOINT).exists()


@pytest.mark.parametrize("left", [f"part-1/{CHECKPOINT}", CHECKPOINT])
def test_what_is_left_of_a_committees_run_is_asked_about_and_removed(rows: Path, model: Path, left: str) -> None:
    (model / left).parent.mkdir(parents=True)
    (model / left).write_bytes(b"precious")
    committee = [*FAST, "--set", "members=2", "--set", "architecture__pairwise=true"]
    result = run("train", rows, "-o", model, *committee)
    assert result.exit_code == 1
    assert f"{model / left} belongs to an unfinished run; --resume goes on with it" in result.stderr
    assert run("train", rows, "-o", model, *committee, "--force").exit_code == 0
    assert len(neurise.load(model).conditionals.description()["members"]) == 2
    assert sorted(path.name for path in model.iterdir()) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize("option", ["-o", "--checkpoint"])
def test_two_runs_into_one_folder_are_refused(rows: Path, model: Path, tmp_path: Path, option: str) -> None:
    with held_elsewhere(model) as other:
        result = run("train", rows, "-o", tmp_path / "another", *SMALL, option, model)
    assert result.exit_code == 1
    assert f"{model} is in use: process {other.pid} on" in result.stderr
    assert not (model / "config.json").exists()
    assert run("train", rows, "-o", model, *SMALL).exit_code == 0


# --- when it does not go well --------------------------------------------------------------------------------------


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C, as the system does, during one step."""

    def interrupted(state: Any, genuine: Any) -> Any:
        if state.step == step:
            signal.raise_signal(signal.SIGINT)
        return genuine()

    replace_steps(monkeypatch, interrupted)


def test_ctrl_c_leaves_a_model_and_resume_ends_as_if_nothing_had_happened(
    rows: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(25, patch)
        result = run("train", rows, "-o", model, *SMALL)
    assert result.exit_code == 130
    assert f"the model in {model} is usable as it is" in result.stderr
    assert "--resume" in result.stderr
    assert (model / CHECKPOINT).exists()
    assert len(neurise.load(model).sample(5)) == 5
    assert config(model)["stopped"] == "interrupted"

    assert run("train", rows, "-o", model, *SMALL).exit_code == 1  # neither model nor state are thrown away
    assert run("train", rows, "-o", model, *SMALL, "--resume").exit_code == 0
    assert not (model / CHECKPOINT).exists()
    run("train", rows, "-o", tmp_path / "straight", *SMALL)
    assert (model / "model.safetensors").read_bytes() == (tmp_path / "straight/model.safetensors").read_bytes()


def test_ctrl_c_before_the_first_checkpoint(rows: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(3, patch)
        result = run("train", rows, "-o", model, *SMALL)
    assert result.exit_code == 130
    assert "--resume will start it again" in result.stderr
    again = run("train", rows, "-o", model, *SMALL, "--resume")
    assert again.exit_code == 0
    assert "starts at the beginning" in again.stderr
    assert config(model)["stopped"] == "steps"


def test_resume_of_a_finished_model_does_nothing(rows: Path, model: Path) -> None:
    run("train", rows, "-o", model, *SMALL)
    before = (model / "config.json").stat().st_mtime_ns
    result = run("train", rows, "-o", model, *SMALL, "--resume")
    assert result.exit_code == 0
    assert "holds a finished model" in result.stderr
    assert json.loads(run("train", rows, "-o", model, *SMALL, "--resume", "--json").stdout)["finished"] is True
    assert (model / "config.json").stat().st_mtime_ns == before


def test_resume_with_other_settings_is_refused(rows: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(25, patch)
        run("train", rows, "-o", model, *SMALL)
    result = run("train", rows, "-o", model, *SMALL, "--seed", 9, "--resume")
    assert result.exit_code == 1
    assert "belongs to another run" in result.stderr
    assert (model / CHECKPOINT).exists()


def test_checkpoint_in_a_folder_of_its_own(
    rows: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ["--checkpoint", tmp_path / "state"]
    with monkeypatch.context() as patch:
        interrupt_at(25, patch)
        run("train", rows, "-o", model, *SMALL, *place)
    assert (tmp_path / "state" / CHECKPOINT).exists()
    assert not (model / CHECKPOINT).exists()
    assert run("train", rows, "-o", model, *SMALL, *place, "--resume").exit_code == 0
    assert not (tmp_path / "state" / CHECKPOINT).exists()


def test_a_diverging_run_saves_the_last_good_weights(rows: Path, model: Path) -> None:
    wild = ["--learning-rate", "1e6", "--set", "training__warmup=0", "--set", "training__clip_norm=1e9"]
    result = run("train", rows, "-o", model, *SMALL, *wild)
    assert result.exit_code == 1
    assert "the loss became" in result.stderr
    assert f"saved in {model}" in result.stderr
    assert np.isfinite(neurise.load(model).log_prob(np.load(rows))).all()
    assert config(model)["stopped"] == "diverged"
    assert not (model / CHECKPOINT).exists()
    again = run("train", rows, "-o", model, *SMALL, *wild, "--resume")
    assert again.exit_code == 1
    assert "diverged" in again.stderr


def test_the_state_of_a_diverged_run_is_of_no_use(rows: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverging(state: Any, genuine: Any) -> Any:
        loss = genuine()
        return loss if state.step < 25 else loss * float("nan")

    replace_steps(monkeypatch, diverging)
    assert "the loss became nan" in run("train", rows, "-o", model, *SMALL).stderr
    assert sorted(path.name for path in model.iterdir()) == ["config.json", "model.safetensors"]
    assert len(config(model)["history"]) == 2


def test_a_full_disk_under_the_checkpoint(
    rows: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "state"))

    monkeypatch.setattr("neurise.training.state.TrainingState.save", full)
    result = run("train", rows, "-o", model, *SMALL, "--checkpoint", tmp_path / "state")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert f"saved in {model}" in result.stderr
    assert len(neurise.load(model).sample(5)) == 5


def test_the_summary_says_what_the_progress_lines_said(rows: Path, model: Path) -> None:
    """Two kinds of members are trained one after the other: steps of both count, and the score of each is shown."""
    words = [*FAST, "--set", "members=2", "--set", "architecture__pairwise=true"]
    result = run("train", rows, "-o", model, *words)
    assert result.exit_code == 0, result.output
    assert "80 steps (40 for each part)" in result.stdout
    first, second = (
        min(record[f"validation_{part}"] for record in config(model)["history"] if f"validation_{part}" in record)
        for part in (1, 2)
    )
    assert f"{first:.4f} and {second:.4f} nats per site" in result.stdout
    loaded = neurise.load(model).summary()
    assert (loaded["steps"], loaded["validation"]) == (80, pytest.approx((first + second) / 2))


@pytest.mark.parametrize(
    ("name", "units"),
    [(name, "nats per row") for name in ("d3pm", "ddpd", "dfm", "md4", "sedd", "udlm")]
    + [(name, "nats per site") for name in ("neurise", "ggm")],
)
def test_the_units_of_the_score_are_those_of_the_model(tmp_path: Path, model: Path, name: str, units: str) -> None:
    """Rows of ten spins that are all noise: what is not learnt costs 0.7 nats per site, and several times as much per row."""
    path = tmp_path / "noise.npz"
    np.savez(path, X=np.random.default_rng(0).choice([-1, 1], (500, 10)))
    own = {"neurise": ["--set", "members=1"], "ggm": ["--keep-prob", 0.5]}.get(name, [])
    words = ["--max-steps", 20, "--set", "width=8", *own]
    result = run("train", path, "-o", model, "--model", name, *words)
    assert result.exit_code == 0, result.output
    score = min(best_scores(config(model)["history"]))
    assert f"{score:.4f} {units}" in result.stdout
    assert (score > 2) == (units == "nats per row")


def test_parts_that_made_different_numbers_of_steps_are_not_said_to_be_alike() -> None:
    assert _train_report._in_parts({"step": 40.0, "steps": 80.0}) == " (40 for each part)"
    assert _train_report._in_parts({"step": 698.0, "steps": 1099.0}) == " (at most 698 in one part)"
    assert _train_report._in_parts({"step": 40.0}) == ""


def test_scores_of_the_parts_are_those_of_their_runs(rows: Path) -> None:
    made = tiny.model(members=2, architecture__pairwise=True)
    seen: list[float] = []
    made.fit(
        np.load(rows), max_steps=40, verbose=False, callback=lambda *told: seen.append(told[2]["validation"]) or False
    )
    half = len(seen) // 2
    assert best_scores(made.history_) == [min(seen[:half]), min(seen[half:])]


def test_resume_removes_what_a_kill_at_the_very_end_has_left(rows: Path, model: Path) -> None:
    assert run("train", rows, "-o", model, *SMALL).exit_code == 0
    before = sorted(path.name for path in model.iterdir())
    (model / "part-1").mkdir()
    (model / "part-1" / CHECKPOINT).write_bytes(b"of the second half")
    (model / ".run.lock").touch()
    result = run("train", rows, "-o", model, *SMALL, "--resume")
    assert result.exit_code == 0
    assert "nothing to go on with" in result.stderr
    assert sorted(path.name for path in model.iterdir()) == before
