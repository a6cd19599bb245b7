"""Discrete flow matching with the true posterior in the place of the network: what it samples, and what its losses want."""

import numpy as np
import oracles
import pytest
import torch
from flows import exact, random_law
from torch import Tensor, nn

from neurise.laws import distance
from neurise.models._dfm.objective import Example, PosteriorObjective
from neurise.models._dfm.path import JumpWalk, Path
from neurise.models.dfm import SOURCES, JumpChain
from neurise.sampling import parallel
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3)]
IDS = ["4 spins", "2 sites of 3"]


def chain(
    law: Tensor, space: Space, steps: int, source: str, jump: str = "hazard", grid: str = "even", exponent: float = 2.0
) -> JumpChain:
    denoiser = exact(law, space, source, exponent)
    return JumpChain(denoiser, steps, JumpWalk(Path(source, exponent), steps, jump, grid))


def tv(law: Tensor, *args: object) -> float:
    return distance(parallel.law(chain(law, *args)), law)  # type: ignore[arg-type]


# --- sampling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", ["even", "time"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_four_times_the_steps_bring_the_law_four_times_nearer(space: Space, source: str, grid: str) -> None:
    law = random_law(space)
    coarse, fine = (tv(law, space, steps, source, "hazard", grid) for steps in (32, 128))
    # The distance is c/N + O(1/N²), so that the ratio is 4 up to O(1/N): a tenth where the constants are of one size.
    assert coarse / fine == pytest.approx(4, rel=0.1)
    assert fine < 0.02


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_euler_jumps_converge_too(space: Space, source: str) -> None:
    law = random_law(space)
    coarse, fine = (tv(law, space, steps, source, "euler", "time") for steps in (32, 128))
    # The rate is singular at the data, which costs uniform noise up to a factor log N: four times the steps give at
    # least 4 log 32 / log 128 = 2.9.
    assert coarse / fine > 2.5
    assert tv(law, space, 32, source, "hazard", "time") < coarse


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_an_even_grid_beats_equal_times(space: Space, source: str) -> None:
    law = random_law(space)
    assert tv(law, space, 32, source, "hazard", "even") < 0.8 * tv(law, space, 32, source, "hazard", "time")


