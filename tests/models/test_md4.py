"""Masked diffusion with learnt schedules against enumeration: its bound, its gradient, its sampler."""

import itertools
import math
from dataclasses import replace
from typing import Any

import masking
import numpy as np
import oracles
import pytest
import tiny
import torch
from torch import Tensor

from neurise.models._md4.objective import Example, MaskingObjective
from neurise.models.md4 import MaskingChain
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
each_spread = pytest.mark.parametrize("spread", [1.0, 2.5])


def law_of(space: Space) -> Tensor:
    return torch.tensor(oracles.random_law(space, seed=0))


def levels(space: Space, *chosen: tuple[bool, ...]) -> Tensor:
    """Levels that mask just the chosen sites: below every probability, or above."""
    return torch.tensor([[[0.0 if masked else 1.0 for masked in sites] for sites in chosen]], dtype=torch.float64)


def example(space: Space, v: float, x_0: Tensor, *chosen: tuple[bool, ...]) -> Example:
    return Example(torch.tensor([v], dtype=torch.float64), levels(space, *chosen), None, x_0[None])


@each_space
@each_spread
def test_the_terms_are_the_published_ones(space: Space, spread: float) -> None:
    r"""The paper's integrand, :math:`\alpha'/(1 - \alpha) \cdot (x_0 - \mu + x_0 x_0^T \log \mu)` at masked sites, by loops."""
    network = masking.AnyPrediction(space, masking.exponents(space, spread))
    objective, v = MaskingObjective(masking.denoiser(network, space), spread), 0.6
    t = v**objective.power
    network.requires_grad_(False)
    for x_0, chosen in itertools.product(space.configurations(), masking.subsets(space.sites)):
        found = objective.terms(network, example(space, v, x_0, chosen))
        x = torch.where(torch.tensor(chosen), space.states, x_0.to(torch.int16))
        mu = network(None, x[None])[0].softmax(-1)
        loss, chance = 0.0, 1.0
        for site in range(space.sites):
            w = [math.exp(float(part)) for part in network.log_w[site]]
            alpha = [1 - t**power for power in w]
            rate = [-power * t ** (power - 1) / (1 - kept) for power, kept in zip(w, alpha, strict=True)]
            own = int(x_0[site])
            chance *= 1 - alpha[own] if chosen[site] else alpha[own]
            if chosen[site]:
                for a in range(space.states):
                    inner = (a == own) - float(mu[site, a]) + (a == own) * math.log(mu[site, a])
                    loss += rate[a] * inner
        slope = objective.power * v ** (objective.power - 1)  # dt/dv
        assert float(found.loss) == pytest.approx(loss * slope, rel=1e-9, abs=1e-12)
        assert float(found.log_chance) == pytest.approx(math.log(chance), rel=1e-9)


@each_space
def test_the_gradient_of_the_schedules_is_that_of_the_expected_loss(space: Space) -> None:
    network = masking.AnyPrediction(space, masking.exponents(space, 2.0))
    objective, v, x_0 = MaskingObjective(masking.denoiser(network, space), 2.0), 0.7, space.configurations()[3]
    every = list(masking.subsets(space.sites))
    terms = [objective.terms(network, example(space, v, x_0, chosen)) for chosen in every]
    chances = torch.cat([term.log_chance.exp() for term in terms]).flatten()
    assert float(chances.detach().sum()) == pytest.approx(1, abs=1e-12)
    expected = (chances * torch.cat([term.loss for term in terms]).flatten()).sum()
    true = torch.autograd.grad(expected, list(network.parameters()))
    estimate = torch.zeros((), dtype=torch.float64)
    for (first, one), (second, two) in itertools.product(zip(every, chances, strict=True), repeat=2):
        (loss,) = objective.losses(network, example(space, v, x_0, first, second))
        estimate = estimate + (one * two).detach() * loss
    assert float(estimate.detach()) == pytest.approx(float(expected.detach()), rel=1e-12)
    for mean, gradient in zip(torch.autograd.grad(estimate, list(network.parameters())), true, strict=True):
        torch.testing.assert_close(mean, gradient, rtol=1e-9, atol=1e-12)


@each_space
def test_each_row_is_masked_twice_at_its_own_time(space: Space) -> None:
    """Terms of rows at several times are those of each row alone, with a network that looks at the time."""
    network = masking.ExactMasks(law_of(space), space, masking.exponents(space, 2.0), 3.0)
    objective = MaskingObjective(masking.denoiser(network, space), 2.0)
    first, second = (True, *[False] * (space.sites - 1)), (*[False] * (space.sites - 1), True)
    alone = [example(space, v, space.configurations()[place], first, second) for v, place in ((0.3, 1), (0.9, 4))]
    v, level, x_0 = (torch.cat(part) for part in zip(*((own.v, own.level, own.x_0) for own in alone), strict=True))
    together = objective.terms(network, Example(v, level, None, x_0))
    for row, own in enumerate(alone):
        for found, wanted in zip(together, objective.terms(network, own), strict=True):
            torch.testing.assert_close(found[row], wanted[0], rtol=1e-12, atol=0)


