"""The training loop, through the model that uses it."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

from neurise import deadline
from neurise.training import loop
from neurise.training.state import TrainingState


def test_the_loss_goes_down() -> None:
    model = tiny.model(loss="cross_entropy", training__learning_rate=0.02).fit(tiny.spins(500), max_steps=200)
    # Sites 0 and 2 are fair coins, site 1 repeats site 0 with probability 0.9: the mean conditional entropy is
    # (2 log 2 + h)/3, h = -0.9 log 0.9 - 0.1 log 0.1; the uniform start has log 2. Most of the way is to be made.
    start, end = math.log(2), (2 * math.log(2) - 0.9 * math.log(0.9) - 0.1 * math.log(0.1)) / 3
    for name in ("loss", "validation"):
        assert model.history_[-1][name] < start - 0.5 * (start - end)
    assert model.history_[0]["loss"] > model.history_[-1]["loss"]


def test_the_record_holds_every_evaluation() -> None:
    model = tiny.model().fit(tiny.spins(), max_steps=35)
    assert [record["step"] for record in model.history_] == [10, 20, 30, 35]
    seconds = [record["seconds"] for record in model.history_]
    assert seconds == sorted(seconds)
    assert all(record.keys() == {"step", "seconds", "loss", "validation"} for record in model.history_)
    assert model.stopped_ == "steps"


def test_the_recorded_loss_is_the_mean_since_the_last_record(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noting(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
        seen.append(genuine())
        return seen[-1]

    replace_steps(monkeypatch, noting)
    model = tiny.model().fit(tiny.spins(), max_steps=25)
    means = [float(torch.stack(part).mean()) for part in (seen[:10], seen[10:20], seen[20:])]
    assert [record["loss"] for record in model.history_] == means


def test_without_a_validation_set_there_is_no_validation() -> None:
    model = tiny.model(training__validation_fraction=0, training__patience=1).fit(tiny.spins(), max_steps=40)
    assert all("validation" not in record for record in model.history_)
    assert model.stopped_ == "steps"  # and nothing to lose patience about


def idle_step(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Use random numbers and count, but learn nothing."""
    torch.rand(7, generator=state.generator)
    state.step += 1
    return torch.ones(())


def test_the_validation_noise_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_steps(monkeypatch, idle_step)
    genuine = loop.train

    def stirred(objective: Any, *args: Any, **kwargs: Any) -> str:
        with torch.no_grad():  # away from the uniform start, which gives every example the same score
            for parameter in objective.network.parameters():
                parameter.add_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
        return genuine(objective, *args, **kwargs)

    monkeypatch.setattr("neurise.modeling.trained.train", stirred)
    model = tiny.model(keep_prob=0.5, cycles=2).fit(tiny.spins(), max_steps=50)
    scores = {record["validation"] for record in model.history_}
    assert len(scores) == 1
    assert scores != {math.log(2)}
    again = tiny.model(keep_prob=0.5, cycles=2).fit(tiny.spins(), max_steps=50, seed=1)
    assert {record["validation"] for record in again.history_} != scores  # other noise, other score: it does matter


def test_training_stops_when_the_network_only_memorises() -> None:
    coins = np.random.default_rng(0).choice([-1, 1], size=(40, 8))
    model = tiny.model(width=32, training__patience=3, training__learning_rate=0.02).fit(coins, max_steps=2000)
    assert model.stopped_ == "patience"
    scores = [record["validation"] for record in model.history_]
    best = scores.index(min(scores))
    assert len(scores) == best + 1 + 3
    assert model.history_[-1]["step"] < 2000
    assert model.history_[-1]["loss"] < model.history_[best]["loss"]  # memorising it was


def test_the_model_keeps_the_weights_of_the_best_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine, averages = TrainingState.record, []

    def noting(state: TrainingState, *rest: Any) -> None:
        genuine(state, *rest)
        averages.append({name: tensor.clone() for name, tensor in state.average.items()})

    monkeypatch.setattr(TrainingState, "record", noting)
    coins = np.random.default_rng(0).choice([-1, 1], size=(40, 8))
    model = tiny.model(width=32, training__patience=3, training__learning_rate=0.02).fit(coins, max_steps=2000)
    scores = [record["validation"] for record in model.history_]
    kept = averages[scores.index(min(scores))]  # of a stack of one network
    for name, tensor in model.conditionals_.network.state_dict().items():
        assert torch.equal(tensor, kept[f"pattern.{name}"][0])


