"""UDLM with the true prediction in the place of its network: its bound is tight, and its sampler finds the law."""

import math

import numpy as np
import oracles
import pytest
import sedd_truth
import tiny
import torch
from denoisers import ExactPosterior
from torch import Tensor, nn

import neurise
from neurise.modeling.joint import Denoiser
from neurise.models._dfm.objective import PosteriorObjective
from neurise.models._dfm.path import Path
from neurise.models._sedd.bound import elbo
from neurise.models._sedd.schedule import LogLinear
from neurise.models.sedd import ScoreChain
from neurise.models.udlm import UDLM, PredictedScore
from neurise.noise.uniform import Uniform
from neurise.sampling import parallel
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
DRAWS = 200


class ExactPrediction(nn.Module):
    """log P(x_0,i | x_t,-i): the true posterior, less what a site's own token says."""

    def __init__(self, law: np.ndarray, space: Space) -> None:
        super().__init__()
        self.posterior = ExactPosterior(torch.tensor(law), space, Uniform(space), lambda t: 1 - 0.999 * t)

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        t = t.clamp(min=1e-6)  # a kernel without noise has zeros, and the prediction is continuous there
        kernel = self.posterior.noise.kernel((1 - 0.999 * t.double()).expand(len(x)))
        log_p: Tensor = self.posterior(t, x) - kernel[torch.arange(len(x))[:, None], x.long()].log()
        return log_p


def exact(law: np.ndarray, space: Space) -> Denoiser:
    return Denoiser(ExactPrediction(law, space), Uniform(space), torch.full((space.sites,), -1), width=1)


@each_space
@pytest.mark.parametrize("sigma", [1e-3, 0.4, 5.0])
def test_the_entropy_is_the_published_bound(space: Space, sigma: float) -> None:
    """The paper's formula, by loops, for random predictions."""
    score, p, alpha = PredictedScore(Uniform(space)), space.states, math.exp(-sigma)
    every = space.configurations()
    x, x_0 = every.repeat_interleave(len(every), 0), every.repeat(len(every), 1)
    level = torch.full((len(x),), sigma, dtype=torch.float64)
    output = torch.randn(len(x), space.sites, p, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = score.entropy(output, level, x, x_0)
    prediction = output.softmax(-1)
    for row in range(len(x)):
        for site in range(space.sites):
            here = int(x[row, site])
            said = [p * alpha * float(part) + 1 - alpha for part in prediction[row, site]]
            true = [p * alpha * (int(x_0[row, site]) == y) + 1 - alpha for y in range(p)]
            terms = sum(
                true[y] / true[here] * math.log(said[here] * true[y] / (said[y] * true[here])) for y in range(p)
            )
            assert float(found[row, site]) == pytest.approx((p / said[here] - p / true[here] + terms) / p, rel=1e-9)


@each_space
def test_four_times_the_steps_come_four_times_as_near(space: Space) -> None:
    law = oracles.random_law(space, seed=0)

    def distance(steps: int) -> float:
        chain = ScoreChain(exact(law, space), steps + 1, PredictedScore(Uniform(space)), LogLinear(), "analytic")
        return oracles.tv(parallel.law(chain).numpy(), law)

    # As for SEDD, whose scores are the same where both are exact: c/N, and up to 10⁻³ sites/2 at the start.
    assert 3.5 < distance(16) / distance(64) < 5.1
    assert distance(64) < 0.01


@each_space
def test_the_steps_are_those_of_the_exact_score(space: Space) -> None:
    law = oracles.random_law(space, seed=1)
    ours = ScoreChain(exact(law, space), 9, PredictedScore(Uniform(space)), LogLinear(), "analytic")
    theirs = sedd_truth.exact_chain(law, space, "uniform", "loglinear", "analytic", 8)
    for step in range(9):
        x = space.configurations()
        # Where noise of 10⁻⁵ is left, a ratio is a difference of numbers that differ by as much.
        torch.testing.assert_close(
            ours.log_step(step, x, None).exp(), theirs.log_step(step, x, None).exp(), rtol=0, atol=1e-9
        )


@each_space
def test_the_bound_is_tight_and_above_that_of_uniform_flow_matching(space: Space) -> None:
    law = 0.5 * oracles.random_law(space, seed=4) + 0.5 / space.size
    x = space.configurations().repeat(DRAWS, 1)
    parts = exact(law, space), PredictedScore(Uniform(space)), LogLinear()

    def estimate(values: Tensor) -> tuple[np.ndarray, np.ndarray]:
        table = values.numpy().reshape(DRAWS, space.size)
        return table.mean(0), table.std(0, ddof=1) / DRAWS**0.5

    mean, error = estimate(elbo(*parts, x, None, generator=torch.Generator().manual_seed(0)))
    kernel = sedd_truth.forward("uniform", space, sedd_truth.total_noise("loglinear", 1.0))
    expected = np.log(law) - kernel @ np.log(law @ kernel * space.size)  # less what is lost at the start of the chain
    assert (np.abs(mean - expected) < 1e-5 + 5 * error).all()
    assert error.max() < 0.2
    flow = PosteriorObjective(FlowPrediction.denoiser(law, space), Path("uniform", 1.0), "generalised_kl")
    loose, spread = estimate(flow.bound(x, None, generator=torch.Generator().manual_seed(1)))
    assert law @ (mean - loose) > 0.05 + 5 * math.sqrt(law**2 @ (error**2 + spread**2))


class FlowPrediction(ExactPrediction):
    """The same prediction at the times of a linear path, κ = 1 − t."""

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        return super().forward(t / 0.999, x)

    @classmethod
    def denoiser(cls, law: np.ndarray, space: Space) -> Denoiser:
        return Denoiser(cls(law, space), Uniform(space), torch.full((space.sites,), -1), width=1)


def test_a_trained_network_has_a_bound_below_its_likelihood() -> None:
    model = tiny.model("udlm", sampling_steps=100, training__learning_rate=0.02).fit(tiny.spins(200), max_steps=60)
    repeats, rows = 100, np.array([[-1, -1, 1], [1, -1, 1], [1, 1, -1]])
    values = model.elbo(np.tile(rows, (repeats, 1)), seed=0, draws=2).value.reshape(repeats, 3)
    bound, error = values.mean(0), values.std(0) / repeats**0.5
    log_law = np.log(neurise.exact.law(model).numpy()[[1, 5, 6]])
    assert (bound - 5 * error < log_law + 0.02).all()  # of what one step loses, 100 steps leave about 1/100
    assert bound == pytest.approx(log_law, abs=0.3)


@pytest.mark.parametrize("states", [1, 2, 256])
def test_any_number_of_states(states: int) -> None:
    X = (np.arange(states * 2).reshape(-1, 2) % states).repeat(4, axis=0)
    model = tiny.model("udlm", sampling_steps=3).fit(X, max_steps=3)
    assert set(np.unique(model.sample(200, seed=0))) <= set(range(states))
    assert np.isfinite(model.elbo(X[:2], seed=0).value).all()


@pytest.mark.parametrize("steps", [0, 2.5, "many"])
def test_impossible_steps_are_refused_before_and_after_the_fit(steps: object) -> None:
    with pytest.raises(ValueError, match=f"sampling_steps must be .*{steps}"):
        tiny.model("udlm", sampling_steps=steps).fit(tiny.spins())
    model = tiny.model("udlm").fit(tiny.spins(), max_steps=2)
    assert isinstance(model, UDLM)
    with pytest.raises(ValueError, match=f"sampling_steps must be .*{steps}"):
        model.set_params(sampling_steps=steps).sample(2)
