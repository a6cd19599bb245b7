"""What planned denoising learns, against enumeration: its answers, its loss, its examples."""

import math

import numpy as np
import oracles
import planning
import pytest
import torch
from torch import Tensor, nn

from neurise.models._ddpd.network import PlannedMLP
from neurise.models._ddpd.objective import Example, PlannedObjective
from neurise.rows import Batch
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
SPACE = Space(sites=2, states=3)
TAIL = 6
"""Standard errors: a share of 10,000 rows is nearly normal."""


@each_space
@pytest.mark.parametrize("m", [0.02, 0.5, 1 - 1e-9])
def test_the_answers_of_perfect_networks_are_the_posterior(space: Space, m: float) -> None:
    """Bayes' rule for the planner, and a denoiser that does not look at the site itself."""
    law = oracles.random_law(space, seed=1)
    answers = planning.exact(law, space).accurate(planning.share(m), space.configurations(), None)
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
                drawn = Example(planning.share(v), x[None], torch.tensor([redrawn]), None, x_0[None])
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
    drawn, weights = planning.all_examples(law, space, v)
    objective = planning.objective(network, space)

    def expected(table: Tensor) -> Tensor:
        network.table.data = table
        return weights @ objective.losses(network, drawn)

    best = truth(planning.share(v**2), every).detach()
    (gradient,) = torch.autograd.grad(expected(best), [network.table])
    assert float(gradient.abs().max()) < 1e-12
    network.requires_grad_(False)
    for seed in range(5):
        other = planning.AnyPlan(space, seed).table.detach()
        for part in range(2):  # the planner alone, and the denoiser alone
            wrong = best.clone()
            wrong[:, part] += 0.3 * other[:, part]
            assert float(expected(wrong)) > float(expected(best)) + 1e-4


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


def test_gradients_are_finite_at_both_ends_of_time() -> None:
    network = PlannedMLP(SPACE, width=8, depth=1)
    for weight in network.parameters():
        nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
    objective, x = planning.objective(network, SPACE), SPACE.configurations()
    for v, redrawn in ((1.0, True), (1e-6, False), (1e-6, True)):
        drawn = Example(torch.full((9,), v), x, torch.full(x.shape, redrawn), None, x)
        losses = objective.losses(network, drawn)
        assert bool(losses.isfinite().all())
        gradients = torch.autograd.grad(losses.sum(), [weight for weight in network.parameters() if weight.numel()])
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_an_untrained_planner_knows_the_time_and_nothing_else() -> None:
    network = PlannedMLP(SPACE, width=8, depth=1)
    network.reset(torch.Generator().manual_seed(0))
    network.requires_grad_(False)
    answers = planning.objective(network, SPACE).accurate(planning.share(0.3), SPACE.configurations(), None)
    np.testing.assert_allclose(answers.log_noise.exp().numpy(), 0.3)
    np.testing.assert_allclose(answers.log_mu.exp().numpy(), 1 / 3)
