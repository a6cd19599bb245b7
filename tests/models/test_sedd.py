"""SEDD against enumeration: with the true score the sampler's law is the target and the loss is minimal."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
import sedd_truth
import torch

from neurise.models._sedd.bound import elbo
from neurise.models._sedd.forms import FAR, FORMS, LEAST
from neurise.models.sedd import ScoreChain, ScoreEntropy
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_noise = pytest.mark.parametrize("noise", ["absorbing", "uniform"])
each_schedule = pytest.mark.parametrize("schedule", ["loglinear", "geometric"])
each_form = pytest.mark.parametrize("form", list(FORMS))
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


@each_form
@each_noise
@each_space
@pytest.mark.parametrize("sigma", [1e-4, 0.3, 6.0])
def test_the_loss_is_minimal_at_the_true_score(noise: str, space: Space, sigma: float, form: str) -> None:
    pmf = oracles.random_law(space, seed=2)
    denoiser, score, _ = sedd_truth.parts(noise, "loglinear", space, torch.nn.Identity(), form)
    kernel = sedd_truth.forward(noise, space, sigma)
    tokens, law, share = denoiser.noise.tokens, pmf @ kernel, 1 if noise == "absorbing" else 1 / space.states
    all_x = torch.cartesian_prod(*[torch.arange(tokens)] * space.sites)
    true = sedd_truth.ratios(law, tokens, space)
    offset = np.log(np.expm1(sigma) * space.states) if noise == "absorbing" else 0.0

    def expected(shift: np.ndarray) -> float:
        """E of the score entropy over all x_0 and x_t."""
        total = 0.0
        for x_0, weight, row in zip(space.configurations(), pmf, kernel, strict=True):
            output = sedd_truth.output(form, torch.tensor(np.log(true) + shift) + offset)
            noise_level = torch.full((len(all_x),), sigma, dtype=torch.float64)
            entropy = score.entropy(output, noise_level, all_x, x_0.expand_as(all_x))
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
        output = wrong(made.time(sigma), all_x, None)
        for clean, row in zip(space.configurations(), joint, strict=True):
            entropy = score.entropy(output, sigma, all_x, clean.expand_as(all_x)).sum(-1).numpy()
            expected += node_weight * np.exp(node) * row @ entropy
    # Five standard errors; stratified levels only make them smaller.
    assert losses.mean() == pytest.approx(expected, abs=5 * losses.std() / n**0.5)
    assert 5 * losses.std() / n**0.5 < 0.05 * expected


@each_form
@each_noise
@each_space
def test_every_form_of_the_scores_gives_the_same_steps_and_the_same_bound(noise: str, space: Space, form: str) -> None:
    pmf = oracles.random_law(space, seed=5)
    for sampler in ("analytic", "euler"):
        plain, own = (
            parallel.law(sedd_truth.exact_chain(pmf, space, noise, "loglinear", sampler, 8, name))
            for name in ("log", form)
        )
        torch.testing.assert_close(own, plain, rtol=1e-6, atol=1e-9)
    bounds = []
    for name in ("log", form):
        network = sedd_truth.ExactScore(pmf, space, noise, "loglinear", name)
        parts = sedd_truth.parts(noise, "loglinear", space, network, name)
        bounds.append(elbo(*parts, space.configurations(), None, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(bounds[1], bounds[0], rtol=1e-6, atol=1e-6)


@each_form
def test_every_form_starts_from_the_score_one_and_its_logarithm_is_that_of_the_number(form: str) -> None:
    made = FORMS[form]
    assert float(made.log(torch.zeros(()))) == pytest.approx(0, abs=1e-6)
    z = torch.linspace(-0.99, 30, 200, dtype=torch.float64)
    torch.testing.assert_close(made.number(z), made.log(z).exp())
    z = torch.linspace(-200, 200, 801, requires_grad=True)  # where an exponential of float32 is zero or infinite
    (slope,) = torch.autograd.grad(made.log(z).nansum(), z)
    assert bool(slope[z > -1].isfinite().all())
    if form != "raw":
        assert bool(made.log(z).isfinite().all())
        assert bool((made.log(z).diff() > 0).all())


def test_softplus_is_what_it_says_on_both_sides_of_its_seam() -> None:
    z = torch.linspace(FAR - 3, FAR + 3, 61, dtype=torch.float64)
    expected = torch.log(torch.log1p(torch.exp(z + np.log(np.e - 1))))
    torch.testing.assert_close(FORMS["softplus"].log(z), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("states", [2, 3])
def test_a_negative_score_is_no_number_only_where_the_loss_takes_its_logarithm(states: int) -> None:
    space, sigma = Space(1, states), torch.tensor([0.7], dtype=torch.float64)
    clean = torch.tensor([[0]])
    for wrong in range(states):
        output = torch.full((1, 1, states), 0.5, dtype=torch.float64)  # a score of 1.5 times the scale
        output[0, 0, wrong] = -3.0  # −2
        for noise, x in (("absorbing", states), ("uniform", 0), ("uniform", 1)):
            _, score, _ = sedd_truth.parts(noise, "loglinear", space, torch.nn.Identity(), "raw")
            shown = output.clone().requires_grad_()
            found = score.entropy(shown, sigma, torch.tensor([[x]]), clean)
            (slope,) = torch.autograd.grad(found.sum(), shown)
            entropy = float(found.detach())
            if noise == "uniform":  # every other token has a logarithm
                assert np.isnan(entropy) == (wrong != x)
                assert bool(slope.isfinite().all()) or wrong != x  # nothing comes back from the present token
                continue
            if wrong == 0:  # the token that the mask hides
                assert np.isnan(entropy)
                continue
            rate = 1 / np.expm1(0.7)
            scores = rate / states * np.where(np.arange(states) == wrong, -2, 1.5)
            literal = scores.sum() - rate * np.log(scores[0]) + rate * (np.log(rate) - 1)
            assert entropy == pytest.approx(literal, rel=1e-12)


@each_noise
def test_a_sampler_and_its_bound_take_negative_scores_for_hardly_any(noise: str) -> None:
    space, negative = Space(2, 3), torch.tensor([0.2, -3.0, 0.4], dtype=torch.float64)

    def network(t: torch.Tensor, x: torch.Tensor, y: None) -> torch.Tensor:
        return negative.expand(len(x), 2, 3)

    denoiser, score, made = sedd_truth.parts(noise, "loglinear", space, torch.nn.Identity(), "raw")
    denoiser = replace(denoiser, network=network)  # type: ignore[arg-type]
    law = parallel.law(ScoreChain(denoiser, 5, score, made, "analytic")).view(3, 3)
    assert float(law.sum()) == pytest.approx(1)
    bound = elbo(denoiser, score, made, space.configurations(), None, generator=torch.Generator().manual_seed(0))
    assert bool(bound.isfinite().all())
    if noise == "absorbing":  # the token is as good as impossible
        assert float(law[1].sum() + law[:, 1].sum()) < 1e-9
        assert float(bound.view(3, 3)[1].max()) < -20 < float(bound.max())


def test_what_a_sampler_is_given_is_positive() -> None:
    z = torch.tensor([-torch.inf, -5.0, -1.0, 0.0, 2.0], dtype=torch.float64)
    made = FORMS["raw"]
    found = made.number(made.usable(z))
    # A state that a site does not have stays impossible.
    torch.testing.assert_close(found, torch.tensor([0, LEAST, LEAST, 1, 3], dtype=torch.float64), rtol=1e-3, atol=0)
    for name in ("log", "softplus"):
        assert FORMS[name].usable(z) is z
