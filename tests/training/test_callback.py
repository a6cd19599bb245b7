"""What ``fit`` calls at every evaluation: what it is told, what it may do with the model, and that it disturbs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from neurise import deadline
from neurise.energies import regressions
from neurise.modeling.model import Model
from neurise.training.distributed import TEAM
from neurise.training.state import TrainingState

KINDS: dict[str, Callable[..., Model]] = {
    "one network": tiny.model,
    "a committee of one kind": lambda **params: tiny.model(members=3, **params),
    "a committee of two kinds": lambda **params: tiny.model(members=2, architecture__pairwise=True, **params),
    "one network with pairwise terms": lambda **params: tiny.model(architecture__pairwise=True, **params),
    "all sites at once": lambda **params: tiny.model("d3pm", **params),
}
JOBS = {name: 2 if name == "a committee of two kinds" else 1 for name in KINDS}
"""How many trainings a model takes, one after another."""
every = pytest.mark.parametrize("kind", KINDS)
STEPS = [10, 20, 30, 35]
ROWS = tiny.spins(5)


@pytest.fixture(autouse=True)
def _one_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairwise terms are not the subject here: one fit will do."""
    monkeypatch.setattr(regressions, "STRENGTHS", (0.2,))
    monkeypatch.setattr(regressions, "FEW_ROWS", 0)
    monkeypatch.setattr(regressions, "ITERATIONS", 60)


def use(model: Model) -> np.ndarray:
    """Sample and score, as a callback may; return the scores."""
    assert set(np.unique(model.sample(20, seed=0))) <= {-1, 1}
    scores = model.log_prob(ROWS) if type(model).__name__ == "NeurISE" else model.elbo(ROWS, seed=0)
    assert np.isfinite(scores).all()
    return np.asarray(scores)


@every
@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_it_is_told_of_every_evaluation(kind: str, fraction: float) -> None:
    told: list[tuple[int, float, dict[str, float]]] = []

    def note(step: int, seconds: float, losses: dict[str, float], model: Model) -> None:
        assert model is made
        assert model.history_[-1]["step"] == step
        assert {name: model.history_[-1][name] for name in losses} == losses
        told.append((step, seconds, dict(losses)))

    made = KINDS[kind](training__validation_fraction=fraction)
    made.fit(tiny.spins(), max_steps=35, callback=note)
    assert [step for step, _, _ in told] == STEPS * JOBS[kind]
    names = {"loss", "validation"} if fraction else {"loss"}
    assert all(losses.keys() == names and np.isfinite(list(losses.values())).all() for _, _, losses in told)
    for number in range(JOBS[kind]):
        seconds = [own for _, own, _ in told[4 * number : 4 * number + 4]]
        assert seconds == sorted(seconds)
        assert seconds[0] > 0
    assert made.stopped_ == "steps"
    if JOBS[kind] == 1:
        record = [(entry["step"], {name: entry[name] for name in names}) for entry in made.history_]
        assert [(step, losses) for step, _, losses in told] == record


@every
def test_the_model_can_be_used_and_gets_better_and_training_does_not_notice(kind: str) -> None:
    scores: list[np.ndarray] = []
    watched = KINDS[kind](training__learning_rate=0.02)
    watched.fit(tiny.spins(), max_steps=35, callback=lambda *told: scores.append(use(told[3])) or False)
    alone = KINDS[kind](training__learning_rate=0.02).fit(tiny.spins(), max_steps=35)
    assert len(scores) == 4 * JOBS[kind]
    assert not any(np.array_equal(*pair) for pair in itertools.pairwise(scores))  # each time it is the newest
    assert tiny.same_weights(watched, alone)
    assert [entry["loss"] for entry in watched.history_] == [entry["loss"] for entry in alone.history_]


