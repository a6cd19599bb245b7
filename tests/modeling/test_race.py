"""Kinds of networks race, those that are left answer together, and the run behaves as any other does."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import racing
import tiny
import torch
from racing import ALL, STEPS
from scipy import stats
from sklearn.base import clone
from steps import replace_steps

import neurise
from neurise import exact
from neurise.conditionals.committee import find_shares
from neurise.deadline import Work
from neurise.fields import Field
from neurise.modeling import race
from neurise.modeling.race import Once, Race, hold, kept, planned
from neurise.modeling.trained import Job
from neurise.training.state import RACE, TrainingState, remove_checkpoints

SITES, STATES = 3, 4
EVERY = np.array(list(itertools.product(range(STATES), repeat=SITES)))


def rows(n: int = 80) -> np.ndarray:
    """Rows of four symbols in which the second site mostly follows the first."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, STATES, (n, SITES))
    x[:, 1] = np.where(rng.random(n) < 0.8, x[:, 0], x[:, 1])
    x[:STATES] = np.arange(STATES)[:, None]
    return x


def fitted(X: np.ndarray | None = None, y: Any = None, **fit: Any) -> Any:
    X = rows() if X is None else X
    return tiny.model().fit(X, y, **{"seed": 0, "max_steps": STEPS, "verbose": False} | fit)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with racing.on_small_data(behind=ALL):
        yield


@functools.cache
def mixed() -> Any:
    with racing.on_small_data(behind=ALL):
        return fitted()


# --- who is left -------------------------------------------------------------------------------------------------------

FEW = torch.linspace(9.0, 11.0, 20, dtype=torch.float64)  # scores of some rows


@pytest.fixture
def margin() -> Iterator[None]:
    with racing.on_small_data():
        yield


@pytest.mark.usefixtures("margin")
def test_kinds_that_are_clearly_behind_are_left_out() -> None:
    assert kept({"a": 3 * FEW, "b": FEW, "c": 1.2 * FEW}, together=True) == ["b", "c"]
    assert kept({"a": 3 * FEW, "c": 1.2 * FEW, "b": FEW}, together=False) == ["c"]


@pytest.mark.usefixtures("margin")
def test_a_tie_has_a_width_and_goes_to_the_first() -> None:
    for noise in (0.0, 1e-13, -1e-13):
        scores = {"first": FEW + noise, "second": FEW}
        assert kept(scores, together=False) == ["first"]
        assert kept(scores, together=True) == ["first", "second"]
        # Exactly at the margin, too, whichever way a sum is rounded.
        assert kept({"first": race.BEHIND * FEW + noise, "second": FEW}, together=False) == ["first"]


@pytest.mark.usefixtures("margin")
@pytest.mark.parametrize(("errors", "left"), [(1.9, ["a", "b"]), (2.1, ["b"])])
def test_the_width_is_two_standard_errors_of_the_paired_difference(errors: float, left: list[str]) -> None:
    spread = torch.tensor([-1.0, 1.0] * 50, dtype=torch.float64)
    error = float(spread.std()) / 10
    assert kept({"a": 1.5 * FEW.mean() + spread + errors * error, "b": FEW.mean().expand(100)}, together=True) == left


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_scores_that_are_no_numbers_are_behind(bad: float) -> None:
    wrong = FEW.clone()
    wrong[3] = bad
    assert kept({"a": wrong, "b": FEW}, together=True) == ["b"]
    assert kept({"a": wrong, "b": wrong}, together=True) == ["a"]


def test_a_race_takes_its_share_of_the_steps_at_most() -> None:
    for steps in ({"a": 4000, "b": 2000}, {"a": 101, "b": 70, "c": 900}):
        short = planned(steps)
        assert short is not None
        assert sum(short.values()) <= race.SHARE * max(steps.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "LEAST", 10)
        assert planned({"a": 99, "b": 5000}) is None
        assert planned({"a": 100, "b": 5000}) == {"a": 10, "b": 500}


def test_several_processes_do_as_the_leader_says() -> None:
    """The scores of this process speak for the second kind, those of the leader for both."""
    jobs, found = _made_jobs(), []

    def agree(number: float, flag: bool) -> tuple[float, bool]:
        found.append(number)
        return 1.0, flag

    scores = iter([FEW, math.inf * FEW])
    with racing.on_small_data():
        result, _ = hold(jobs, dict.fromkeys(jobs, 1), lambda job: next(scores), Work(agree=agree), together=True)
    assert result.kept == list(jobs)
    assert found[-3:-1] == [1.0, 0.0]  # then the clock is asked


