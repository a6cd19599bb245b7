"""Sweeps between reverse steps: exact conditionals stay exact, wrong ones give what kernels written out give."""

import chi_square
import noisy
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import exact
from neurise.noise.base import SiteNoise
from neurise.noise.masked_round_robin import MaskedRoundRobin
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.sampling.corrector import checked_sweeps, correct, swept_sites
from neurise.sampling.reverse import sample
from neurise.space import Space

BITS, TRITS = Space(sites=3, states=2), Space(sites=2, states=3)
CHAINS = {
    "hard": RoundRobin(BITS, 0.0),
    "hard, trits": RoundRobin(Space(sites=3, states=3), 0.0, steps=5),
    "soft": RoundRobin(BITS, 0.4, steps=5),
    "soft, trits": RoundRobin(TRITS, 0.6, steps=5),
    "heat bath": RoundRobin(BITS, 0.4, cycles=2, heat_bath=True),
    "masks, hard": MaskedRoundRobin(BITS, 0.0),
    "masks, soft": MaskedRoundRobin(TRITS, 0.5, steps=5),
}
EVERYWHERE = {0: 2, 1: 1, 2: 2, 3: 1}


def at(noise: SiteNoise) -> dict[int, int]:
    return {t: count for t, count in EVERYWHERE.items() if t < noise.num_steps}