@pytest.mark.parametrize("exponent", [0.5, 2.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("grid", ["even", "time"])
@pytest.mark.parametrize("source", SOURCES)
def test_with_one_site_integrated_hazards_are_exact(source: str, grid: str, steps: int, exponent: float) -> None:
    space = Space(sites=1, states=3)
    law = random_law(space)
    drawn = parallel.law(chain(law, space, steps, source, "hazard", grid, exponent))
    torch.testing.assert_close(drawn, law, rtol=0, atol=1e-12)


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_impossible_is_not_drawn(source: str) -> None:
    space = SPACES[1]
    law = random_law(space, zeros=0.4)
    marginals = law.view(3, 3).sum(0), law.view(3, 3).sum(1)
    drawn = parallel.law(chain(law, space, 64, source))
    assert (law == 0).any()
    assert bool(drawn.isfinite().all())
    assert float(drawn.sum()) == pytest.approx(1, abs=1e-12)
    assert all(float(marginal.min()) > 0 for marginal in marginals)
    assert distance(drawn, law) < 0.02


@pytest.mark.parametrize("grid", ["even", "time"])
@pytest.mark.parametrize("source", SOURCES)
def test_the_first_euler_step_never_moves(source: str, grid: str) -> None:
    space = SPACES[0]
    for jump, moves in (("euler", False), ("hazard", True)):
        reverse = chain(random_law(space), space, 16, source, jump, grid)
        x = reverse.start(5, generator=torch.Generator().manual_seed(0))
        stay = reverse.log_step(15, x, None).exp().gather(-1, x.long()[..., None])
        assert bool((stay < 1).all()) == moves
        assert bool((stay == 1).all()) != moves


@pytest.mark.parametrize("jump", ["hazard", "euler"])
@pytest.mark.parametrize("grid", ["even", "time"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_steps_are_laws_and_the_last_one_always_jumps(exponent: float, source: str, grid: str, jump: str) -> None:
    space = SPACES[0]
    reverse = chain(random_law(space), space, 8, source, jump, grid, exponent)
    jumps = [reverse.walk.jump_probability(step, reverse.walk.noised(step - 1)) for step in range(8)]
    assert jumps[0] == 1
    assert all(0 <= probability <= 1 for probability in jumps)
    assert [reverse.walk.noised(step) for step in (7, -1)] == [1, 0]
    x = reverse.start(5, generator=torch.Generator().manual_seed(0))
    for step in range(8):
        total = reverse.log_step(step, x, None).exp().sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)
    if source == "mask":
        assert bool((reverse.log_step(0, x, None)[..., space.states] == -torch.inf).all())


# --- losses ------------------------------------------------------------------------------------------------------------


class Shifted(nn.Module):
    """A network whose logits are moved by a number of its own for every state, site and token."""

    def __init__(self, network: nn.Module, space: Space, shift: Tensor) -> None:
        super().__init__()
        self.network, self.space, self.shift = network, space, shift

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        output: Tensor = self.network(t, x, y) + self.shift[self.space.index(x)]
        return output


def expected(space: Space, source: str, loss: str, t: float, shift: Tensor) -> Tensor:
    """Mean loss at time t, over every x_1 and every state that it can be noised to."""
    law = random_law(space)
    denoiser = exact(law, space, source)
    noise = denoiser.noise
    states = Space(space.sites, noise.tokens)
    kernel = noise.kernel(torch.tensor((1 - t) ** 2, dtype=torch.float64))
    x_1 = space.configurations().repeat_interleave(states.size, 0)
    x = parallel._configurations(torch.arange(states.size), states).repeat(space.size, 1)
    weight = law.repeat_interleave(states.size) * kernel[x_1.long(), x.long()].prod(-1)
    possible = weight > 0
    v = torch.full((int(possible.sum()),), 1 - (1 - t) ** 2, dtype=torch.float64).sqrt()
    example = Example(v, x[possible], None, x_1[possible])
    objective = PosteriorObjective(denoiser, Path(source, 2.0), loss)
    losses = objective.losses(Shifted(denoiser.network, states, shift), example)
    return (weight[possible] * losses).sum()


@pytest.mark.parametrize("t", [0.05, 0.4, 0.95])
@pytest.mark.parametrize("loss", ["cross_entropy", "generalised_kl"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_both_losses_are_least_at_the_true_posterior(space: Space, source: str, loss: str, t: float) -> None:
    tokens = SOURCES[source](space).tokens
    shift = torch.zeros(tokens**space.sites, space.sites, space.states, dtype=torch.float64, requires_grad=True)
    least = expected(space, source, loss, t, shift)
    (gradient,) = torch.autograd.grad(least, shift)
    assert float(gradient.abs().max()) < 1e-12
    for seed in range(3):
        noise = torch.randn(shift.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        near, far = (float(expected(space, source, loss, t, scale * noise)) for scale in (0.1, 0.5))
        assert float(least.detach()) < near < far


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_least_cross_entropy_is_the_entropy_of_the_data_given_the_noised_state(space: Space, source: str) -> None:
    t, law = 0.4, random_law(space).numpy()
    keep = (1 - t) ** 2
    tokens = SOURCES[source](space).tokens
    entropy = 0.0
    for x in oracles.configurations(Space(space.sites, tokens)):
        joint = law.copy()
        for place, x_1 in enumerate(oracles.configurations(space)):
            for noised, clean in zip(x, x_1, strict=True):
                redrawn = (1 - keep) * (noised == space.states if source == "mask" else 1 / space.states)
                joint[place] *= keep * (noised == clean) + redrawn
        if joint.sum() == 0:
            continue
        for site in range(space.sites):
            share = joint.reshape([space.states] * space.sites)
            share = share.sum(axis=tuple(other for other in range(space.sites) if other != site))
            posterior = share[share > 0] / joint.sum()
            entropy -= float(share[share > 0] @ np.log(posterior))
    zero = torch.zeros(tokens**space.sites, space.sites, space.states, dtype=torch.float64)
    assert float(expected(space, source, "cross_entropy", t, zero)) == pytest.approx(entropy, abs=1e-12)
