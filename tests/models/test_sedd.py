"""SEDD against enumeration: with the true score the sampler's law is the target and the loss is minimal."""

import numpy as np
import oracles
import pytest
import sedd_truth
import torch

from neurise.models.sedd import ScoreEntropy
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_noise = pytest.mark.parametrize("noise", ["absorbing", "uniform"])
each_schedule = pytest.mark.parametrize("schedule", ["loglinear", "geometric"])
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])


@each_noise
@each_schedule
@each_space
@pytest.mark.parametrize("sampler", ["analytic", "euler"])
def test_four_times_the_steps_come_four_times_as_near(noise: str, schedule: str, space: Space, sampler: str) -> None:
    pmf = oracles.random_law(space, seed=0)
    laws = [
        parallel.law(sedd_truth.exact_chain(pmf, space, noise, schedule, sampler, steps)).numpy() for steps in (16, 64)
    ]
    coarse, fine = (oracles.tv(law, pmf) for law in laws)
    assert laws[1].sum() == pytest.approx(1, abs=1e-12)  # no mask is left
    # First order: a factor of 4 + O(1/16). Log-linear uniform noise starts up to 3 · 10⁻³ / 2 from its end, and jumps that
    # are cut off at one cost 16 steps a little more.
    assert 3.5 < coarse / fine < 5.1
    assert fine < 0.01


@each_noise
@each_schedule
@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_with_one_site_every_analytic_step_is_exact(noise: str, schedule: str, states: int, steps: int) -> None:
    space = Space(1, states)
    pmf = oracles.random_law(space, seed=1)
    chain = sedd_truth.exact_chain(pmf, space, noise, schedule, "analytic", steps)
    x = torch.arange(chain.tokens)[:, None]

    def noised(step: int) -> np.ndarray:
        t = 1e-5 + (1 - 1e-5) * step / steps
        return pmf @ sedd_truth.forward(noise, space, sedd_truth.total_noise(schedule, t))

    for step in reversed(range(chain.num_steps)):
        kernel = chain.log_step(step, x, None)[:, 0].exp().numpy()  # [before, after]
        before, after = noised(step), noised(step - 1) if step else np.pad(pmf, (0, chain.tokens - states))
        # Ratios are rounded to 10⁻¹⁶, and undoing noise of up to 20 makes that larger by e^20 = 5 · 10⁸.
        assert before @ kernel == pytest.approx(after, abs=1e-6)
    if noise == "absorbing":  # starting from masks alone costs nothing
        assert parallel.law(chain).numpy() == pytest.approx(pmf, abs=1e-12)


@each_noise
@each_space
@pytest.mark.parametrize("sigma", [1e-4, 0.3, 6.0])
def test_the_loss_is_minimal_at_the_true_score(noise: str, space: Space, sigma: float) -> None:
    pmf = oracles.random_law(space, seed=2)
    denoiser, score, _ = sedd_truth.parts(noise, "loglinear", space, torch.nn.Identity())
    kernel = sedd_truth.forward(noise, space, sigma)
    tokens, law, share = denoiser.noise.tokens, pmf @ kernel, 1 if noise == "absorbing" else 1 / space.states
    all_x = torch.cartesian_prod(*[torch.arange(tokens)] * space.sites)
    true = sedd_truth.ratios(law, tokens, space)

    def expected(shift: np.ndarray) -> float:
        """E of the score entropy over all x_0 and x_t."""
        total = 0.0
        for x_0, weight, row in zip(space.configurations(), pmf, kernel, strict=True):
            log_score = torch.tensor(np.log(true) + shift)
            log_score[torch.nn.functional.one_hot(all_x, tokens)[..., : space.states] > 0] = 0
            noise_level = torch.full((len(all_x),), sigma, dtype=torch.float64)
            entropy = score.entropy(log_score, noise_level, all_x, x_0.expand_as(all_x))
            total += weight * row @ entropy.sum(-1).numpy()
        return float(total)

    def counted(table: np.ndarray) -> np.ndarray:
        """Sum over the ratios that have a loss: at masked sites, or to another token."""
        x = all_x.numpy()
        other = x[..., None] != np.arange(space.states) if noise == "uniform" else (x == space.states)[..., None]
        return share * np.where(other, table, 0.0).sum((1, 2))

    # With r the ratio given x_0, s the true one, and r averaging to s: E[r log r] − s log s at s, by the entropy's convexity.
    least = -law @ counted(true * np.log(true))
    for weight, row in zip(pmf, kernel, strict=True):
        ratio = sedd_truth.ratios(row, tokens, space)
        least += weight * row @ counted(ratio * np.log(np.where(ratio > 0, ratio, 1)))
    assert expected(np.zeros_like(true)) == pytest.approx(least, rel=1e-9, abs=1e-12)

    shift = np.random.default_rng(0).normal(size=true.shape)
    excess = law @ counted(true * (np.expm1(shift) - shift))
    assert excess > 0
    assert expected(shift) == pytest.approx(least + excess, rel=1e-9)


@each_noise
@each_schedule
def test_training_draws_have_the_mean_of_the_integral(noise: str, schedule: str) -> None:
    space, n = Space(3, 2), 100_000
    pmf = oracles.random_law(space, seed=3)

    def wrong(t: torch.Tensor, x: torch.Tensor, y: None) -> torch.Tensor:
        """A network far from the truth: a time and a state in every output."""
        return 0.3 * torch.sin(x.double().sum(-1)[:, None, None] + torch.arange(6.0).view(3, 2)) + 0.5 * (
            1 - t[:, None, None]
        )

    denoiser, score, made = sedd_truth.parts(noise, schedule, space, torch.nn.Identity())
    objective = ScoreEntropy(denoiser, score, made)
    generator = torch.Generator().manual_seed(0)
    x_0 = space.configurations()[torch.multinomial(torch.tensor(pmf), n, replacement=True, generator=generator)]
    losses = objective.losses(wrong, objective.draw(Batch(x_0), generator=generator)).numpy()

    all_x = torch.cartesian_prod(*[torch.arange(denoiser.noise.tokens)] * space.sites)
    ends = [sedd_truth.total_noise(schedule, t) for t in (1e-3, 1.0)]
    nodes, node_weights = np.polynomial.legendre.leggauss(60)
    low, high = np.log(ends)
    expected = 0.0
    for node, node_weight in zip(low + (high - low) * (nodes + 1) / 2, node_weights * (high - low) / 2, strict=True):
        sigma = torch.full((len(all_x),), np.exp(node), dtype=torch.float64)
        # Masks are drawn under the condition that all are there in the end: a larger σ, in effect.
        end = 1 - np.exp(-ends[1])
        effective = -np.log1p(np.expm1(-np.exp(node)) / end) if noise == "absorbing" else np.exp(node)
        joint = pmf[:, None] * sedd_truth.forward(noise, space, effective)
        log_score = score.log_score(wrong(made.time(sigma), all_x, None), sigma, all_x)
        for clean, row in zip(space.configurations(), joint, strict=True):
            entropy = score.entropy(log_score, sigma, all_x, clean.expand_as(all_x)).sum(-1).numpy()
            expected += node_weight * np.exp(node) * row @ entropy
    # Five standard errors; stratified levels only make them smaller.
    assert losses.mean() == pytest.approx(expected, abs=5 * losses.std() / n**0.5)
    assert 5 * losses.std() / n**0.5 < 0.05 * expected
