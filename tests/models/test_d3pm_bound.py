"""The bound of D3PM, against a sum over every path of the chain."""

import dataclasses
import itertools

import d3pm_cases as cases
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import exact
from neurise.models._d3pm import bound as d3pm_bound
from neurise.models.d3pm import D3PMChain
from neurise.networks.joint_mlp import JointMLP
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space

TIMESTEPS = 3


def untrained_chain(space: Space, noise: str, posterior: str = "exact") -> D3PMChain:
    """A chain whose network has random weights: every state has its own answer, and a wrong one."""
    true = cases.true_chain(oracles.random_law(space, seed=0), space, noise, TIMESTEPS, posterior)
    network, generator = JointMLP(space, width=8, depth=2), torch.Generator().manual_seed(5)
    network.reset(generator)
    torch.nn.init.normal_(network.output.weight, std=0.5, generator=generator)
    network.double().requires_grad_(False)
    denoiser = type(true.denoiser)(network, true.denoiser.noise, true.denoiser.constant, width=8)
    return D3PMChain(denoiser, TIMESTEPS, true.steps)


def path_bound(chain: D3PMChain, noise: str, single: list[np.ndarray] | None = None) -> np.ndarray:
    """E_q[log p(x_0 … x_T) / q(x_1 … x_T | x_0)] of every x_0, as a sum over all paths of the kernels Q_0 … Q_T."""
    space, wide = chain.space, Space(chain.space.sites, chain.tokens)
    states = np.array(oracles.configurations(wide))
    single = single or cases.kernels(noise, space.states, TIMESTEPS)[0]
    forward = [np.prod([one[np.ix_(states[:, i], states[:, i])] for i in range(space.sites)], axis=0) for one in single]
    clean = [index for index, state in enumerate(states) if max(state) < space.states]
    x = torch.from_numpy(states)
    reverse = [np.empty(0)]  # reverse[t][x_t, x_{t−1}]
    for t in range(1, TIMESTEPS + 1):
        kernel = chain.log_step(t - 1, x, None).exp().numpy()  # (states, sites, tokens)
        reverse.append(np.prod([kernel[:, i][:, states[:, i]] for i in range(space.sites)], axis=0))
    pure = np.eye(chain.tokens)[-1] if noise == "absorbing" else np.full(chain.tokens, 1 / chain.tokens)
    start = np.prod(pure[states], axis=1)
    bounds = np.zeros(len(clean))
    for row, path in itertools.product(range(len(clean)), itertools.product(range(len(states)), repeat=TIMESTEPS - 1)):
        whole = [clean[row], *path]
        q = np.prod([forward[t + 1][whole[t], whole[t + 1]] for t in range(TIMESTEPS - 1)])
        last = q * forward[TIMESTEPS][whole[-1]]  # over all x_T at once
        if not last.any():
            continue
        p = np.prod([reverse[t + 1][whole[t + 1], whole[t]] for t in range(TIMESTEPS - 1)])
        joint = start * reverse[TIMESTEPS][:, whole[-1]] * p
        possible = last > 0
        bounds[row] += (last[possible] * np.log(joint[possible] / last[possible])).sum()
    return bounds


CASES = list(itertools.product(cases.SPACES, cases.NOISES))


