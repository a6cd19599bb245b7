"""How planned denoising samples, with perfect networks and with wrong ones, against enumeration."""

import itertools
from collections import defaultdict

import numpy as np
import oracles
import planning
import pytest
import torch
from flows import exact as exact_flow

from neurise.models._ddpd.chains import AdaptiveChain, PlannedChain, TogetherChain
from neurise.models._ddpd.objective import PlannedObjective
from neurise.models._dfm.path import JumpWalk, Path
from neurise.models.dfm import JumpChain
from neurise.sampling import one_site, parallel
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
SPACE = Space(sites=2, states=3)
EVERY = oracles.configurations(SPACE)
N = 100_000


def law_of(objective: PlannedObjective, kind: str, steps: int) -> np.ndarray:
    space = objective.denoiser.space
    if kind == "parallel":
        return parallel.law(TogetherChain(objective.denoiser, steps, objective)).numpy()
    return one_site.law(PlannedChain(objective, steps, space.sites)).numpy()


@each_space
@pytest.mark.parametrize("kind", ["planned", "parallel"])
def test_four_times_the_steps_come_four_times_as_near(space: Space, kind: str) -> None:
    law = oracles.random_law(space, seed=0)
    objective = planning.exact(law, space)
    coarse, fine = (law_of(objective, kind, steps) for steps in (64, 256))
    assert coarse.sum() == pytest.approx(1, abs=1e-12)
    # First order, c/N + O(1/N²). The first steps of "planned" may not catch up with the clock: another O(1/N²).
    assert oracles.tv(coarse, law) / oracles.tv(fine, law) == pytest.approx(4, rel=0.15)
    assert oracles.tv(fine, law) < 0.003


@pytest.mark.parametrize(("steps", "most"), [(5, 1.0), (32, 0.6)])
def test_with_steps_enough_one_site_per_step_is_nearer_than_all_at_once(steps: int, most: float) -> None:
    """From half as many steps again as there are sites."""
    law = oracles.random_law(Space(3, 4), seed=0)
    objective = planning.exact(law, Space(3, 4))
    one, all_sites = (oracles.tv(law_of(objective, kind, steps), law) for kind in ("planned", "parallel"))
    assert one < most * all_sites


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_with_one_site_every_number_of_steps_is_exact(steps: int) -> None:
    law = np.array([0.2, 0.5, 0.3])
    for kind in ("planned", "parallel"):
        found = law_of(planning.exact(law, Space(1, 3)), kind, steps)
        np.testing.assert_allclose(found, law, atol=1e-12)


@each_space
@pytest.mark.parametrize("steps", [1, 5])
def test_all_sites_at_once_is_flow_matching_with_the_uniform_source(space: Space, steps: int) -> None:
    """The factors of the rate, multiplied: at every step the same law of every row."""
    law = oracles.random_law(space, seed=1)
    objective = planning.exact(law, space)
    ours = TogetherChain(objective.denoiser, steps, objective)
    walk = JumpWalk(Path("uniform", 1.0), steps, "hazard", "even")
    theirs = JumpChain(exact_flow(torch.tensor(law), space, "uniform", 1.0), steps, walk)
    x = space.configurations()
    for step in range(steps):
        first, second = (chain.log_step(step, x, None).exp() for chain in (ours, theirs))
        torch.testing.assert_close(first, second, rtol=0, atol=1e-9)


