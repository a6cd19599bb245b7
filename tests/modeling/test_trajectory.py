"""Trajectories: the same rows as ``sample``, told step by step, with the laws that they were drawn from."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch

import neurise
from neurise import exact
from neurise.space import Space

SPACE = Space(sites=3, states=4)
FLOAT32 = 2e-6
"""What probabilities that are stored in float32 and computed in another order may differ by."""
CHAINS: dict[str, dict[str, Any]] = {
    "hard": {},
    "reversed": {"order": (2, 1, 0)},
    "two cycles": {"cycles": 2},
    "soft": {"keep_prob": 0.4, "cycles": 2},
    "part of a cycle": {"keep_prob": 0.4, "chain__steps": 5},
    "masked": {"chain__kind": "masked_round_robin"},
    "softly masked": {"chain__kind": "masked_round_robin", "keep_prob": 0.5, "cycles": 2},
    "sweeps": {"corrector__clean": 0.3, "corrector__sweeps": 2},
    "sweeps on the way": {"corrector__clean": 0.3, "corrector__anytime": True, "keep_prob": 0.4, "cycles": 2},
    "orders": {"architecture__orders": 3},
    "rows": {"network": "causal"},
}
ON_THE_WAY = {"sweeps on the way": {0: 1, 4: 2}}


@functools.cache
def fitted(name: str, kind: str = "neurise", *, labels: bool = False) -> Any:
    X = np.random.default_rng(0).integers(4, size=(120, 3))
    X[:80, 1] = X[:80, 0]
    y = np.where(X[:, 0] > 1, "up", "down") if labels else None
    return tiny.model(kind, training__learning_rate=0.02, **CHAINS.get(name, {})).fit(X, y, max_steps=30)


@pytest.mark.parametrize("labels", [False, True], ids=["no labels", "labels"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_last_state_is_what_sample_draws(name: str, labels: bool) -> None:
    model = fitted(name, labels=labels)
    options = {"seed": 3, "sweeps": ON_THE_WAY.get(name)}
    chain = model.trajectory(40, **options)
    # Rounding may turn a draw whose uniform number is within 1e-6 of a threshold: of 40 × 12 draws, none is expected.
    np.testing.assert_array_equal(chain[-1], model.sample(40, **options))
    assert chain.tokens.shape == (len(chain.times), 40, 3)
    assert chain.times[-1] == 0
    assert chain.sites.shape == chain.laws.shape[:2] == (len(chain) - 1, 40)


@pytest.mark.parametrize("kind", ["d3pm", "ddpd", "dfm", "md4", "sedd", "udlm"])
def test_chains_that_move_all_sites_end_where_sample_does(kind: str) -> None:
    model = fitted("", kind)
    chain = model.trajectory(20, seed=1)
    np.testing.assert_array_equal(chain[-1], model.sample(20, seed=1))
    assert chain.sites is None
    assert chain.laws.shape[:3] == (len(chain) - 1, 20, 3)
    np.testing.assert_allclose(chain.laws.sum(-1), 1, atol=FLOAT32)
    steps, rows, sites = np.indices(chain.tokens[1:].shape)
    assert (chain.laws[steps, rows, sites, chain.tokens[1:]] > 0).all()
    with pytest.raises(NotImplementedError, match="no forward noise"):
        model.noising(chain[-1])


def test_models_without_a_chain_say_so() -> None:
    model = tiny.model("independent").fit(tiny.spins())
    with pytest.raises(NotImplementedError, match="no steps to show"):
        model.trajectory(2)
    with pytest.raises(NotImplementedError, match="no forward noise"):
        model.noising(tiny.spins())


@pytest.mark.parametrize("name", [name for name in CHAINS if name not in ON_THE_WAY])
def test_a_step_changes_its_own_site_and_draws_what_can_be_drawn(name: str) -> None:
    chain = fitted(name).trajectory(30, seed=0)
    before, after = chain.tokens[:-1], chain.tokens[1:]
    steps, rows = np.indices(chain.sites.shape)
    elsewhere = np.ones_like(before, dtype=bool)
    elsewhere[steps, rows, chain.sites] = False
    assert (before == after)[elsewhere].all()
    assert (chain.laws[steps, rows, after[steps, rows, chain.sites]] > 0).all()
    np.testing.assert_allclose(chain.laws.sum(-1), 1, atol=FLOAT32)


@pytest.mark.parametrize("name", ["hard", "reversed", "two cycles", "soft", "rows"])
def test_conditionals_are_those_of_the_model_and_the_kernel_is_bayes(name: str) -> None:
    model = fitted(name)
    chain, keep = model.trajectory(15, seed=5), model.keep_prob
    for step, time in enumerate(chain.times[1:]):
        site = int(chain.sites[step, 0])
        learnt = model.conditional(chain[step], site, step=int(time))
        np.testing.assert_allclose(chain.conditionals[step], learnt, atol=FLOAT32)
        seen = chain.tokens[step][:, site]
        likelihood = np.full((15, 4), (1 - keep) / 4)
        likelihood[np.arange(15), seen] += keep
        bayes = likelihood * learnt
        np.testing.assert_allclose(chain.laws[step], bayes / bayes.sum(1, keepdims=True), atol=FLOAT32)


@pytest.mark.parametrize("name", ["hard", "two cycles", "soft"])
def test_states_on_the_way_follow_the_enumerated_law(name: str) -> None:
    """Push the uniform law through the kernels of the steps, written out from ``conditional``, and compare every state."""
    n, model = 20_000, fitted(name)
    chain, everything = model.trajectory(n, seed=0), np.array(oracles.configurations(SPACE))
    law, places = np.full(SPACE.size, 1 / SPACE.size), 4 ** np.arange(3)[::-1]
    for step, time in enumerate(chain.times[1:]):
        site, pushed = int(chain.sites[step, 0]), np.zeros(SPACE.size)
        learnt = model.conditional(everything, site, step=int(time))
        likelihood = np.full((SPACE.size, 4), (1 - model.keep_prob) / 4)
        likelihood[np.arange(SPACE.size), everything[:, site]] += model.keep_prob
        kernel = learnt * likelihood / (learnt * likelihood).sum(1, keepdims=True)
        for token in range(4):
            moved = everything.copy()
            moved[:, site] = token
            np.add.at(pushed, moved @ places, law * kernel[:, token])
        law = pushed
        found = np.bincount(chain.tokens[step + 1].astype(int) @ places, minlength=SPACE.size) / n
        assert oracles.tv(found, law) <= oracles.sampled_tv_tolerance(law, n)
    np.testing.assert_allclose(law, exact.law(model).numpy(), atol=FLOAT32)


@pytest.mark.parametrize("name", ["hard", "reversed", "soft", "softly masked", "sweeps"])
@pytest.mark.parametrize("labels", [False, True], ids=["no labels", "labels"])
def test_clamped_chains_end_in_the_rows_of_sample(name: str, labels: bool) -> None:
    model = fitted(name, labels=labels)
    clamp = np.ma.MaskedArray([1, 0, 3], [True, False, True])
    chain = model.trajectory(25, clamp=clamp, seed=2)
    np.testing.assert_array_equal(chain[-1], model.sample(25, clamp=clamp, seed=2))
    before, after = chain.tokens[:-1], chain.tokens[1:]
    assert ((before != after).sum(-1) <= 1).all()
    assert (chain[-1][:, 1] == 0).all()


def test_particles_that_were_replaced_leave_no_trace() -> None:
    """Sites that follow each other closely, and the one that is generated last is held: most particles are replaced."""
    X = np.repeat(np.random.default_rng(0).integers(4, size=(200, 1)), 3, axis=1)
    model = tiny.model(training__learning_rate=0.1).fit(X, max_steps=60)
    clamp = np.ma.MaskedArray([3, 0, 0], [False, True, True])
    chain = model.trajectory(25, clamp=clamp, seed=2)
    assert model.effective_samples_ < 0.5 * 1024
    np.testing.assert_array_equal(chain[-1], model.sample(25, clamp=clamp, seed=2))


def test_clamped_chains_follow_the_law_given_what_is_given() -> None:
    n, model = 20_000, fitted("soft")
    chain = model.trajectory(n, clamp=np.ma.MaskedArray([1, 0, 0], [False, True, True]), seed=0)
    law = exact.law(model).numpy().reshape(4, 16)[1]
    law /= law.sum()
    found = np.bincount(chain.tokens[-1].astype(int)[:, 1:] @ [4, 1], minlength=16) / n
    worth = 1 / (1 / n + 1 / model.effective_samples_)
    assert oracles.tv(found, law) <= oracles.sampled_tv_tolerance(law, worth)


@pytest.mark.parametrize("name", ["hard", "reversed", "soft", "masked", "softly masked"])
def test_noising_is_the_forward_chain(name: str) -> None:
    model, n = fitted(name), 4_000
    X = np.tile([3, 0, 2], (n, 1))
    chain = model.noising(X, seed=0)
    np.testing.assert_array_equal(chain[0], X)
    assert chain.times.tolist() == list(range(len(chain)))
    masks, keep = "masked" in name, model.keep_prob
    expected = np.zeros((n, 5 if masks else 4))
    for step in range(len(chain) - 1):
        site = int(chain.sites[step, 0])
        assert site == model.order_[step % 3]
        before = chain.tokens[step][:, site]
        expected[:] = 0 if masks else (1 - keep) / 4
        expected[np.arange(n), before] += keep
        if masks:
            expected[:, 4] += 1 - keep
        np.testing.assert_allclose(chain.laws[step], expected, atol=FLOAT32)
        found = np.bincount(chain.tokens[step + 1][:, site], minlength=expected.shape[1]) / n
        mean = expected.mean(0)
        assert oracles.tv(found, mean) <= oracles.sampled_tv_tolerance(mean, n)


def test_states_are_in_the_users_symbols_and_masks_are_masked() -> None:
    X = np.array(list("abc"))[np.random.default_rng(0).integers(3, size=(50, 4))]
    plain = tiny.model().fit(X, max_steps=3).trajectory(5, seed=0)
    assert plain.states.shape == (5, 5, 4)
    assert set(plain.states.flat) <= set("abc")
    masked = tiny.model(chain__kind="masked_round_robin").fit(X, max_steps=3).trajectory(5, seed=0)
    assert masked.states.mask[0].all()
    assert not masked.states.mask[-1].any()
    np.testing.assert_array_equal(masked.states[-1].data, masked[-1])


def test_columns_of_a_table_and_256_symbols_can_be_followed() -> None:
    rng = np.random.default_rng(0)
    rows = {"sex": ["f", "m"] * 30, "age": rng.integers(5, size=60).tolist()}
    pandas = pytest.importorskip("pandas")
    frame = tiny.model().fit(pandas.DataFrame(rows), max_steps=3).trajectory(5, seed=0)
    assert list(frame[-1].columns) == ["sex", "age"]
    X = rng.permutation(np.arange(512) % 256).reshape(-1, 2)
    chain = tiny.model(chain__kind="masked_round_robin").fit(X, max_steps=2).trajectory(3, seed=0)
    assert chain.tokens[0].max() == 256
    assert chain.laws.shape == (2, 3, 257)


def test_what_is_asked_for_is_checked() -> None:
    model = fitted("hard")
    with pytest.raises(ValueError, match="n must be"):
        model.trajectory(0)
    with pytest.raises(ValueError, match="rows for n=3"):
        model.trajectory(3, start=[[0, 1, 2]])
    with pytest.raises(Exception, match="not fitted"):
        neurise.NeurISE().trajectory(2)
    start = np.array([[0, 1, 2], [3, 3, 3]])
    np.testing.assert_array_equal(model.trajectory(2, start=start, seed=0)[0], start)
    assert torch.is_grad_enabled()
