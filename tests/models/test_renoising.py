"""Chains that noise sites again: the published step, the same marginals, and the law in the limit of many steps."""

from collections.abc import Callable
from typing import Any

import masking
import numpy as np
import oracles
import pytest
import sedd_truth
import tiny
import torch
from denoisers import exact as exact_posterior
from flows import exact
from torch import Tensor

from neurise import exact as laws
from neurise.modeling.renoising import RenoisingChain
from neurise.models._dfm.path import JumpWalk, Path
from neurise.models.d3pm import D3PMChain, make_steps
from neurise.models.dfm import JumpChain
from neurise.models.md4 import MaskingChain
from neurise.models.sedd import ScoreChain
from neurise.noise.absorbing import Absorbing
from neurise.noise.uniform import Uniform
from neurise.sampling import parallel
from neurise.space import Space

Make = Callable[[Tensor, Space, int, float], RenoisingChain]


def flow(source: str, jump: str = "hazard", grid: str = "even") -> Make:
    def make(law: Tensor, space: Space, steps: int, renoise: float) -> RenoisingChain:
        walk = JumpWalk(Path(source, 2.0), steps, jump, grid)
        return JumpChain(exact(law, space, source), steps, walk, renoise=renoise)

    return make


def score(noise: str, sampler: str = "analytic", schedule: str = "loglinear") -> Make:
    def make(law: Tensor, space: Space, steps: int, renoise: float) -> RenoisingChain:
        network = sedd_truth.ExactScore(law.numpy(), space, noise, schedule)
        denoiser, made, levels = sedd_truth.parts(noise, schedule, space, network)
        return ScoreChain(denoiser, steps + 1, made, levels, sampler, renoise=renoise)

    return make


def learnt_schedules(law: Tensor, space: Space, steps: int, renoise: float) -> RenoisingChain:
    network = masking.ExactMasks(law, space, masking.exponents(space, 2.0), 3.0)
    return MaskingChain(masking.denoiser(network, space), steps, 3.0, renoise=renoise)


def timesteps(noise: type[Absorbing] | type[Uniform]) -> Make:
    def make(law: Tensor, space: Space, steps: int, renoise: float) -> RenoisingChain:
        made = noise(space)
        walk = make_steps(made, steps, posterior="exact", offset=False, device=torch.device("cpu"))
        denoiser = exact_posterior(law, made, lambda t: walk.keep[(t * steps).round().long()])
        return D3PMChain(denoiser, steps, walk, renoise=renoise)

    return make


EXACT_STEPS: dict[str, Make] = {
    "timesteps, absorbing": timesteps(Absorbing),
    "timesteps, uniform": timesteps(Uniform),
    "flow, mask": flow("mask"),
    "flow, uniform": flow("uniform"),
    "score, absorbing": score("absorbing"),
    "score, uniform": score("uniform"),
    "learnt schedules": learnt_schedules,
}
CHAINS = EXACT_STEPS | {
    "flow, mask, Euler": flow("mask", "euler", "time"),
    "score, absorbing, Euler": score("absorbing", "euler"),
    "score, uniform, geometric": score("uniform", schedule="geometric"),
}


def random_law(space: Space) -> Tensor:
    return torch.tensor(oracles.random_law(space, 0))


