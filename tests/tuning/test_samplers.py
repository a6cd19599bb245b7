"""How the parameters of the next trial are chosen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest
from hyperopt import Domain, Trials, fmin, hp, space_eval, tpe

from neurise import discovery
from neurise.modeling.search_space import Choice, Integer, LogUniform, Uniform
from neurise.tuning.samplers.hyperopt import _from_hyperopt, _to_hyperopt
from neurise.tuning.trial import distribution

SPACE = {
    "depth": Integer(2, 4),
    "width": Choice((64, 128)),
    "keep_prob": Uniform(0.1, 0.9),
    "learning_rate": LogUniform(1e-4, 1e-1),
}
DISTRIBUTIONS = {name: distribution(domain) for name, domain in SPACE.items()}
SAMPLERS = discovery.names("neurise.tuning.samplers")


def asked(sampler: str, study: optuna.Study, seed: int) -> optuna.Trial:
    study.sampler = discovery.find("neurise.tuning.samplers", sampler)(DISTRIBUTIONS, seed)
    return study.ask(DISTRIBUTIONS)


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_values_lie_in_the_space_and_fill_it(sampler: str) -> None:
    study = optuna.create_study()
    drawn = [asked(sampler, study, seed).params for seed in range(100)]
    assert {params["depth"] for params in drawn} == {2, 3, 4}
    assert {params["width"] for params in drawn} == {64, 128}
    keep, rate = (np.array([params[name] for params in drawn]) for name in ("keep_prob", "learning_rate"))
    assert keep.min() >= 0.1
    assert keep.max() <= 0.9
    assert rate.min() >= 1e-4
    assert rate.max() <= 1e-1
    # Before anything is known draws are uniform: the mean of 100 of standard deviation w/√12 is within 5 standard errors.
    assert abs(keep.mean() - 0.5) < 5 * 0.8 / math.sqrt(12 * 100)
    logs = np.log10(rate)
    assert abs(logs.mean() + 2.5) < 5 * 3 / math.sqrt(12 * 100)


def loss(params: Any) -> float:
    return abs(params["keep_prob"] - 0.8) + abs(params["depth"] - 4)


def test_what_was_learnt_draws_the_next_trials_to_it() -> None:
    study = optuna.create_study()
    losses = []
    for number in range(60):
        trial = asked("tpe", study, number)
        losses.append(loss(trial.params))
        study.tell(trial, losses[-1])
    # Random draws keep a mean of 1.32 (0.32 of ε, 1 of depth), with a standard error of 0.19 over 20 draws.
    assert np.mean(losses[40:]) < 1.32 - 4 * 0.19


def test_hyperopt_gives_what_it_gives_by_itself_after_the_same_trials() -> None:
    space = {
        "depth": hp.choice("depth", [2, 3, 4]),
        "width": hp.choice("width", [64, 128]),
        "keep_prob": hp.uniform("keep_prob", 0.1, 0.9),
        "learning_rate": hp.loguniform("learning_rate", math.log(1e-4), math.log(1e-1)),
    }
    known = Trials()
    rng = np.random.default_rng(0)
    fmin(loss, space, algo=tpe.suggest, max_evals=30, trials=known, rstate=rng, show_progressbar=False, verbose=False)
    study = optuna.create_study()
    for trial in known.trials:
        params = space_eval(space, {name: value[0] for name, value in trial["misc"]["vals"].items()})
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=DISTRIBUTIONS, value=trial["result"]["loss"])
        )
    for seed in range(5):
        theirs = tpe.suggest([30], Domain(loss, space), known, seed + 30, verbose=False)[0]["misc"]["vals"]
        expected = space_eval(space, {name: value[0] for name, value in theirs.items()})
        sampler = discovery.find("neurise.tuning.samplers", "hyperopt")(DISTRIBUTIONS, seed)
        waiting = optuna.trial.create_trial(state=optuna.trial.TrialState.WAITING)
        waiting.number = 30
        assert sampler.sample_relative(study, waiting, DISTRIBUTIONS) == pytest.approx(expected)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_seed_and_history_give_the_same_trial(sampler: str) -> None:
    first, second = (asked(sampler, optuna.create_study(), 3).params for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("name", "value"), [("depth", 4), ("width", 128), ("keep_prob", 0.3), ("learning_rate", 0.01)])
def test_a_value_told_to_hyperopt_is_the_value_it_gave(name: str, value: float) -> None:
    part = DISTRIBUTIONS[name]
    assert _from_hyperopt(part, _to_hyperopt(part, value)) == value


def test_an_unknown_sampler_is_refused_with_near_names() -> None:
    with pytest.raises(ValueError, match="unknown sampler 'hyperop'; did you mean hyperopt"):
        discovery.find("neurise.tuning.samplers", "hyperop")
