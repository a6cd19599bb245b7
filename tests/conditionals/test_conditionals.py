import itertools
import math

import chains
import numpy as np
import oracles
import pytest
import torch

from neurise import exact, likelihood
from neurise.conditionals import NetworkConditionals
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACE = Space(sites=3, states=4)


HARD = {
    "bits": {"sites": 4, "constant": {1: 0, 3: 1}, "unseen": 0.05},
    "trits": {"sites": 3, "states": 3, "constant": {1: 2}, "unseen": 0.05},
}
SOFT = {f"soft {name}": {**kind, "keep_prob": 0.4, "cycles": 2} for name, kind in HARD.items()}


def learnt(
    keep_prob: float, *, hide_noised: bool = True, constant: tuple[int, ...] = (-1, 2, -1), unseen: float = 0.0
) -> NetworkConditionals:
    noise = RoundRobin(SPACE, keep_prob, cycles=2)
    network = SiteMLP(SPACE, noise.num_steps, width=8, depth=1)
    network.reset(torch.Generator().manual_seed(0))
    torch.nn.init.normal_(network.head)
    constant_sites = torch.tensor(constant)
    return NetworkConditionals(network, noise, constant_sites, hide_noised=hide_noised, width=8, unseen=unseen)


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
        # A logarithm of at most 14 in float32 is off by at most 2^-21: so is the probability, of its size.
        np.testing.assert_allclose(answer.detach(), np.tile(expected, (5, 1)), rtol=2**-20, atol=0)
        expected = oracles.forward_kernel(Space(1, 4), 0, keep_prob) @ expected


@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
def test_without_unseen_symbols_the_law_is_the_kernel_to_the_bit(keep_prob: float) -> None:
    conditionals = learnt(keep_prob, constant=(3, 2, 0))
    u, visits = torch.arange(3), torch.arange(3)[:, None]
    kernel = conditionals.noise.log_kernel(conditionals.constant.expand(3, -1), visits)
    assert torch.equal(conditionals.log_known(u.expand(3, -1), visits), kernel)


def test_with_one_symbol_there_is_no_other() -> None:
    conditionals = chains.make(states=1, sites=2, constant={0: 0, 1: 0}, unseen=1e-6)
    assert conditionals.log_known(torch.arange(2), torch.tensor(0)).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("unseen", [-1e-9, 0.25, 1.0, math.nan, math.inf, "1e-6", None])
def test_what_is_no_small_probability_is_refused(unseen: float) -> None:
    with pytest.raises(ValueError, match=rf"unseen must be in \[0, 1/4\), got {unseen!r}: .* 0 makes them impossible"):
        learnt(0.0, unseen=unseen)


def in_double(kind: dict) -> NetworkConditionals:
    conditionals = chains.make(**kind)
    conditionals.network.double()
    return conditionals


def enumerated_law(conditionals: NetworkConditionals, start: np.ndarray, unseen: float) -> np.ndarray:
    """Reverse kernels entry by entry, with the constant sites' laws written down by hand."""
    space, keep_prob, law = conditionals.noise.space, conditionals.noise.keep_prob, start
    everything = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    for t in reversed(range(conditionals.noise.num_steps)):
        u, step = t % space.sites, torch.tensor([t])
        only = int(conditionals.constant[u])
        if only < 0:
            logits = conditionals.network(step, step % space.sites, everything, conditionals.hidden(step))
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
    conditionals = in_double(kind)
    space, law = conditionals.noise.space, exact.chain_law(conditionals)
    expected = enumerated_law(conditionals, np.full(space.size, 1 / space.size), kind["unseen"])
    np.testing.assert_allclose(law, expected, rtol=1e-12, atol=0)
    assert float(law.sum()) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("kind", HARD.values(), ids=HARD)
def test_the_likelihood_of_unseen_symbols_is_that_of_the_law(kind: dict) -> None:
    conditionals = in_double(kind)
    everything = conditionals.noise.space.configurations()
    found = likelihood.log_prob(conditionals, everything)
    assert (found > -math.inf).all()
    np.testing.assert_allclose(found.exp(), exact.chain_law(conditionals), rtol=1e-12, atol=0)
    bound = likelihood.elbo(conditionals, everything, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(bound, found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", SOFT.values(), ids=SOFT)
def test_the_bound_of_unseen_symbols_lies_below_the_law(kind: dict) -> None:
    conditionals, draws = in_double(kind), 500
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
    conditionals = in_double(kind)
    noise, space = conditionals.noise, conditionals.noise.space
    for site, only in kind["constant"].items():
        shares = clean_law(space.states, only, kind["unseen"])
        pmf = [shares[x[site]] / space.states ** (space.sites - 1) for x in oracles.configurations(space)]
        law = exact.chain_law(conditionals, start=exact.noised(pmf, noise, noise.num_steps))
        for same in (law, exact.swept(conditionals, law, sweeps=2)):
            np.testing.assert_allclose(marginal(same, space, site), shares, rtol=1e-12, atol=0)


def test_other_sites_are_answered_by_the_network() -> None:
    conditionals = learnt(0.3)
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    t = torch.tensor([2])
    logits = conditionals.network(t, t, x, torch.zeros(1, 3, dtype=torch.bool))
    torch.testing.assert_close(conditionals.log_conditional(t, t, x), logits.log_softmax(-1))


def test_erased_sites_are_hidden_unless_asked_otherwise() -> None:
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    changed = x.clone()
    changed[:, 0] = (x[:, 0] + 1) % 4
    t = torch.tensor([2])  # site 0 was noised at step 0
    for hide, same in ((True, True), (False, False)):
        conditionals = learnt(0.0, hide_noised=hide)
        first, second = (conditionals.log_conditional(t, t, rows) for rows in (x, changed))
        assert torch.allclose(first, second) == same
    soft = learnt(0.3)
    assert not torch.allclose(soft.log_conditional(t, t, x), soft.log_conditional(t, t, changed))
