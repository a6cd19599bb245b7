"""GGM: classifiers of kept against redrawn tokens, and both ways to reverse the chain with them."""

import chi_square
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import GGM, exact
from neurise.conditionals.base import Frame
from neurise.modeling.round_robin_objective import Example, RoundRobinObjective
from neurise.models.ggm import KeptOrRedrawn
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

LEARNS = {"training__batch_size": 512, "training__learning_rate": 0.01}
SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]


class TrueLogits(torch.nn.Module):
    """f_a = log p μ_t(a | x_-u), shifted where a test asks for it."""

    def __init__(self, conditionals: exact.ExactConditionals) -> None:
        super().__init__()
        self.conditionals = conditionals
        self.states = conditionals.noise.space.states

    def forward(self, t, u, x, hidden, y=None) -> torch.Tensor:  # type: ignore[no-untyped-def]
        logits = self.conditionals.log_conditional(t, u, x) + np.log(self.states)
        return logits.unsqueeze(-2)  # a stack of one network


def objective_of(pmf: torch.Tensor, noise: RoundRobin) -> RoundRobinObjective:
    network = TrueLogits(exact.ExactConditionals(pmf, noise))
    free = torch.full((noise.space.sites,), -1)
    loss = KeptOrRedrawn(noise.keep_prob)
    return RoundRobinObjective(network, Frame(noise, 0, free), loss, hide_noised=False)  # type: ignore[arg-type]


def every_row(noise: RoundRobin, t: int) -> Example:
    x, u = noise.space.configurations(), t % noise.space.sites
    n = len(x)
    shown = torch.zeros(n, noise.space.sites, dtype=torch.bool)
    return Example(torch.full((n,), t), torch.full((n,), u), x, shown, None, x[:, u])


def expected_loss(pmf: torch.Tensor, noise: RoundRobin, t: int, shift: torch.Tensor) -> float:
    """Sum the loss over every X_t."""
    objective = objective_of(pmf, noise)
    losses = objective.losses(lambda *inputs: objective.network(*inputs) + shift, every_row(noise, t))
    return float((exact.noised(pmf, noise, t) * losses).sum())


