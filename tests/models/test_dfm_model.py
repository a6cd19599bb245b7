"""Discrete flow matching as a model: its parameters, its data, its draws."""

import math
from typing import Any

import chi_square
import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise.models.dfm import SOURCES
from neurise.rows import Batch
from neurise.space import Space

SPACE = Space(sites=2, states=3)
ROWS = SPACE.configurations().numpy()[np.random.default_rng(0).integers(0, 9, 200) // 2]


def fitted(X: np.ndarray = ROWS, y: Any = None, **params: Any) -> neurise.Model:
    return tiny.model("dfm", training__learning_rate=0.05, sampling_steps=8, **params).fit(X, y, max_steps=30)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", "masks"),
        ("source", None),
        ("exponent", 0),
        ("exponent", -2.0),
        ("exponent", math.nan),
        ("exponent", math.inf),
        ("exponent", "2"),
        ("loss", "kl"),
        ("jump", "tau"),
        ("grid", "kappa"),
        ("sampling_steps", 0),
        ("sampling_steps", 2.5),
        ("width", 0),
    ],
)
def test_an_impossible_argument_is_shown(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        tiny.model("dfm", **{name: value}).fit(ROWS, max_steps=2)


@pytest.mark.parametrize(("name", "value"), [("sampling_steps", 0), ("jump", "tau"), ("grid", "kappa")])
def test_how_to_sample_may_be_chosen_after_the_fit_and_is_checked_then(name: str, value: Any) -> None:
    model = fitted()
    assert model.set_params(sampling_steps=1, jump="euler", grid="time").sample(3).shape == (3, 2)
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        model.set_params(**{name: value}).sample(3)


@pytest.mark.parametrize("jump", ["hazard", "euler"])
@pytest.mark.parametrize("loss", ["cross_entropy", "generalised_kl"])
@pytest.mark.parametrize("source", SOURCES)
def test_samples_follow_the_exact_law(source: str, loss: str, jump: str) -> None:
    model = fitted(source=source, loss=loss, jump=jump, alphabet=[0, 1, 2])
    law = neurise.exact.law(model).numpy()
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert law.max() > 1.5 / 9  # something was learnt
    drawn = model.sample(20_000, seed=0)
    chi_square.assert_drawn_from(drawn @ [3, 1], law)


@pytest.mark.parametrize("loss", ["cross_entropy", "generalised_kl"])
@pytest.mark.parametrize("source", SOURCES)
def test_losses_are_compared_by_the_same_score(source: str, loss: str) -> None:
    model = fitted(source=source, loss=loss)
    objective = model.objective_
    x = torch.tensor(ROWS)
    drawn = objective.draw(Batch(x), generator=torch.Generator().manual_seed(0))
    v, noised, _, clean = drawn
    assert torch.equal(clean, x)
    kappa = 1 - v.double() ** 2
    logits = objective.network(1 - kappa.sqrt(), noised, None).double()
    expected = torch.zeros(len(x), dtype=torch.float64)
    for row in range(len(x)):
        for site in range(2):
            held, token = int(noised[row, site]), int(x[row, site])
            weight = logits[row, site].exp()
            if source == "uniform":
                weight = weight * ((1 - kappa[row]) / 3 + kappa[row] * (torch.arange(3) == held))
            if source == "uniform" or held == 3:
                expected[row] -= (weight[token] / weight.sum()).log()
    # Logits below 20 in float32, twice: 4 · 10^-6 each.
    torch.testing.assert_close(objective.scores(objective.network, drawn).double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("loss", ["cross_entropy", "generalised_kl"])
@pytest.mark.parametrize("source", SOURCES)
def test_times_near_the_data_give_finite_losses_and_gradients(source: str, loss: str) -> None:
    model = fitted(source=source, loss=loss)
    objective = model.objective_
    drawn = objective.draw(Batch(torch.tensor(ROWS)), generator=torch.Generator().manual_seed(0))
    for near in (1e-12, 1e-6, 1.0):
        network = objective.network.requires_grad_(True)
        losses = objective.losses(network, drawn._replace(v=torch.full((len(ROWS),), near)))
        losses.sum().backward()
        assert bool(losses.isfinite().all())
        gradients = [parameter.grad for parameter in network.parameters() if parameter.numel()]
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@pytest.mark.parametrize("source", SOURCES)
def test_256_symbols_and_labels(source: str) -> None:
    X = np.arange(512).reshape(256, 2) % 256
    X[:, 1] = X[::-1, 1]
    model = fitted(X, np.arange(256) % 2, source=source, alphabet=range(256))
    drawn = model.sample(50, seed=0)
    assert drawn.shape == (50, 2)
    assert 0 <= drawn.min() <= drawn.max() <= 255
    assert np.isfinite(model.elbo(X[:5], seed=0, draws=2).value).all()


def test_a_token_that_took_the_place_of_a_mask_stays() -> None:
    reverse = fitted(source="mask")._chain()  # type: ignore[attr-defined]
    x = torch.tensor([[0, 3], [3, 2]], dtype=torch.int16)
    for step in range(8):
        law = reverse.log_step(step, x, None).exp()
        assert law[0, 0].tolist() == [1, 0, 0, 0]
        assert law[1, 1].tolist() == [0, 0, 1, 0]
        assert float(law[0, 1, :3].min()) > 0


def test_the_mask_is_never_drawn_by_an_untrained_network_either() -> None:
    drawn = tiny.model("dfm", sampling_steps=3).fit(ROWS, max_steps=1).sample(1000, seed=0)
    assert set(np.unique(drawn)) <= {0, 1, 2}


def test_fixed_sites_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="DFM cannot hold sites fixed"):
        fitted().sample(5, clamp=np.ma.array([1, 0], mask=[False, True]))