@each_space
def test_a_step_has_the_rates_of_the_planner_and_the_denoiser(space: Space) -> None:
    """By loops: with probability (m − m') q_i μ_i(a) / m row x becomes x with site i → a."""
    law = oracles.random_law(space, seed=3)
    chain = PlannedChain(planning.exact(law, space), 40, space.sites)
    every = oracles.configurations(space)
    x, left = space.configurations(), torch.ones(1, dtype=torch.float64)
    for step in (38, 20, 1):
        m, after = chain.noised(step), chain.noised(step - 1)
        plan = chain.plan(step, x, None, left)
        true = planning.truth(law, space, m)
        moves = (plan.log_choice[..., None] + plan.log_law).exp().numpy()  # (n, sites, tokens)
        assert moves.sum((1, 2)) == pytest.approx(1, abs=1e-9)
        for place, row in enumerate(every):
            expected = true.zeta[place].sum() * (m - after) / m
            assert expected < 1
            for site in range(space.sites):
                for token in range(space.states):
                    rate = true.zeta[place, site] * true.mu[place, site, token] * (m - after) / m
                    stays = (token == row[site]) * (1 - expected) * true.zeta[place, site] / true.zeta[place].sum()
                    assert moves[place, site, token] == pytest.approx(rate + stays, abs=1e-9)


def test_where_a_step_is_too_short_for_all_noise_one_site_moves_for_certain() -> None:
    """The law of the noise is far from the data: the planner sees more noise than there is on average."""
    space = Space(3, 2)
    law = np.full(8, 1e-3)
    law[0] = 1 - 7e-3
    chain = PlannedChain(planning.exact(law, space), 4, space.sites)
    plan = chain.plan(2, torch.tensor([[1, 1, 1]]), None, torch.ones(1, dtype=torch.float64))
    true = planning.truth(law, space, chain.noised(2))
    assert true.zeta[-1].sum() * (chain.noised(2) - chain.noised(1)) > chain.noised(2)
    np.testing.assert_allclose(plan.log_choice[0].exp(), true.zeta[-1] / true.zeta[-1].sum(), rtol=1e-9)
    np.testing.assert_allclose(plan.log_law[0].exp(), true.mu[-1], rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 100])
def test_the_clock_leaves_no_site_behind(steps: int) -> None:
    """The share of noise falls from 1, by at most one site per step, and to the usual grid where there are steps enough."""
    chain = PlannedChain(planning.objective(planning.AnyPlan(SPACE), SPACE), steps, varying=5)
    shares = [chain.noised(step) for step in reversed(range(steps))]
    assert shares[0] == 1
    assert all(0 < first - second <= 0.2 + 1e-12 for first, second in itertools.pairwise(shares))
    assert shares[-1] == pytest.approx(max(1 - (steps - 1) / 5, (1 / steps) ** 1.5))


def test_with_one_step_sites_are_independent() -> None:
    """There are fewer steps than sites, and what is left is denoised in the last one: it leaves no noise."""
    law = oracles.random_law(SPACE, seed=2)
    table = law.reshape(3, 3)
    expected = np.outer(table.sum(1), table.sum(0)).ravel()
    np.testing.assert_allclose(law_of(planning.exact(law, SPACE), "planned", 1), expected, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 12])
def test_samples_follow_the_law(steps: int) -> None:
    """Perfect networks, whose choice of a site differs from row to row; and wrong ones."""
    for network in (planning.ExactPlan(oracles.random_law(SPACE, seed=5), SPACE), planning.AnyPlan(SPACE)):
        chain = PlannedChain(planning.objective(network, SPACE), steps, SPACE.sites)
        law = one_site.law(chain).numpy()
        drawn = one_site.sample(chain, N, generator=torch.Generator().manual_seed(0))
        assert oracles.tv(oracles.empirical(SPACE, drawn), law) < oracles.sampled_tv_tolerance(law, N)