@every
def test_the_model_it_sees_is_that_of_the_averaged_weights(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    averages: list[np.ndarray] = []
    genuine = TrainingState.record

    def noting(state: TrainingState, *rest: Any) -> None:
        genuine(state, *rest)
        averages.append(np.sort(np.concatenate([tensor.numpy().ravel() for tensor in state.average.values()])))

    def compare(step: int, seconds: float, losses: dict[str, float], model: Model) -> None:
        weights = np.sort(np.concatenate([weight.ravel() for weight in tiny.weights(model).values()]))
        assert np.array_equal(weights, averages[-1])  # in whatever order they are kept

    monkeypatch.setattr(TrainingState, "record", noting)
    KINDS[kind]().fit(tiny.spins(), max_steps=20, callback=compare)
    assert len(averages) == 2 * JOBS[kind]


@every
def test_it_may_end_the_run_and_leaves_a_usable_model(kind: str) -> None:
    model = KINDS[kind]().fit(tiny.spins(), max_steps=100, callback=lambda step, *_: np.bool_(step == 20))
    assert model.stopped_ == "callback"
    assert [entry["step"] for entry in model.history_] == [10, 20]
    use(model)


def test_a_committee_that_is_called_off_keeps_the_kinds_that_were_trained() -> None:
    calls = itertools.count(1)
    make = KINDS["a committee of two kinds"]
    first = make().fit(tiny.spins(), max_steps=35, callback=lambda *_: True)
    assert list(first.shares_.values()) == [1.0]  # type: ignore[attr-defined]
    assert [entry["step"] for entry in first.history_] == [10]
    second = make().fit(tiny.spins(), max_steps=35, callback=lambda *_: next(calls) == 6)
    assert second.stopped_ == "callback"
    assert len(second.shares_) == 2  # type: ignore[attr-defined]
    use(second)


@every
def test_an_error_in_it_is_the_users_to_see_and_leaves_the_model_as_it_was(kind: str) -> None:
    class Mine(Exception):
        pass

    def fails(step: int, *_: Any) -> None:
        if step == 20:
            raise Mine("of my own")

    model = KINDS[kind]()
    with pytest.raises(Mine, match="of my own"):
        model.fit(tiny.spins(), max_steps=35, callback=fails)
    assert not hasattr(model, "schema_")
    model.fit(tiny.spins(), max_steps=10)
    before = use(model)
    with pytest.raises(Mine):
        model.fit(tiny.spins(seed=1), max_steps=35, callback=fails)
    assert np.array_equal(use(model), before)


@pytest.mark.parametrize("answer", [None, False, 0])
def test_any_other_answer_lets_it_go_on(answer: Any) -> None:
    assert tiny.model().fit(tiny.spins(), max_steps=20, callback=lambda *_: answer).stopped_ == "steps"


def test_the_evaluation_at_the_end_of_the_time_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "CLOCK", itertools.count().__next__)  # a second a look
    steps: list[int] = []
    model = tiny.model().fit(tiny.spins(), max_seconds=12, callback=lambda step, *_: steps.append(step))
    assert model.stopped_ == "time"
    assert steps == [entry["step"] for entry in model.history_]
    assert len(steps) == 1


def test_several_processes_end_together_where_one_of_them_calls_the_run_off() -> None:
    class Others:
        """A team of which this process sees but itself; somebody else calls the run off at the second evaluation."""

        is_leader, rank, calls = True, 0, 0
        share = average = staticmethod(lambda drawn: drawn)

        def slice(self, n: int) -> slice:
            return slice(0, n)

        def joined(self, own: torch.Tensor, n: int) -> torch.Tensor:
            return own

        def agree(self, number: float, flag: bool) -> tuple[float, bool]:
            self.calls += number == 0.0  # what is agreed upon without a number is the callback's answer
            return number, flag or self.calls >= 2

    token = TEAM.set(Others())  # type: ignore[arg-type]
    try:
        model = tiny.model().fit(tiny.spins(), max_steps=35, callback=lambda *_: False)
    finally:
        TEAM.reset(token)
    assert model.stopped_ == "callback"
    assert [entry["step"] for entry in model.history_] == [10, 20]
