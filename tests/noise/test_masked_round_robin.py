"""Noise that masks: laws over p + 1 tokens, bounds, clamped sites, and models that use it."""

import math

import chi_square
import noisy
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import exact, likelihood, load
from neurise.noise.masked_round_robin import MaskedRoundRobin
from neurise.noise.round_robin import RoundRobin
from neurise.sampling import clamped
from neurise.sampling.clamped import sample_clamped
from neurise.sampling.reverse import reverse, sample
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3), Space(sites=2, states=4)]
KEEP_PROBS = [0.0, 0.3, 0.9]
MASKED = "masked_round_robin"


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("hide_noised", [True, False])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_from_masks_exact_conditionals_give_the_data_law(
    space: Space, keep_prob: float, hide_noised: bool, zeros: float
) -> None:
    """However soft the noise, and however many steps: which sites are masked does not depend on the data."""
    pmf = oracles.random_law(space, seed=5, zeros=zeros)
    for steps in (space.sites, space.sites + 1, 2 * space.sites, 3 * space.sites - 1):
        noise = MaskedRoundRobin(space, keep_prob, steps=steps)
        conditionals = exact.ExactConditionals(pmf, noise, hide_noised=hide_noised)
        np.testing.assert_allclose(exact.law(conditionals), pmf, atol=1e-13)
        last = exact.noised(pmf, noise, noise.num_steps)
        np.testing.assert_allclose(exact.law(conditionals, start=last), pmf, atol=1e-13)
        np.testing.assert_allclose(exact.law(conditionals, start=pmf), pmf, atol=1e-13)  # nothing is masked: all stays


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_the_law_of_a_network_equals_its_kernels(space: Space, keep_prob: float) -> None:
    for steps, hide in ((space.sites, False), (2 * space.sites + 1, True)):
        model = noisy.untrained_with(MaskedRoundRobin(space, keep_prob, steps=steps), hide_noised=hide)
        expected = noisy.chain(model.conditionals, noisy.start(model.conditionals.noise))
        assert expected.sum() == pytest.approx(1)
        np.testing.assert_allclose(exact.law(model), expected, atol=1e-13)


@pytest.mark.parametrize(("keep_prob", "steps"), [(0.0, 2), (0.5, 5)])
def test_rows_follow_the_exact_law(keep_prob: float, steps: int) -> None:
    space, n = SPACES[1], 20_000
    model = noisy.untrained_with(MaskedRoundRobin(space, keep_prob, steps=steps))
    rows = sample(model.conditionals, n, generator=torch.Generator().manual_seed(1))
    assert rows.dtype == torch.uint8
    chi_square.assert_drawn_from(space.index(rows).numpy(), exact.law(model).numpy())


def test_rows_may_start_from_noised_rows() -> None:
    space, n, generator = SPACES[1], 20_000, torch.Generator().manual_seed(2)
    noise = MaskedRoundRobin(space, 0.5, steps=3)
    model, pmf = noisy.untrained_with(noise), oracles.random_law(space, seed=3)
    data = torch.from_numpy(oracles.draw(space, pmf, n, seed=4)).to(torch.uint8)
    begin = noise.corrupt(data, torch.full((n,), noise.num_steps), generator=generator)
    rows = sample(model.conditionals, n, generator=generator, start=begin)
    law = exact.law(model, start=exact.noised(pmf, noise, noise.num_steps))
    chi_square.assert_drawn_from(space.index(rows).numpy(), law.numpy())
    assert oracles.tv(law.numpy(), exact.law(model).numpy()) > 0.01  # otherwise nothing was tested


def test_the_law_agrees_with_constant_sites() -> None:
    space, n = SPACES[2], 20_000
    noise = MaskedRoundRobin(space, 0.4, steps=5)
    never = exact.law(noisy.untrained_with(noise, constant=(2, -1))).view(4, 4)
    assert float(never[[0, 1, 3]].sum()) == 0
    model = noisy.untrained_with(noise, constant=(2, -1), unseen=0.05)
    law = exact.law(model)
    np.testing.assert_allclose(law.view(4, 4).sum(1), [0.05, 0.05, 0.85, 0.05], atol=1e-12)
    np.testing.assert_allclose(law, noisy.chain(model.conditionals, noisy.start(noise)), atol=1e-13)
    rows = sample(model.conditionals, n, generator=torch.Generator().manual_seed(1))
    chi_square.assert_drawn_from(space.index(rows).numpy(), law.numpy())