def _made_jobs() -> dict[str, Job]:
    """Return the jobs that a race would start from."""
    seen: list[dict[str, Job]] = []

    def noting(jobs: dict[str, Job], *rest: Any, **more: Any) -> Any:
        seen.append(jobs)
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "settle", noting)
        with pytest.raises(InterruptedError):
            fitted()
    return seen[0]


# --- a committee of two kinds ------------------------------------------------------------------------------------------


def test_the_law_is_the_geometric_mean_of_the_conditionals_of_both_kinds() -> None:
    model = mixed()
    assert list(model.shares_) == ["site_mlp", "sparse"]
    x = torch.as_tensor(EVERY)
    weights, members = model.conditionals.weights, list(model.conditionals)
    assert len({type(member).__name__ for member in members}) == 2
    assert sum(weights) == pytest.approx(1)
    total = torch.zeros(len(x), dtype=torch.float64)
    for u in range(SITES):
        t = torch.tensor([u])
        answers = [member.log_conditional(t, t, x).double() for member in members]
        together = torch.log_softmax(sum(w * a for w, a in zip(weights, answers, strict=True)), dim=-1)
        total += together.gather(-1, x[:, u : u + 1]).squeeze(-1)
    np.testing.assert_allclose(model.log_prob(EVERY), total.numpy(), atol=1e-5)
    assert np.exp(model.log_prob(EVERY)).sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(exact.law(model).flatten(), np.exp(model.log_prob(EVERY)), atol=1e-6)


def test_samples_follow_that_law() -> None:
    model, n = mixed(), 20_000
    drawn = model.sample(n, seed=1)
    counts = np.bincount(drawn @ STATES ** np.arange(SITES)[::-1], minlength=len(EVERY))
    law = np.exp(model.log_prob(EVERY))
    assert stats.chisquare(counts, n * law / law.sum()).pvalue > 1e-6


def test_it_says_what_was_chosen_and_comes_back_from_its_files(tmp_path: Path) -> None:
    model = mixed()
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    for one in (model, again):
        facts = one.summary()
        assert facts["network"] == "1 × site_mlp, width 8, depth 1; 1 × sparse, width 8, depth 1"
        assert facts["choice"].startswith(
            "site_mlp and sparse: by a race of 4 steps of site_mlp and 4 steps of sparse on 8 rows"
        )
        assert list(facts["race"]) == ["site_mlp", "sparse"]
        assert "race" in str(facts)
        assert f"site_mlp {facts['race']['site_mlp']:.4g}" in str(facts)
    assert again.race_ == model.race_
    np.testing.assert_array_equal(again.log_prob(EVERY), model.log_prob(EVERY))
    np.testing.assert_array_equal(again.sample(20, seed=3), model.sample(20, seed=3))
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "config.json").read_text() == (tmp_path / "model" / "config.json").read_text()


def test_a_clone_of_it_chooses_anew() -> None:
    again = clone(mixed())
    assert again.get_params()["network"] is None
    assert not hasattr(again, "sizes_")


def test_the_same_seed_makes_the_same_choice_and_the_same_bits() -> None:
    again = fitted()
    assert again.race_ == mixed().race_
    assert tiny.same_weights(again, mixed())


def test_a_kind_with_no_share_is_no_part_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neurise.modeling.round_robin.find_shares", lambda *told: [0.0, 1.0])
    model = fitted()
    assert model.shares_ == {"sparse": 1.0}
    assert model.summary()["network"] == "1 × sparse, width 8, depth 1"