@pytest.mark.parametrize(("space", "noise"), CASES)
def test_the_chain_steps_by_bayes_rule_from_what_the_network_says_at_that_time(space: str, noise: str) -> None:
    chain = untrained_chain(cases.SPACES[space], noise)
    running = cases.kernels(noise, chain.space.states, TIMESTEPS)[1]
    x = torch.tensor(oracles.configurations(Space(chain.space.sites, chain.tokens)))
    for t in range(1, TIMESTEPS + 1):
        pi = chain.denoiser.network(torch.tensor([t / TIMESTEPS]), x).softmax(-1).numpy()
        step = chain.log_step(t - 1, x, None).exp().numpy()
        for row, site in itertools.product(range(len(x)), range(chain.space.sites)):
            token = int(x[row, site])
            if running[t][: chain.space.states, token].any():
                expected = cases.bayes_step(noise, pi[row, site], t, token, TIMESTEPS)
                # Times are float32, so the network's answers agree to some 10^-7.
                np.testing.assert_allclose(step[row, site], expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(("space", "noise"), CASES)
@pytest.mark.parametrize("strata", [256, 2])
@pytest.mark.parametrize("posterior", ["exact", "published"])
def test_draws_of_the_bound_average_to_the_sum_over_paths(
    space: str, noise: str, strata: int, posterior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(d3pm_bound, "TIMES", strata)  # two strata of three times: one and two
    chain, n = untrained_chain(cases.SPACES[space], noise, posterior), 3000
    x = chain.space.configurations().repeat(n, 1)
    drawn = d3pm_bound.elbo(chain.denoiser, chain.steps, x, None, generator=torch.Generator().manual_seed(0))
    drawn = drawn.view(n, -1).numpy()
    error = drawn.std(axis=0, ddof=1) / n**0.5
    expected = path_bound(chain, noise)
    # Means of n draws are close to normal: one of 72 differs by six standard errors less often than once in 10^6.
    assert (np.abs(drawn.mean(axis=0) - expected) < 6 * error + 1e-10).all()
    assert error.max() > 0
    law = parallel.law(chain).numpy()
    assert (expected <= np.log(law) + 1e-12).all()
    assert (expected < np.log(law) - 1e-3).any()


def test_noise_that_ends_early_counts_against_the_bound() -> None:
    # The cosine leaves too little to be seen, so the levels here are others.
    keep, space, n = [1.0, 0.8, 0.6, 0.4], cases.SPACES["2 sites, 3 states"], 3000
    chain = untrained_chain(space, "uniform")
    steps = dataclasses.replace(chain.steps, keep=torch.tensor(keep, dtype=torch.float64))
    chain = dataclasses.replace(chain, steps=steps)
    ratios = [1.0, *(after / before for before, after in itertools.pairwise(keep))]
    single = [ratio * np.eye(3) + (1 - ratio) / 3 for ratio in ratios]
    generator = torch.Generator().manual_seed(0)
    drawn = d3pm_bound.elbo(chain.denoiser, steps, space.configurations().repeat(n, 1), None, generator=generator)
    drawn = drawn.view(n, -1).numpy()
    error = drawn.std(axis=0, ddof=1) / n**0.5
    assert (np.abs(drawn.mean(axis=0) - path_bound(chain, "uniform", single)) < 6 * error).all()
    assert space.sites * float(steps.start_divergence()) > 12 * error.max()


@pytest.mark.parametrize(("space", "noise"), CASES)
def test_with_the_true_posterior_and_many_steps_the_bound_is_the_likelihood(space: str, noise: str) -> None:
    where = cases.SPACES[space]
    law = oracles.random_law(where, seed=3) + 0.2 / where.size
    law = law / law.sum()
    gaps = []
    for timesteps in (16, 64):
        chain = cases.true_chain(law, where, noise, timesteps)
        x_0, x_t = cases.every_pair(where, chain.tokens)
        bound = torch.zeros(len(x_0), dtype=torch.float64)
        for t in range(1, timesteps + 1):
            mass = cases.forward_probability(noise, where, timesteps, t, x_0, x_t)
            time, possible = torch.tensor([t]), mass > 0
            clean = chain.steps.log_clean(chain.denoiser.network(time / timesteps, x_t[possible]), time, x_t[possible])
            terms = chain.steps.divergence(clean, time, x_t[possible], x_0[possible]).sum(-1)
            bound[possible] -= mass[possible] * terms
        total = bound.view(where.size, -1).sum(-1) - where.sites * chain.steps.start_divergence()
        gaps.append(float((torch.from_numpy(law) * (torch.from_numpy(law).log() - total)).sum()))
    assert 0 < gaps[1] < gaps[0] / 3 < 0.1  # the gap falls like 1/T
    assert gaps[1] < 0.02


@pytest.mark.parametrize("noise", cases.NOISES)
def test_the_bound_of_a_fitted_model_is_below_the_log_of_its_law(noise: str) -> None:
    rows = tiny.spins(sites=4)
    rows[:, 2] = 1  # a constant site
    model = tiny.model("d3pm", noise=noise, timesteps=300, order=[3, 2, 0, 1]).fit(rows)
    every = 2 * np.array(oracles.configurations(Space(4, 2))) - 1
    bound = model.elbo(every, seed=0, draws=16)
    possible = every[:, 2] == 1
    assert np.isneginf(bound.value[~possible]).all()
    law = exact.law(model).numpy()
    assert law[~possible].sum() == 0
    excess = bound.value[possible] - np.log(law[possible])
    # Eight means of 16 draws, each a sum of 256 terms: six standard errors are exceeded less often than once in 10^4.
    assert (excess < 6 * bound.standard_error[possible]).all()
    with pytest.raises(NotImplementedError, match=r"elbo\(\)"):
        model.log_prob(every)
    assert model.score(every[possible]) == pytest.approx(bound.value[possible].mean(), abs=1.0)


def test_the_validation_score_is_minus_the_bound_for_the_published_posterior() -> None:
    space, n = cases.SPACES["2 sites, 3 states"], 6000
    chain = untrained_chain(space, "uniform", "published")
    objective = cases.objective(chain, 0.0, 1.0)  # whatever the training loss is
    x = space.configurations().repeat_interleave(n, 0)
    x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]  # times go with the place in the batch
    drawn = objective.draw(Batch(x), generator=torch.Generator().manual_seed(2))
    scores = objective.scores(chain.denoiser.network, drawn).numpy()
    place = space.index(x).numpy()
    for row, expected in enumerate(path_bound(chain, "uniform")):
        here = scores[place == row]
        # A mean of 6000 draws: one of 9 is six standard errors off less often than once in 10^7.
        assert abs(here.mean() + expected) < 6 * here.std() / n**0.5


@pytest.mark.parametrize("noise", cases.NOISES)
def test_the_validation_score_is_the_cross_entropy_for_the_exact_posterior(noise: str) -> None:
    space = cases.SPACES["2 sites, 3 states"]
    chain, generator = untrained_chain(space, noise), torch.Generator().manual_seed(0)
    x = space.configurations().repeat(20, 1)
    drawn = cases.objective(chain, 1.0, 0.0).draw(Batch(x), generator=generator)
    scores = cases.objective(chain, 1.0, 0.0).scores(chain.denoiser.network, drawn)
    pi = chain.denoiser.network(drawn.t / TIMESTEPS, drawn.x_t).softmax(-1)
    terms = -pi.gather(-1, x.long()[..., None]).squeeze(-1).log()
    if noise == "absorbing":
        terms = terms * (drawn.x_t == space.states)  # the others are known
    torch.testing.assert_close(scores, terms.sum(-1))