@pytest.mark.parametrize("cycles", [1, 2])
def test_hard_noise_is_the_hidden_round_robin_chain(cycles: int) -> None:
    space = Space(sites=3, states=4)
    everything = space.configurations()
    ours, theirs = (
        noisy.untrained_with(kind(space, 0.0, cycles)).conditionals for kind in (MaskedRoundRobin, RoundRobin)
    )
    assert ours.is_autoregressive
    theirs.plan = lambda view: None  # type: ignore[method-assign,assignment]  # masks have none: the same sums for both
    found = likelihood.log_prob(ours, everything)
    # One is evaluated row by row, the other updated site by site: float64, so all that differs is rounding.
    torch.testing.assert_close(found, likelihood.log_prob(theirs, everything), atol=1e-12, rtol=0)
    np.testing.assert_allclose(found.exp(), exact.chain_law(ours), atol=1e-13)
    np.testing.assert_allclose(exact.chain_law(theirs), exact.chain_law(ours), atol=1e-13)
    bound = likelihood.elbo(ours, everything, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(bound, found, atol=1e-12, rtol=0)
    assert not noisy.untrained_with(MaskedRoundRobin(space, 0.1)).conditionals.is_autoregressive
    assert not noisy.untrained_with(MaskedRoundRobin(space, 0.0), hide_noised=False).conditionals.is_autoregressive


def enumerated_elbo(conditionals: object, place: int) -> float:
    """−E log q(path | x_0) / p(path), over all paths of the noise that end in masks, step by step over configurations."""
    noise = conditionals.noise  # type: ignore[attr-defined]
    laws, ends = noisy.laws(noise, np.eye(noise.space.size)[place]), [noisy.start(noise)]
    for t in reversed(range(noise.num_steps)):
        ends.append(noisy.forward(noise, t).T @ ends[-1])
    ends.reverse()  # ends[t]: the chance to end in masks alone, from each state at time t
    total = 0.0
    for t in range(noise.num_steps):
        joint = noisy.forward(noise, t) * laws[t] * ends[t + 1][:, None]  # [x_{t+1}, x_t]
        joint /= joint.sum()
        learnt = noisy.backward(noise, t, noisy.answers(conditionals, t, t % noise.space.sites))  # [x_t, x_{t+1}]
        for later, earlier in np.argwhere(joint > 0):
            q = joint[later, earlier] / joint[later].sum()
            total -= joint[later, earlier] * math.log(q / learnt[earlier, later])
    return total


@pytest.mark.parametrize(("keep_prob", "steps"), [(0.3, 4), (0.8, 5)])
def test_the_bound_is_unbiased_and_below_the_likelihood(keep_prob: float, steps: int) -> None:
    space, draws = SPACES[1], 4000
    model = noisy.untrained_with(MaskedRoundRobin(space, keep_prob, steps=steps), scale=0.7)
    law, generator = exact.law(model), torch.Generator().manual_seed(0)
    for place in (1, 5):
        rows = space.configurations()[place].expand(draws, -1)
        values = likelihood.elbo(model.conditionals, rows, generator=generator)
        expected = enumerated_elbo(model.conditionals, place)
        assert math.isfinite(expected)
        assert expected <= float(law[place].log()) + 1e-12
        # Five standard errors: exceeded by one in 10^6.
        assert abs(float(values.mean()) - expected) <= 5 * float(values.std()) / draws**0.5 + 1e-12


@pytest.mark.parametrize("keep_prob", [0.0, 0.5])
@pytest.mark.parametrize("values", [{0: 1}, {1: 2}], ids=str)
def test_given_sites_are_held_in_law(keep_prob: float, values: dict[int, int]) -> None:
    space, n = SPACES[1], 20_000
    model = noisy.untrained_with(MaskedRoundRobin(space, keep_prob, steps=5), scale=1.0)
    tokens, given = torch.zeros(1, 2, dtype=torch.uint8), torch.zeros(1, 2, dtype=torch.bool)
    for site, value in values.items():
        tokens[0, site], given[0, site] = value, True
    drawn = sample_clamped(model.conditionals, n, tokens, given, generator=torch.Generator().manual_seed(0))
    assert drawn.exact == (keep_prob == 0 and 1 in values)
    kept = np.array([all(x[site] == v for site, v in values.items()) for x in oracles.configurations(space)])
    expected = exact.law(model).numpy() * kept
    expected /= expected.sum()
    shares = torch.bincount(space.index(drawn.x), minlength=space.size).numpy() / n
    worth = 1 / (1 / n + (0 if drawn.exact else 1 / float(drawn.effective.sum())))
    assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, worth)


def test_given_sites_start_masked_and_waste_no_particle() -> None:
    """With uniform conditionals all weights are equal, if none is spent on a start that is no mask."""
    conditionals = noisy.untrained_with(MaskedRoundRobin(SPACES[1], 0.9), scale=0.0).conditionals
    tokens, given = torch.tensor([[1, 0]], dtype=torch.uint8), torch.tensor([[True, False]])
    drawn = sample_clamped(conditionals, 1000, tokens, given, generator=torch.Generator().manual_seed(0))
    particles = max(clamped.SHARED_LEAST, clamped.SHARED * 1000)
    assert drawn.effective.tolist() == pytest.approx([particles])