@pytest.mark.parametrize("kinds", [("masked", "sparse"), ("sparse", "causal"), ("sparse", "masked", "site_mlp")])
def test_any_kinds_are_weighed_and_answer_together(kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with racing.on_small_data(*kinds, behind=ALL):
        monkeypatch.setattr("neurise.modeling.round_robin.find_shares", find_shares)
        model = fitted()
    assert set(model.shares_) <= set(kinds)
    assert set(model.race_.found()) == set(kinds)
    assert np.exp(model.log_prob(EVERY)).sum() == pytest.approx(1, abs=1e-6)


def test_one_kind_is_trained_where_kinds_do_not_mix() -> None:
    with racing.on_small_data("sparse", "site_mlp", together=False, behind=ALL):
        model = fitted()
    assert model.shares_ == {"sparse": 1.0}


def test_members_of_one_kind_that_is_left_see_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same rows they would all find the same parents."""
    trained = list[Job]()
    genuine = Job.run
    monkeypatch.setattr(Job, "run", lambda job, *a, **k: (trained.append(job), genuine(job, *a, **k))[1])
    with racing.on_small_data("sparse", "site_mlp", together=False, behind=ALL):
        model = tiny.model(members=2).fit(rows(), seed=0, max_steps=STEPS, verbose=False)
    assert model.shares_ == {"sparse": 1.0}
    last = trained[-1]
    assert last.held is not None
    assert last.held.fold is not None
    assert last.held.fold.unique().tolist() == [0, 1]


def test_labels_counts_constant_sites_and_calibration_go_with_it() -> None:
    X, y, weights = rows(), np.arange(80) % 2, np.arange(80) % 3 + 1.0
    X = np.column_stack([X, np.full(80, 2)])
    model = tiny.model(calibrate=True, architecture__pairwise=None).fit(
        X, y, weights=weights, max_steps=STEPS, seed=0, verbose=False
    )
    assert model.race_.kept == ["site_mlp", "sparse"]
    every = np.array(list(itertools.product(range(STATES), repeat=SITES + 1)))
    assert np.exp(model.log_prob(every, np.zeros(len(every), int))).sum() == pytest.approx(1, abs=1e-5)
    assert len(model.sample(5, 1, seed=0)) == 5


@pytest.mark.parametrize("given", [{"training__validation_fraction": 0}, {"steps": 4}])
def test_without_a_race_the_first_kind_is_taken(given: dict[str, Any]) -> None:
    model = tiny.model(**given).fit(rows(), seed=0, verbose=False)
    assert model.shares_ == {"site_mlp": 1.0}
    assert model.summary()["choice"] == "site_mlp: there were too few steps, or rows held back, for a race"


# --- what goes wrong ---------------------------------------------------------------------------------------------------


def at_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[TrainingState], Any]) -> None:
    """Do something at one of the steps, counted over the race and all that follows; what it returns is taken for the loss."""
    count = itertools.count(1)

    def stepping(state: TrainingState, genuine: Callable[[], torch.Tensor]) -> torch.Tensor:
        loss = genuine()
        changed = act(state) if next(count) == number else None
        return loss if changed is None else changed

    replace_steps(monkeypatch, stepping)


def killed(state: TrainingState) -> None:
    raise SystemExit("killed")


@pytest.mark.parametrize(("number", "races"), [(2, 2), (6, 2), (25, 1), (70, 1)])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(
    number: int, races: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At steps 2 and 6 the kinds race, then each makes 40 steps, and checkpoints are written every 10."""
    held, genuine = [], race.hold

    def noting(*told: Any, **more: Any) -> Any:
        held.append(1)
        return genuine(*told, **more)

    monkeypatch.setattr(race, "hold", noting)
    with monkeypatch.context() as patch:
        at_step(patch, number, killed)
        with pytest.raises(SystemExit):
            fitted(checkpoint=tmp_path)
    assert (tmp_path / RACE).exists() == (races == 1)
    resumed = fitted(checkpoint=tmp_path, resume=True)
    assert len(held) == races
    assert resumed.race_ == mixed().race_
    assert tiny.same_weights(resumed, mixed())


def test_the_race_of_another_run_is_refused_and_can_be_removed(tmp_path: Path) -> None:
    fitted(checkpoint=tmp_path)
    for part in tmp_path.rglob("*.safetensors"):
        part.unlink()
    with pytest.raises(ValueError, match=r"race\.json belongs to another run; .*remove_checkpoints"):
        fitted(checkpoint=tmp_path, resume=True, seed=1)
    remove_checkpoints(tmp_path)
    assert not (tmp_path / RACE).exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kept": []}, "kept must be"), ({"kept": ["other"]}, "kept must be"), ({"rows": -1}, "rows must be a whole")],
)
def test_what_a_file_says_of_a_race_is_checked(change: dict[str, Any], message: str) -> None:
    written = json.loads(json.dumps(dataclasses.asdict(mixed().race_)))
    assert race.checked(Field(written, "race")) == mixed().race_
    with pytest.raises(ValueError, match=rf"race\.{message}"):
        race.checked(Field(written | change, "race"))


