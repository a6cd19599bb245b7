"""What planned denoising learns, against enumeration: its answers, its loss, its bounds."""

import math

import numpy as np
import oracles
import planning
import pytest
import tiny
import torch
from torch import Tensor

import neurise
from neurise import comparison
from neurise.models._ddpd.objective import Example, PlannedObjective
from neurise.rows import Batch
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
SPACE = Space(sites=2, states=3)
DRAWS = 400
TAIL = 6
"""Standard errors: a mean of 400 draws is nearly normal, and one of nine leaves this range less often than once in 10^7."""


def share(m: float) -> Tensor:
    return torch.tensor([m], dtype=torch.float64)


@each_space
@pytest.mark.parametrize("m", [0.02, 0.5, 1 - 1e-9])
def test_the_answers_of_perfect_networks_are_the_posterior(space: Space, m: float) -> None:
    """Bayes' rule for the planner, and a denoiser that does not look at the site itself."""
    law = oracles.random_law(space, seed=1)
    answers = planning.exact(law, space).accurate(share(m), space.configurations(), None)
    true = planning.truth(law, space, m)
    np.testing.assert_allclose(answers.log_noise.exp().numpy(), true.zeta, rtol=1e-7)
    np.testing.assert_allclose(answers.log_mu.exp().numpy(), true.mu, rtol=1e-7, atol=1e-12)


@each_space
def test_the_loss_is_the_published_one(space: Space) -> None:
    """The two cross-entropies with the weight of the time, by loops, for any networks."""
    objective, v = planning.objective(planning.AnyPlan(space), space), 0.6
    m = v**2
    for x_0 in space.configurations()[::2]:
        for x in space.configurations():
            zeta, mu = _said(objective, m, x)
            for redrawn in planning.subsets(space.sites):
                expected = 0.0
                for site, gone in enumerate(redrawn):
                    expected -= math.log(zeta[site] if gone else 1 - zeta[site])
                    expected -= gone * math.log(mu[site, int(x_0[site])])
                drawn = Example(share(v), x[None], torch.tensor([redrawn]), None, x_0[None])
                found = objective.losses(objective.network, drawn).detach()
                assert float(found) == pytest.approx(expected / m * 2 * v, rel=1e-9)  # dm = 2v dv


