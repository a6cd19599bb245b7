"""Sites that never vary are answered exactly, and have their place in the law."""

import itertools
import math

import numpy as np
import oracles
import pytest
import torch

from neurise import checks, exact, likelihood
from neurise.conditionals.base import Frame
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACE = Space(sites=3, states=4)


HARD = {
    "bits": {"sites": 4, "constant": {1: 0, 3: 1}, "unseen": 0.05},
    "trits": {"sites": 3, "states": 3, "constant": {1: 2}, "unseen": 0.05},
}
SOFT = {f"soft {name}": {**kind, "keep_prob": 0.4, "cycles": 2} for name, kind in HARD.items()}


def make(
    *,
    sites: int,
    states: int = 2,
    constant: dict[int, int],
    unseen: float,
    keep_prob: float = 0.0,
    cycles: int = 1,
    hide_noised: bool = True,
) -> KnownSites:
    """Known sites around a network in float64 whose every context has its own answer."""
    noise = RoundRobin(Space(sites, states), keep_prob, cycles)
    network = SiteMLP(noise.space, noise.num_steps, width=8, depth=2)
    generator = torch.Generator().manual_seed(7)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.7, generator=generator)
    only = torch.full((sites,), -1)
    for site, token in constant.items():
        only[site] = token
    inner = NetworkConditionals(network.double().requires_grad_(False), Frame(noise, 0, only), hide_noised=hide_noised)
    return KnownSites(inner, only, unseen=unseen)


def learnt(keep_prob: float, *, constant: tuple[int, ...] = (-1, 2, -1), unseen: float = 0.0) -> KnownSites:
    only = {site: token for site, token in enumerate(constant) if token >= 0}
    return make(sites=3, states=4, constant=only, unseen=unseen, keep_prob=keep_prob, cycles=2)


def clean_law(states: int, only: int, unseen: float) -> np.ndarray:
    """What is left of one when every other symbol has had its share."""
    return np.array([unseen if a != only else 1 - unseen * (states - 1) for a in range(states)])


@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
@pytest.mark.parametrize("unseen", [0.0, 1e-6, 0.05])
def test_a_constant_site_is_answered_exactly(keep_prob: float, unseen: float) -> None:
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    conditionals = learnt(keep_prob, unseen=unseen)
    expected = clean_law(4, 2, unseen)
    for t in (1, 4):
        answer = conditionals.log_conditional(torch.tensor([t]), torch.tensor([1]), x).double().exp()
        # Two logarithms of at most 14, in float64.
        np.testing.assert_allclose(answer, np.tile(expected, (5, 1)), rtol=1e-13, atol=0)
        expected = oracles.forward_kernel(Space(1, 4), 0, keep_prob) @ expected


@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
def test_without_unseen_symbols_the_law_is_the_kernel_to_the_bit(keep_prob: float) -> None:
    conditionals = learnt(keep_prob, constant=(3, 2, 0))
    u, visits = torch.arange(3), torch.arange(3)[:, None]
    kernel = conditionals.noise.log_noised_token(conditionals.constant.expand(3, -1), visits)
    assert torch.equal(conditionals.log_known(u.expand(3, -1), visits), kernel)


def test_with_one_symbol_there_is_no_other() -> None:
    conditionals = make(states=1, sites=2, constant={0: 0, 1: 0}, unseen=1e-6)
    assert conditionals.log_known(torch.arange(2), torch.tensor(0)).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("unseen", [-1e-9, 0.25, 1.0, math.nan, math.inf, "1e-6", None])
def test_what_is_no_small_probability_is_refused(unseen: float) -> None:
    with pytest.raises(ValueError, match=rf"unseen must be in \[0, 1/4\), got {unseen!r}: .* 0 makes them impossible"):
        checks.unseen(unseen, 4)


