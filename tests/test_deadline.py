"""One deadline for all phases of a run; the clock is a test's own."""

from __future__ import annotations

import itertools
import math
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch

from neurise import deadline
from neurise.deadline import Interrupts, Shown, Work
from neurise.energies import moments, regressions
from neurise.modeling import round_robin
from neurise.modeling.model import Model
from neurise.rows import Rows


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    own = Hands()
    monkeypatch.setattr(deadline, "CLOCK", own)
    return own


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> itertools.count[int]:
    """A clock that is a second later whenever anybody looks at it: seconds count looks."""
    counted = itertools.count()
    monkeypatch.setattr(deadline, "CLOCK", lambda: next(counted))
    return counted


def test_what_is_spent_and_left(hands: Hands) -> None:
    own = Work(10.0)
    assert (own.left(), own.spent) == (10.0, 0.0)
    hands.time = 12.0
    assert (own.left(), own.spent) == (0.0, 12.0)


def test_no_limit_is_never_over_unless_the_work_is_called_off() -> None:
    interrupts = Interrupts()
    own = Work(interrupts=interrupts)
    part = own.part(0.5)
    assert own.left() == part.left() == part.seconds == math.inf
    interrupts.asked = True
    assert own.left() == part.left() == own.part(0.5).left() == 0


def test_a_phase_has_a_share_of_what_is_left_after_what_is_kept(hands: Hands) -> None:
    own = Work(10.0)
    hands.time = 2.0
    assert own.part(0.5).seconds == 4.0
    assert own.part(0.5, keep=2.0).seconds == 3.0
    assert own.part(0.5, keep=20.0).seconds == 0.0


def test_several_processes_take_the_time_of_one() -> None:
    own = Work(10.0, agree=lambda spent, asked: (spent + 11, asked))
    assert own.left() == own.part(1.0).left() == 0


def test_parts_of_a_work_count_together(hands: Hands, capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(8.0, verbose=True).part(1.0, what="terms", unit="fits", total=4)
    first = work.part(0.5)
    first.left(done=1)
    assert first.seconds == 4.0
    assert isinstance(work.shown, Shown)
    work.shown.progress.last = -math.inf  # when it was shown last
    work.left(done=1)
    assert "terms   50%  2 fits" in capsys.readouterr().err


def test_nothing_is_made_to_be_shown_where_nothing_is_shown() -> None:
    assert Work(verbose=False).part(1.0, what="terms", unit="fits", total=4).shown is None


def sample(rows: int = 60) -> regressions.Sample:
    x = (torch.from_numpy(tiny.spins(rows, sites=5)) > 0).to(torch.uint8)
    return regressions.sample_of(Rows(x), 2, torch.device("cpu"))


@pytest.mark.parametrize("looks", [1, 2, 7, 50])
def test_regressions_ask_in_every_iteration_and_keep_what_they_have(clock: itertools.count[int], looks: int) -> None:
    own, mask, work = sample(), 1 - torch.eye(5), Work(looks)
    best = regressions.best_candidate(own, mask, None, 0, work)
    found = regressions.fitted_parts(own, mask, best, (None, None), work)
    # A look per iteration, and one or two at the end of each descent, whose first iteration is made in any case.
    assert next(clock) < looks + 25
    assert all(bool(fit.weight.isfinite().all()) for fit in found)


def test_without_a_limit_the_fit_is_the_one_without_a_work() -> None:
    own, mask = sample(), 1 - torch.eye(5)
    plain = next(regressions.path(own, mask, only=3))
    watched = next(regressions.path(own, mask, only=3, work=Work()))
    assert torch.equal(plain.weight, watched.weight)


def assert_usable(model: Model) -> None:
    assert all(np.isfinite(weight).all() for weight in tiny.weights(model).values())
    assert np.isfinite(model.log_prob(tiny.spins())).all()
    assert model.sample(5, seed=0).shape == (5, 3)


@pytest.mark.parametrize("seconds", [40, 100, 400])
@pytest.mark.parametrize("params", [{}, {"calibrate": True}, {"corrector__clean": 0.25}], ids=str)
def test_a_committee_keeps_its_time_whatever_phase_is_slow(
    clock: itertools.count[int], seconds: int, params: dict[str, object]
) -> None:
    model = tiny.model(members=4, architecture__pairwise=True, **params)
    model.fit(tiny.spins(), max_seconds=seconds, verbose=False)
    spent = next(clock)
    # Every inner loop looks once per iteration. Beyond: the looks of starts and ends, of which there are so many whatever the
    # limit is.
    assert spent < 1.1 * seconds + 80
    assert model.stopped_ == "time"
    assert model.history_[-1]["step"] >= 1  # a network was trained
    assert len(model.shares_) == 2
    assert_usable(model)


def test_half_of_the_time_at_least_is_for_the_network(clock: itertools.count[int]) -> None:
    model = tiny.model(members=2, architecture__pairwise=True)
    model.fit(tiny.spins(), max_seconds=1000, verbose=False)
    # A step looks at the clock once; each kind of network has half of the time, and its terms at most half of that.
    assert model.history_[-1]["step"] >= 150


def test_a_timed_run_that_goes_on_does_not_prepare_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: itertools.count[int]
) -> None:
    made = []
    genuine = regressions.descend
    monkeypatch.setattr(regressions, "descend", lambda *args, **kw: made.append(1) or genuine(*args, **kw))
    model = tiny.model(members=2, architecture__pairwise=True)
    model.fit(tiny.spins(), max_seconds=300, verbose=False, checkpoint=tmp_path)
    before, made[:] = len(made), []
    again = tiny.model(members=2, architecture__pairwise=True)
    again.fit(tiny.spins(), max_seconds=300, verbose=False, checkpoint=tmp_path, resume=True)
    assert before
    assert not made
    steps = [[entry["step"] for entry in one.history_] for one in (model, again)]
    assert steps[1][: len(steps[0])] == steps[0]  # the second kind may have been left a moment more
    assert again.stopped_ == "time"


def interrupt_at(monkeypatch: pytest.MonkeyPatch, place: object, name: str, number: int) -> None:
    """Send Ctrl-C from a function that is called in a phase's inner loop."""
    genuine, counted = getattr(place, name), itertools.count(1)

    def noisy(*args: object, **options: object) -> object:
        if next(counted) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return genuine(*args, **options)

    monkeypatch.setattr(place, name, noisy)


@pytest.mark.parametrize(
    ("place", "name", "kinds"),
    [(regressions.Descent, "step", 1), (round_robin, "find_shares", 2), (moments, "_log_sum", 2)],
    ids=["pairwise terms", "weighing", "calibration"],
)
def test_ctrl_c_in_any_phase_leaves_a_usable_model(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, kinds: int
) -> None:
    interrupt_at(monkeypatch, place, name, 1)
    monkeypatch.setattr(regressions, "ITERATIONS", 10)
    model = tiny.model(members=2, architecture__pairwise=True, calibrate=True)
    model.fit(tiny.spins(), max_steps=20, verbose=False)
    assert model.stopped_ == "interrupted"
    assert len(model.shares_) == kinds
    assert_usable(model)


def test_an_interrupt_before_anything_is_learnt_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model().fit(tiny.spins(), max_steps=2, verbose=False)
    before = model.sample(5, seed=0)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(tiny.spins(sites=4), max_steps=2)
    assert np.array_equal(model.sample(5, seed=0), before)
