import itertools
import math

import numpy as np
import oracles
import pytest
import torch

from neurise import losses
from neurise.losses import cross_entropy, resolve, screening
from neurise.space import Space
from neurise.theory import estimators
from neurise.theory._estimating_equations import jacobian

NAMES = ["screening", "weighted_screening(0.3)", "tempered_screening(0.4)", "tempered_screening(1.25)", "cross_entropy"]
SPACES = [Space(4, 2), Space(2, 3)]


def family_of(kind: str, space: Space) -> estimators.ConditionalFamily:
    if kind == "pseudolikelihood":
        return estimators.pseudolikelihood(space, list(itertools.combinations(range(space.sites), 2)))
    return estimators.autoregressive(space, kind)


def truth(family: estimators.ConditionalFamily, seed: int = 0, size: float = 0.5) -> torch.Tensor:
    draw = torch.randn(family.parameters, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return size * draw / (family.space.states - 1)


def slope(name: str, logits: np.ndarray, token: int) -> np.ndarray:
    """The gradient in the logits, from the formulas of the losses' docstrings."""
    states = len(logits)
    own = np.exp(logits) / np.exp(logits).sum()
    delta = np.eye(states)[token]
    geometric = states * np.prod(own) ** (1 / states)
    value = float(name[name.index("(") + 1 : -1]) if "(" in name else 0.0
    if name == "cross_entropy":
        return own - delta
    if not name.startswith("tempered"):
        return geometric**value * geometric / states / own[token] * (1 / states - delta)
    reference = own**value / (own**value).sum()
    trace = (geometric * (states - 1) / states) ** (1 - value) * (1 - (own**2).sum()) ** value
    return trace / (1 - (reference**2).sum()) * reference[token] / own[token] * (reference - delta)


def row_gradients(family: estimators.ConditionalFamily, theta: np.ndarray, name: str) -> np.ndarray:
    """All steps of each configuration, one after the other, (steps, p^q, parameters)."""
    design = family.design.numpy()
    found = np.zeros((*family.context.shape, family.parameters))
    for step, x in np.ndindex(*family.context.shape):
        table = design[int(family.context[step, x])]
        found[step, x] = table.T @ slope(name, table @ theta, int(family.token[step, x]))
    return found


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("kind", ["pairwise", "saturated", "independent", "pseudolikelihood"])
def test_the_conditionals_are_those_of_the_law(kind: str, space: Space) -> None:
    family = family_of(kind, space)
    theta = truth(family)
    law = family.log_law(theta).exp().numpy()
    assert law.sum() == pytest.approx(1, abs=1e-12)
    own = family.logits(theta).softmax(-1)
    for site in range(space.sites):
        shown = law.reshape((space.states,) * space.sites)
        if kind != "pseudolikelihood":  # the sites before are summed over
            shown = np.broadcast_to(shown.sum(tuple(range(site)), keepdims=True), shown.shape)
        expected = oracles.conditional(space, shown.flatten() / shown.sum(), site)
        np.testing.assert_allclose(own[family.context[site]], expected, atol=1e-12)
        assert family.token[site].tolist() == [x[site] for x in oracles.configurations(space)]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("kind", ["pairwise", "pseudolikelihood"])
@pytest.mark.parametrize("name", NAMES)
def test_the_sandwich_is_the_one_of_loops_and_finite_differences(name: str, kind: str, space: Space) -> None:
    family = family_of(kind, space)
    theta = truth(family).numpy()
    law = family.log_law(torch.from_numpy(theta)).exp().numpy()
    rows = row_gradients(family, theta, name).sum(0)
    np.testing.assert_allclose(law @ rows, 0, atol=1e-12)  # the truth is a root
    variance = rows.T @ (law[:, None] * rows)
    step = 1e-5
    ends = [
        law @ (row_gradients(family, theta + move, name) - row_gradients(family, theta - move, name)).sum(0)
        for move in step * np.eye(len(theta))
    ]
    bread = np.linalg.inv(np.stack(ends, axis=1) / (2 * step))
    found = estimators.asymptotics(family, torch.from_numpy(theta), resolve(name))
    expected = bread @ variance @ bread.T
    # Central differences err by the square of the step, 1e-10, times condition numbers of some hundreds.
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6, atol=1e-6)
    numeric = [
        (family.log_law(torch.from_numpy(theta + move)) - family.log_law(torch.from_numpy(theta - move))) / (2 * step)
        for move in step * np.eye(len(theta))
    ]
    score = torch.stack(numeric, dim=1).numpy()
    spread = np.array([s @ expected @ s for s in score])
    assert found.nll == pytest.approx(0.5 * law @ spread, rel=1e-6)
    assert found.tv == pytest.approx(0.5 * law @ np.sqrt(2 / math.pi * spread), rel=1e-6)