@pytest.mark.parametrize("number", [1, 6])
def test_ctrl_c_in_the_race_leaves_a_model(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_step(monkeypatch, number, lambda state: os.kill(os.getpid(), signal.SIGINT))
    model = fitted(checkpoint=tmp_path)
    assert model.stopped_ == "interrupted"
    assert len(model.shares_) == 1
    assert "which was interrupted" in model.summary()["choice"]
    assert np.exp(model.log_prob(EVERY)).sum() == pytest.approx(1, abs=1e-6)
    assert not (tmp_path / RACE).exists()
    monkeypatch.undo()
    with racing.on_small_data(behind=ALL):
        assert tiny.same_weights(fitted(checkpoint=tmp_path, resume=True), mixed())


def test_ctrl_c_in_the_race_of_many_models_leaves_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    at_step(monkeypatch, 6, lambda state: os.kill(os.getpid(), signal.SIGINT))
    models = neurise.fit_many(tiny.model(), [rows(), rows()], max_steps=STEPS, verbose=False)
    for model in models:
        assert model.stopped_ == "interrupted"
        assert len(model.sample(3, seed=0)) == 3


def test_a_kind_that_diverges_in_the_race_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    at_step(monkeypatch, 4, lambda state: torch.tensor(math.nan))
    model = fitted()
    assert model.race_.kept == ["sparse"]
    assert model.race_.scores["site_mlp"] is None
    assert model.stopped_ == "steps"


def test_a_kind_that_does_not_fit_into_memory_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Job.begin

    def begin(job: Job, together: int = 1) -> None:
        if type(job.objective).__name__ == "RowObjective":
            raise MemoryError("too much")
        genuine(job, together)

    monkeypatch.setattr(Job, "begin", begin)
    assert fitted().race_.kept == ["site_mlp"]
    monkeypatch.setattr(Job, "begin", lambda job, together=1: (_ for _ in ()).throw(MemoryError("too much")))
    with pytest.raises(MemoryError, match="too much"):
        fitted()


def test_the_time_of_a_race_is_a_fifth_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    genuine = race.hold

    def noting(jobs: Any, steps: Any, judge: Any, work: Work, **more: Any) -> Any:
        limits.append(work.seconds)
        return genuine(jobs, steps, judge, work, **more)

    monkeypatch.setattr(race, "hold", noting)
    model = fitted(max_seconds=1000.0)
    assert limits == [race.SHARE * 1000.0]
    assert model.stopped_ == "steps"


def test_many_models_race_each_by_itself() -> None:
    first, second = neurise.fit_many(
        [tiny.model(), tiny.model()], [rows(), rows(60)], seeds=[0, 1], max_steps=STEPS, verbose=False
    )
    assert first.race_ == mixed().race_
    for model in (first, second):
        assert len(model.shares_) == 2
        assert np.exp(model.log_prob(EVERY)).sum() == pytest.approx(1, abs=1e-6)


def test_what_is_prepared_once_serves_the_next_job() -> None:
    """Unless the time was over before it was done."""
    calls = []

    def prepare(job: Any, work: Work) -> None:
        calls.append(1)
        job.objective.network.load_state_dict({"weight": torch.ones(1, 1), "bias": torch.ones(1)})

    def job() -> Any:
        network = torch.nn.Linear(1, 1)
        return type("J", (), {"objective": type("O", (), {"network": network})()})()

    once, late = Once(prepare), Once(prepare)
    for _ in range(2):
        ready = job()
        once(ready, Work())
        assert ready.objective.network.weight.tolist() == [[1.0]]
    assert len(calls) == 1
    late(job(), Work(0.0))
    late(job(), Work(0.0))
    assert len(calls) == 3


def test_a_race_says_what_it_is_about() -> None:
    assert Race({"a": 1.0}, {"a": 5}, 3, ["a"]).told() == "a: by a race of 5 steps of a on 3 rows held back"
