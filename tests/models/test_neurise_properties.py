"""What holds for every small NeurISE model, whatever its space, noise, order and network."""

import itertools

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

import neurise
from neurise import exact


@st.composite
def models(draw: st.DrawFn, keep_probs: list[float]) -> neurise.NeurISE:
    """A model trained for a few steps, of any small shape, whose symbols are 10, 20, …"""
    sites, states = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 99))
    X = 10 * np.random.default_rng(seed).integers(1, states + 1, (12, sites))
    model = tiny.model(
        keep_prob=draw(st.sampled_from(keep_probs)),
        cycles=draw(st.integers(1, 3)),
        order=draw(st.permutations(range(sites))),
        network=draw(st.sampled_from(["site_mlp", "local_mlp"])),
        alphabet=[10 * (symbol + 1) for symbol in range(states)],
        training__learning_rate=0.05,
        training__batch_size=16,
    ).fit(X, max_steps=5, seed=seed)
    assert isinstance(model, neurise.NeurISE)
    return model


def configurations(model: neurise.NeurISE) -> np.ndarray:
    return np.array(
        list(itertools.product([10 * (s + 1) for s in range(model.space_.states)], repeat=model.space_.sites))
    )


@given(models([0.0, 0.3, 0.9]))
@settings(max_examples=25, deadline=None)
def test_the_law_is_a_law_and_samples_have_known_symbols(model: neurise.NeurISE) -> None:
    law = exact.law(model).numpy()
    assert law.shape == (model.space_.size,)
    assert (law >= 0).all()
    # Every step multiplies by kernels that are normalised in float64: twelve steps lose a few units of 2^-52 each.
    assert law.sum() == pytest.approx(1, abs=1e-12)
    drawn = model.sample(200, seed=0)
    known = {tuple(row): probability for row, probability in zip(configurations(model).tolist(), law, strict=True)}
    assert all(known[tuple(row)] > 0 for row in drawn.tolist())


@given(models([0.0]))
@settings(max_examples=25, deadline=None)
def test_the_likelihood_is_the_log_of_the_law(model: neurise.NeurISE) -> None:
    law = exact.law(model).numpy()
    log_prob = model.log_prob(configurations(model))
    # Both multiply the same float32 log-softmaxes, at most four of them; each is off by no more than 10 · 2^-23.
    np.testing.assert_allclose(np.exp(log_prob), law, atol=5e-6)
    assert ((law == 0) == (log_prob == -np.inf)).all()


@given(models([0.0]), st.data())
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_does_not_matter_to_the_likelihood(model: neurise.NeurISE, data: st.DataObject) -> None:
    rows = configurations(model)
    order = data.draw(st.permutations(range(len(rows)))) if len(rows) <= 64 else list(reversed(range(len(rows))))
    np.testing.assert_allclose(model.log_prob(rows[order]), model.log_prob(rows)[order], atol=5e-6)