def _said(objective: PlannedObjective, m: float, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The planner's and the denoiser's probabilities, from the table of their outputs."""
    plan, logits = objective.network(None, x[None])[0].detach()
    own = plan.gather(-1, x.long()[:, None]).squeeze(-1).numpy()
    odds = m / (1 - m) * np.exp(own)
    return odds / (1 + odds), logits.softmax(-1).numpy()


@each_space
@pytest.mark.parametrize("v", [0.2, 0.9])
def test_the_loss_is_least_for_perfect_networks(space: Space, v: float) -> None:
    law = oracles.random_law(space, seed=2)
    truth, every = planning.ExactPlan(law, space), space.configurations()
    network = planning.AnyPlan(space)
    drawn, weights = _all_examples(law, space, v)
    objective = planning.objective(network, space)

    def expected(table: Tensor) -> Tensor:
        network.table.data = table
        return weights @ objective.losses(network, drawn)

    best = truth(share(v**2), every).detach()
    (gradient,) = torch.autograd.grad(expected(best), [network.table])
    assert float(gradient.abs().max()) < 1e-12
    network.requires_grad_(False)
    for seed in range(5):
        other = planning.AnyPlan(space, seed).table.detach()
        for part in range(2):  # the planner alone, and the denoiser alone
            wrong = best.clone()
            wrong[:, part] += 0.3 * other[:, part]
            assert float(expected(wrong)) > float(expected(best)) + 1e-4


def _all_examples(law: np.ndarray, space: Space, v: float) -> tuple[Example, Tensor]:
    """Every clean row, noised in every way to one time, and how likely each is."""
    rows, weights = [], []
    for weight, clean in zip(law, oracles.configurations(space), strict=True):
        for redrawn in planning.subsets(space.sites):
            for x in oracles.configurations(space):
                rows.append((x, redrawn, clean))
                weights.append(weight * planning.chance(x, redrawn, clean, v**2, space.states))
    x, redrawn, clean = (torch.tensor(part) for part in zip(*rows, strict=True))
    return Example(share(v).expand(len(x)), x, redrawn, None, clean), torch.tensor(weights, dtype=torch.float64)


@each_space
def test_examples_are_drawn_as_the_noise_has_it(space: Space) -> None:
    """Rows, and which of their sites are noise, at each of four times."""
    objective, strata, n = planning.exact(oracles.random_law(space, seed=0), space), 4, 40_000
    clean = torch.ones(n, space.sites, dtype=torch.uint8)
    drawn = objective.draw(Batch(clean), generator=torch.Generator().manual_seed(0))
    assert bool((drawn.v[1:] >= drawn.v[:-1]).all())
    assert float(drawn.v[0]) > 0
    assert float(drawn.v[-1]) <= 1
    for part in range(strata):
        rows = slice(part * n // strata, (part + 1) * n // strata)
        m = float((drawn.v[rows] ** 2).mean())
        for site in range(space.sites):
            gone, token = drawn.redrawn[rows, site], drawn.x[rows, site]
            found = torch.stack([(gone & (token == a)).double().mean() for a in range(space.states)])
            # A share of 10,000 rows has a standard error below 0.005.
            assert np.abs(found.numpy() - m / space.states).max() < TAIL * 0.005
            assert bool((token[~gone] == 1).all())


def nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes of m in (0, 1), and weights of dm/m: m = w³ leaves w⁵ log w of the logarithms at the end."""
    places, weights = np.polynomial.legendre.leggauss(24)
    w = (places + 1) / 2
    return w**3, weights / 2 * 3 / w


def published(m: float, clean: tuple[int, ...], zeta: np.ndarray, mu: np.ndarray) -> float:
    """Mean of both cross-entropies for one clean row."""
    total = 0.0
    for place, x in enumerate(oracles.configurations(SPACE)):
        for redrawn in planning.subsets(SPACE.sites):
            loss = -sum(
                math.log(zeta[place, i]) + math.log(mu[place, i, clean[i]]) if gone else math.log(1 - zeta[place, i])
                for i, gone in enumerate(redrawn)
            )
            total += planning.chance(x, redrawn, clean, m, SPACE.states) * loss
    return total


def paths(m: float, clean: tuple[int, ...], zeta: np.ndarray, mu: np.ndarray) -> float:
    """Mean divergence of the paths per −d log m for one clean row."""
    total = 0.0
    for place, x in enumerate(oracles.configurations(SPACE)):
        for redrawn in planning.subsets(SPACE.sites):
            divergence = 0.0
            for i in range(SPACE.sites):
                rates = [zeta[place, i] * mu[place, i, a] for a in range(SPACE.states)]
                divergence += sum(rate for a, rate in enumerate(rates) if a != x[i])
                if x[i] != clean[i]:  # the noise given x_0 goes there at the rate 1, and nowhere else
                    divergence += math.log(1 / rates[clean[i]]) - 1
            total += planning.chance(x, redrawn, clean, m, SPACE.states) * divergence
    return total


def integrals(law: np.ndarray) -> np.ndarray:
    """Both losses of every clean row with perfect networks, (2, size)."""
    found = np.zeros((2, SPACE.size))
    for m, weight in zip(*nodes(), strict=True):
        true = planning.truth(law, SPACE, m)
        for place, clean in enumerate(oracles.configurations(SPACE)):
            for row, loss in enumerate((paths, published)):
                found[row, place] += weight * loss(m, clean, true.zeta, true.mu)
    return found


def bounds(objective: PlannedObjective) -> tuple[np.ndarray, np.ndarray]:
    x = SPACE.configurations().repeat(DRAWS, 1)
    values = objective.bound(x, None, generator=torch.Generator().manual_seed(0)).view(DRAWS, -1).numpy()
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(DRAWS)


def test_the_bound_is_the_divergence_of_the_paths_and_neither_loss_is_tight() -> None:
    law = oracles.random_law(SPACE, seed=0)
    mean, error = bounds(planning.exact(law, SPACE))
    path, cross_entropy = integrals(law)
    assert (np.abs(mean + path) < TAIL * error + 1e-6).all()  # with 24 nodes the rule errs by less
    assert error.max() < 0.2
    assert (path > -np.log(law) + 0.3).all()
    assert (cross_entropy > path + 2).all()
    gaps = [float(law @ (loss + np.log(law))) for loss in (path, cross_entropy)]
    assert gaps == pytest.approx([0.558, 3.184], abs=1e-3)  # as the guide has it


@each_space
def test_the_published_loss_is_never_below_the_divergence_of_the_paths(space: Space) -> None:
    """For any networks, in the mean over the noise of each clean row, at any time."""
    objective = planning.objective(planning.AnyPlan(space, seed=8), space)
    for v in (0.1, 0.5, 0.99):
        drawn, weights = _all_examples(np.ones(space.size), space, v)
        published_loss = weights * objective.losses(objective.network, drawn)
        path = weights * objective.path_loss(drawn.v, drawn.x, None, drawn.x_0)
        gaps = (published_loss - path).view(space.size, -1).sum(-1)
        assert (gaps > 1e-3).all()


def trained(**params: object) -> neurise.DDPD:
    rows = np.random.default_rng(0).choice(9, size=300, p=oracles.random_law(SPACE, seed=0))
    model = tiny.model("ddpd", training__learning_rate=0.05, alphabet=[0, 1, 2], **params)
    assert isinstance(model, neurise.DDPD)
    return model.fit(SPACE.configurations().numpy()[rows], max_steps=60)


@pytest.mark.parametrize("sampler", ["planned", "parallel"])
def test_networks_that_err_have_a_bound_too(sampler: str) -> None:
    model = trained(sampler=sampler)
    coarse, fine = (neurise.exact.law(model.set_params(sampling_steps=steps)).numpy() for steps in (100, 200))
    limit = 2 * fine - coarse  # the error of a law is c/N + O(1/N²), and of that about 1/N is left
    slack = np.abs(coarse - limit) / limit / 100
    mean, error = bounds(model.objective_)  # type: ignore[arg-type]
    assert (limit > 0).all()
    assert (mean < np.log(limit) + slack + TAIL * error).all()
    assert (mean > np.log(limit) - 4).all()  # nor is it an empty bound


def test_a_row_that_differs_at_a_constant_site_is_impossible() -> None:
    X = tiny.spins()
    X[:, 1] = -1
    model = tiny.model("ddpd").fit(X, max_steps=5)
    X[::2, 1] = 1
    value = model.elbo(X, seed=0, draws=2).value
    assert np.isneginf(value[::2]).all()
    assert np.isfinite(value[1::2]).all()


def test_gradients_are_finite_at_both_ends_of_time() -> None:
    objective = trained().objective_
    x = SPACE.configurations()
    for v, redrawn in ((1.0, True), (1e-6, False), (1e-6, True)):
        gone = torch.full(x.shape, redrawn)
        drawn = Example(torch.full((9,), v), x, gone, None, x)
        network = objective.network.requires_grad_(True)
        losses = objective.losses(network, drawn)
        assert bool(losses.isfinite().all())
        gradients = torch.autograd.grad(losses.sum(), [weight for weight in network.parameters() if weight.numel()])
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_an_untrained_planner_knows_the_time_and_nothing_else() -> None:
    objective = trained().objective_
    assert isinstance(objective, PlannedObjective)
    objective.network.reset(torch.Generator().manual_seed(0))  # type: ignore[operator]
    answers = objective.accurate(share(0.3), SPACE.configurations(), None)
    np.testing.assert_allclose(answers.log_noise.exp().numpy(), 0.3)
    np.testing.assert_allclose(answers.log_mu.exp().numpy(), 1 / 3)


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
