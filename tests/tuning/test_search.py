"""A search: what is compared, on which rows, and that it goes on where it stopped."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
import tiny
import tuning_cases as cases
from optuna.storages.journal import JournalFileBackend

from neurise import exact, presets
from neurise.dataset import Dataset
from neurise.space import Space
from neurise.training.loop import TrainingDiverged
from neurise.tuning import search as searching
from neurise.tuning.search import counts, tune
from neurise.tuning.task import make_task
from neurise.tuning.trial import RUNGS, run_trial


def drawn_from_a_seed() -> optuna.Study:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


def params_of(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.get_trials()]


@pytest.mark.parametrize("states", [2, 3])
def test_score_is_the_mean_of_minus_log_p_over_the_rows_held_back(states: int) -> None:
    rng = np.random.default_rng(0)
    held = rng.integers(0, states, (40, 4))
    weights = rng.integers(1, 4, 40)
    rows = rng.integers(0, states, (60, 4))
    made = Dataset(
        "noise", Space(4, states), np.arange(states), train=rows, validation=held, validation_weights=weights
    )
    task = make_task(made, "neurise", cases.SMALL, max_steps=30)
    fitted = task.kind().set_params(**task.fixed).fit(rows, max_steps=30, verbose=False)
    law = exact.law(fitted).reshape((states,) * 4)  # by pushing the start through the chain, not by the likelihood
    nats = [-np.log(float(law[tuple(row)])) for row in held.tolist()]
    assert task.score(fitted) == pytest.approx(np.average(nats, weights=weights), rel=1e-5)


def test_less_noise_looks_better_to_the_loop_and_not_to_the_search() -> None:
    rows = cases.data(800, sites=4)
    task = make_task(rows, "neurise", cases.SMALL | {"width": 16}, max_steps=150)
    scores, looks, distances = [], [], []
    for keep_prob in (0.0, 0.95):
        model = task.kind().set_params(**task.fixed, keep_prob=keep_prob, cycles=1)
        model.fit(task.train.x, validation=task.held.x, max_steps=150, verbose=False)
        scores.append(task.score(model))
        looks.append(min(record["validation"] for record in model.history_))
        truth = np.zeros((2,) * 4)
        for row in itertools.product((0, 1), repeat=4):
            truth[row] = 0.5**3 * (0.9 if row[0] == row[1] else 0.1)
        distances.append(0.5 * np.abs(exact.law(model).numpy() - truth.ravel()).sum())
    assert distances[0] < distances[1]  # soft noise of one cycle is not undone: the chain starts elsewhere
    assert looks[1] < looks[0]
    assert scores[0] < scores[1]


def test_rows_are_split_once_and_test_rows_are_not_looked_at() -> None:
    first, again = cases.task(), cases.task()
    np.testing.assert_array_equal(first.held.x, again.held.x)
    assert (len(first.train.x), len(first.held.x)) == (180, 20)
    together = np.concatenate([first.train.x, first.held.x])
    assert sorted(map(tuple, together)) == sorted(map(tuple, tiny.spins(200)))
    test = np.full((5, 3), 7)  # no symbol of the data: to use it would be an error
    assert cases.task(rows=cases.data(test=test)).identity() == first.identity()


def test_validation_rows_of_the_data_are_the_ones_that_count() -> None:
    own = tiny.spins(30, seed=5)
    task = cases.task(rows=cases.data(validation=own, test=np.full((5, 3), 7)))
    np.testing.assert_array_equal(task.held.x, own)
    np.testing.assert_array_equal(task.train.x, tiny.spins(200))


def test_labels_and_counts_follow_their_rows() -> None:
    x = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]])
    labels, counted = np.array(list("abcd")), np.array([30, 40, 20, 10])
    as_counts = Dataset("x", Space(3, 2), np.array([0, 1]), train=x, labels=labels, weights=counted)
    as_rows = replace(as_counts, train=x.repeat(counted, 0), labels=labels.repeat(counted), weights=None)
    for data in (as_counts, as_rows):
        task = make_task(data, "neurise", max_steps=1)
        total = dict.fromkeys("abcd", 0.0)
        for part in (task.train, task.held):
            weights = np.ones(len(part.x)) if part.weights is None else part.weights
            for row, label, weight in zip(part.x, part.y, weights, strict=True):
                assert row.tolist() == x["abcd".index(label)].tolist()
                total[label] += weight
        assert list(total.values()) == [30, 40, 20, 10]


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    whole = cases.search(tmp_path / "one", 6, sampler="random")
    tune(whole, verbose=False)
    tune(cases.search(tmp_path / "two", 2, sampler="random"), verbose=False)
    rest = cases.search(tmp_path / "two", 6, sampler="random")
    best = tune(rest, verbose=False)
    assert params_of(rest.open()) == params_of(whole.open())
    assert len({str(params) for params in params_of(whole.open())}) == 6
    assert best.score == whole.open().best_value
    tune(rest, verbose=False)
    assert sum(counts(rest.open()).values()) == 6  # nothing is left to do


def test_the_best_configuration_is_on_disk_after_every_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, seen = tmp_path / "best.json", []
    original = run_trial

    def look(*words: Any) -> float:
        seen.append(presets.read(output).score if output.exists() else None)
        return original(*words)

    monkeypatch.setattr(searching, "run_trial", look)
    best = tune(cases.search(tmp_path, 4, output=output), verbose=False)
    written = presets.read(output)
    assert None not in seen[1:]
    assert seen[1:] == sorted(seen[1:], reverse=True)
    assert (written.model, written.params, written.score) == (best.model, best.params, best.score)
    assert written.params["steps"] == 20  # the learning rate is good for a run of that length
    assert "alphabet" not in written.params
    task = cases.task()
    again = task.kind().set_params(**task.fixed | written.params)
    again.fit(task.train.x, validation=task.held.x, verbose=False)
    assert task.score(again) == best.score


def test_a_trial_is_looked_at_on_its_way_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    study, task = drawn_from_a_seed(), cases.task(steps=100)
    trial = study.ask()
    run_trial(task, trial)
    assert sorted(study.trials[0].intermediate_values) == list(range(1, RUNGS))
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: True)
    with pytest.raises(optuna.TrialPruned, match="behind the others at 1/5"):
        run_trial(task, study.ask())
    assert list(study.trials[1].intermediate_values) == [1]


class Asked:
    """Stands for a trial of Optuna that takes the first of every choice, and remembers what it was told."""

    def __init__(self, *, hopeless: bool) -> None:
        self.hopeless, self.told = hopeless, dict[int, float]()

    def suggest_categorical(self, name: str, values: Any) -> Any:
        return values[0]

    def suggest_int(self, name: str, low: int, high: int) -> int:
        return low

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return low

    def report(self, value: float, step: int) -> None:
        self.told[step] = value

    def should_prune(self) -> bool:
        return self.hopeless

    def set_user_attr(self, name: str, value: Any) -> None:
        pass


COMMITTEE = {"members": 2, "architecture__pairwise": True, "keep_prob": 0.0, "cycles": 1}


def test_a_committee_is_looked_at_on_its_way_and_given_up() -> None:
    task = cases.task(steps=40, **COMMITTEE)
    patient, hopeless = Asked(hopeless=False), Asked(hopeless=True)
    run_trial(task, patient)  # type: ignore[arg-type]
    assert len(patient.told) > 1
    assert np.isfinite(list(patient.told.values())).all()
    with pytest.raises(optuna.TrialPruned, match="behind the others at 1/5"):
        run_trial(task, hopeless)  # type: ignore[arg-type]
    assert list(hopeless.told) == [1]


def test_looking_at_a_trial_does_not_change_it() -> None:
    task, study = cases.task(steps=60), drawn_from_a_seed()
    value = run_trial(task, trial := study.ask())
    plain = task.kind().set_params(**task.fixed, **trial.params)
    plain.fit(task.train.x, validation=task.held.x, max_steps=60, verbose=False)
    assert value == task.score(plain)


def test_training_that_diverges_is_pruned_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, number = cases.task(), itertools.count()
    fit = task.kind.fit

    def diverge(self: Any, *words: Any, **options: Any) -> Any:
        if next(number) == 0:
            raise TrainingDiverged("the loss became inf")
        return fit(self, *words, **options)

    monkeypatch.setattr(task.kind, "fit", diverge)
    search = cases.search(tmp_path, 3)
    tune(search, verbose=False)
    assert counts(search.open()) == {"finished": 2, "pruned": 1, "failed": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "memorize"}, "memorize is counted, not trained"),
        ({"fixed": {"widht": 3}}, "widht"),
        ({"rows": cases.data(4)}, "too few to hold some back"),
        ({"fixed": {"training__learning_rate": -1.0}}, "learning_rate must be a positive number"),
        ({"steps": 0}, "max_steps must be"),
    ],
    ids=["counted", "misspelt", "few rows", "bad value", "no steps"],
)
def test_a_wrong_task_is_refused_before_anything_runs(change: dict[str, Any], message: str) -> None:
    chosen = {"model": "neurise", "fixed": {}, "rows": cases.data(), "steps": 5} | change
    with pytest.raises((ValueError, TypeError), match=message):
        make_task(chosen["rows"], chosen["model"], chosen["fixed"], max_steps=chosen["steps"])


def test_a_search_with_no_end_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: True)
    with pytest.raises(ValueError, match="2 were pruned and 0 failed"):
        tune(cases.search(tmp_path, 2, cases.task(steps=100)), verbose=False)
    assert json.loads((tmp_path / "study.journal").read_text().splitlines()[0])


def test_a_wall_clock_that_jumps_neither_ends_a_search_nor_prolongs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = iter([0.0])
    clock = SimpleNamespace(time=lambda: time.time() + next(jumps, 1e6), monotonic=time.monotonic)
    monkeypatch.setattr(searching, "time", clock)  # set forward after it was looked at once
    found = cases.search(tmp_path, 2, seconds=1e5)
    tune(found, verbose=False)
    assert sum(counts(found.open()).values()) == 2


@pytest.mark.parametrize("at", range(3, 12))
def test_a_trial_that_ctrl_c_ended_while_it_was_written_down_has_not_failed(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, real = list[object](), JournalFileBackend.append_logs

    def interrupted(self: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        real(self, logs)
        written.append(logs)
        if len(written) == at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(JournalFileBackend, "append_logs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tune(cases.search(tmp_path, 2), verbose=False)
    found = cases.search(tmp_path, 2)
    assert counts(found.open())["failed"] == 0
    tune(found, verbose=False)
    assert counts(found.open())["failed"] == 0
    assert sum(counts(found.open()).values()) == 2