@pytest.mark.parametrize("noise", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("hide_noised", [True, False])
def test_exact_conditionals_leave_the_law_as_it_is(noise: SiteNoise, hide_noised: bool) -> None:
    pmf = oracles.random_law(noise.space, seed=1)
    chain = exact.ExactConditionals(pmf, noise, hide_noised=hide_noised)
    last = exact.noised(pmf, noise, noise.num_steps)
    np.testing.assert_allclose(exact.law(chain, start=last, sweeps=at(noise)), pmf, atol=1e-13)
    if isinstance(noise, MaskedRoundRobin):
        np.testing.assert_allclose(exact.law(chain, sweeps=at(noise)), pmf, atol=1e-13)


@pytest.mark.parametrize("noise", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("hide_noised", [True, False])
def test_wrong_conditionals_give_the_product_of_their_kernels(noise: SiteNoise, hide_noised: bool) -> None:
    model = noisy.untrained_with(noise, hide_noised=hide_noised)
    plain = exact.law(model)
    for sweeps in ({0: 1}, {1: 2}, at(noise)):
        expected = noisy.chain(model.conditionals, noisy.start(noise), sweeps)
        found = exact.law(model, sweeps=sweeps)
        np.testing.assert_allclose(found, expected, atol=1e-13)
        assert oracles.tv(found.numpy(), plain.numpy()) > 1e-4  # otherwise nothing was tested


@pytest.mark.parametrize("noise", CHAINS.values(), ids=CHAINS)
def test_rows_follow_the_exact_law(noise: SiteNoise) -> None:
    model, n = noisy.untrained_with(noise), 20_000
    for sweeps in ({1: 1}, at(noise)):  # at one time alone a wrong time would be seen
        rows = sample(model.conditionals, n, generator=torch.Generator().manual_seed(2), sweeps=sweeps)
        law = exact.law(model, sweeps=sweeps).numpy()
        chi_square.assert_drawn_from(noise.space.index(rows).numpy(), law)


def test_a_sweep_redraws_what_is_not_erased() -> None:
    hard, soft = (noisy.untrained_with(CHAINS[name]).conditionals for name in ("hard", "soft"))
    assert [list(swept_sites(hard, t)) for t in range(3)] == [[0, 1, 2], [1, 2], [2]]
    assert list(swept_sites(soft, 4)) == [0, 1, 2]


@pytest.mark.parametrize("keep_prob", [0.0, 0.5])
@pytest.mark.parametrize("kind", noisy.SITE_NOISE)
def test_examples_of_any_time_ask_for_sites_that_tell_something(keep_prob: float, kind: str) -> None:
    settings = {"corrector__clean": 0.5, "corrector__anytime": True, "chain__kind": kind}
    model = tiny.model(keep_prob=keep_prob, chain__steps=5, **settings).fit(tiny.spins(sites=4), max_steps=1)
    n, space, noise = 40_000, model.space_, model.conditionals.noise  # type: ignore[attr-defined]
    x = space.uniform(n, generator=torch.Generator().manual_seed(0))
    drawn = model._build().draw(Batch(x, None, None), generator=torch.Generator().manual_seed(1))  # type: ignore[attr-defined]
    own = drawn.u == drawn.t % space.sites
    erased = noise.erased(drawn.t).gather(-1, drawn.u[:, None]).squeeze(-1)
    assert not bool(erased[~own].any())
    assert torch.equal(drawn.x_u, noise.target(x, drawn.x, drawn.u))
    # Which sites each time asks for: all that are not erased, and no others besides the step's own.
    for t in range(noise.num_steps):
        asked = set(drawn.u[drawn.t == t].tolist())
        wanted = {site for site in range(space.sites) if not noise.erased(torch.tensor(t))[site]}
        assert asked == wanted | {t % space.sites}
    # Half are examples of steps, a quarter keeps its time and a quarter does not, unless its site is erased: a fair share
    # of examples at other sites is at times above 0, within five deviations.
    late = float((~own & (drawn.t > 0)).double().mean())
    chance = np.mean(
        [
            0 if t == 0 or noise.erased(torch.tensor(t))[site] or site == t % space.sites else 0.25
            for t in range(5)
            for site in range(space.sites)
        ]
    )
    assert abs(late - chance) <= 5 * (chance / n) ** 0.5


def test_a_model_samples_with_sweeps_at_several_times() -> None:
    X, n = tiny.spins(200), 20_000
    taught = {"corrector__clean": 0.5, "corrector__anytime": True}
    model = tiny.model(keep_prob=0.4, cycles=2, order=[1, 2, 0], **taught).fit(X, max_steps=300)
    sweeps = {0: 1, 3: 2}
    rows = torch.from_numpy((model.sample(n, sweeps=sweeps, seed=1) > 0).astype(np.uint8))
    law = exact.law(model, sweeps=sweeps).numpy()
    chi_square.assert_drawn_from(model.space_.index(rows).numpy(), law)
    for fewer in (0, {0: 1}, {3: 2}):
        assert oracles.tv(law, exact.law(model, sweeps=fewer).numpy()) > 1e-4


def test_what_was_not_taught_is_said() -> None:
    X = tiny.spins()
    model = tiny.model(keep_prob=0.4, corrector__clean=0.5).fit(X, max_steps=1)
    with pytest.raises(ValueError, match="corrector__anytime=True"):
        model.sample(5, sweeps={0: 1, 2: 1})
    with pytest.raises(ValueError, match="the chain has the times 0 … 2"):
        model.sample(5, sweeps={3: 1})
    conditionals = model.conditionals  # type: ignore[attr-defined]
    assert checked_sweeps({0: 0, 2: 0}, conditionals, clean=False, anytime=False) == {}


@pytest.mark.parametrize("noise", [CHAINS["hard, trits"], CHAINS["masks, hard"]], ids=["uniform", "masks"])
def test_held_sites_stay_during_sweeps(noise: SiteNoise) -> None:
    """From the law given the last site, sweeps of the others alone: by hand, and by rows."""
    model, n, last = noisy.untrained_with(noise), 20_000, noise.space.sites - 1
    clean = Space(noise.space.sites, noise.space.states)
    given = np.array([x[last] == 1 for x in oracles.configurations(clean)])
    begin = exact.law(model).numpy() * given
    begin /= begin.sum()
    law = noisy.embedded(noise, begin)
    for _ in range(2):
        for u in reversed(range(last)):
            table = noisy.answers(model.conditionals, 0, u)
            law = noisy.moves(noise, u, np.pad(table, [(0, 0), (0, noise.tokens - noise.space.states)])) @ law
    expected = law[noisy.embedded(noise, np.ones(clean.size)) > 0]
    assert oracles.tv(expected, begin) > 1e-3
    rows = torch.from_numpy(oracles.draw(clean, begin, n, seed=3)).to(torch.uint8)
    held = torch.zeros_like(rows, dtype=torch.bool)
    held[:, last] = True
    generator = torch.Generator().manual_seed(4)
    moved = correct(model.conditionals, rows, sweeps=2, held=held, generator=generator)
    assert bool((moved[:, last] == 1).all())
    chi_square.assert_drawn_from(clean.index(moved).numpy(), expected)


def test_a_model_holds_clamped_sites_during_sweeps() -> None:
    """The clamped site is generated first, so the rows before the sweeps are exact draws of the law given it."""
    X, n = tiny.spins(200), 20_000
    model = tiny.model(corrector__clean=0.5, corrector__sweeps=2).fit(X, max_steps=60)
    clamp = np.ma.masked_all(3, int)
    clamp[2] = -1
    rows = model.sample(n, clamp=clamp, seed=5)
    assert (rows[:, 2] == -1).all()
    conditionals = model.conditionals  # type: ignore[attr-defined]
    law = exact.law(model, sweeps=0).numpy() * np.array([x[2] == 0 for x in oracles.configurations(model.space_)])
    law /= law.sum()
    for _ in range(2):
        for u in (1, 0):
            law = noisy.moves(conditionals.noise, u, noisy.answers(conditionals, 0, u)) @ law
    places = model.space_.index(torch.from_numpy((rows > 0).astype(np.uint8))).numpy()
    chi_square.assert_drawn_from(places, law)
    with pytest.raises(NotImplementedError, match="sweeps can run at time 0 only"):
        tiny.model(corrector__clean=0.5, corrector__anytime=True).fit(X, max_steps=1).sample(
            3, clamp=clamp, sweeps={1: 1}
        )