def enumerated_law(conditionals: KnownSites, start: np.ndarray, unseen: float) -> np.ndarray:
    """Reverse kernels entry by entry, with the constant sites' laws written down by hand."""
    space, keep_prob, law = conditionals.noise.space, conditionals.noise.keep_prob, start
    everything = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    for t in reversed(range(conditionals.noise.num_steps)):
        u, step = t % space.sites, torch.tensor([t])
        only = int(conditionals.constant[u])
        if only < 0:
            logits = conditionals.inner.network(step, step % space.sites, everything, conditionals.hidden(step))
            table = logits.softmax(-1).detach().numpy()
        else:
            one = clean_law(space.states, only, unseen)
            for _ in range(t // space.sites):
                one = oracles.forward_kernel(Space(1, space.states), 0, keep_prob) @ one
            table = np.tile(one, (space.size, 1))
        forward = oracles.forward_kernel(space, t, keep_prob)
        kernel = np.zeros_like(forward)  # [x_t, x_{t+1}]
        for (i, new), (j, old) in itertools.product(enumerate(everything.tolist()), repeat=2):
            kernel[i, j] = forward[j, i] * table[j, new[u]] if new[:u] + new[u + 1 :] == old[:u] + old[u + 1 :] else 0
        law = kernel / kernel.sum(axis=0) @ law
    return law


def marginal(law: torch.Tensor, space: Space, site: int) -> np.ndarray:
    return law.view(space.states**site, space.states, -1).sum((0, 2)).numpy()


@pytest.mark.parametrize("kind", [*HARD.values(), *SOFT.values()], ids=[*HARD, *SOFT])
def test_unseen_symbols_have_their_place_in_the_law(kind: dict) -> None:
    conditionals = make(**kind)
    space, law = conditionals.noise.space, exact.chain_law(conditionals)
    expected = enumerated_law(conditionals, np.full(space.size, 1 / space.size), kind["unseen"])
    np.testing.assert_allclose(law, expected, rtol=1e-12, atol=0)
    assert float(law.sum()) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("kind", HARD.values(), ids=HARD)
def test_the_likelihood_of_unseen_symbols_is_that_of_the_law(kind: dict) -> None:
    conditionals = make(**kind)
    everything = conditionals.noise.space.configurations()
    found = likelihood.log_prob(conditionals, everything)
    assert (found > -math.inf).all()
    np.testing.assert_allclose(found.exp(), exact.chain_law(conditionals), rtol=1e-12, atol=0)
    bound = likelihood.elbo(conditionals, everything, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(bound, found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", SOFT.values(), ids=SOFT)
def test_the_bound_of_unseen_symbols_lies_below_the_law(kind: dict) -> None:
    conditionals, draws = make(**kind), 500
    space, generator = conditionals.noise.space, torch.Generator().manual_seed(0)
    rows = space.configurations().repeat(draws, 1)
    values = likelihood.elbo(conditionals, rows, generator=generator).view(draws, space.size)
    assert values.isfinite().all()
    # Six standard errors of the mean: exceeded by one configuration in 10^9.
    lowest = values.mean(0) - 6 * values.std(0) / draws**0.5
    assert (lowest <= exact.chain_law(conditionals).log()).all()


@pytest.mark.parametrize("kind", [*HARD.values(), *SOFT.values()], ids=[*HARD, *SOFT])
def test_a_constant_site_shows_each_unseen_symbol_as_often_as_was_asked(kind: dict) -> None:
    """From where the noise takes it: from the uniform law itself soft noise would remember a little of that."""
    conditionals = make(**kind)
    noise, space = conditionals.noise, conditionals.noise.space
    for site, only in kind["constant"].items():
        shares = clean_law(space.states, only, kind["unseen"])
        pmf = [shares[x[site]] / space.states ** (space.sites - 1) for x in oracles.configurations(space)]
        law = exact.chain_law(conditionals, start=exact.noised(pmf, noise, noise.num_steps))
        for same in (law, exact.swept(conditionals, law, sweeps=2)):
            np.testing.assert_allclose(marginal(same, space, site), shares, rtol=1e-12, atol=0)


@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
def test_other_sites_are_answered_by_the_learnt_conditionals(keep_prob: float) -> None:
    conditionals = learnt(keep_prob)
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    for t in (0, 2, 3, 5):
        time, site = torch.tensor([t]), torch.tensor([t % 3])
        assert torch.equal(
            conditionals.log_conditional(time, site, x), conditionals.inner.log_conditional(time, site, x)
        )
    assert torch.equal(conditionals.hidden(torch.arange(6)), conditionals.inner.hidden(torch.arange(6)))


@pytest.mark.parametrize("kind", [*HARD.values(), *SOFT.values()], ids=[*HARD, *SOFT])
@pytest.mark.parametrize("sweep", [False, True])
def test_a_walk_answers_as_the_conditionals_do(kind: dict, sweep: bool) -> None:
    conditionals = make(**kind)
    sites, states = conditionals.noise.space.sites, conditionals.noise.space.states
    generator = torch.Generator().manual_seed(2)
    x = conditionals.noise.space.uniform(6, generator=generator)
    view = conditionals.view(sweep=sweep)
    assert view is not None
    certain = conditionals.certain(view)
    for cycle in range(view.cycles):
        walk = conditionals.walk(x.T.contiguous(), None, torch.tensor([cycle]), sweep=sweep)
        rows = x.clone()
        for u in reversed(range(sites)):
            t = torch.tensor([0 if sweep else cycle * sites + u])
            expected = conditionals.log_conditional(t, torch.tensor([u]), rows)
            found = walk.logits(u)
            full = torch.cat([torch.zeros_like(found), found], dim=-1) if states == 2 else found
            torch.testing.assert_close(full.log_softmax(-1), expected, rtol=0, atol=1e-10)
            assert certain.sites[u] == (u in kind["constant"])
            if certain.sites[u]:
                assert torch.equal(found, certain.logits[cycle, u].expand(6, -1))
            rows[:, u] = torch.randint(states, (6,), generator=generator, dtype=torch.uint8)
            walk.put(u, rows[:, u])