def adaptive_law(objective: PlannedObjective, steps: int) -> np.ndarray:
    """The published sampler as a tree of rows and of what the planner saw to be left, by loops."""
    current: dict[tuple[tuple[int, ...], float], float] = {(x, 1.0): 1 / SPACE.size for x in EVERY}
    for _ in range(steps - 1):
        after: dict[tuple[tuple[int, ...], float], float] = defaultdict(float)
        for (x, left), weight in current.items():
            zeta, mu = said(objective, x, left)
            for site in range(SPACE.sites):
                for token in range(SPACE.states):
                    row = (*x[:site], token, *x[site + 1 :])
                    share = round((zeta.sum() - zeta[site]) / SPACE.sites, 14)
                    after[row, share] += weight * zeta[site] / zeta.sum() * mu[site, token]
        current = after
    law = np.zeros(SPACE.size)
    for (x, left), weight in current.items():
        zeta, mu = said(objective, x, left)
        for place, row in enumerate(EVERY):
            sites = range(SPACE.sites)
            law[place] += weight * np.prod([zeta[i] * mu[i, row[i]] + (1 - zeta[i]) * (x[i] == row[i]) for i in sites])
    return law


def said(objective: PlannedObjective, x: tuple[int, ...], left: float) -> tuple[np.ndarray, np.ndarray]:
    answers = objective.accurate(torch.tensor([left], dtype=torch.float64), torch.tensor([x]), None)
    return answers.log_noise.exp()[0].detach().numpy(), answers.log_mu.exp()[0].detach().numpy()


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("kind", ["perfect", "wrong"])
def test_the_published_sampler_moves_one_site_and_asks_the_planner_for_the_time(kind: str, steps: int) -> None:
    perfect = planning.ExactPlan(oracles.random_law(SPACE, seed=5), SPACE)
    objective = planning.objective(perfect if kind == "perfect" else planning.AnyPlan(SPACE, scale=3.0), SPACE)
    law = adaptive_law(objective, steps)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    chain = AdaptiveChain(objective, steps, SPACE.sites)
    drawn = one_site.sample(chain, N, generator=torch.Generator().manual_seed(0))
    assert oracles.tv(oracles.empirical(SPACE, drawn), law) < oracles.sampled_tv_tolerance(law, N)


def test_the_time_of_the_published_sampler_is_the_likeliest() -> None:
    r"""d log P(x | m) / dm = (Q − m · sites) / (m (1 − m)), by differences."""
    law, m, h = oracles.random_law(SPACE, seed=5), 0.4, 1e-5

    def log_likelihood(share: float, x: tuple[int, ...]) -> float:
        total = 0.0
        for weight, clean in zip(law, EVERY, strict=True):
            ways = planning.subsets(SPACE.sites)
            total += weight * sum(planning.chance(x, redrawn, clean, share, SPACE.states) for redrawn in ways)
        return float(np.log(total))

    expected = planning.truth(law, SPACE, m).zeta.sum(-1)
    for place, x in enumerate(EVERY):
        slope = (log_likelihood(m + h, x) - log_likelihood(m - h, x)) / (2 * h)
        assert slope == pytest.approx((expected[place] - m * SPACE.sites) / (m * (1 - m)), abs=1e-7)


def test_the_published_sampler_does_not_come_near_the_law() -> None:
    """On two sites perfect networks cannot tell how much of a row is noise, and every step changes something."""
    law = oracles.random_law(SPACE, seed=0)
    chain = AdaptiveChain(planning.exact(law, SPACE), 64, SPACE.sites)
    drawn = one_site.sample(chain, N, generator=torch.Generator().manual_seed(0))
    assert oracles.tv(oracles.empirical(SPACE, drawn), law) > 0.05 + oracles.sampled_tv_tolerance(law, N)


def test_a_row_without_noise_stays() -> None:
    """Where the planner sees nothing to do, there is no site to choose."""
    law = np.full(SPACE.size, 1e-300)
    law[4] = 1
    chain = AdaptiveChain(planning.exact(law, SPACE), 5, SPACE.sites)
    x = torch.tensor([[1, 1]], dtype=torch.uint8)
    plan = chain.plan(3, x, None, torch.zeros(1, dtype=torch.float64))
    assert plan.log_choice.exp()[0].tolist() == [0.5, 0.5]
    assert plan.log_law.exp()[0].tolist() == [[0, 1, 0], [0, 1, 0]]
    assert plan.left[0].tolist() == [0, 0]