@pytest.mark.parametrize("space", SPACES)
def test_the_loss_is_the_classification_averaged_over_what_the_step_does(space: Space) -> None:
    pmf, noise, t = torch.from_numpy(oracles.random_law(space, seed=3)), RoundRobin(space, 0.3, cycles=2), 1
    objective, rows = objective_of(pmf, noise), every_row(noise, t)
    noised = exact.noised(pmf, noise, t)
    conditional = exact.conditional(noised, space, t)  # (before, states, after)
    expected = []
    for x in rows.x.tolist():
        before, after = space.states**t, space.states ** (space.sites - 1 - t)
        index = int(space.index(torch.tensor(x)))
        heads = conditional[index // (after * space.states), :, index % after]
        assert len(conditional) == before
        fresh = 0.7 / space.states
        redrawn = [fresh / (fresh + 0.3 * float(p)) for p in heads]  # P(redrawn | the token that is seen)
        total = -0.3 * np.log(1 - redrawn[x[t]])
        total += sum(-fresh * np.log(chance) for chance in redrawn)
        expected.append(total)
    found = objective.losses(objective.network, rows)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", [0.2, 0.7])
@pytest.mark.parametrize("t", [0, 1, 4])
def test_the_loss_is_minimal_at_the_true_conditional(space: Space, keep_prob: float, t: int) -> None:
    pmf, noise = torch.from_numpy(oracles.random_law(space, seed=t)), RoundRobin(space, keep_prob, cycles=3)
    least = expected_loss(pmf, noise, t, torch.zeros(space.states, dtype=torch.float64))
    for seed in range(5):
        shift = 0.1 * torch.randn(space.states, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        assert expected_loss(pmf, noise, t, shift) > least
        # A minimum: first order cancels, so a step a hundred times smaller costs about ten thousand times less.
        assert expected_loss(pmf, noise, t, shift / 100) - least == pytest.approx(
            (expected_loss(pmf, noise, t, shift) - least) / 1e4, rel=0.5
        )


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("heat_bath", [False, True])
def test_both_reversals_are_exact_with_exact_conditionals(space: Space, heat_bath: bool) -> None:
    pmf = torch.from_numpy(oracles.random_law(space, seed=0))
    noise = RoundRobin(space, 0.4, cycles=3, heat_bath=heat_bath)
    oracle = exact.ExactConditionals(pmf, noise)
    end = exact.noised(pmf, noise, noise.num_steps)
    torch.testing.assert_close(exact.law(oracle, start=end), pmf, rtol=0, atol=1e-12)
    # From the uniform start instead, the error is no larger than how far the end of the noise is from it.
    delta = 0.5 * float((end - 1 / space.size).abs().sum())
    assert 0 < 0.5 * float((exact.law(oracle) - pmf).abs().sum()) <= delta


def test_the_two_reversals_differ() -> None:
    space = SPACES[0]
    pmf = torch.from_numpy(oracles.random_law(space, seed=0))
    laws = [
        exact.law(exact.ExactConditionals(pmf, RoundRobin(space, 0.4, heat_bath=heat_bath)))
        for heat_bath in (False, True)
    ]
    assert float((laws[0] - laws[1]).abs().max()) > 1e-3


@pytest.mark.parametrize("reverse", ["bayes", "heat_bath"])
def test_samples_follow_the_exact_law(reverse: str) -> None:
    rows = np.random.default_rng(0).integers(0, 3, (200, 2)) // [1, 2]
    model = tiny.model("ggm", reverse=reverse, training__learning_rate=0.05).fit(rows, max_steps=60)
    places = model.space_.index(torch.from_numpy(model.sample(20_000, seed=0)))
    chi_square.assert_drawn_from(places.numpy(), exact.law(model).numpy())


def test_it_learns_the_law() -> None:
    X = tiny.spins(4000)
    model = tiny.model("ggm", keep_prob=0.3, cycles=3, width=32, **LEARNS).fit(X, max_steps=600)
    empirical = np.bincount(np.asarray(model.space_.index(model.schema_.encode(X))), minlength=8) / len(X)
    # The start is uniform instead of μ_T, 0.3³ of every site is left of the data there: at most 3 · 0.027 / 2 of TV. The
    # rest is learning, which at N = 4000 and eight configurations cannot be told from √(8/4000)/2 of sampling.
    assert 0.5 * np.abs(exact.law(model).numpy() - empirical).sum() < 0.0405 + 0.0224


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"keep_prob must be above 0 for GGM: .*division by zero; NeurISE takes"):
        GGM(keep_prob=0).fit(tiny.spins())
    with pytest.raises(ValueError, match=r"keep_prob must be in \[0, 1\), got 1"):
        GGM(keep_prob=1.0).fit(tiny.spins())
    for wrong in ("abc", None, [1, 2], float("nan")):
        with pytest.raises(ValueError, match=r"keep_prob must be in \[0, 1\), got"):
            GGM(keep_prob=wrong).fit(tiny.spins())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reverse must be one of 'bayes', 'heat_bath', got 'gibbs'"):
        GGM(reverse="gibbs").fit(tiny.spins())
    with pytest.raises(ValueError, match="'joint_mlp' predicts all sites from all; GGM needs one"):
        GGM(network="joint_mlp").fit(tiny.spins())


def test_clamp_works_with_the_heat_bath_too() -> None:
    X = tiny.spins(400)
    model = tiny.model("ggm", reverse="heat_bath", keep_prob=0.3, training__learning_rate=0.05).fit(X, max_steps=200)
    law = exact.law(model).numpy().reshape(2, 2, 2)
    drawn = model.sample(20_000, clamp=np.ma.array([1, 0, 0], mask=[0, 1, 1]), seed=0)
    given = law[1] / law[1].sum()
    seen = np.array([[((drawn[:, 1] == a) & (drawn[:, 2] == b)).mean() for b in (-1, 1)] for a in (-1, 1)])
    assert np.abs(seen - given).max() < 6 * np.sqrt(0.25 / 2000)  # weighted particles: a tenth of them independent