@pytest.mark.parametrize("space", [*SPACES, Space(3, 3)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_no_loss_beats_cross_entropy_under_hard_noise(name: str, space: Space) -> None:
    family = family_of("pairwise", space)
    for seed in range(3):
        theta = truth(family, seed, size=1.0)
        best = estimators.cramer_rao(family, theta)
        assert best.nll == pytest.approx(family.parameters / 2, rel=1e-9)
        other = estimators.asymptotics(family, theta, resolve(name)).covariance
        least = torch.linalg.eigvalsh(other - best.covariance).min()
        assert least > -1e-9 * torch.linalg.matrix_norm(other, 2)  # in every direction, not only on average
        if name == "cross_entropy":
            torch.testing.assert_close(other, best.covariance, rtol=1e-8, atol=1e-8)


def test_steps_of_a_row_have_uncorrelated_gradients_under_hard_noise() -> None:
    family = family_of("pairwise", Space(3, 3))
    theta = truth(family)
    law = family.log_law(theta).exp().numpy()
    steps = row_gradients(family, theta.numpy(), "tempered_screening(0.4)")
    for first, second in itertools.combinations(steps, 2):
        np.testing.assert_allclose(first.T @ (law[:, None] * second), 0, atol=1e-12)
    assert estimators.gain_of_whole_rows(family, theta, theta, losses.tempered_screening(0.4)) == pytest.approx(1)
    away = row_gradients(family, np.zeros(family.parameters), "tempered_screening(0.4)")
    mean = (law @ away.sum(0)) ** 2
    alone = 3 * law @ (away**2).sum((0, 2)) - mean.sum()
    together = 3 * (law @ (away.sum(0) ** 2).sum(1) - mean.sum())
    found = estimators.gain_of_whole_rows(family, theta, 0 * theta, losses.tempered_screening(0.4))
    assert found == pytest.approx(alone / together)


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_free_table_for_each_context_makes_all_losses_one(name: str, space: Space) -> None:
    family = family_of("saturated", space)
    law = torch.from_numpy(oracles.random_law(space, seed=1)) * 0.9 + 0.1 / space.size
    theta, found = estimators.solve(family, law, resolve(name))
    assert bool(found)
    torch.testing.assert_close(family.log_law(theta).exp(), law, atol=1e-8, rtol=0)
    cost = estimators.asymptotics(family, theta, resolve(name))
    assert cost.nll == pytest.approx((space.size - 1) / 2, rel=1e-8)
    assert cost.tv == pytest.approx(estimators.memorising(law, 1), rel=1e-6)  # θ is known to 1e-8


def test_pseudolikelihood_leaves_room_beyond_cross_entropy() -> None:
    family = family_of("pseudolikelihood", Space(5, 2))
    theta = estimators.spin_glass(family, 1.0)
    found = {g: estimators.efficiency(family, theta, losses.tempered_screening(g)) for g in (0.0, 0.5, 1.0, 1.25)}
    assert found[0.0] < found[0.5] < found[1.0] < found[1.25] < 1


@pytest.mark.parametrize("kind", ["pairwise", "pseudolikelihood"])
@pytest.mark.parametrize("space", [Space(4, 2), Space(4, 3)], ids=str)
def test_a_spin_glass_has_couplings_of_one_size(space: Space, kind: str) -> None:
    family = family_of(kind, space)
    # log μ(x₀ | x₁ …): fields drop out of the mixed difference, and every pair (0, v) leaves ±2 · 2β.
    logits = family.logits(estimators.spin_glass(family, 0.7))[family.context[0]].view(
        *[space.states] * space.sites, -1
    )
    for v in range(1, space.sites):
        near, far = (logits.select(v, token) for token in (0, 1))
        mixed = near[..., 0] - near[..., 1] - far[..., 0] + far[..., 1]
        torch.testing.assert_close(mixed.abs(), torch.full_like(mixed, 4 * 0.7))


@pytest.mark.parametrize("space", [Space(4, 2), Space(3, 3)], ids=str)
def test_a_family_too_small_ends_nearest_in_kl_by_cross_entropy(space: Space) -> None:
    family = family_of("pairwise", space)
    law = torch.from_numpy(oracles.random_law(space, seed=2)) * 0.8 + 0.2 / space.size
    best = estimators.limit(family, law, cross_entropy)
    assert best.kl == pytest.approx(float((law * (law.log() - family.log_law(best.theta))).sum()))
    assert best.tv == pytest.approx(0.5 * float((law - family.log_law(best.theta).exp()).abs().sum()))
    for name in NAMES[:-1]:
        other = estimators.limit(family, law, resolve(name))
        assert other.kl > best.kl
        rows = row_gradients(family, other.theta.numpy(), name).sum(0)
        np.testing.assert_allclose(law.numpy() @ rows, 0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_newton_sees_the_weights_move(name: str) -> None:
    family = family_of("pairwise", Space(2, 3))
    theta, law = truth(family), torch.from_numpy(oracles.random_law(family.space, seed=3))  # far from the family's own
    counts, step = family.counts(law), 1e-4
    expected = [
        (row_gradients(family, end.numpy(), name).sum(0).T @ law.numpy()) / (2 * step)
        for move in step * torch.eye(family.parameters, dtype=torch.float64)
        for end in (theta + move, theta - move)
    ]
    slopes = np.stack([high - low for high, low in zip(expected[::2], expected[1::2], strict=True)], axis=1)
    # Both are central differences: the steps' squares, 1e-8, times third derivatives of some tens.
    np.testing.assert_allclose(jacobian(family, theta, counts, resolve(name)), slopes, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_estimates_from_many_rows_cost_what_the_formula_says(gamma: float) -> None:
    family = family_of("pairwise", Space(3, 2))
    theta = estimators.spin_glass(family, 0.6)
    law, rows, repeats = family.log_law(theta).exp(), 20_000, 400
    counts = np.random.default_rng(0).multinomial(rows, law.numpy() / float(law.sum()), size=repeats)
    loss = losses.tempered_screening(gamma)
    found, converged = estimators.solve(family, torch.from_numpy(counts / rows), loss)
    assert bool(converged.all())
    kl, tv = estimators.errors(family, found, law)
    cost = estimators.asymptotics(family, theta, loss)
    for values, expected in ((kl, cost.nll / rows), (tv, cost.tv / rows**0.5)):
        # Five standard errors of the mean, and one per cent for what is of the next order in 1/√N.
        tolerance = 5 * float(values.std()) / repeats**0.5 + 0.01 * expected
        assert float(values.mean()) == pytest.approx(expected, abs=tolerance)


def test_screening_is_equally_loud_in_every_context() -> None:
    for rare in (0.5, 0.1, 1e-3, 1e-6):
        conditional = torch.tensor([rare, 1 - rare], dtype=torch.float64)
        loud = estimators.context_noise(screening, conditional)
        score = estimators.context_noise(cross_entropy, conditional)
        weight = 2 * math.sqrt(rare * (1 - rare))
        # In the field g = (f₁ − f₀)/2 of a spin, of which each logit has half: 1, w and w².
        assert loud == pytest.approx((weight / 2, 0.5, weight**2 / 2))
        assert score == pytest.approx((weight**2 / 2,) * 3)


def test_many_blank_contexts_drown_screening() -> None:
    rare, shares = torch.tensor([0.5, 0.2, 0.001], dtype=torch.float64), torch.tensor([0.1, 0.2, 0.7])
    weight = 2 * (rare * (1 - rare)).sqrt()
    conditionals = torch.stack([rare, 1 - rare], dim=1)
    for alpha in (0.0, 0.5, 1.0):
        means = [float((shares * weight**power).sum()) for power in (1 + alpha, 2 * alpha, 2)]
        found = estimators.pooled_efficiency(losses.weighted_screening(alpha), conditionals, shares)
        assert found == pytest.approx(means[0] ** 2 / (means[1] * means[2]))


def test_signal_along_a_path_is_that_of_loops() -> None:
    family = family_of("pairwise", Space(2, 3))
    goal, here = truth(family), 1.7 * truth(family)
    law = family.log_law(goal).exp().numpy()
    pulls = row_gradients(family, here.numpy(), "screening").sum(0) @ (here - goal).numpy()
    expected = (law @ pulls) ** 2 / (law @ pulls**2 - (law @ pulls) ** 2)
    assert estimators.path_signal(family, goal, here, screening) == pytest.approx(expected)


@pytest.mark.parametrize("states", [2, 3, 5])
def test_the_pseudospherical_score_joins_screening_and_cross_entropy(states: int) -> None:
    logits = torch.randn(30, states, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tokens = torch.arange(30) % states

    def gradient(loss: losses.Loss) -> torch.Tensor:
        leaf = logits.clone().requires_grad_()
        return torch.autograd.grad(loss(leaf, tokens).sum(), leaf)[0]

    torch.testing.assert_close(gradient(estimators.pseudospherical(1e-7)), gradient(screening), atol=1e-4, rtol=1e-4)
    near = gradient(estimators.pseudospherical(1 - 1e-7))
    torch.testing.assert_close(near, gradient(cross_entropy), atol=1e-4, rtol=1e-4)
    if states == 2:  # for two states the middle is screening once more
        torch.testing.assert_close(gradient(estimators.pseudospherical(0.5)), gradient(screening))
    for row, token in zip(logits, tokens, strict=True):
        hessian = torch.autograd.functional.hessian(lambda f, x=token: estimators.pseudospherical(0.3)(f, x), row)
        assert torch.linalg.eigvalsh(hessian).min() > -1e-12


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="pairwise, saturated, independent"):
        estimators.autoregressive(Space(2, 3), "cubic")
    with pytest.raises(ValueError, match="between 0 and 1"):
        estimators.pseudospherical(1.0)
    with pytest.raises(ValueError, match="has others"):
        estimators.spin_glass(estimators.autoregressive(Space(3, 2), "saturated"), 1.0)
    with pytest.raises(ValueError, match="too many to enumerate"):
        estimators.autoregressive(Space(20, 2))
    with pytest.raises(ValueError, match="sums to"):
        estimators.limit(estimators.autoregressive(Space(2, 2)), torch.ones(4), cross_entropy)