def a_second_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of the loop move on only when it is read."""
    monkeypatch.setattr(deadline, "CLOCK", itertools.count().__next__)


@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_the_clock_ends_training_and_the_last_steps_count(monkeypatch: pytest.MonkeyPatch, fraction: float) -> None:
    a_second_a_look(monkeypatch)
    model = tiny.model(training__validation_fraction=fraction).fit(tiny.spins(), max_seconds=12)
    assert model.stopped_ == "time"
    (record,) = model.history_  # far from the first evaluation at 200 steps
    assert record["seconds"] >= (1 - loop.LAST_LOOK) * 12 - 3  # three looks were made before the loop
    assert 1 < record["step"] <= 12
    assert ("validation" in record) == (fraction > 0)


@pytest.mark.parametrize(("steps", "seconds", "reason"), [(20, 1e9, "steps"), (10**9, 12, "time")])
def test_whichever_comes_first(monkeypatch: pytest.MonkeyPatch, steps: int, seconds: float, reason: str) -> None:
    a_second_a_look(monkeypatch)
    model = tiny.model().fit(tiny.spins(), max_steps=steps, max_seconds=seconds)
    assert model.stopped_ == reason


def test_the_constructor_says_how_long_where_fit_does_not() -> None:
    assert tiny.model(steps=17).fit(tiny.spins()).history_[-1]["step"] == 17
    assert tiny.model(steps=17).fit(tiny.spins(), max_steps=12).history_[-1]["step"] == 12


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    first, second, other = (tiny.model().fit(tiny.spins(), seed=seed) for seed in (5, 5, 6))
    assert tiny.same_weights(first, second)
    assert not tiny.same_weights(first, other)
    losses = [[record["loss"] for record in model.history_] for model in (first, second, other)]
    assert losses[0] == losses[1] != losses[2]


def test_no_global_random_numbers_are_used_or_changed() -> None:
    torch.manual_seed(1)
    first = tiny.model().fit(tiny.spins(), seed=5)
    first.sample(5, seed=1)
    state = torch.get_rng_state()
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert tiny.same_weights(first, tiny.model().fit(tiny.spins(), seed=5))


@pytest.mark.parametrize("seed", [np.int64(5), np.uint8(5)])
def test_a_seed_may_be_numpys(seed: Any) -> None:
    assert tiny.same_weights(tiny.model().fit(tiny.spins(), seed=seed), tiny.model().fit(tiny.spins(), seed=5))


@pytest.mark.parametrize("seed", [1.5, "1", None, 2**64, True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed must be a whole number.*got {seed!r}"):
        tiny.model().fit(tiny.spins(), seed=seed)


def test_the_summary_comes_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    tiny.model().fit(tiny.spins(50), max_steps=10, verbose=True)
    shown = capsys.readouterr()
    assert "45 rows, 5 held back" in shown.err
    assert "10 steps" in shown.err
    assert shown.out == ""
    tiny.model().fit(tiny.spins(50), max_steps=10, verbose=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("scores", "kept", "stale"),
    [
        ([[3.0, 5.0], [2.0, 4.0]], 1, 0),  # better
        ([[2.0, 4.0], [3.0, 5.0]], 0, 1),  # worse in every example: the difference has no spread
        ([[2.0, 4.0], [4.0, 2.5]], 1, 1),  # worse by 0.25 ± 1.75: nobody can tell
        (
            [[2.0, 4.0], [4.0, 2.5], [4.0, 2.75], [9.0, 9.0]],
            2,
            3,
        ),  # always held against the best, not the last that was kept
    ],
)
def test_of_weights_that_cannot_be_told_apart_the_last_are_kept(
    scores: list[list[float]], kept: int, stale: int
) -> None:
    network = torch.nn.Linear(1, 1)
    state = TrainingState(network, torch.optim.SGD(network.parameters()), torch.Generator())
    for number, values in enumerate(scores):
        state.average = {"weight": torch.full((1,), float(number))}
        state.record(torch.tensor(0.0), torch.tensor(values, dtype=torch.float64), patience=20)
    assert state.best is not None
    assert (float(state.best["weight"]), state.stale) == (kept, stale)
    assert state.best_score == min(sum(values) / 2 for values in scores)