@pytest.mark.parametrize("renoise", [0.5, 3.0, 100.0])
def test_a_step_with_masks_is_the_published_one(renoise: float) -> None:
    r"""With :math:`\rho` the probability of a new mask and :math:`\alpha_t \to \alpha_s`, a mask is shown with probability
    :math:`(\alpha_s - (1 - \rho)\alpha_t)/(1 - \alpha_t)`, and a token is masked with probability ρ."""
    space, steps = Space(2, 3), 8
    law = random_law(space)
    chain = flow("mask")(law, space, steps, renoise)
    x = torch.tensor([[0, 3], [3, 3], [2, 1]], dtype=torch.int16)
    for step in range(1, steps - 1):  # before the first step there are masks alone
        before, after = 1 - (step + 1) / steps, 1 - step / steps
        again = (1 - after) * min(renoise / steps, 1)
        found = chain.log_step(step, x, None).exp().numpy()
        mu = chain.denoiser.network(torch.tensor([0.5]), x).softmax(-1).numpy()  # masks say the same at all times
        for row, site in np.ndindex(3, 2):
            expected, held = np.zeros(4), int(x[row, site])
            if held == 3:
                expected[:3] = (after - (1 - again) * before) / (1 - before) * mu[row, site]
                expected[3] = (1 - after - again * before) / (1 - before)
            else:
                expected[held], expected[3] = 1 - again, again
            assert found[row, site] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", EXACT_STEPS)
@pytest.mark.parametrize("renoise", [0.7, 50.0])
def test_with_one_site_nothing_is_lost(name: str, renoise: float) -> None:
    law = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    chain = EXACT_STEPS[name](law, Space(1, 3), 6, renoise)
    # The log-linear and the cosine schedule of uniform noise start up to 10⁻³ from pure noise.
    tolerance = 1e-3 if name in ("score, uniform", "timesteps, uniform") else 1e-9
    assert oracles.tv(parallel.law(chain).numpy(), law.numpy()) < tolerance


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("space", [Space(3, 2), Space(2, 3)], ids=["3 sites, 2 states", "2 sites, 3 states"])
def test_four_times_the_steps_come_four_times_as_near(name: str, space: Space) -> None:
    law = random_law(space)

    def distance(steps: int) -> float:
        found = parallel.law(CHAINS[name](law, space, steps, 2.0))
        assert float(found.sum()) == pytest.approx(1, abs=1e-9)  # no mask is left
        return oracles.tv(found.numpy(), law.numpy())

    coarse, fine = distance(32), distance(128)
    # First order: 4 + O(1/32). Log-linear uniform noise starts up to 1.5 · 10⁻³ from its end; see SEDD.
    assert 3.5 < coarse / fine < 5.1
    assert fine < 0.03


@pytest.mark.parametrize("name", EXACT_STEPS)
@pytest.mark.parametrize("space", [Space(3, 2), Space(2, 3)], ids=["3 sites, 2 states", "2 sites, 3 states"])
def test_a_perfect_network_has_no_use_for_it_and_loses_little(name: str, space: Space) -> None:
    law = random_law(space)
    found = (parallel.law(EXACT_STEPS[name](law, space, 128, renoise)) for renoise in (0.0, 4.0))
    without, with_it = (oracles.tv(part.numpy(), law.numpy()) for part in found)
    assert without < with_it < 1.5 * without


@pytest.mark.parametrize("name", ["d3pm", "dfm", "sedd", "md4", "udlm"])
def test_it_is_an_option_of_a_fitted_model(name: str) -> None:
    model = tiny.model(name).fit(tiny.spins(), max_steps=20)
    before = laws.law(model).numpy()
    after = laws.law(model.set_params(renoise=2.0)).numpy()
    assert after.sum() == pytest.approx(1, abs=1e-9)
    assert 1e-6 < oracles.tv(before, after) < 0.5
    assert set(np.unique(model.sample(200, seed=0))) <= {-1, 1}
    assert np.array_equal(laws.law(model.set_params(renoise=0)).numpy(), before)


@pytest.mark.parametrize("name", ["d3pm", "dfm", "sedd", "md4", "udlm"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2", None])
def test_an_impossible_number_is_shown(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"renoise must be a number, not negative, got .*{value}"):
        tiny.model(name, renoise=value).fit(tiny.spins(), max_steps=2)
    model = tiny.model(name).fit(tiny.spins(), max_steps=2)
    with pytest.raises(ValueError, match="renoise must be a number"):
        model.set_params(renoise=value).sample(2)
