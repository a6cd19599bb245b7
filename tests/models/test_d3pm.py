"""D3PM: with the truth in the place of the network its sampler finds the law, and its losses are minimal there."""

import itertools
from typing import Any

import d3pm_cases as cases
import numpy as np
import oracles
import pytest
import tiny
import torch

import neurise
from neurise import exact
from neurise.models.d3pm import Example
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space

LOSSES = {"bound": (1.0, 0.0), "cross-entropy": (0.0, 1.0), "bound + λ CE": (1.0, 0.001), "CE + λ bound": (0.001, 1.0)}


def law_of(space: Space) -> np.ndarray:
    """A law with full support and strong dependence."""
    law = oracles.random_law(space, seed=3) + 0.2 / space.size
    return law / law.sum()


def tv_at(timesteps: int, space: Space, noise: str, posterior: str = "exact") -> float:
    law = law_of(space)
    return oracles.tv(parallel.law(cases.true_chain(law, space, noise, timesteps, posterior)).numpy(), law)


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
def test_with_the_true_posterior_the_error_falls_like_one_over_the_number_of_steps(space: Space, noise: str) -> None:
    errors = [tv_at(timesteps, space, noise) for timesteps in (16, 64, 256)]
    assert errors[0] < 0.1
    for before, after in itertools.pairwise(errors):
        assert 3 < before / after < 5  # four times the steps; 1/T has corrections of the order 1/T²
    assert errors[-1] < 0.003


@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
def test_under_uniform_noise_the_published_posterior_never_gets_there(space: Space) -> None:
    errors = [tv_at(timesteps, space, "uniform", "published") for timesteps in (16, 64, 256)]
    assert min(errors) > 0.05
    assert errors[-1] > 0.9 * errors[-2]  # it has levelled out
    assert errors[-1] > 20 * tv_at(256, space, "uniform")


def test_under_absorbing_noise_both_posteriors_are_one() -> None:
    space = cases.SPACES["2 sites, 3 states"]
    assert tv_at(16, space, "absorbing", "published") == tv_at(16, space, "absorbing")


def expected_loss(chain: Any, noise: str, logits: torch.Tensor, weights: tuple[float, float]) -> torch.Tensor:
    """Mean of the objective's losses over all x_0, t and x_t; logits are a table (T, configurations, sites, states)."""
    space, timesteps = chain.space, chain.num_steps
    x_0, x_t = cases.every_pair(space, chain.tokens)
    pmf = torch.from_numpy(law_of(space))[space.index(x_0)]
    place = Space(space.sites, chain.tokens).index(x_t)
    total = torch.zeros((), dtype=torch.float64)
    for t in range(1, timesteps + 1):
        mass = pmf * cases.forward_probability(noise, space, timesteps, t, x_0, x_t)
        possible = mass > 0
        shown = Example(torch.full((int(possible.sum()),), t), x_t[possible], None, x_0[possible])
        answers = logits[t - 1, place[possible]]
        losses = cases.objective(chain, *weights).losses(lambda *_, answers=answers: answers, shown)
        total = total + (mass[possible] * losses).sum() / timesteps
    return total


def true_logits(chain: Any) -> torch.Tensor:
    x = Space(chain.space.sites, chain.tokens).configurations()
    times = torch.arange(1, chain.num_steps + 1) / chain.num_steps
    # Under absorbing noise a wholly shown state cannot be at the last time: any answer will do.
    return torch.stack([chain.denoiser.network(t[None], x) for t in times]).nan_to_num(0.0, neginf=-50.0)


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
@pytest.mark.parametrize("weights", LOSSES.values(), ids=LOSSES)
def test_every_loss_is_minimal_at_the_true_posterior(space: Space, noise: str, weights: tuple[float, float]) -> None:
    chain = cases.true_chain(law_of(space), space, noise, 4)
    logits = true_logits(chain).requires_grad_()
    least = expected_loss(chain, noise, logits, weights)
    least.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-10  # rounding: a sum of some hundred terms below one
    generator = torch.Generator().manual_seed(0)
    for scale in (0.01, 0.1, 1.0, 5.0):
        noisy = logits.detach() + scale * torch.randn(logits.shape, generator=generator, dtype=torch.float64)
        # The Hessian at the minimum is that of a mean of cross-entropies; 10^-5 of it would still be seen.
        assert expected_loss(chain, noise, noisy, weights) > least + 1e-5 * min(weights[0] + weights[1], 1) * scale**2


def test_with_the_published_posterior_the_two_terms_disagree() -> None:
    space = cases.SPACES["2 sites, 3 states"]
    chain = cases.true_chain(law_of(space), space, "uniform", 4, "published")
    slopes = []
    for weights in [(1.0, 0.0), (0.0, 1.0)]:
        logits = true_logits(chain).requires_grad_()
        expected_loss(chain, "uniform", logits, weights).backward()
        assert logits.grad is not None
        slopes.append(float(logits.grad.abs().max()))
    assert slopes[0] > 1e-3
    assert slopes[1] < 1e-10


