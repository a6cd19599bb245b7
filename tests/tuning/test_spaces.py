"""Where a search may look: each model class says, and takes whatever lies there."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest
import tiny

from neurise import discovery
from neurise.modeling.search_space import Choice, Domain, Integer, LogUniform, Unless, ZeroOr, as_parameters
from neurise.tuning.trial import distribution

TRAINED = [name for name in discovery.names("neurise.models") if tiny.is_trained(name)]
PAPERS = {
    "depth": Integer(1, 5),
    "width": Choice((64, 128, 256, 512)),
    "training__learning_rate": LogUniform(1e-4, 5e-2),
    "training__weight_decay": LogUniform(1e-8, 1e-3),
    "training__batch_size": Choice((64, 128, 256, 512)),
}
"""What the paper's appendix searches for every method."""


def ends(domain: Domain) -> list[Any]:
    if isinstance(domain, Unless):
        return ends(domain.domain)
    zero = [0.0] if isinstance(domain, ZeroOr) else []
    return list(domain.values) if isinstance(domain, Choice) else [*zero, domain.low, domain.high]


@pytest.mark.parametrize("name", TRAINED)
def test_every_value_of_the_space_is_taken(name: str) -> None:
    space = discovery.find("neurise.models", name).search_space
    assert space
    assert set(space) <= set(tiny.model(name).leaves())
    rows = np.arange(24).reshape(8, 3) % 3
    for number in range(max(len(ends(domain)) for domain in space.values())):
        chosen = {key: ends(domain)[min(number, len(ends(domain)) - 1)] for key, domain in space.items()}
        fitted = tiny.model(name, **chosen).fit(rows, max_steps=1, verbose=False)
        assert {key: fitted.get_params()[key] for key in chosen} == chosen


@pytest.mark.parametrize("name", ["neurise", "ggm", "sedd", "d3pm", "dfm"])
def test_the_papers_methods_have_the_papers_space(name: str) -> None:
    found = dict(discovery.find("neurise.models", name).search_space)
    if name == "neurise":  # and hard noise, which the paper's range leaves out
        noise, cycles = found.pop("keep_prob"), found.pop("cycles")
        assert (noise.low, noise.high) == (0.001, 0.999)
        assert cycles.domain == Integer(1, 10)
    assert found == PAPERS


def test_a_quarter_of_the_draws_are_hard_noise_of_one_cycle() -> None:
    """Of 400 independent draws, five standard deviations around 100 are 43."""
    space = discovery.find("neurise.models", "neurise").search_space
    drawn = []
    for seed in range(400):
        levels = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(sampler=levels)
        trial = study.ask({name: distribution(space[name]) for name in ("keep_prob", "cycles")})
        drawn.append(as_parameters({name: space[name] for name in trial.params}, trial.params, {}))
    hard = [params for params in drawn if params["keep_prob"] == 0]
    assert abs(len(hard) - 100) < 43
    assert {params["cycles"] for params in hard} == {1}
    soft = [params for params in drawn if params["keep_prob"] > 0]
    assert all(0.001 <= params["keep_prob"] <= 0.999 for params in soft)
    assert {params["cycles"] for params in soft} == set(range(1, 11))


def test_hard_noise_that_is_fixed_has_one_cycle() -> None:
    space = {"cycles": Unless(Integer(1, 10), zero="keep_prob", value=1)}
    assert as_parameters(space, {"cycles": 7}, {"keep_prob": 0}) == {"cycles": 1}
    assert as_parameters(space, {"cycles": 7}, {"keep_prob": 0.5}) == {"cycles": 7}


def test_the_space_is_no_parameter() -> None:
    assert "search_space" not in tiny.model("neurise").get_params()
