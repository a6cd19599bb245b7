"""One step of D3PM, against Bayes' rule with explicit matrices."""

from typing import Any

import d3pm_cases as cases
import numpy as np
import pytest
import torch

from neurise.space import Space

TIMESTEPS = 7
ROUNDING = 1e-9
"""Probabilities above 10^-4 in float64; the cosine's last levels lose some digits in 1 − ᾱ."""


def laws(states: int) -> np.ndarray:
    """Some laws of one site, (laws, states): any, one with a zero, and certainty."""
    rng = np.random.default_rng(0)
    holed = rng.dirichlet(np.ones(states))
    holed[0] *= states == 1
    return np.stack([rng.dirichlet(np.ones(states)), holed / holed.sum(), np.eye(states)[-1]])


def log(pi: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pi).log()[None]  # one row in which each law is a site


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("timesteps", [1, TIMESTEPS])
def test_a_step_is_the_mixture_of_bayes_posteriors(noise: str, states: int, timesteps: int) -> None:
    pi = laws(states)
    steps = cases.steps_of(noise, Space(len(pi), states), timesteps)
    tokens = states + (noise == "absorbing")
    running = cases.kernels(noise, states, timesteps)[1]
    for t in range(1, timesteps + 1):
        for x in range(tokens):
            if not (pi @ running[t][:states, x]).all():
                continue  # after a state that cannot be, nothing is defined
            x_t, time = torch.full((1, len(pi)), x), torch.tensor([t])
            step = steps.log_step(steps.log_clean(log(pi), time, x_t), time, x_t)[0].exp().numpy()
            expected = [cases.bayes_step(noise, one, t, x, timesteps) for one in pi]
            np.testing.assert_allclose(step, expected, rtol=ROUNDING, atol=1e-15)
            np.testing.assert_allclose(step.sum(-1), 1, rtol=ROUNDING)
            if t == 1 and x == tokens - 1:
                np.testing.assert_allclose(step[:, :states], pi, rtol=ROUNDING, atol=1e-15)


@pytest.mark.parametrize("states", [2, 3])
def test_the_published_form_leaves_out_a_factor(states: int) -> None:
    pi = laws(states)
    steps = cases.steps_of("uniform", Space(len(pi), states), TIMESTEPS, posterior="published")
    single, running = cases.kernels("uniform", states, TIMESTEPS)
    x_t = torch.zeros(1, len(pi), dtype=torch.uint8)
    for t in range(1, TIMESTEPS + 1):
        time = torch.tensor([t])
        step = steps.log_step(steps.log_clean(log(pi), time, x_t), time, x_t)[0].exp().numpy()
        expected = single[t][:, 0] * (pi @ running[t - 1])
        expected = pi if t == 1 else expected / expected.sum(-1, keepdims=True)
        np.testing.assert_allclose(step, expected, rtol=ROUNDING, atol=1e-15)
        correct = cases.bayes_step("uniform", pi[0], t, 0, TIMESTEPS)
        if 1 < t < TIMESTEPS:  # at the last one, nearly nothing is left of the data, and the factor is nearly constant
            assert np.abs(step[0] - correct).max() > 1e-4


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("posterior", ["exact", "published"])
def test_the_divergence_is_that_of_two_written_out_laws(noise: str, states: int, posterior: str) -> None:
    space = Space(1, states)
    steps = cases.steps_of(noise, space, TIMESTEPS, posterior=posterior)
    pi = np.random.default_rng(1).dirichlet(np.ones(states))
    x_0, x_t = cases.every_pair(space, states + (noise == "absorbing"))
    for t in range(1, TIMESTEPS + 1):
        possible = cases.forward_probability(noise, space, TIMESTEPS, t, x_0, x_t) > 0
        for a, x in zip(x_0[possible].tolist(), x_t[possible].tolist(), strict=True):
            time, seen = torch.tensor([t]), torch.tensor([x])
            clean = steps.log_clean(torch.from_numpy(pi).log()[None, None], time, seen)
            p = steps.log_step(clean, time, seen)[0, 0].exp().numpy()
            q = cases.bayes_step(noise, np.eye(states)[a[0]], t, x[0], TIMESTEPS)
            expected = sum(q[b] * np.log(q[b] / p[b]) for b in range(len(q)) if q[b] > 0)
            found = float(steps.divergence(clean, time, seen, torch.tensor([a])))
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-12)
            if t == 1:
                assert found == pytest.approx(-np.log(p[a[0]]), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("states", [1, 2, 3])
def test_the_start_divergence_is_what_the_noise_leaves(noise: str, states: int) -> None:
    last = cases.kernels(noise, states, TIMESTEPS)[1][-1][0]
    pure = np.full(states, 1 / states) if noise == "uniform" else np.eye(states + 1)[-1]
    expected = sum(q * np.log(q / p) for q, p in zip(last, pure, strict=True) if q > 0)
    assert float(cases.steps_of(noise, Space(1, states), TIMESTEPS).start_divergence()) == pytest.approx(
        expected, rel=1e-6, abs=1e-15
    )


@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
def test_with_the_offset_the_network_learns_what_the_other_sites_say(space: Space) -> None:
    pmf = np.random.default_rng(2).dirichlet(np.ones(space.size)).reshape([space.states] * space.sites)
    steps = cases.steps_of("uniform", space, TIMESTEPS, offset=True)
    running = cases.kernels("uniform", space.states, TIMESTEPS)[1]
    x = space.configurations()
    for t in range(1, TIMESTEPS + 1):
        others, posterior = (np.zeros((space.size, space.sites, space.states)) for _ in range(2))
        for row, values in enumerate(x.tolist()):
            for site in range(space.sites):
                joint = pmf
                for place, value in enumerate(values):
                    if place != site:
                        shape = [-1 if axis == place else 1 for axis in range(space.sites)]
                        joint = joint * running[t][:, value].reshape(shape)
                others[row, site] = joint.sum(axis=tuple(axis for axis in range(space.sites) if axis != site))
                posterior[row, site] = others[row, site] * running[t][:, values[site]]
        found = steps.log_clean(torch.from_numpy(others).log(), torch.tensor([t]), x).exp().numpy()
        np.testing.assert_allclose(found, posterior / posterior.sum(-1, keepdims=True), rtol=ROUNDING)


@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("posterior", ["exact", "published"])
@pytest.mark.parametrize(("states", "timesteps"), [(1, 1), (1, 50), (2, 1), (2, 1000), (256, 1000)])
def test_losses_and_gradients_are_finite_and_small_in_memory(
    noise: str, posterior: str, states: int, timesteps: int
) -> None:
    n, sites = 12, 4
    generator = torch.Generator().manual_seed(0)
    steps = cases.steps_of(noise, Space(sites, states), timesteps, posterior=posterior, offset=True)
    t = torch.linspace(1, timesteps, n).long()
    x_0 = torch.randint(states, (n, sites), generator=generator)
    x_t = torch.where(torch.rand(n, sites, generator=generator) < 0.5, x_0, states if noise == "absorbing" else 0)
    logits = 40 * torch.randn(n, sites, states, generator=generator)  # float32, as in training
    logits.requires_grad_()
    largest = 0

    def weigh(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    def back(tensor: Any) -> Any:
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(weigh, back):
        clean = steps.log_clean(logits, t, x_t)
        loss = steps.divergence(clean, t, x_t, x_0).sum() + steps.cross_entropy(clean, x_0).sum()
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert largest <= n * sites * (states + 1)