@pytest.mark.parametrize("keep_prob", [0.0, 0.4])
def test_the_theorem_holds(keep_prob: float) -> None:
    space = SPACES[1]
    pmf, noise = oracles.random_law(space, seed=2, zeros=0.3), MaskedRoundRobin(space, keep_prob, steps=5)
    truth = exact.bound(exact.ExactConditionals(pmf, noise), pmf)
    assert truth.eta == pytest.approx(0, abs=1e-12)
    assert truth.tv == pytest.approx(0, abs=1e-12)
    assert truth.gamma == 0
    kept = 1 - math.prod(1 - keep_prob ** (3 - site) for site in range(2))  # three visits and two
    assert truth.delta_T == pytest.approx(kept, abs=1e-12)
    learnt = exact.bound(noisy.untrained_with(noise, scale=0.3), pmf)
    assert 0 < learnt.tv <= learnt.bound
    last = exact.noised(pmf, noise, 5)
    assert exact.bound(noisy.untrained_with(noise, scale=0.3), pmf, last).gamma == pytest.approx(kept, abs=1e-12)


def test_with_256_states_the_mask_is_no_token() -> None:
    noise = MaskedRoundRobin(Space(sites=2, states=256), 0.5, cycles=2)
    x_0 = torch.tensor([[0, 255]], dtype=torch.uint8).expand(500, -1)
    x_t = noise.corrupt(x_0, torch.full((500,), 4), generator=torch.Generator().manual_seed(0))
    assert set(x_t[:, 0].tolist()) == {0, 256}
    assert set(x_t[:, 1].tolist()) == {255, 256}
    step = torch.ones(1, dtype=torch.int64)
    hard = noisy.untrained_with(MaskedRoundRobin(noise.space, 0.0), scale=0.3).conditionals
    drawn = sample(hard, 8_000, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        law = hard.log_conditional(step, step, torch.full((1, 2), 256, dtype=torch.int16)).exp()[0]
    chi_square.assert_drawn_from(drawn[:, 1].numpy(), law.numpy())
    masks = torch.full((8_000, 2), 256, dtype=torch.int16)
    soft = reverse(
        noisy.untrained_with(noise, scale=0.3).conditionals, masks, generator=torch.Generator().manual_seed(1)
    )
    assert soft.max() < 256
    assert len(set(soft[:, 1].tolist())) > 150


def test_a_model_fits_samples_bounds_and_is_saved(tmp_path: object) -> None:
    X = tiny.spins(200)
    model = tiny.model(chain__kind=MASKED, keep_prob=0.3, cycles=3, corrector__clean=0.3).fit(X, max_steps=60)
    law = exact.law(model)
    assert float(law.sum()) == pytest.approx(1, abs=1e-9)
    rows = (model.sample(20_000, seed=1) > 0).astype(np.uint8)
    chi_square.assert_drawn_from(model.space_.index(torch.from_numpy(rows)).numpy(), law.numpy())
    everything = 2 * np.array(oracles.configurations(model.space_)) - 1
    found = model.elbo(everything, seed=0, draws=400)
    assert (found.value <= np.log(law.numpy()) + 5 * found.standard_error).all()
    with pytest.raises(NotImplementedError, match="soft noise"):
        model.log_prob(X)
    model.save(tmp_path / "model")  # type: ignore[operator]
    again = load(tmp_path / "model")  # type: ignore[operator]
    np.testing.assert_array_equal(again.sample(50, seed=3), model.sample(50, seed=3))
    clamp = np.ma.masked_all(3, int)
    clamp[2] = 1
    assert (model.sample(40, clamp=clamp, seed=0)[:, 2] == 1).all()


def test_training_approaches_the_law_of_the_data() -> None:
    X = tiny.spins(2000)
    model = tiny.model(chain__kind=MASKED, keep_prob=0.3, cycles=2, width=16).fit(X, max_steps=400)
    pmf = oracles.empirical(model.space_, torch.from_numpy((X > 0).astype(int)))
    assert oracles.tv(exact.law(model).numpy(), pmf) < 0.1  # the law of independent sites is 0.4 away


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(ValueError, match="steps=2 visits 2 of 3 sites"):
        MaskedRoundRobin(SPACES[0], 0.0, steps=2)
    with pytest.raises(ValueError, match="keep_prob must be in"):
        MaskedRoundRobin(SPACES[0], 1.0)
    with pytest.raises(ValueError, match="chain__kind must be 'round_robin' for GGM"):
        tiny.model("ggm", chain__kind=MASKED).fit(tiny.spins(), max_steps=1)
