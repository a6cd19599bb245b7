"""DDPD as a model: its options, its size, labels, and sites that never vary."""

from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import batching, comparison, exact
from neurise.space import Space


@pytest.mark.parametrize("target", [2_000, 20_000, 200_000])
def test_it_is_brought_to_the_size_of_the_others(target: int) -> None:
    space = Space(9, 2)
    model = comparison.match_width(neurise.DDPD(), target, space)
    assert comparison.count_parameters(model, space) == pytest.approx(target, rel=comparison.TOLERANCE)
    assert comparison.count_parameters(model, space) == 2 * comparison.count_parameters(
        neurise.UDLM(width=model.width), space
    )


@pytest.mark.parametrize("states", [1, 2, 256])
def test_any_number_of_states(states: int) -> None:
    X = (np.arange(states * 2).reshape(-1, 2) % states).repeat(4, axis=0)
    model = tiny.model("ddpd", sampling_steps=3).fit(X, max_steps=3)
    for sampler in ("planned", "adaptive", "parallel"):
        assert set(np.unique(model.set_params(sampler=sampler).sample(200, seed=0))) <= set(range(states))
    assert np.isfinite(model.elbo(X[:2], seed=0, draws=2).value).all()


@pytest.mark.parametrize("sampler", ["planned", "adaptive"])
def test_constant_sites_are_never_chosen(sampler: str) -> None:
    X = tiny.spins(sites=4)
    X[:, 1] = 1
    model = tiny.model("ddpd", sampler=sampler, order=[1, 0, 3, 2]).fit(X, max_steps=3)
    chain = model._one_site_chain()  # type: ignore[attr-defined]
    x = chain.start(20, generator=torch.Generator().manual_seed(0))
    for left in (1.0, 0.3):
        plan = chain.plan(5, x, None, torch.full((20,), left, dtype=torch.float64))
        assert float(plan.log_choice.exp()[:, 0].max()) == 0
        assert float(plan.log_choice.exp()[:, 1:].min()) > 0
        assert chain.varying == 3
    assert set(model.sample(100, seed=0)[:, 1]) == {1}


def test_the_law_of_the_published_sampler_is_refused_by_name() -> None:
    model = tiny.model("ddpd", sampler="adaptive").fit(tiny.spins(), max_steps=3)
    with pytest.raises(NotImplementedError, match=r"sampler='adaptive' is not known.*'planned' and .*'parallel' have"):
        exact.law(model)
    assert exact.law(model.set_params(sampler="planned")).sum() == pytest.approx(1)


@pytest.mark.parametrize("sampler", ["planned", "parallel"])
def test_large_spaces_have_no_law(sampler: str) -> None:
    model = tiny.model("ddpd", sampler=sampler).fit(tiny.spins(sites=16), max_steps=2)
    with pytest.raises(NotImplementedError, match="65,536 configurations"):
        exact.law(model)


def test_by_default_one_site_moves_per_step_if_there_are_steps_enough() -> None:
    X = tiny.spins(sites=5)
    X[:, 0] = 1  # four sites vary
    model = tiny.model("ddpd").fit(X, max_steps=3)
    for steps, sampler in ((6, "planned"), (5, "parallel")):
        drawn = model.set_params(sampler=None, sampling_steps=steps).sample(50, seed=0)
        np.testing.assert_array_equal(drawn, model.set_params(sampler=sampler).sample(50, seed=0))


@pytest.mark.parametrize("value", ["gillespie", "", 1])
def test_samplers_are_checked_before_and_after_the_fit(value: Any) -> None:
    with pytest.raises(ValueError, match=f"sampler must be .*{value}"):
        tiny.model("ddpd", sampler=value).fit(tiny.spins(), max_steps=2)
    model = tiny.model("ddpd").fit(tiny.spins(), max_steps=2)
    with pytest.raises(ValueError, match="sampler must be"):
        model.set_params(sampler=value).sample(2)


@pytest.mark.parametrize("steps", [0, 2.5])
def test_steps_are_checked_after_the_fit_too(steps: object) -> None:
    model = tiny.model("ddpd").fit(tiny.spins(), max_steps=2)
    assert model.set_params(sampling_steps=1).sample(3).shape == (3, 3)
    with pytest.raises(ValueError, match=f"sampling_steps must be .*{steps}"):
        model.set_params(sampling_steps=steps).sample(2)


@pytest.mark.parametrize("steps", [1, 24])
@pytest.mark.parametrize("sampler", ["planned", "adaptive", "parallel"])
def test_labels_reach_both_networks(sampler: str, steps: int) -> None:
    """One site that is its label: the planner sees noise, and the denoiser what it was, by the label alone."""
    y = np.arange(200) % 2
    model = tiny.model("ddpd", sampler=sampler, sampling_steps=steps, training__learning_rate=0.05)
    model.fit(y[:, None], y, max_steps=150)
    for label in (0, 1):
        assert (model.sample(500, y=label, seed=0) == label).mean() > 0.95


@pytest.mark.parametrize("sampler", ["planned", "adaptive"])
def test_a_trajectory_tells_what_each_site_may_become(sampler: str) -> None:
    """In every step but the last at most one site changes, so that of three sites two are expected to stay."""
    model = tiny.model("ddpd", sampler=sampler, sampling_steps=12).fit(tiny.spins(), max_steps=20)
    chain = model.trajectory(50, seed=2)
    np.testing.assert_array_equal(chain[-1], model.sample(50, seed=2))
    changed = (chain.tokens[1:] != chain.tokens[:-1]).sum(-1)
    assert changed[:-1].max() == 1
    stays = np.take_along_axis(chain.laws, chain.tokens[:-1, ..., None].astype(int), -1)[..., 0]
    assert (stays[:-1].sum(-1) >= 2 - 1e-5).all()


def test_both_networks_count_for_the_memory_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("ddpd", sampling_steps=5).fit(tiny.spins(), max_steps=2)
    one = 48 * 3 * 2 + 16 * 8  # of a network of width 8 on three sites of two states
    seen: list[int] = []
    model.objective_.network.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[1])))  # type: ignore[attr-defined]
    monkeypatch.setattr(batching, "MEMORY_BUDGET", 4 * one)
    model.elbo(tiny.spins(5), seed=1, draws=2)
    assert max(seen) == 2
    seen.clear()
    for sampler in ("planned", "adaptive", "parallel"):
        assert model.set_params(sampler=sampler).sample(5, seed=0).shape == (5, 3)
    assert sorted(set(seen)) == [1, 2]