def test_a_site_that_never_varies_has_no_part_at_the_end_of_time() -> None:
    """At t = 1 it is not masked, though its schedule says that it is for certain; rounding draws such times now and then."""
    space = Space(3, 2)
    network = masking.AnyPrediction(space, masking.exponents(space, 2.0))
    denoiser = replace(masking.denoiser(network, space), constant=torch.tensor([-1, 1, -1]))
    drawn = example(space, 1.0, torch.tensor([0, 1, 1]), (True, True, True), (True, True, True))
    (loss,) = MaskingObjective(denoiser, 2.0).losses(network, drawn)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    assert bool(loss.isfinite())
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@each_space
@each_spread
def test_the_bound_is_the_likelihood_for_the_true_prediction(space: Space, spread: float) -> None:
    law, draws = law_of(space), 300
    log_w = masking.exponents(space, spread)
    network = masking.ExactMasks(law, space, log_w, 1.5 * spread)
    objective = MaskingObjective(masking.denoiser(network, space), spread)
    x = space.configurations().repeat(draws, 1)
    values = objective.bound(x, None, generator=torch.Generator().manual_seed(0)).view(draws, -1).numpy()
    error = values.std(axis=0, ddof=1) / math.sqrt(draws)
    # One mean of nine leaves six standard errors less often than once in 10⁷.
    assert (np.abs(values.mean(axis=0) - law.log().numpy()) < 6 * error).all()
    assert error.max() < 0.15


@each_space
@each_spread
def test_four_times_the_steps_come_four_times_as_near(space: Space, spread: float) -> None:
    law = law_of(space)
    network = masking.ExactMasks(law, space, masking.exponents(space, spread), 1.5 * spread)
    chain = MaskingChain(masking.denoiser(network, space), 1, 1.5 * spread)

    def distance(steps: int) -> float:
        found = parallel.law(MaskingChain(chain.denoiser, steps, chain.power))
        assert float(found.sum()) == pytest.approx(1, abs=1e-12)  # no mask is left
        return oracles.tv(found.numpy(), law.numpy())

    # First order, c/N + O(1/N²).
    assert distance(32) / distance(128) == pytest.approx(4, rel=0.1)
    assert distance(128) < 0.02


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_with_one_site_every_number_of_steps_is_exact(steps: int) -> None:
    space, law = Space(1, 3), torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    network = masking.ExactMasks(law, space, masking.exponents(space, 3.0), 4.5)
    chain = MaskingChain(masking.denoiser(network, space), steps, 4.5)
    torch.testing.assert_close(parallel.law(chain), law, rtol=0, atol=1e-12)


def test_a_site_that_explains_others_better_than_they_explain_it_learns_to_be_shown_first() -> None:
    """Two equal sites, and a network that finds the second from the first but not the first from the second."""
    space = Space(2, 3)
    network = masking.AnyPrediction(space, torch.zeros(2, 3, dtype=torch.float64))
    network.table.requires_grad_(False).zero_()
    for a in range(3):
        x = torch.tensor([a, 3])
        network.table[(x * network.place).sum(), 1, a] = 4.0
    objective, generator = MaskingObjective(masking.denoiser(network, space), 2.0), torch.Generator().manual_seed(0)
    descent = torch.optim.Adam([network.log_w], lr=0.05)
    for _ in range(60):
        x_0 = torch.randint(3, (256, 1), generator=generator).expand(-1, 2)
        descent.zero_grad()
        objective.losses(network, objective.draw(Batch(x_0), generator=generator)).mean().backward()
        descent.step()
    first, second = network.log_w.detach().exp()
    # Shown in one order the sites cost log 3 and next to nothing, in the other twice log 3.
    assert float(first.min()) > 2 * float(second.max())


@pytest.mark.parametrize("spread", [0.5, 0, -1, 9, math.nan, "2", None])
def test_an_impossible_spread_is_shown(spread: Any) -> None:
    with pytest.raises(ValueError, match=f"spread must be a number from 1 to 8, got .*{spread}"):
        tiny.model("md4", spread=spread).fit(tiny.spins(), max_steps=2)


@pytest.mark.parametrize("spread", [1, 3])
@pytest.mark.parametrize("states", [1, 2, 256])
def test_any_number_of_states(states: int, spread: float) -> None:
    X = (np.arange(states * 2).reshape(-1, 2) % states).repeat(4, axis=0)
    model = tiny.model("md4", sampling_steps=3, spread=spread).fit(X, max_steps=3)
    assert set(np.unique(model.sample(200, seed=0))) <= set(range(states))
    assert np.isfinite(model.elbo(X[:2], seed=0, draws=2).value).all()


@pytest.mark.parametrize("steps", [0, 2.5])
def test_how_to_sample_is_checked_after_the_fit_too(steps: object) -> None:
    model = tiny.model("md4").fit(tiny.spins(), max_steps=2)
    assert model.set_params(sampling_steps=1).sample(3).shape == (3, 3)
    with pytest.raises(ValueError, match=f"sampling_steps must be .*{steps}"):
        model.set_params(sampling_steps=steps).sample(2)