@pytest.mark.parametrize("noise", cases.NOISES)
def test_a_batch_covers_all_times_evenly_at_their_levels(noise: str) -> None:
    space, timesteps, each = Space(sites=5, states=3), 4, 20_000
    chain = cases.true_chain(law_of(space), space, noise, timesteps)
    x = torch.full((timesteps * each, space.sites), 2, dtype=torch.uint8)
    drawn = cases.objective(chain, 1.0, 0.0).draw(Batch(x), generator=torch.Generator().manual_seed(0))
    assert torch.bincount(drawn.t).tolist() == [0, *[each] * timesteps]
    running = cases.kernels(noise, space.states, timesteps)[1]
    for t in range(1, timesteps + 1):
        kept = float((drawn.x_t[drawn.t == t] == 2).double().mean())
        # A share of 10^5 independent sites has a standard deviation of at most 0.0016.
        assert kept == pytest.approx(running[t][2, 2], abs=0.01)


def test_the_name_of_a_loss_says_which_term_leads() -> None:
    for loss, weights in {"bound": (1.0, 0.25), "cross_entropy": (0.25, 1.0)}.items():
        objective = tiny.model("d3pm", loss=loss, auxiliary_weight=0.25).fit(tiny.spins(), max_steps=1).objective_
        assert (objective.bound_weight, objective.ce_weight) == weights


@pytest.mark.parametrize("noise", cases.NOISES)
def test_draws_follow_the_written_out_law(noise: str) -> None:
    rows = np.random.default_rng(0).choice(3, size=(200, 2), p=[0.6, 0.3, 0.1])
    rows[:, 1] = np.where(np.arange(200) % 5 > 0, rows[:, 0], rows[:, 1])
    model = tiny.model("d3pm", noise=noise, timesteps=12, training__learning_rate=0.02).fit(rows, max_steps=60)
    law, n = exact.law(model).numpy(), 20_000
    assert law.sum() == pytest.approx(1, abs=1e-12)
    drawn = oracles.empirical(Space(2, 3), torch.tensor(model.sample(n, seed=0)))
    assert oracles.tv(drawn, law) < oracles.sampled_tv_tolerance(law, n)


@pytest.mark.parametrize(("noise", "loss", "posterior"), [
    ("uniform", "bound", "exact"), ("uniform", "cross_entropy", "exact"), ("uniform", "bound", "published"),
    ("absorbing", "bound", "exact"), ("absorbing", "cross_entropy", "exact"),
])  # fmt: skip
def test_every_option_learns(noise: str, loss: str, posterior: str) -> None:
    rows = np.repeat([[0, 0, 1], [1, 1, 0], [1, 0, 0]], [100, 80, 20], axis=0)
    params = {
        "noise": noise,
        "loss": loss,
        "posterior": posterior,
        "timesteps": 20,
        "width": 32,
        "training__learning_rate": 0.02,
    }
    model = tiny.model("d3pm", **params).fit(rows, max_steps=200)
    first, last = model.history_[0]["validation"], min(record["validation"] for record in model.history_)
    assert last < first
    target = np.zeros(8)
    target[[1, 6, 4]] = [0.5, 0.4, 0.1]
    # Independent sites would stay 0.4 away: each pair of neighbours agrees in no more than half of their draws.
    assert oracles.tv(exact.law(model).numpy(), target) < 0.2


@pytest.mark.parametrize(("params", "message"), [
    ({"noise": "gaussian"}, "unknown noise 'gaussian'"),
    ({"noise": "round_robin"}, "'round_robin' noises one site at a time, and D3PM all at once"),
    ({"posterior": "prior"}, "unknown posterior 'prior'; there are: exact, published"),
    ({"loss": "screening"}, "unknown loss 'screening'; there are: bound, cross_entropy"),
    ({"timesteps": 0}, "timesteps must be a positive whole number, got 0"),
    ({"timesteps": 2.5}, "timesteps must be a positive whole number, got 2.5"),
    ({"auxiliary_weight": -1}, "auxiliary_weight must be a number, not negative, got -1"),
    ({"auxiliary_weight": float("nan")}, "auxiliary_weight must be a number, not negative, got nan"),
])  # fmt: skip
def test_parameters_that_cannot_be_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neurise.D3PM(**params).fit(tiny.spins(), max_steps=1)


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("timesteps", [1, 2.0])
def test_a_single_step_is_enough_to_run(noise: str, timesteps: Any) -> None:
    model = tiny.model("d3pm", noise=noise, timesteps=timesteps).fit(tiny.spins(), max_steps=3)
    assert model.sample(10, seed=0).shape == (10, 3)
